r"""What the features look like from the theory's side.

Position: uniformity U = log E exp(−2‖x − y‖²) against tolerance T = E x·y of one class (Wang and Liu). The corners:

    uniform on the sphere        U = its value for d dimensions,  T = 0
    all rows equal               U = 0,                           T = 1
    each class a point, the points a regular simplex of K         T = 1,
                                 U = log(1/K + (1 − 1/K) exp(−4K/(K − 1)))

Separation: cosines of a view to its row's other view, and to the ten nearest other rows. Simplex (Graf et al.): cosines
of class means, which are −1/(K − 1) at the optimum, and of samples to their class mean, which are 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    "Up and to the left is better."
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
    classes = int(((run.geometry.get("simplex") or {}).get("features") or {}).get("num_classes") or 0)
    rows = [{"what": "other runs", "name": o.name, "x": o.uniformity, "y": o.tolerance} for o in run.others]
    corners = [("uniform on the sphere", u.get("theory"), 0.0), ("all rows equal", 0.0, 1.0)]
    if classes > 1:
        corners.append((f"{classes} points, a simplex", simplex_uniformity(classes), 1.0))
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
    corner = base.encode(text="name:N", color=alt.value(INK)).transform_filter("datum.what == 'theory'")
    left = corner.mark_text(fontSize=11, opacity=0.8, dx=9, align="left").transform_filter("datum.y == 0")
    middle = corner.mark_text(fontSize=11, opacity=0.8, dy=-12, dx=6, align="right").transform_filter(
        "datum.y == 1 && datum.x < 0"
    )
    right = corner.mark_text(fontSize=11, opacity=0.8, dy=-12, align="right").transform_filter("datum.x == 0")
    made = alt.layer(*points, left, middle, right)
    found: dict[str, Any] = made.properties(title="Uniformity and tolerance", width="container", height=280).to_dict()
    return found


def simplex_uniformity(classes: int) -> float:
    """Of rows that are one point a class, the points a regular simplex, classes of one size.

    >>> round(simplex_uniformity(2), 3)
    -0.693
    """
    return math.log(1 / classes + (1 - 1 / classes) * math.exp(-4 * classes / (classes - 1)))


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
    boxes = base.mark_bar(size=16, cornerRadius=2).encode(y=alt.Y("q1:Q", scale=scale), y2="q3:Q")
    ticks = base.mark_tick(thickness=2, size=16, orient="horizontal").encode(
        y=alt.Y("median:Q", scale=scale), color=alt.value("white")
    )
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
    low = math.floor(10 * min(-0.2, *(float(np.nanmin(values)) for values in found.values()))) / 10
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
            legend=alt.Legend(title=None, orient="top", labelLimit=300, symbolType="square"),
        ),
    )
    record = (run.geometry.get("simplex") or {}).get("embeddings") or {}
    best = [{"cosine": 1.0, "name": "optimum within: 1"}]
    if record.get("optimum") is not None:
        best.append(
            {"cosine": record["optimum"], "name": f"optimum between: {record['optimum']:.3f}".replace("-", "−")}
        )
    theory = alt.Chart(alt.InlineData(values=best)).encode(x=x, tooltip=["name:N"])
    rules = theory.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, opacity=0.8).encode(color=alt.value(INK))
    words = theory.encode(text="name:N", y=alt.value(8), color=alt.value(INK))
    between = words.mark_text(align="left", dx=5, fontSize=11, opacity=0.8).transform_filter("datum.cosine < 1")
    within = words.mark_text(align="right", dx=-5, fontSize=11, opacity=0.8).transform_filter("datum.cosine == 1")
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
    return said if record.get("reachable", True) else f"{said} The dimension is too small for one."


def _table(lines: Sequence[Json]) -> Table:
    def number(x: Any) -> str:
        if not isinstance(x, int | float) or not math.isfinite(x):
            return "–"
        return (f"{x:.0f}" if x == int(x) and abs(x) < 1e6 else f"{x:.4g}").replace("-", "−")

    rows = [
        [
            line["name"],
            number(line["value"]),
            number(line.get("error")),
            number(line.get("theory")),
            line.get("meaning", ""),
        ]
        for line in lines
    ]
    return Table(["measure", "here", "± error", "theory", "which is"], rows)
