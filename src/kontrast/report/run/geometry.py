r"""What the features look like from the theory's side.

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

import numpy as np
from numpy.typing import NDArray

from kontrast.report.corners import frame_corner, simplex_corner
from kontrast.report.figures import COLOURS, INK
from kontrast.report.page import Figure, Fold, Part, Section, Table
from kontrast.report.run.collect import Json, Run

QUANTILES = {"low": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "high": 0.95}


def section(run: Run) -> Section | None:
    """Three charts, and the table of every measure; None if nothing was measured."""
    parts: list[Part] = []
    where = position(run)
    if where:
        parts.append(Figure("uniformity-tolerance", where, _ABOUT_POSITION))
    if "positive" in run.arrays and "nearest" in run.arrays:
        parts.append(Figure("local-separation", separation(run), _ABOUT_SEPARATION))
    if "between_means" in run.arrays and "within" in run.arrays:
        parts.append(Figure("simplex", simplex(run), _about_simplex(run), wide=len(parts) != 1))
    for what in ("features", "embeddings"):
        lines = run.geometry.get(what) or []
        if lines:
            parts.append(Fold(f"Every measure of the {what}", [_table(lines)]))
    return Section("Geometry", parts) if parts else None


_ABOUT_POSITION = (
    "Where the features stand between the corners of the theory; grey: other runs of this folder on the same data. "
    "Up and to the left is better. The simplex has classes of the sizes that they have here."
)
_ABOUT_SEPARATION = (
    "Cosine of a view's embedding to its row's other view (+), and to the ten nearest other rows: median, the middle "
    "half, and nine tenths. A gap between the first and the rest is what the loss works for."
)


def position(run: Run) -> Json:
    """This run between the corners; empty if uniformity or tolerance was not measured."""
    import altair as alt

    u, t = run.measure("features", "uniformity"), run.measure("features", "tolerance")
    if u is None or t is None:
        return {}
    rows = [{"what": "other runs", "name": o.name, "x": o.uniformity, "y": o.tolerance} for o in run.others]
    corners = [("uniform on the sphere", u.get("theory"), 0.0), ("all rows equal", 0.0, 1.0)]
    record = (run.geometry.get("simplex") or {}).get("features")
    for name, corner in (("a simplex", simplex_corner), ("orthogonal", frame_corner)):
        if (found_corner := corner(record, run.arrays.get("labels"))) is not None:
            corners.append((f"{found_corner[0]} points, {name}", found_corner[1], 1.0))
    rows += [{"what": "theory", "name": name, "x": x, "y": y} for name, x, y in corners if x is not None]
    rows.append({"what": "this run", "name": run.path.name, "x": u["value"], "y": t["value"]})
    kinds = ["this run", "theory", *(["other runs"] if run.others else [])]
    x = alt.X("x:Q", title="uniformity (lower: more uniform)", scale=alt.Scale(padding=26, nice=False))
    y = alt.Y("y:Q", title="tolerance", scale=alt.Scale(padding=20, nice=False))
    colours = alt.Scale(domain=kinds, range=[COLOURS[1], INK, INK][: len(kinds)])
    shapes = alt.Scale(domain=kinds, range=["circle", "diamond", "circle"][: len(kinds)])
    legend = alt.Legend(title=None, orient="top", symbolOpacity=1)
    tips = {"uniformity": "x:Q", "tolerance": "y:Q"}
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
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
    # “All rows equal” stands below: of two or three classes the simplex is near, and words would print over words.
    above: Json = {"dx": 6, "dy": -12, "align": "right"}
    beside: dict[str, Json] = {
        "uniform on the sphere": {"dx": 9, "align": "left"},
        "all rows equal": {"dx": 6, "dy": 15, "align": "right"},
    }
    words = [
        alt.Chart(alt.InlineData(values=[row]))
        .mark_text(fontSize=11, opacity=0.8, **beside.get(str(row["name"]), above))
        .encode(x=x, y=y, text="name:N", color=alt.value(INK))
        for row in rows
        if row["what"] == "theory"
    ]
    made = alt.layer(*points, *words)
    found: dict[str, Any] = made.properties(title="Uniformity and tolerance", width="container", height=280).to_dict()
    return found


def separation(run: Run) -> Json:
    """Quantiles of the positive's cosine and of the nearest others'."""
    import altair as alt

    rows = [{"place": "+", "what": "own other view", **_quantiles(run.arrays["positive"])}]
    near = run.arrays["nearest"]
    rows += [
        {"place": str(j + 1), "what": "nearest other rows", **_quantiles(near[:, j])} for j in range(near.shape[1])
    ]
    kinds, order = ["own other view", "nearest other rows"], [row["place"] for row in rows]
    words = {"median": "median", "q1": "25 %", "q3": "75 %", "low": "5 %", "high": "95 %"}
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("place:N", sort=order, title="other view, and the n-th nearest row", axis=alt.Axis(labelAngle=0)),
        color=alt.Color(
            "what:N",
            scale=alt.Scale(domain=kinds, range=[COLOURS[1], COLOURS[0]]),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[
            "what:N",
            "place:N",
            *(alt.Tooltip(f"{key}:Q", title=word, format=".3f") for key, word in words.items()),
        ],
    )
    scale = alt.Scale(zero=False)
    spans = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("low:Q", title="cosine", scale=scale), y2="high:Q")
    boxes = base.mark_bar(size=16, cornerRadius=2, opacity=0.5).encode(y=alt.Y("q1:Q", scale=scale), y2="q3:Q")
    # Wider than the box and of its colour: where the middle half is narrow, the median is what one sees.
    ticks = base.mark_tick(thickness=2.5, size=24, orient="horizontal").encode(y=alt.Y("median:Q", scale=scale))
    found: dict[str, Any] = (
        alt.layer(spans, boxes, ticks).properties(title="Local separation", width="container", height=280).to_dict()
    )
    return found


def simplex(run: Run) -> Json:
    """Densities of the cosines, each as high as the other, and where they would stand at the optimum."""
    import altair as alt

    kinds_of = {
        "between_means": "between class means",
        "between_weights": "between the classifier's weights",
        "within": "sample to its class mean",
    }
    found = {word: run.arrays[name] for name, word in kinds_of.items() if name in run.arrays and len(run.arrays[name])}
    record = (run.geometry.get("simplex") or {}).get("embeddings") or {}
    optimum = record.get("optimum")
    lowest = [-0.2, *(float(np.nanmin(values)) for values in found.values())]
    lowest += [] if optimum is None else [optimum - 0.05]  # with room for its line
    low = max(math.floor(10 * min(lowest)) / 10, -1.05)
    grid = np.linspace(low, 1, 200)
    rows = [
        {"what": word, "cosine": round(float(x), 4), "density": round(float(y), 4)}
        for word, values in found.items()
        for x, y in zip(grid, density(values, grid), strict=True)
        if y > 1e-3
    ]
    kinds = list(found)
    axis, bare = alt.Axis(grid=False, tickCount=8), alt.Axis(labels=False, ticks=False, grid=False)
    x = alt.X("cosine:Q", title="cosine", axis=axis, scale=alt.Scale(domain=[low, 1.01], nice=False))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
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
    theory = alt.Chart(alt.InlineData(values=best)).encode(x=x, tooltip=["name:N"])
    rules = theory.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, opacity=0.8).encode(color=alt.value(INK))
    words = theory.encode(text="name:N", color=alt.value(INK))
    # In two lines: on a phone they have no room beside each other.
    between = words.mark_text(align="left", dx=5, fontSize=11, opacity=0.8).encode(y=alt.value(7))
    within = words.mark_text(align="right", dx=-5, fontSize=11, opacity=0.8).encode(y=alt.value(21))
    between, within = between.transform_filter("datum.cosine < 1"), within.transform_filter("datum.cosine == 1")
    areas = base.mark_area(opacity=0.25, line={"strokeWidth": 2})
    made: dict[str, Any] = (
        alt.layer(areas, rules, between, within)
        .properties(title="How near a simplex", width="container", height=240)
        .to_dict()
    )
    return made


def density(values: NDArray[Any], grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """A Gaussian kernel's estimate on the grid, its largest value 1; Silverman's width, and never narrower than 0.01.

    >>> density(np.zeros(5), np.array([-1.0, 0.0, 1.0])).tolist()
    [0.0, 1.0, 0.0]
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if not len(x):
        return np.zeros_like(grid)
    if len(x) > 2000:  # quantiles say the same
        x = np.quantile(x, np.linspace(0, 1, 2000))
    width = max(0.9 * float(x.std()) * len(x) ** -0.2, 0.01)
    found: NDArray[np.float64] = np.exp(-0.5 * ((grid[:, None] - x) / width) ** 2).sum(1)
    top = float(found.max())
    return found / top if top > 0 else found


