"""How runs are told apart: a colour a recipe, the same in every chart of the page, with a dash or a shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kontrast.report.comparison.collect import Run
from kontrast.report.figures import COLOURS

Json = dict[str, Any]
LETTERS = 50  # of a legend's line on a phone
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3))
SHAPES = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-right")


def drawn(records: Sequence[Json]) -> Any:
    """A chart of records, without marks yet."""
    import altair as alt

    return alt.Chart(alt.Data(values=list(records)))  # type: ignore[no-untyped-call]


def fitted(chart: Any, high: int, title: Any) -> Json:
    """The specification, as wide as its place."""
    import altair as alt

    fit = alt.AutoSizeParams(type="fit-x", contains="padding")
    made: Json = chart.properties(width="container", height=high, title=title, autosize=fit).to_dict()
    return made


def groups(runs: Sequence[Run]) -> list[str]:
    """In the order given."""
    return list(dict.fromkeys(run.group for run in runs))


def named(run: Run) -> Json:
    """What a record says of its run."""
    return {"run": run.label, "recipe": run.group}


def told_apart(
    runs: Sequence[Run], some: Sequence[Run] | None = None, *, points: bool = False, legend: bool = True
) -> dict[str, Any]:
    """Encodings by which each recipe is known, with one legend: colours, and then dashes of lines or shapes of points.

    Colours come again after the last; the dash is then another, and points are never of the same colour and shape. Of
    ``some``, only theirs is in the legend, which fits a phone.
    """
    import altair as alt

    domain = groups(runs)
    shown = domain if some is None else groups(some)
    stroke: dict[str, Any] = {} if points else {"symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolSize": 250}
    key = alt.Legend(
        orient="top",
        title=None,
        columns=max(1, LETTERS // (max(map(len, shown)) + 6)),
        values=shown,
        labelLimit=alt.ExprRef("max(80, width - 40)"),
        symbolOpacity=1,
        **stroke,
    )
    of, colours, many = key if legend else None, len(COLOURS), range(len(domain))
    scale = alt.Scale(domain=domain, range=[COLOURS[i % colours] for i in many])
    found: dict[str, Any] = {"color": alt.Color("recipe:N", scale=scale, legend=of)}
    if points:
        shapes = alt.Scale(domain=domain, range=[SHAPES[(i + i // colours) % len(SHAPES)] for i in many])
        found["shape"] = alt.Shape("recipe:N", scale=shapes, legend=of)
    elif len(domain) > colours:
        dashes = alt.Scale(domain=domain, range=[list(DASHES[i // colours % len(DASHES)]) for i in many])
        found["strokeDash"] = alt.StrokeDash("recipe:N", scale=dashes, legend=of)
    return found
