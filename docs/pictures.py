"""The pictures of the documentation: each is computed by kontrast on synthetic data, then drawn.

    python docs/pictures.py                       draws all into docs/geometry
    python docs/pictures.py bounds spectrum       draws these
    python docs/pictures.py --out DIR             draws somewhere else

A picture is a function that computes rows, one that draws them, and a caption; the page that shows it has the same
caption, word for word. "Noise σ" is a Gaussian vector of length σ (root mean square), added to a point of length 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import bounds
from kontrast.simplex import vertices

if TYPE_CHECKING or importlib.util.find_spec("altair"):  # without it this file can still be imported
    import altair as alt

    Layers = alt.LayerChart | alt.FacetChart
    Picture = alt.Chart | Layers | alt.HConcatChart

Rows = list[dict[str, Any]]

WIDTH, HEIGHT = 400, 220  # of the plot itself; with axes and legend it comes to about 480 × 280
BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#555555"  # Okabe & Ito's
COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY)
COUNT = 31  # points along a curve
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [12, 4])


# ------------------------------------------------------------------------------------------- data


def gaussian(rows: int, dim: int, seed: int) -> Tensor:
    """Rows whose directions are uniform, of length 1 (root mean square)."""
    values = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return values / math.sqrt(dim)


def directions(rows: int, dim: int, seed: int) -> Tensor:
    """Points spread uniformly over the sphere."""
    return torch.nn.functional.normalize(gaussian(rows, dim, seed))


def noisy(points: Tensor, noise: float, seed: int) -> Tensor:
    """Points with noise; the measures normalise them."""
    return points + noise * gaussian(len(points), points.shape[1], seed)


def steps(low: float, high: float, count: int) -> list[float]:
    """Numbers at equal distances."""
    values: list[float] = torch.linspace(low, high, count, dtype=torch.float64).tolist()
    return values


def ratios(low: float, high: float, count: int) -> list[float]:
    """Numbers at equal ratios."""
    return [math.exp(x) for x in steps(math.log(low), math.log(high), count)]


def short(x: float) -> float:
    """Five digits: what a drawing can show."""
    return float(f"{x:.5g}")


# ------------------------------------------------------------------------------------------- drawing


def table(rows: Rows) -> alt.Chart:
    """A chart of these rows, without marks."""
    return alt.Chart(alt.InlineData(values=rows), width=WIDTH, height=HEIGHT)


def x_axis(name: str, title: str, low: float, high: float, ticks: int = 7) -> alt.X:
    """An axis with equal steps."""
    return (
        alt.X(name, type="quantitative", title=title)
        .scale(domain=[low, high], nice=False, zero=False)
        .axis(tickCount=ticks)
    )


def y_axis(name: str, title: str, low: float, high: float, ticks: int = 6) -> alt.Y:
    """An axis with equal steps."""
    return (
        alt.Y(name, type="quantitative", title=title)
        .scale(domain=[low, high], nice=False, zero=False)
        .axis(tickCount=ticks)
    )


def x_log(name: str, title: str, *values: float) -> alt.X:
    """An axis with equal ratios and these numbers on it."""
    scale = alt.Scale(type="log", domain=[values[0], values[-1]])
    return alt.X(name, type="quantitative", title=title, scale=scale).axis(
        values=values, format="~s" if values[-1] >= 1000 else "~g"
    )


def y_log(name: str, title: str, low: int, high: int) -> alt.Y:
    """An axis with equal ratios, from one power of ten to another."""
    scale = alt.Scale(type="log", domain=[10.0**low, 10.0**high])
    return alt.Y(name, type="quantitative", title=title, scale=scale).axis(
        values=[10.0**k for k in range(low, high + 1)], format="~g" if low > -5 else "~e"
    )


def legend() -> alt.Legend:
    """Above the plot, with strokes as they are drawn."""
    return alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=2.5, symbolSize=400)


def names(rows: Rows, column: str) -> list[str]:
    """The values of a column, in their order."""
    return list(dict.fromkeys(row[column] for row in rows))


def lines(rows: Rows, x: alt.X, y: alt.Y, by: str, colours: Sequence[str] = COLOURS) -> alt.Chart:
    """A line for each value of a column; colour and dashes both tell them apart."""
    domain = names(rows, by)
    colour = alt.Color(by, type="nominal", legend=legend()).scale(domain=domain, range=colours[: len(domain)])
    dash = alt.StrokeDash(by, type="nominal", legend=legend()).scale(domain=domain, range=DASHES[: len(domain)])
    chart: alt.Chart = table(rows).mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    return chart


def level(value: float, label: str, *, end: float = WIDTH - 4, above: bool = True) -> Layers:
    """A horizontal line at a theoretical value; its name ends at this pixel."""
    y = alt.YDatum(value)
    place: dict[str, Any] = {"baseline": "bottom", "dy": -3} if above else {"baseline": "top", "dy": 4}
    text = table([{}]).mark_text(align="right", fontSize=12, color=GREY, text=label, **place)
    rule = table([{}]).mark_rule(color=GREY, strokeDash=[4, 3])
    return alt.layer(rule.encode(y=y), text.encode(y=y, x=alt.value(end)))


def on_curve(rows: Rows, x: alt.X, y: alt.Y, formula: str) -> Layers:
    """Points with bars of two standard errors to each side, and the curve (``expected``) they should lie on."""
    curve = [{x.shorthand: row[x.shorthand], "value": row["expected"], "what": formula} for row in rows]
    points = table([row for row in rows if "error" in row]).encode(x=x, color=alt.value(ORANGE))
    bars = points.transform_calculate(low="datum.value - 2*datum.error", high="datum.value + 2*datum.error")
    what = [{"what": "measured, ± 2 standard errors"}]
    return alt.layer(
        lines([*what, *curve], x, y, "what", (ORANGE, BLUE)),
        bars.mark_rule(strokeWidth=2).encode(y=alt.Y("low", type="quantitative"), y2="high"),
        points.mark_point(filled=True, size=36, opacity=1).encode(y=y),
    )


LEVELS = {"q5": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}


def boxes(base: alt.Chart, title: str, low: float, high: float, *, lying: bool = False) -> Layers:
    """Of the columns in LEVELS: a line for nine tenths of the values, a bar for the middle half, the median black."""

    def span(start: str, stop: str | None = None) -> dict[str, Any]:
        axis = (x_axis if lying else y_axis)(start, title, low, high, ticks=5)
        end = {} if stop is None else {"x2" if lying else "y2": stop}
        return {"x" if lying else "y": axis, **end}

    return alt.layer(
        base.mark_rule(strokeWidth=1.5).encode(**span("q5", "q95")),
        base.mark_bar(size=11).encode(**span("q25", "q75")),
        base.mark_tick(thickness=2, size=11).encode(**span("q50"), color=alt.value("black")),
    )


def styled(chart: Picture) -> dict[str, Any]:
    """The finished Vega-Lite specification."""
    ink, plain = "#222222", "normal"
    spec: dict[str, Any] = (
        chart.configure(background="white", font="Arial, Helvetica, sans-serif", aria=False, padding=8)
        .configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight=plain, labelColor=ink, titleColor=ink)
        .configure_axisQuantitative(grid=True, gridColor="#e8e8e8", labelFlush=False)
        .configure_legend(labelFontSize=12, labelLimit=400, columnPadding=14, labelColor=ink)
        .configure_title(fontSize=13, fontWeight=plain, color=ink)
        .configure_view(stroke=None)
        .to_dict()
    )
    return spec


# ------------------------------------------------------------------------------------------- pairs and classes

DIM, CLASSES, PER_CLASS, PAIRS, FEW = 128, 10, 100, 1000, 50
GATHERED, CLUSTERS = 2000, (1, 10, 100)
LABELS = torch.arange(CLASSES * PER_CLASS) % CLASSES


def uniformity_rows() -> Rows:
    """Rows gathered ever more around random centres."""
    points = []
    for count in CLUSTERS:
        centres = directions(count, DIM, seed=1)[torch.arange(GATHERED) % count]
        for c in steps(0.0, 4.0, COUNT):
            value = geometry.uniformity(noisy(c * centres, 1.0, seed=2).float())
            points.append({"clusters": f"{count} cluster{'s' * (count > 1)}", "c": short(c), "value": short(value)})
    return points


def uniformity_chart(rows: Rows) -> Picture:
    """A line for each number of clusters, and the limit."""
    x = x_axis("c", "concentration c (0: no clusters)", 0, 4)
    y = y_axis("value", "uniformity, t = 2 (lower: more even)", -4.4, 0)
    limit = level(geometry.uniformity_limit(DIM), f"limit for D = {DIM}", above=False)
    return alt.layer(limit, lines(rows, x, y, "clusters"))


def tolerance_rows() -> Rows:
    """Ten classes, ever less tight; and what infinitely many dimensions would give."""
    centres, labels = directions(CLASSES, DIM, seed=1), LABELS[:FEW]
    points: Rows = [{"noise": x, "expected": short(1 / (1 + x * x))} for x in steps(0, 3, COUNT)]
    for i, row in enumerate(points[::2]):
        x = noisy(centres[labels], row["noise"], seed=100 + i)
        row["value"], row["error"] = geometry.tolerance(x, labels, with_error=True)
    return points


def tolerance_chart(rows: Rows) -> Picture:
    """Tolerance against noise."""
    y = y_axis("value", "tolerance (1: classes are points)", 0, 1.05)
    return on_curve(rows, x_axis("noise", "noise σ within a class", 0, 3), y, "1/(1 + σ²)")


def alignment_rows() -> Rows:
    """Two noisy views of each sample; and what infinitely many dimensions would give."""
    samples = directions(FEW, DIM, seed=1)
    points: Rows = [{"noise": x, "expected": short(2 * x * x / (1 + x * x))} for x in steps(0, 3, COUNT)]
    for i, row in enumerate(points[::2]):
        views = noisy(samples, row["noise"], seed=100 + i), noisy(samples, row["noise"], seed=200 + i)
        row["value"], row["error"] = geometry.alignment(*views, with_error=True)
    return points


def alignment_chart(rows: Rows) -> Picture:
    """Alignment against noise."""
    y = y_axis("value", "alignment, α = 2 (0: views equal)", 0, 2.2)
    chart = on_curve(rows, x_axis("noise", "noise σ of each view", 0, 3), y, "2σ²/(1 + σ²)")
    return alt.layer(level(2.0, "unrelated views", end=110), chart)


# ------------------------------------------------------------------------------------------- penalty and gradients

SIMILARITIES, PENALTY_TAUS = 201, (0.07, 0.2, 0.5, 1.0)
CLASS_NOISE, VIEW_NOISE = 0.7, 0.7
RESPONSE_PER_CLASS, RESPONSE_NOISE, TAU, K1, K2 = 20, 0.5, 0.1, 5000.0, 1.0


def penalty_curve_rows() -> Rows:
    """The share of each of many similarities spread over −1 … 1."""
    s = torch.linspace(-1, 1, SIMILARITIES, dtype=torch.float64)
    shares = {tau: geometry.penalty_curve(s, tau) for tau in PENALTY_TAUS}
    drawn = slice(None, None, 4)  # on a log scale they are straight lines
    return [
        {"τ": f"τ = {tau:g}", "s": short(x), "r": short(r)}
        for tau, share in shares.items()
        for x, r in zip(s[drawn].tolist(), share[drawn].tolist(), strict=True)
    ]


def penalty_curve_chart(rows: Rows) -> Picture:
    """Straight lines on a log scale, of slope 1/τ."""
    even = level(1 / SIMILARITIES, f"even share, 1/{SIMILARITIES}", end=120)
    x, y = x_axis("s", "similarity s of the negative", -1, 1), y_log("r", "relative penalty r(s)", -6, 0)
    return alt.layer(even, lines(rows, x, y, "τ"))


def penalty_entropy_rows() -> Rows:
    """The mean entropy at many temperatures, of two kinds of embeddings."""
    classes = noisy(directions(CLASSES, DIM, seed=2)[LABELS], CLASS_NOISE, seed=3)
    taus = ratios(0.01, 10, COUNT)
    points: Rows = []
    for name, x in (("spread evenly", directions(len(LABELS), DIM, seed=1)), (f"{CLASSES} classes", classes)):
        entropies = geometry.penalty_entropy(x, x, temperature=taus).mean(0)
        points += [{"data": name, "τ": short(t), "H": short(h)} for t, h in zip(taus, entropies.tolist(), strict=True)]
    return points


def penalty_entropy_chart(rows: Rows) -> Picture:
    """Entropy against τ, and its two ceilings."""
    others, own = len(LABELS) - 1, PER_CLASS - 1
    x = x_log("τ", "temperature τ", 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
    return alt.layer(
        level(math.log(others), f"log {others}: all negatives alike"),
        level(math.log(own), f"log {own}: those of the own class alike"),
        lines(rows, x, y_axis("H", "mean entropy H (nats)", 0, 8), "data"),
    )


def magnitudes_rows() -> Rows:
    """Mean gradients of InfoNCE at many temperatures."""
    samples = directions(PAIRS, DIM, seed=1)
    query, key = noisy(samples, VIEW_NOISE, seed=2), noisy(samples, VIEW_NOISE, seed=3)
    points: Rows = []
    for tau in ratios(0.02, 2, COUNT):
        at = geometry.gradient_magnitudes(query, key, temperature=tau)
        sizes = {
            "positive": float(at.positive.mean()),
            "hardest negative": float(at.hardest.mean()),
            "ceiling 1/τ": 1 / tau,
        }
        points += [{"of": name, "τ": short(tau), "size": short(x)} for name, x in sizes.items()]
    return points


def magnitudes_chart(rows: Rows) -> Picture:
    """Both scales logarithmic."""
    x = x_log("τ", "temperature τ", 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)
    return lines(rows, x, y_log("size", "mean |∂L/∂s|", -4, 2), "of", (BLUE, ORANGE, GREY))


def response_rows() -> Rows:
    """The mean responses over many k1 and many k2, and SupCon's."""
    labels = LABELS[: CLASSES * RESPONSE_PER_CLASS]
    centres = directions(CLASSES, DIM, seed=1) + directions(1, DIM, seed=2)  # what is common makes negatives hard
    z = noisy(centres[labels], RESPONSE_NOISE, seed=3)
    k1s, k2s = ratios(10, 1e5, COUNT), steps(0.5, 3.0, COUNT)
    points: Rows = []
    for panel, ks, k1, k2 in (("k1", k1s, k1s, K2), ("k2", k2s, K1, k2s)):
        tcl = geometry.gradient_response(z, labels, temperature=TAU, k1=k1, k2=k2)
        supcon = geometry.gradient_response(z, labels, temperature=TAU, k1=[0.0] * len(ks), k2=1.0)
        for loss, at in (("TCL", tcl), ("SupCon", supcon)):
            for name, x in (("hardest positive", at.positive), ("hardest negative", at.negative)):
                means = x.mean(0).flatten().tolist()
                row = {"panel": panel, "loss": loss, "of": name}
                points += [{**row, "k": short(k), "mean": short(mean)} for k, mean in zip(ks, means, strict=True)]
    return points