def _quantiles(values: NDArray[Any]) -> Json:
    return {name: round(float(np.nanquantile(values, q)), 5) for name, q in QUANTILES.items()}


def _about_simplex(run: Run) -> str:
    record = (run.geometry.get("simplex") or {}).get("embeddings") or {}
    where = (run.geometry.get("protocol") or {}).get("simplex", "training rows")
    said = (
        f"Cosines of the embeddings ({where}); dashed: a regular simplex of {record.get('num_classes', 'all')} classes."
    )
    numbers = {key: record.get(key) for key in ("origin", "norm", "distance", "deviation")}
    if all(isinstance(value, int | float) and math.isfinite(value) for value in numbers.values()):
        s1, s2, s3, together = numbers.values()
        said += f" S1 {s1:.3f}, S2 {s2:.3f}, S3 {s3:.3f}; √(S1² + S2² + S3²) {together:.3f}, 0 at the simplex."
    if record.get("reachable", True):
        return said
    if not record.get("nonnegative"):
        return f"{said} The dimension is too small for one."
    least = record.get("least")
    floor = f": {least:.3f} is the least they can have" if isinstance(least, float) else ""
    return f"{said} Features ≥ 0, as behind a ReLU, cannot reach it{floor}."


def _table(lines: Sequence[Json]) -> Table:
    def number(x: Any) -> str:
        if not isinstance(x, int | float) or not math.isfinite(x):
            return "–"
        return (f"{x:.0f}" if x == int(x) and abs(x) < 1e6 else f"{x:.4g}").replace("-", "−")

    rows = [
        [
            line["name"],
            number(line.get("value")),
            number(line.get("error")),
            number(line.get("theory")),
            line.get("meaning") or "",
        ]
        for line in lines
    ]
    return Table(["measure", "here", "± error", "theory", "which is"], rows)
