"""Training curves over each other: the loss with its chance and bound, and what the monitors saw.

Losses stand in one chart only where they have the same scale: the same method, and the same chance and bound at the end
(to two digits). Chance and bound are drawn for every run, dashed, and lie on each other where they are equal. Losses of
several scales stand together as their place between the two,

    (1)  (loss − bound) / (chance − bound)        1: no better than chance, 0: cannot be lower
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kontrast.report.comparison._paint import Json, drawn, fitted, groups, named, told_apart
from kontrast.report.comparison.collect import Run
from kontrast.report.page import Figure, Fold, Part

MOST_POINTS = 250
FEW = 4  # recipes, whose key has room above every chart; of more it stands above the first
MOST_SCALES = 4  # more charts than that are folded
PLACE = (
    "The losses have different scales: drawn is their place between the lower bound, 0, and chance, 1, that is (loss − "
    "bound) / (chance − bound). It says how far each came by its own measure, not which encoder is better."
)
MONITORS = {
    "knn20": ("kNN accuracy", "k = 20, on a held-out batch"),
    "uniformity": ("uniformity", "of embeddings; lower is more even"),
    "tolerance": ("tolerance", "of embeddings; higher is tighter classes"),
    "effective_rank": ("effective rank, features", "how many directions the encoder uses"),
    "effective_rank_embeddings": ("effective rank, embeddings", "how many directions the head uses"),
    "entropy_share": ("penalty entropy", "share of the largest; 1: all negatives weigh alike"),
    "response_positive": ("pull of the hardest positive", "its gradient response"),
    "response_negative": ("push of the hardest negative", "its gradient response"),
    "similarity_gap": ("positive − hardest negative", "cosine of embeddings"),
}


def losses(runs: Sequence[Run]) -> list[Part]:
    """A chart for each scale, and one of all."""
    scales: dict[tuple[Any, ...], list[Run]] = {}
    of: dict[str, tuple[Any, ...]] = {}  # a recipe's seeds stand together, even where the bound depends on the weights
    for run in runs:
        if any(line.get("loss") is not None for line in run.metrics):
            scales.setdefault(of.setdefault(run.group, _scale(run)), []).append(run)
    each = []
    for i, some in enumerate(scales.values()):
        name = "loss" if len(scales) == 1 else f"loss-{i + 1}"
        method = some[0].recipe.get("method.name", "")
        each.append(Figure(name, _loss(runs, some, f"loss, {method}", len(scales) == 1), wide=len(scales) == 1))
    if len(scales) < 2:
        return list(each)
    every = [run for some in scales.values() for run in some]
    together = [Figure("loss-place", _place(runs, every), PLACE, wide=True)]
    if len(each) > MOST_SCALES:
        return [*together, Fold(f"the loss of each scale by itself ({len(each)} charts)", each)]
    return [*together, *each]


def _scale(run: Run) -> tuple[Any, ...]:
    last: Mapping[str, Any] = next((line for line in reversed(run.metrics) if line.get("loss") is not None), {})
    return (run.recipe.get("method.name"), *(_rounded(last.get(key)) for key in ("chance", "bound")))


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _loss(runs: Sequence[Run], some: Sequence[Run], title: str, wide: bool) -> Json:
    import altair as alt

    records = []
    for run in some:
        for line in _thinned([line for line in run.metrics if line.get("loss") is not None]):
            kinds = {"loss": line["loss"], "chance": line.get("chance"), "bound": line.get("bound")}
            records += [
                {"step": line["step"], "value": value, "of": of, **named(run)}
                for of, value in kinds.items()
                if value is not None
            ]
    base = drawn(records).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
        detail=alt.Detail(["run:N", "of:N"]),
        tooltip=_tooltip("value", "of"),
    )
    known = told_apart(runs, some)
    solid = base.transform_filter("datum.of == 'loss'").mark_line(strokeWidth=1.8).encode(**known)
    dashed = base.transform_filter("datum.of != 'loss'").mark_line(strokeWidth=1, strokeDash=[5, 4], opacity=0.8)
    dashed = dashed.encode(color=known["color"])
    words = (
        drawn(_ends(records))
        .mark_text(align="left", dx=4, dy=-6, fontSize=11, color="currentColor", opacity=0.8)
        .encode(x=alt.X("step:Q"), y=alt.Y("value:Q"), text="of:N")
    )
    return fitted(dashed + solid + words, 300 if wide else 240, title)


def _place(runs: Sequence[Run], some: Sequence[Run]) -> Json:
    """(1) of all."""
    import altair as alt

    records = []
    for run in some:
        lines = [line for line in run.metrics if None not in (line.get("loss"), line.get("chance"), line.get("bound"))]
        for line in _thinned([line for line in lines if line["chance"] > line["bound"]]):
            share = (line["loss"] - line["bound"]) / (line["chance"] - line["bound"])
            records.append({"step": line["step"], "value": share, **named(run)})
    chart = (
        drawn(records)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y("value:Q", title="0: the bound; 1: chance"),
            **told_apart(runs, some),
            detail="run:N",
            tooltip=_tooltip("value"),
        )
    )
    return fitted(chart, 300, "where the loss stands")


def _ends(records: Sequence[Json]) -> list[Json]:
    """Where the words chance and bound stand: at the beginning of a line, once."""
    found: dict[str, Json] = {}
    for record in records:
        if record["of"] != "loss":
            found.setdefault(record["of"], {"step": record["step"], "value": record["value"], "of": record["of"]})
    return list(found.values())


def monitors(runs: Sequence[Run]) -> list[Figure]:
    """A small chart for each monitor that some run has."""
    found: list[Figure] = []
    for key, (title, about) in MONITORS.items():
        records = [
            {"step": line["step"], "value": line[f"monitor/{key}"], **named(run)}
            for run in runs
            for line in _thinned([line for line in run.metrics if line.get(f"monitor/{key}") is not None])
        ]
        if records:
            legend = not found or len(groups(runs)) <= FEW
            found.append(Figure(f"monitor-{key.replace('_', '-')}", _monitor(runs, records, title, legend), about))
    return found


def _monitor(runs: Sequence[Run], records: Sequence[Json], title: str, legend: bool) -> Json:
    import altair as alt

    chart = (
        drawn(records)
        .mark_line(strokeWidth=1.8, point={"size": 18})
        .encode(
            x=alt.X("step:Q", title="step"),
            y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
            **told_apart(runs, legend=legend),
            detail="run:N",
            tooltip=_tooltip("value"),
        )
    )
    return fitted(chart, 210, title)


def _tooltip(*fields: str) -> list[Any]:
    import altair as alt

    shown = [alt.Tooltip("run:N"), alt.Tooltip("step:Q", format=",")]
    return shown + [alt.Tooltip(f"{f}:Q", format=".5~g") if f == "value" else alt.Tooltip(f"{f}:N") for f in fields]


def _thinned(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """At most `MOST_POINTS`, evenly, the last among them."""
    step = -(-len(lines) // MOST_POINTS) if lines else 1
    return [line for i, line in enumerate(lines) if (len(lines) - 1 - i) % step == 0]
