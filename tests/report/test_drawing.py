"""What charts of several pages share."""

from __future__ import annotations

import numpy as np
import pytest

from kontrast.report.drawing import chart_of, fit_to_page, quantiles, spans
from kontrast.report.figures import draw


def test_quantiles_leave_nan_out() -> None:
    values = np.array([*np.linspace(0.0, 1.0, 101), np.nan])
    expected = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}
    assert quantiles(values) == pytest.approx(expected)


@pytest.mark.parametrize(("axis", "other"), [("x", "y"), ("y", "x")])
def test_spans_are_a_line_a_bar_and_a_tick_along_the_axis(axis: str, other: str) -> None:
    import altair as alt

    base = chart_of([{"run": name, **quantiles(np.arange(5) / k)} for k, name in enumerate("ab", 4)])
    base = base.encode(**{other: "run:N"})
    spec = fit_to_page(alt.layer(*spans(base, axis, bar=11, tick=18)), 200, "cosines")
    assert (spec["width"], spec["height"], spec["title"]) == ("container", 200, "cosines")
    assert [layer["mark"]["type"] for layer in spec["layer"]] == ["rule", "bar", "tick"]
    assert [layer["encoding"][axis]["field"] for layer in spec["layer"]] == ["low", "q1", "median"]
    assert [layer["encoding"].get(f"{axis}2", {}).get("field") for layer in spec["layer"]] == ["high", "q3", None]
    assert draw(spec, "svg").startswith(b"<svg")
