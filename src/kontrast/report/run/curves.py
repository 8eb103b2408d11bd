"""Training: the loss between chance and its bound, the learning rate, and the values of the monitors.

Every curve keeps at most `MOST` points, so the page stays small for a long run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from kontrast.report.drawing import Json, chart_of, fit_to_page
from kontrast.report.figures import COLOURS, INK
from kontrast.report.monitors import PREFIX, charts_of
from kontrast.report.page import Figure, Part, Section, Text
from kontrast.report.records import RunRecord
from kontrast.runs.schemas import MetricsLine

MOST = 400


def section(run: RunRecord) -> Section | None:
    """The curves of a run; None if nothing was logged."""
    if not run.steps:
        return None
    parts: list[Part] = [Figure("loss", loss(run), _about_loss(run), wide=True)]
    parts += [Figure(name, spec) for name, spec in (("learning-rate", learning_rate(run)), *monitors(run)) if spec]
    parts.append(Text(_about_monitors(run), "note"))
    return Section("Training", parts)


def loss(run: RunRecord) -> Json:
    """The loss, chance and bound over the steps."""
    labels = {"loss": "loss", "chance": "chance (unrelated embeddings)", "bound": "bound (cannot be lower)"}
    rows = _long(run.steps, labels)
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    return _lines(rows, kinds, "Loss", "loss", dashed=[labels["chance"], labels["bound"]], height=280)


def learning_rate(run: RunRecord) -> Json:
    """The schedule of the learning rate; empty if it was not logged."""
    rows = _long(run.steps, {"lr": "learning rate"})
    return _lines(rows, ["learning rate"], "Learning rate", "") if rows else {}


def monitors(run: RunRecord) -> list[tuple[str, Json]]:
    """The chart of each monitor that ran."""
    charts: list[tuple[str, Json]] = []
    for name, chart in charts_of(run.monitors).items():
        labels = {f"{PREFIX}{key}": label for key, label in chart.series.items()}
        rows = _long(run.monitors, labels)
        curves = {label: [row["value"] for row in rows if row["what"] == label] for label in labels.values()}
        kinds: list[str] = []
        for label, values in curves.items():  # without a head, embeddings are the features again
            if values and values not in [curves[kind] for kind in kinds]:
                kinds.append(label)
        rows = [row for row in rows if row["what"] in kinds]
        if rows:
            charts.append((name, _lines(rows, kinds, chart.title, "", format=chart.format)))
    return charts


def thinned(lines: Sequence[MetricsLine], most: int = MOST) -> list[MetricsLine]:
    """At most ``most`` lines, evenly, with the first and the last.

    >>> [line["step"] for line in thinned([{"step": i} for i in range(9)], 3)]
    [0, 4, 8]
    """
    if len(lines) <= most:
        return list(lines)
    return [lines[round(i * (len(lines) - 1) / (most - 1))] for i in range(most)]


def digits(values: Sequence[float]) -> int:
    """How many digits an axis needs so that its five or so numbers differ.

    >>> digits([0.0, 0.1]), digits([1e9, 9.9e8]), digits([3.0, 3.0])
    (3, 4, 3)
    """
    high, span = max(map(abs, values)), max(values) - min(values)
    return 3 if span <= 0 else min(max(math.ceil(math.log10(10 * high / span)) + 1, 3), 8)


def _about_monitors(run: RunRecord) -> str:
    """Which rows the monitors look at: a reader must know if they are test rows."""
    if not run.monitors:
        return "No monitor looked at this run while it trained."
    recipe = run.contents.recipe
    held_out = recipe is not None and recipe.data.validation > 0
    rows = "rows held out of training" if held_out else f"{run.geometry.protocol.split or 'held-out'} rows"
    return f"Monitors look at the same few hundred {rows} each time. Nothing was chosen by their values."


def _about_loss(run: RunRecord) -> str:
    """How far the loss came, as the mean of the last tenth of the log: a single line is a single batch."""
    values = [
        (x, high, low)
        for line in run.steps
        if (x := line["loss"]) is not None
        and (high := line.get("chance")) is not None
        and (low := line.get("bound")) is not None
        and high > low
    ]
    if not values:
        return ""
    tail = values[-max(1, len(values) // 10) :]
    share = round(100 * math.fsum((high - x) / (high - low) for x, high, low in tail) / len(tail))
    if share < 0:
        return "At the end the loss stands above chance."
    mean = f" (mean of the last {len(tail)} lines of the log)" if len(tail) > 1 else ""
    return f"At the end the loss has gone {share} % of the way from chance to its bound{mean}."


def _long(lines: Sequence[MetricsLine], labels: Mapping[str, str]) -> list[Json]:
    return [
        {"step": line["step"], "what": label, "value": value}
        for line in thinned(lines)
        for key, label in labels.items()
        if (value := line.get(key)) is not None
    ]


def _lines(
    rows: Sequence[Json],
    kinds: Sequence[str],
    title: str,
    axis: str,
    *,
    dashed: Sequence[str] = (),
    format: str = "",
    height: int = 170,
) -> Json:
    colours = [INK if kind in dashed else COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)]
    dashes = [
        [6, 3] if kind in dashed and i % 2 else [2, 3] if kind in dashed else [1, 0] for i, kind in enumerate(kinds)
    ]
    key = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolStrokeWidth=2,
        symbolSize=300,
        columns=_columns(kinds),
    )
    legend = key if len(kinds) > 1 else None
    steps = len({row["step"] for row in rows})
    few = steps == 1 or (steps < 30 and not dashed)  # a line of one point is invisible
    mark: dict[str, Any] = {"point": alt.OverlayMarkDef(size=22)} if few else {}
    chart = (
        chart_of(rows)
        .mark_line(strokeWidth=2, **mark)
        .encode(
            x=alt.X("step:Q", title="step", axis=alt.Axis(tickCount=6, grid=False), scale=alt.Scale(nice=False)),
            y=alt.Y(
                "value:Q",
                title=axis or None,
                scale=alt.Scale(zero=False),
                axis=alt.Axis(format=format or f".{digits([row['value'] for row in rows])}~g", tickCount=5),
            ),
            color=alt.Color("what:N", sort=None, scale=alt.Scale(domain=list(kinds), range=colours), legend=legend),
            strokeDash=alt.StrokeDash("what:N", scale=alt.Scale(domain=list(kinds), range=dashes), legend=legend),
            tooltip=[
                alt.Tooltip("what:N", title=title),
                alt.Tooltip("step:Q", format=","),
                alt.Tooltip("value:Q", format=".4~g"),
            ],
        )
    )
    return fit_to_page(chart, height, title)


def _columns(kinds: Sequence[str]) -> int:
    """Columns of a legend that fits a phone."""
    return max(1, 60 // (sum(map(len, kinds)) or 1)) if len(kinds) > 2 else len(kinds)
