"""The charts' library is bundled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.report.library import library, version, vl_convert


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_is_made_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(vl_convert(), "javascript_bundle", lambda vl_version: calls.append(vl_version) or "let a = 1;")
    assert library.__wrapped__() == library.__wrapped__() == "let a = 1;"
    assert calls == [version()]
    (kept,) = (tmp_path / "cache" / "kontrast").iterdir()
    assert kept.name.startswith("vega-")


def test_a_home_without_room_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vl_convert(), "javascript_bundle", lambda vl_version: "let a = 1;")
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert library.__wrapped__() == "let a = 1;"


def test_what_cannot_stand_in_a_page_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vl_convert(), "javascript_bundle", lambda vl_version: "'</script>'")
    with pytest.raises(ValueError, match="it contains </script"):
        library.__wrapped__()
