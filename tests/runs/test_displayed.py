"""What displays itself asks `kontrast.report.display`, by its class."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kontrast.report.display import parts_of
from kontrast.report.page import Text
from kontrast.runs import Displayed


class Note(Displayed):
    pass


def test_a_class_is_shown_as_its_parts_say() -> None:
    with pytest.raises(TypeError, match="a Note does not display itself"):
        str(Note())
    parts_of.register(Note, lambda note: [Text("a <b>\x1b[31m", "note")])
    assert str(Note()) == "a <b>\\x1b[31m"
    assert '<p class="note">a &lt;b&gt;' in Note()._repr_html_()


def test_a_run_is_read_without_report_and_torch() -> None:
    code = (
        "import sys, kontrast; print(repr(kontrast.Run('nowhere')))\n"
        "assert not {'torch', 'altair', 'kontrast.report'} & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "Run('nowhere', not begun)\n"), done.stderr
