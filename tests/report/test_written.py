"""A written page is a path, and shows itself in a frame that cannot reach the notebook."""

from __future__ import annotations

import html
import re
from pathlib import Path

from kontrast.report.written import Written


def test_the_frame_holds_the_page_and_nothing_ends_it_early(tmp_path: Path) -> None:
    page = tmp_path / 'a "page" & more.html'
    page.write_text('<p title="x">&lt;b&gt;</p></iframe><script>alert(1)</script>', encoding="utf-8")
    written = Written(page)
    assert Path(written).read_bytes() == page.read_bytes()
    assert str(written) == str(page)
    frame = written._repr_html_()
    found = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts allow-downloads" title="[^"]*" .*></iframe>', frame
    )
    assert found is not None, "neither a quotation mark nor a tag of the page is one of the frame"
    assert html.unescape(found[1]) == page.read_text(encoding="utf-8")