def response_chart(rows: Rows) -> Picture:
    """Two panels; colour is which response, dashes are which loss."""
    panels: list[alt.Chart] = []
    for panel, x in (
        ("k1", x_log("k", f"k1 (k2 = {K2:g})", 10, 100, 1000, 10000, 100000)),
        ("k2", x_axis("k", f"k2 (k1 = {K1:g})", 0.5, 3, ticks=5)),
    ):
        drawn = table([row for row in rows if row["panel"] == panel]).properties(width=WIDTH // 2 - 30)
        colour = alt.Color("of", type="nominal", legend=legend()).scale(domain=names(rows, "of"), range=COLOURS[:2])
        dash = alt.StrokeDash("loss", type="nominal", legend=legend()).scale(
            domain=names(rows, "loss"), range=DASHES[:2]
        )
        y = y_log("mean", "" if panels else "mean response", -4, -1)
        panels.append(drawn.mark_line(strokeWidth=2.5, clip=True).encode(x=x, y=y, color=colour, strokeDash=dash))
    return alt.hconcat(*panels, spacing=14)


# ------------------------------------------------------------------------------------------- separation and simplex

SEPARATION_DIM, NOISES, SIMPLEX_DIM = 32, (0.5, 1.0), 64


def separation_rows() -> Rows:
    """Quantiles of the positive and of the ten nearest negatives."""
    samples = directions(PAIRS, SEPARATION_DIM, seed=1)
    points: Rows = []
    for noise in NOISES:
        views = noisy(samples, noise, seed=2), noisy(samples, noise, seed=3)
        summary = geometry.local_separation(*views).summary(list(LEVELS.values()))
        for name, at in zip(summary.names, summary.quantiles, strict=True):
            row = {"noise": noise, "which": "+" if name == "positive" else name}
            points.append({**row, **dict(zip(LEVELS, map(short, at), strict=True))})
    return points


def separation_chart(rows: Rows) -> Picture:
    """Boxes side by side, a panel for each noise."""
    panels: list[Layers] = []
    for noise in NOISES:
        which = alt.X("which", type="nominal", title="positive (+), k-th nearest negative", sort=None)
        colour = alt.condition("datum.which == '+'", alt.value(ORANGE), alt.value(BLUE))
        base = table([row for row in rows if row["noise"] == noise]).encode(x=which.axis(labelAngle=0), color=colour)
        drawn = boxes(base, "" if panels else "similarity s", 0, 1)
        panels.append(drawn.properties(width=WIDTH // 2 - 10, title=f"noise σ = {noise:g}"))
    return alt.hconcat(*panels, spacing=14)


def simplex_rows() -> Rows:
    """Three sets of features, on the way from random centres to a simplex."""
    ideal, random = (
        vertices(CLASSES, SIMPLEX_DIM, seed=1, dtype=torch.float64),
        directions(CLASSES, SIMPLEX_DIM, seed=2),
    )
    points: Rows = []
    for name, centres, noise in (("random", random, 1.0), ("half way", ideal + random, 0.5), ("simplex", ideal, 0.2)):
        at = geometry.simplex(noisy(centres[LABELS], noise, seed=3), LABELS)
        for panel, cosines in (("across", at.cosines_means), ("within", at.cosines_within)):
            values = cosines.quantile(torch.tensor(list(LEVELS.values()), dtype=cosines.dtype)).tolist()
            row = {"panel": panel, "centres": [name, f"σ = {noise:g}"]}
            points.append({**row, **dict(zip(LEVELS, map(short, values), strict=True))})
    return points


def simplex_chart(rows: Rows) -> Picture:
    """Boxes that lie, as in the paper, with the optimum as a line."""
    panels: list[Layers] = []
    for panel, title, best, low, high in (
        ("across", "cosine of two class means", geometry.optimum(CLASSES), -0.4, 0.4),
        ("within", "cosine, sample to class mean", 1.0, 0.5, 1.0),
    ):
        kind = alt.Y("centres", type="nominal", title=None, sort=None).axis(labels=not panels, ticks=False)
        base = table([row for row in rows if row["panel"] == panel]).encode(y=kind, color=alt.value(BLUE))
        optimum = table([{}]).mark_rule(color=ORANGE, strokeWidth=2.5, strokeDash=[6, 3]).encode(x=alt.XDatum(best))
        drawn = alt.layer(optimum, boxes(base, title, low, high, lying=True))
        panels.append(drawn.properties(width=WIDTH // 2 - 10, height=HEIGHT - 40))
    return alt.hconcat(*panels, spacing=20)


# ------------------------------------------------------------------------------------------- collapse and bounds

MEASURES = {"NC1": "nc1", "NC2 lengths": "nc2_norm", "NC2 angles": "nc2_angle", "NC3": "nc3", "NC4": "nc4"}
USED, REST, SHAKEN = 16, 0.001, 0.01
BOUND_CLASSES, PENALTIES = 4, (0.005, 0.05)


def collapse_rows() -> Rows:
    """The measures of neural collapse for classes at a simplex with ever more noise; its vertices are the weights."""
    ideal = vertices(CLASSES, SIMPLEX_DIM, seed=1, dtype=torch.float64)
    noises = ratios(0.01, 10, COUNT)
    collapses = {x: geometry.neural_collapse(noisy(ideal[LABELS], x, seed=2), LABELS, ideal).scalars() for x in noises}
    return [
        {"measure": name, "noise": short(noise), "value": short(at[column])}
        for name, column in MEASURES.items()
        for noise, at in collapses.items()
        if at[column] > 0  # NC4 is 0 for little noise, which a log scale does not show
    ]


def collapse_chart(rows: Rows) -> Picture:
    """Both scales logarithmic."""
    x = x_log("noise", "noise σ within a class", 0.01, 0.03, 0.1, 0.3, 1, 3, 10)
    return lines(rows, x, y_log("value", "deviation (0: collapsed)", -6, 2), "measure")


def spectrum_rows() -> Rows:
    """The singular values of features that use all dimensions, a quarter, and none."""
    full = gaussian(PAIRS, SIMPLEX_DIM, seed=1)
    part = gaussian(PAIRS, USED, seed=2) @ gaussian(USED, SIMPLEX_DIM, seed=3)
    point = directions(1, SIMPLEX_DIM, seed=4).expand(PAIRS, -1)
    points: Rows = []
    for x in (full, noisy(part, REST, seed=5), noisy(point, SHAKEN, seed=6)):
        at = geometry.spectrum(x)
        name = f"{geometry.collapse(x).kind}, rank {at.effective_rank:.1f}"
        values = (at.singular_values / at.singular_values[0]).tolist()
        points += [{"kind": name, "k": k, "σ": short(value)} for k, value in enumerate(values, start=1)]
    return points


def spectrum_chart(rows: Rows) -> Picture:
    """Singular values against their number."""
    x = x_axis("k", "number k of the singular value", 1, SIMPLEX_DIM).axis(values=[1, 16, 32, 48, 64])
    return lines(rows, x, y_log("σ", "σ_k/σ_1", -4, 0), "kind")


def bounds_rows() -> Rows:
    """The bound of cross-entropy against the norm of W, alone and with penalties, and the lowest points of these."""
    points: Rows = []
    for norm in steps(0.0, 8.0, COUNT):
        plain = bounds.cross_entropy(BOUND_CLASSES, radius=1.0, weight_norm=norm)
        for penalty in (0.0, *PENALTIES):
            points.append({"λ": f"λ = {penalty:g}", "norm": short(norm), "bound": short(plain + penalty * norm**2)})
    for penalty in PENALTIES:
        r = bounds.regularised_weight_radius(BOUND_CLASSES, radius=1.0, penalty=penalty)
        lowest = bounds.regularised_cross_entropy(BOUND_CLASSES, radius=1.0, penalty=penalty)
        norm = math.sqrt(BOUND_CLASSES) * r
        points.append({"λ": f"λ = {penalty:g}", "norm": short(norm), "bound": short(lowest), "mark": f"r_W = {r:.4f}"})
    return points


def bounds_chart(rows: Rows) -> Picture:
    """A curve for each penalty, its lowest point marked."""
    x = x_axis("norm", "Frobenius norm ‖W‖ of the weights", 0, 8)
    y = y_axis("bound", "lower bound of the loss (nats)", 0, 1.6)
    marks = table([row for row in rows if "mark" in row]).encode(x=x, y=y)
    return alt.layer(
        level(math.log(BOUND_CLASSES), f"chance, log {BOUND_CLASSES}"),
        lines([row for row in rows if "mark" not in row], x, y, "λ", (GREY, BLUE, ORANGE)),
        marks.mark_point(filled=True, size=70, opacity=1, color="black"),
        marks.mark_text(dy=-26, fontSize=12, color="black").encode(text=alt.Text("mark", type="nominal")),
    )


# ------------------------------------------------------------------------------------------- all of them


@dataclass(frozen=True)
class Drawing:
    """What is computed, how it is drawn, on which page, and the words below it."""

    rows: Callable[[], Rows]
    chart: Callable[[Rows], Picture]
    page: str
    caption: str


SAMPLES = f"{CLASSES} classes of {PER_CLASS} rows"
BOX = "Line: 5 % to 95 % of them; bar: 25 % to 75 %; black: median"

PICTURES = {
    "uniformity": Drawing(
        uniformity_rows,
        uniformity_chart,
        "README",
        f"{GATHERED:,} rows of D = {DIM} around 1, 10 or 100 random unit centres: c times the centre plus noise "
        f"of length 1.",
    ),
    "tolerance": Drawing(
        tolerance_rows,
        tolerance_chart,
        "README",
        f"{CLASSES} classes of {FEW // CLASSES} rows, D = {DIM}: random unit centres plus noise of length σ. The "
        f"curve is for D → ∞.",
    ),
    "alignment": Drawing(
        alignment_rows,
        alignment_chart,
        "README",
        f"{FEW} random points of D = {DIM}, two views of each with noise of length σ. The curve is for D → ∞.",
    ),
    "penalty_curve": Drawing(
        penalty_curve_rows,
        penalty_curve_chart,
        "losses",
        f"`penalty_curve` of {SIMILARITIES} similarities at equal steps from −1 to 1.",
    ),
    "penalty_entropy": Drawing(
        penalty_entropy_rows,
        penalty_entropy_chart,
        "losses",
        f"Mean over {len(LABELS):,} anchors of D = {DIM}, each against the others: random directions, and "
        f"{SAMPLES} around random unit centres with noise of length {CLASS_NOISE}.",
    ),
    "gradient_magnitudes": Drawing(
        magnitudes_rows,
        magnitudes_chart,
        "losses",
        f"Means over {PAIRS:,} anchors of D = {DIM}, each against the other keys; query and key are one random "
        f"point plus noise of length {VIEW_NOISE} each.",
    ),
    "local_separation": Drawing(
        separation_rows,
        separation_chart,
        "losses",
        f"{PAIRS:,} random points of D = {SEPARATION_DIM}, two views of each with noise of length σ. {BOX}.",
    ),
    "gradient_response": Drawing(
        response_rows,
        response_chart,
        "losses",
        f"Means over {CLASSES} classes of {RESPONSE_PER_CLASS} rows, D = {DIM}: random unit centres, all moved by "
        f"one unit vector, plus noise of length {RESPONSE_NOISE}; τ = {TAU}.",
    ),
    "simplex": Drawing(
        simplex_rows,
        simplex_chart,
        "README",
        f"{SAMPLES}, D = {SIMPLEX_DIM}, with noise of length σ around three kinds of centres: random unit "
        f"vectors, the sum of "
        f"these and a regular simplex, the simplex. Left: pairs of classes; right: samples. {BOX}; dashed: the "
        f"optimum.",
    ),
    "neural_collapse": Drawing(
        collapse_rows,
        collapse_chart,
        "README",
        f"{SAMPLES}, D = {SIMPLEX_DIM}, at the vertices of a regular simplex plus noise of length σ; the weights "
        f"are the vertices. NC4 is drawn where it is above 0.",
    ),
    "spectrum": Drawing(
        spectrum_rows,
        spectrum_chart,
        "README",
        f"{PAIRS:,} rows of D = {SIMPLEX_DIM}, not centred: Gaussian; Gaussian in {USED} dimensions plus noise of "
        f"length "
        f"{REST}; one point plus noise of length {SHAKEN}. The kind is `collapse`'s, the rank the effective rank.",
    ),
    "bounds": Drawing(
        bounds_rows,
        bounds_chart,
        "losses",
        f"Bound (1) plus λ‖W‖² for K = {BOUND_CLASSES} classes and radius 1, and its lowest point (2), where ‖W‖ "
        f"= √K r_W.",
    ),
}


def draw(name: str, out: Path) -> Path:
    """Compute and write one picture."""
    import vl_convert

    picture = PICTURES[name]
    path = out / f"{name}.svg"
    path.write_text(vl_convert.vegalite_to_svg(styled(picture.chart(picture.rows()))), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw those named, or all."""
    if not importlib.util.find_spec("altair"):
        sys.exit("drawing needs altair and vl-convert-python: pip install 'kontrast[docs]'")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}; all without names")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "geometry", help="where they are written")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(PICTURES)):
        parser.error(f"no picture named {', '.join(unknown)}; there are {', '.join(PICTURES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or PICTURES:
        path = draw(name, options.out)
        print(f"{path}  {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
