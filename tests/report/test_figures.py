"""The look of charts, and their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kontrast.report.figures import INK, LIGHT, PAPER, THEME, WIDE, describe, draw, library, themed, version, vl_convert

CHART = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "data": {"values": [{"x": 1, "y": 2}, {"x": 2, "y": 3}]},
    "mark": {"type": "point", "color": PAPER},
    "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    "width": "container",
    "config": {"axis": {"labelColor": "red", "tickCount": 3}, "view": {"continuousWidth": 9}},
}


def test_the_theme_wins_and_the_rest_stays() -> None:
    made = themed(CHART)
    assert made["config"]["axis"]["labelColor"] == INK
    assert made["config"]["axis"]["tickCount"] == 3
    assert made["config"]["view"] == {"continuousWidth": 9, "stroke": None}
    assert "https" not in json.dumps(made)
    assert CHART["config"]["axis"]["labelColor"] == "red", "what was given is not changed"  # type: ignore[index]
    assert "continuousWidth" not in THEME["view"]


@pytest.mark.parametrize(("kind", "first"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_files_by_kind(kind: str, first: bytes) -> None:
    assert draw(CHART, kind).startswith(first)


def test_a_file_has_light_colours_and_a_width() -> None:
    text = draw(CHART, "svg").decode()
    assert INK not in text
    assert PAPER not in text
    assert LIGHT[INK] in text
    assert f'width="{WIDE}"' in text
    with pytest.raises(ValueError, match="figures='gif': must be one of svg, pdf, png"):
        draw(CHART, "gif")


def test_a_chart_in_words() -> None:
    assert describe({"description": "what", "title": "t"}) == "what"
    assert describe({"title": {"text": ["two", "lines"]}}) == "two lines"
    assert describe({"title": "t"}) == "t"
    assert describe({}) == ""


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
