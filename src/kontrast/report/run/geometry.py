r"""The geometry of the features beside the theory.

Position: uniformity U = log E exp(−2‖x − y‖²) against tolerance T = E x·y of one class (Wang and Liu). The corners:

    uniform on the sphere        U = its value for d dimensions,  T = 0
    all rows equal               U = 0,                           T = 1
    each class a point, the points a regular simplex              U of `kontrast.report.corners`,  T = 1
                        or, of features ≥ 0, an orthogonal frame

Separation: cosines of a view to its row's other view, and to the ten nearest other rows. Simplex (Graf et al.): cosines
of class means, which are −1/(K − 1) at the optimum, and of samples to their class mean, which are 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from kontrast.report.corners import frame_corner, simplex_corner
from kontrast.report.drawing import Json, chart_of, fit_to_page, quantile_tips, quantiles, spans
from kontrast.report.figures import COLOURS, INK
from kontrast.report.page import Figure, Fold, Part, Section, Table
from kontrast.report.records import RunRecord
from kontrast.runs import Measure


def section(run: RunRecord) -> Section | None:
    """Three charts, and the table of every measure; None if nothing was measured."""
    parts: list[Part] = []
    if spec := position(run):
        parts.append(Figure("uniformity-tolerance", spec, _ABOUT_POSITION))
    if "positive" in run.arrays and "nearest" in run.arrays:
        parts.append(Figure("local-separation", separation(run), _ABOUT_SEPARATION))
    if "between_means" in run.arrays and "within" in run.arrays:
        parts.append(Figure("simplex", simplex(run), _about_simplex(run), wide=len(parts) != 1))
    for where, lines in (("features", run.geometry.features), ("embeddings", run.geometry.embeddings)):
        if lines:
            parts.append(Fold(f"Every measure of the {where}", [_table(lines)]))
    return Section("Geometry", parts) if parts else None


_ABOUT_POSITION = (
    "Where the features stand between the corners of the theory; grey: other runs of this folder on the same data. "
    "Up and to the left is better. The simplex has classes of the sizes that they have here."
)
_ABOUT_SEPARATION = (
    "Cosine of a view's embedding to its row's other view (+), and to the ten nearest other rows: median, the middle "
    "half, and nine tenths. A gap between the first and the rest is what the loss works for."
)


def position(run: RunRecord) -> Json:
    """This run between the corners; empty if uniformity or tolerance was not measured."""
    u, t = run.measure("features", "uniformity"), run.measure("features", "tolerance")
    if u is None or t is None:
        return {}
    rows = [{"what": "other runs", "name": o.name, "x": o.uniformity, "y": o.tolerance} for o in run.others]
    corners = [("uniform on the sphere", u.theory, 0.0), ("all rows equal", 0.0, 1.0)]
    record = run.simplex("features")
    for name, corner in (("a simplex", simplex_corner), ("orthogonal", frame_corner)):
        if (vertices := corner(record, run.arrays.get("labels"))) is not None:
            corners.append((f"{vertices[0]} points, {name}", vertices[1], 1.0))
    rows += [{"what": "theory", "name": name, "x": x, "y": y} for name, x, y in corners if x is not None]
    rows.append({"what": "this run", "name": run.path.name, "x": u.value, "y": t.value})
    kinds = ["this run", "theory", *(["other runs"] if run.others else [])]
    x = alt.X("x:Q", title="uniformity (lower: more uniform)", scale=alt.Scale(padding=26, nice=False))
    y = alt.Y("y:Q", title="tolerance", scale=alt.Scale(padding=20, nice=False))
    colours = alt.Scale(domain=kinds, range=[COLOURS[1], INK, INK][: len(kinds)])
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond", "circle"][: len(kinds)])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    tips = {"uniformity": "x:Q", "tolerance": "y:Q"}
    base = chart_of(rows).encode(x=x, y=y)
    points = [
        base.mark_point(filled=True, size=size, opacity=opacity)
        .encode(
            color=alt.Color("what:N", scale=colours, legend=legend),
            shape=alt.Shape("what:N", scale=shapes, legend=legend),
            tooltip=["name:N", *(alt.Tooltip(key, title=title, format=".3f") for title, key in tips.items())],
        )
        .transform_filter(f"datum.what == '{kind}'")
        for kind, size, opacity in (("other runs", 34, 0.3), ("theory", 70, 0.9), ("this run", 170, 1.0))
        if kind in kinds
    ]
    # "All rows equal" stands below: with two or three classes the simplex is near, and the texts would overlap.
    above: Json = {"dx": 6, "dy": -12, "align": "right"}
    beside: dict[str, Json] = {
        "uniform on the sphere": {"dx": 9, "align": "left"},
        "all rows equal": {"dx": 6, "dy": 15, "align": "right"},
    }
    words = [
        chart_of([row])
        .mark_text(fontSize=11, opacity=0.8, **beside.get(str(row["name"]), above))
        .encode(x=x, y=y, text="name:N", color=alt.value(INK))
        for row in rows
        if row["what"] == "theory"
    ]
    return fit_to_page(alt.layer(*points, *words), 280, "Uniformity and tolerance")


def separation(run: RunRecord) -> Json:
    """Quantiles of the positive's cosine and of the nearest others'."""
    rows = [{"place": "+", "what": "own other view", **quantiles(run.arrays["positive"])}]
    near = run.arrays["nearest"]
    rows += [{"place": str(j + 1), "what": "nearest other rows", **quantiles(near[:, j])} for j in range(near.shape[1])]
    kinds, order = ["own other view", "nearest other rows"], [row["place"] for row in rows]
    base = chart_of(rows).encode(
        x=alt.X("place:N", sort=order, title="other view, and the n-th nearest row", axis=alt.Axis(labelAngle=0)),
        color=alt.Color(
            "what:N",
            scale=alt.Scale(domain=kinds, range=[COLOURS[1], COLOURS[0]]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=["what:N", "place:N", *quantile_tips()],
    )
    return fit_to_page(alt.layer(*spans(base, "y", bar=16, tick=24)), 280, "Local separation")


def simplex(run: RunRecord) -> Json:
    """Densities of the cosines, scaled to one height, and their values at the optimum."""
    kinds_of = {
        "between_means": "between class means",
        "between_weights": "between the classifier's weights",
        "within": "sample to its class mean",
    }
    cosines = {
        word: run.arrays[name] for name, word in kinds_of.items() if name in run.arrays and len(run.arrays[name])
    }
    optimum = _number(run.simplex("embeddings").get("optimum"))
    lowest = [-0.2, *(float(np.nanmin(values)) for values in cosines.values())]
    lowest += [] if optimum is None else [optimum - 0.05]  # with room for its line
    low = max(math.floor(10 * min(lowest)) / 10, -1.05)
    grid = np.linspace(low, 1, 200)
    rows = [
        {"what": word, "cosine": round(float(x), 4), "density": round(float(y), 4)}
        for word, values in cosines.items()
        for x, y in zip(grid, density(values, grid), strict=True)
        if y > 1e-3
    ]
    kinds = list(cosines)
    axis, bare = alt.Axis(grid=False, tickCount=8), alt.Axis(labels=False, ticks=False, grid=False)
    x = alt.X("cosine:Q", title="cosine", axis=axis, scale=alt.Scale(domain=[low, 1.01], nice=False))
    base = chart_of(rows).encode(
        x=x,
        y=alt.Y("density:Q", stack=None, title="density, scaled", axis=bare, scale=alt.Scale(domain=[0, 1.15])),
        color=alt.Color(
            "what:N",
            sort=None,
            scale=alt.Scale(domain=kinds, range=list(COLOURS[: len(kinds)])),
            legend=alt.Legend(title=None, orient="top", labelLimit=300, symbolType="square", symbolOpacity=0.9),
        ),
    )
    best = [{"cosine": 1.0, "name": "optimum within: 1"}]
    if optimum is not None:
        best.append({"cosine": optimum, "name": f"optimum between: {optimum:.3f}".replace("-", "−")})
    theory = chart_of(best).encode(x=x, tooltip=["name:N"])
    rules = theory.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, opacity=0.8).encode(color=alt.value(INK))
    words = theory.encode(text="name:N", color=alt.value(INK))
    # In two lines: a phone has no room for them beside each other.
    between = words.mark_text(align="left", dx=5, fontSize=11, opacity=0.8).encode(y=alt.value(7))
    within = words.mark_text(align="right", dx=-5, fontSize=11, opacity=0.8).encode(y=alt.value(21))
    between, within = between.transform_filter("datum.cosine < 1"), within.transform_filter("datum.cosine == 1")
    areas = base.mark_area(opacity=0.25, line={"strokeWidth": 2})
    return fit_to_page(alt.layer(areas, rules, between, within), 240, "How near a simplex")


def density(values: NDArray[Any], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian kernel density on the grid, scaled to a largest value of 1; Silverman's width, at least 0.01.

    >>> density(np.zeros(5), np.array([-1.0, 0.0, 1.0])).tolist()
    [0.0, 1.0, 0.0]
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not len(x):
        return np.zeros_like(grid)
    if len(x) > 2000:  # quantiles give the same curve
        x = np.quantile(x, np.linspace(0, 1, 2000))
    width = max(0.9 * float(x.std()) * len(x) ** -0.2, 0.01)
    heights: NDArray[np.float64] = np.exp(-0.5 * ((grid[:, None] - x) / width) ** 2).sum(1)
    top = float(heights.max())
    return heights / top if top > 0 else heights


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _about_simplex(run: RunRecord) -> str:
    record = run.simplex("embeddings")
    rows, classes = run.geometry.protocol.simplex or "training rows", record.get("num_classes", "all")
    text = f"Cosines of the embeddings ({rows}); dashed: a regular simplex of {classes} classes."
    values = [_number(record.get(key)) for key in ("origin", "norm", "distance", "deviation")]
    if None not in values:
        s1, s2, s3, together = values
        text += f" S1 {s1:.3f}, S2 {s2:.3f}, S3 {s3:.3f}; √(S1² + S2² + S3²) {together:.3f}, 0 at the simplex."
    if record.get("reachable", True):
        return text
    if not record.get("nonnegative"):
        return f"{text} The dimension is too small for a simplex."
    least = _number(record.get("least"))
    floor = "" if least is None else f": {least:.3f} is the least they can have"
    return f"{text} Features ≥ 0, as behind a ReLU, cannot reach it{floor}."


def _table(lines: Sequence[Measure]) -> Table:
    def number(x: float | None) -> str:
        if x is None:
            return "–"
        return (f"{x:.0f}" if x == int(x) and abs(x) < 1e6 else f"{x:.4g}").replace("-", "−")

    rows = [
        [line.name, number(line.value), number(line.error), number(line.theory), line.meaning or ""] for line in lines
    ]
    return Table(["measure", "here", "± error", "theory", "which is"], rows)
