"""Training: the loss between chance and its bound, the learning rate, and what the monitors saw.

Every curve keeps at most `MOST` points: the page stays small however long the run was.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kontrast.report.figures import COLOURS, INK
from kontrast.report.page import Figure, Part, Section, Text
from kontrast.report.run.collect import Json, Run

MOST = 400

# Title, and the values that share the axes by name in the log.
MONITORS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("knn", "kNN accuracy along the way", {"monitor/knn20": "k = 20"}),
    ("uniformity", "Uniformity", {"monitor/uniformity_features": "features", "monitor/uniformity": "embeddings"}),
    ("tolerance", "Tolerance", {"monitor/tolerance_features": "features", "monitor/tolerance": "embeddings"}),
    (
        "effective-rank",
        "Effective rank",
        {"monitor/effective_rank": "features", "monitor/effective_rank_embeddings": "embeddings"},
    ),
    ("entropy", "Penalty entropy, share of the largest", {"monitor/entropy_share": "embeddings"}),
    (
        "gradient-response",
        "Gradient response",
        {
            "monitor/response_positive": "hardest positive",
            "monitor/response_negative": "hardest negative",
            "monitor/response_positive_supcon": "hardest positive, by SupCon",
            "monitor/response_negative_supcon": "hardest negative, by SupCon",
        },
    ),
    (
        "similarity",
        "Cosine of views",
        {"monitor/positive_similarity": "same row", "monitor/negative_similarity": "hardest other row"},
    ),
)


def section(run: Run) -> Section | None:
    """The curves of a run; None if nothing was logged."""
    if not run.steps:
        return None
    parts: list[Part] = [Figure("loss", loss(run), _about_loss(run), wide=True)]
    parts += [Figure(name, chart) for name, chart in (("learning-rate", learning_rate(run)), *monitors(run)) if chart]
    parts.append(Text(_about_monitors(run), "note"))
    return Section("Training", parts)


def loss(run: Run) -> Json:
    """The loss, chance and bound over the steps."""
    words = {"loss": "loss", "chance": "chance (unrelated embeddings)", "bound": "bound (cannot be lower)"}
    rows = _long(run.steps, words)
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    return _lines(rows, kinds, "Loss", "loss", dashed=[words["chance"], words["bound"]], height=280)


def learning_rate(run: Run) -> Json:
    """Its schedule."""
    rows = _long(run.steps, {"lr": "learning rate"})
    return _lines(rows, ["learning rate"], "Learning rate", "") if rows else {}


def monitors(run: Run) -> list[tuple[str, Json]]:
    """A chart for each measure that was taken."""
    made: list[tuple[str, Json]] = []
    for name, title, words in MONITORS:
        rows = _long(run.monitors, words)
        by = {word: [row["value"] for row in rows if row["what"] == word] for word in words.values()}
        kinds = [word for i, (word, values) in enumerate(by.items()) if values and values not in list(by.values())[:i]]
        rows = [row for row in rows if row["what"] in kinds]  # without a head, embeddings are the features again
        if rows:
            form = "%" if name in ("knn", "entropy") else ""
            made.append((name, _lines(rows, kinds, title, "", format=form)))
    return made


def thinned(lines: Sequence[Json], most: int = MOST) -> list[Json]:
    """At most so many lines, the first and the last among them.

    >>> [line["step"] for line in thinned([{"step": i} for i in range(9)], 3)]
    [0, 4, 8]
    """
    if len(lines) <= most:
        return list(lines)
    return [lines[round(i * (len(lines) - 1) / (most - 1))] for i in range(most)]


def digits(values: Sequence[float]) -> int:
    """How many an axis needs so that none of its five numbers or so stands there twice.

    >>> digits([0.0, 0.1]), digits([1e9, 9.9e8]), digits([3.0, 3.0])
    (3, 4, 3)
    """
    high, span = max(map(abs, values)), max(values) - min(values)
    return 3 if span <= 0 else min(max(math.ceil(math.log10(10 * high / span)) + 1, 3), 8)


def _about_monitors(run: Run) -> str:
    """Which rows they look at: a user must know where test rows are among them."""
    if not run.monitors:
        return "No monitor looked at this run while it trained."
    held = (run.recipe.get("data") or {}).get("validation")
    split = (run.geometry.get("protocol") or {}).get("split") or "held-out"
    rows = "rows held out of training" if held else f"{split} rows"
    return f"Monitors look at the same few hundred {rows} each time. Nothing was chosen by what they say."


def _about_loss(run: Run) -> str:
    """How far the loss came, as the mean of the last tenth of the log: a single line is a single batch."""
    lines = [line for line in run.steps if all(_number(line.get(key)) for key in ("loss", "chance", "bound"))]
    known = [(line["loss"], line["chance"], line["bound"]) for line in lines if line["chance"] > line["bound"]]
    if not known:
        return ""
    tail = known[-max(1, len(known) // 10) :]
    share = round(100 * math.fsum((high - x) / (high - low) for x, high, low in tail) / len(tail))
    if share < 0:
        return "At the end the loss stands above chance."
    of = f" (mean of the last {len(tail)} lines of the log)" if len(tail) > 1 else ""
    return f"At the end the loss has gone {share} % of the way from chance to its bound{of}."


def _number(x: Any) -> bool:
    return isinstance(x, int | float) and math.isfinite(x)


def _long(lines: Sequence[Json], words: dict[str, str]) -> list[Json]:
    rows: list[Json] = []
    for line in thinned(lines):
        for key, word in words.items():
            value = line.get(key)
            if _number(value):
                rows.append({"step": line["step"], "what": word, "value": value})
    return rows


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
    import altair as alt

    colours = [INK if kind in dashed else COLOURS[i % len(COLOURS)] for i, kind in enumerate(kinds)]
    dashes = [
        [6, 3] if kind in dashed and i % 2 else [2, 3] if kind in dashed else [1, 0] for i, kind in enumerate(kinds)
    ]
    legend = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolStrokeWidth=2,
        symbolSize=300,
        columns=_columns(kinds),
    )
    seen = legend if len(kinds) > 1 else None
    marked: dict[str, Any] = (
        {"point": alt.OverlayMarkDef(size=22)} if len({row["step"] for row in rows}) < 30 and not dashed else {}
    )
    chart = (
        alt.Chart(alt.InlineData(values=list(rows)), title=title, width="container", height=height)
        .mark_line(strokeWidth=2, **marked)
        .encode(
            x=alt.X("step:Q", title="step", axis=alt.Axis(tickCount=6, grid=False), scale=alt.Scale(nice=False)),
            y=alt.Y(
                "value:Q",
                title=axis or None,
                scale=alt.Scale(zero=False),
                axis=alt.Axis(format=format or f".{digits([row['value'] for row in rows])}~g", tickCount=5),
            ),
            color=alt.Color("what:N", sort=None, scale=alt.Scale(domain=list(kinds), range=colours), legend=seen),
            strokeDash=alt.StrokeDash("what:N", scale=alt.Scale(domain=list(kinds), range=dashes), legend=seen),
            tooltip=[
                alt.Tooltip("what:N", title=title),
                alt.Tooltip("step:Q", format=","),
                alt.Tooltip("value:Q", format=".4~g"),
            ],
        )
    )
    found: dict[str, Any] = chart.to_dict()
    return found


def _columns(kinds: Sequence[str]) -> int:
    """Of a legend that fits a phone."""
    return max(1, 60 // (sum(map(len, kinds)) or 1)) if len(kinds) > 2 else len(kinds)
