"""Colours of the runs: one a recipe, the same in every chart of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kontrast.report.comparison.collect import Run
from kontrast.report.figures import COLOURS

Json = dict[str, Any]


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


def colour(runs: Sequence[Run], some: Sequence[Run] | None = None, *, legend: bool = True, letters: int = 110) -> Any:
    """A colour for each recipe; more than there are colours are graded. Of ``some``, only theirs is in the legend.

    ``letters`` is the room for a line of the legend.
    """
    import altair as alt

    domain = groups(runs)
    if len(domain) <= len(COLOURS):
        scale = alt.Scale(domain=domain, range=list(COLOURS[: len(domain)]))
    else:
        scale = alt.Scale(domain=domain, scheme={"name": "viridis", "extent": [0.1, 0.85]})
    shown = domain if some is None else groups(some)
    columns = max(1, letters // (max(map(len, shown)) + 5))
    key = alt.Legend(orient="top", title=None, columns=columns, values=shown, labelLimit=420, symbolOpacity=1)
    return alt.Color("recipe:N", scale=scale, legend=key if legend else None)
