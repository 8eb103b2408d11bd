"""The look of charts, and their files."""

from __future__ import annotations

import json

import pytest

from kontrast.report.figures import INK, LIGHT, PAPER, THEME, WIDE, described, drawn, themed

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
    assert drawn(CHART, kind).startswith(first)


def test_a_file_has_light_colours_and_a_width() -> None:
    text = drawn(CHART, "svg").decode()
    assert INK not in text
    assert PAPER not in text
    assert LIGHT[INK] in text
    assert f'width="{WIDE}"' in text
    with pytest.raises(ValueError, match="figures can be svg, pdf, png; got 'gif'"):
        drawn(CHART, "gif")


def test_a_chart_in_words() -> None:
    assert described({"description": "what", "title": "t"}) == "what"
    assert described({"title": {"text": ["two", "lines"]}}) == "two lines"
    assert described({"title": "t"}) == "t"
    assert described({}) == ""
