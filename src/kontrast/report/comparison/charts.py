"""The page's charts. Each recipe has one colour in all of them, with a dash (lines) or a shape (points).

Losses stand in one chart only if they have the same scale: the same method, and the same chance and bound at the end
(to two digits). Chance and bound are drawn for every run, dashed. Losses of several scales stand together as their
place between the two,

    (1)  (loss − bound) / (chance − bound)        1: no better than chance, 0: cannot be lower
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from kontrast.report.comparison.collect import ComparedRun
from kontrast.report.comparison.statistics import by_protocol
from kontrast.report.corners import simplex_corner
from kontrast.report.drawing import SHAPES, Json, chart_of, fit_to_page, quantile_tips, quantiles, spans
from kontrast.report.figures import COLOURS, INK
from kontrast.report.monitors import PREFIX, charts_of
from kontrast.report.page import Figure, Fold, Part
from kontrast.runs import Measure
from kontrast.runs.schemas import MetricsLine

LETTERS = 50  # of a legend's line on a phone
DASHES = ((1, 0), (6, 3), (2, 2), (9, 3, 2, 3))


def groups(runs: Sequence[ComparedRun]) -> list[str]:
    """The names of the recipes, in the order of the runs."""
    return list(dict.fromkeys(run.group for run in runs))


def describe_run(run: ComparedRun) -> Json:
    """The fields of a record that name its run."""
    return {"run": run.label, "recipe": run.group}


def recipe_encodings(
    runs: Sequence[ComparedRun], some: Sequence[ComparedRun] | None = None, *, points: bool = False, legend: bool = True
) -> dict[str, Any]:
    """Encodings that tell recipes apart, with one legend: colours, and dashes for lines or shapes for points.

    After the last colour the first comes again with another dash; points never share both colour and shape. With
    ``some`` the legend has only the recipes of these runs. It fits a phone.
    """
    domain = groups(runs)
    names = domain if some is None else groups(some)
    stroke: dict[str, Any] = {} if points else {"symbolType": "stroke", "symbolStrokeWidth": 2.5, "symbolSize": 250}
    legend_of = alt.Legend(
        orient="top",
        title=None,
        columns=max(1, LETTERS // (max(map(len, names)) + 6)),
        values=names,
        labelLimit=alt.ExprRef("max(80, width - 40)"),
        symbolOpacity=1,
        **stroke,
    )
    of, colours, many = legend_of if legend else None, len(COLOURS), range(len(domain))
    scale = alt.Scale(domain=domain, range=[COLOURS[i % colours] for i in many])
    encodings: dict[str, Any] = {"color": alt.Color("recipe:N", scale=scale, legend=of)}
    if points:
        shapes = alt.Scale(domain=domain, range=[SHAPES[(i + i // colours) % len(SHAPES)] for i in many])
        encodings["shape"] = alt.Shape("recipe:N", scale=shapes, legend=of)
    elif len(domain) > colours:
        dashes = alt.Scale(domain=domain, range=[list(DASHES[i // colours % len(DASHES)]) for i in many])
        encodings["strokeDash"] = alt.StrokeDash("recipe:N", scale=dashes, legend=of)
    return encodings


# ----------------------------------------------------------------------------------------------------- training curves

MOST_POINTS = 250
FEW = 4  # recipes whose legend has room above every chart; with more only the first chart has it
MOST_SCALES = 4  # more charts than that are folded
PLACE = (
    "The losses have different scales, so the chart shows their place between the lower bound, 0, and chance, 1: "
    "(loss − bound) / (chance − bound). It says how far each came by its own measure, not which encoder is better."
)


def losses(runs: Sequence[ComparedRun]) -> list[Part]:
    """A chart for each scale, and one of all."""
    scales: dict[tuple[Any, ...], list[ComparedRun]] = {}
    of: dict[str, tuple[Any, ...]] = {}  # a recipe's seeds stand together, even where the bound depends on the weights
    for run in runs:
        if run.steps:
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


def _scale(run: ComparedRun) -> tuple[Any, ...]:
    last: MetricsLine = next((line for line in reversed(run.steps) if line.get("loss") is not None), {})
    return (run.recipe.get("method.name"), *(_rounded(last.get(key)) for key in ("chance", "bound")))


def _rounded(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _loss(runs: Sequence[ComparedRun], some: Sequence[ComparedRun], title: str, wide: bool) -> Json:
    records = []
    for run in some:
        for line in _thinned(run.steps):
            kinds = {"loss": line["loss"], "chance": line.get("chance"), "bound": line.get("bound")}
            records += [
                {"step": line["step"], "value": value, "of": of, **describe_run(run)}
                for of, value in kinds.items()
                if value is not None
            ]
    base = chart_of(records).encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("value:Q", title=None, scale=alt.Scale(zero=False)),
        detail=alt.Detail(["run:N", "of:N"]),
        tooltip=_tooltip("value", "of"),
    )
    encodings = recipe_encodings(runs, some)
    solid = (
        base.transform_filter("datum.of == 'loss'").mark_line(strokeWidth=1.8, point=_points(some)).encode(**encodings)
    )
    dashed = base.transform_filter("datum.of != 'loss'").mark_line(strokeWidth=1, strokeDash=[5, 4], opacity=0.8)
    dashed = dashed.encode(color=encodings["color"])
    words = (
        chart_of(_ends(records))
        .mark_text(align="left", dx=4, dy=-6, fontSize=11, color="currentColor", opacity=0.8)
        .encode(x=alt.X("step:Q"), y=alt.Y("value:Q"), text="of:N")
    )
    return fit_to_page(dashed + solid + words, 300 if wide else 240, title)


def _place(runs: Sequence[ComparedRun], some: Sequence[ComparedRun]) -> Json:
    """Where the loss of each run stands between bound and chance (1)."""
    records = []
    for run in some:
        for line in _thinned(run.steps):
            x, high, low = line["loss"], line.get("chance"), line.get("bound")
            if x is not None and high is not None and low is not None and high > low:
                records.append({"step": line["step"], "value": (x - low) / (high - low), **describe_run(run)})
    chart = _lines(records, recipe_encodings(runs, some), _points(some), title="0: the bound; 1: chance")
    return fit_to_page(chart, 300, "where the loss stands")


def _lines(records: Sequence[Json], encodings: Json, point: Json | bool, **y: Any) -> Any:
    """A line for each run over the steps."""
    line = chart_of(records).mark_line(strokeWidth=1.8, point=point)
    x, value = alt.X("step:Q", title="step"), alt.Y("value:Q", **y)
    return line.encode(x=x, y=value, **encodings, detail="run:N", tooltip=_tooltip("value"))


def _points(runs: Sequence[ComparedRun]) -> Json | bool:
    """Points on the lines if a run has one line in its log, which would be invisible."""
    return {"size": 30} if any(len(run.steps) == 1 for run in runs) else False


def _ends(records: Sequence[Json]) -> list[Json]:
    """The places of the words chance and bound: at the beginning of a line, once."""
    places: dict[str, Json] = {}
    for record in records:
        if record["of"] != "loss":
            places.setdefault(record["of"], {"step": record["step"], "value": record["value"], "of": record["of"]})
    return list(places.values())


def monitors(runs: Sequence[ComparedRun]) -> list[Figure]:
    """A small chart for each monitor that some run has."""
    figures: list[Figure] = []
    charts = charts_of(line for run in runs for line in run.monitors)
    compared = {key: words for chart in charts.values() for key, words in chart.compared.items()}
    for key, (title, about) in compared.items():
        records = [
            {"step": line["step"], "value": line[f"{PREFIX}{key}"], **describe_run(run)}
            for run in runs
            for line in _thinned([line for line in run.monitors if line.get(f"{PREFIX}{key}") is not None])
        ]
        if records:
            encodings = recipe_encodings(runs, legend=not figures or len(groups(runs)) <= FEW)
            chart = _lines(records, encodings, {"size": 18}, title=None, scale=alt.Scale(zero=False))
            figures.append(Figure(f"monitor-{key.replace('_', '-')}", fit_to_page(chart, 210, title), about))
    return figures


def _tooltip(*fields: str) -> list[Any]:
    entries = [alt.Tooltip("run:N"), alt.Tooltip("step:Q", format=",")]
    return entries + [alt.Tooltip(f"{f}:Q", format=".5~g") if f == "value" else alt.Tooltip(f"{f}:N") for f in fields]


def _thinned(lines: Sequence[MetricsLine]) -> list[MetricsLine]:
    """At most `MOST_POINTS` lines, evenly, with the last."""
    step = -(-len(lines) // MOST_POINTS) if lines else 1
    return [line for i, line in enumerate(lines) if (len(lines) - 1 - i) % step == 0]


# ----------------------------------------------------------------------------------------------------- where runs ended

MOST_CLASSES = 25


def plane(runs: Sequence[ComparedRun]) -> Figure | None:
    """Uniformity and tolerance of the embeddings, with the theory's corners where they are the same for all."""
    records, each = [], list[tuple[Json, ...]]()
    for run in runs:
        uniform, tolerant = run.measure("embeddings", "uniformity"), run.measure("embeddings", "tolerance")
        if uniform is not None and tolerant is not None and uniform.value is not None:
            records.append({"x": -uniform.value, "y": tolerant.value, **describe_run(run)})
            each.append(_corners(run, uniform))
    if not records:
        return None
    apart = [corner for corner in zip(*each, strict=True) if any(one != corner[0] for one in corner)]
    corners = [one for one in each[0] if "x" in one and all(one not in corner for corner in apart)]
    about = "Embeddings; diamonds: values of the theory."
    if apart:
        about += (
            f" Left out, because they differ between the runs: {' and '.join(corner[0]['says'] for corner in apart)}."
        )
    x = alt.X("x:Q", title="−uniformity (t = 2): right is more uniform", scale=alt.Scale(nice=True, zero=True))
    y = alt.Y("y:Q", title="tolerance: up is tighter classes", scale=alt.Scale(nice=True))
    tooltip = [alt.Tooltip("run:N"), alt.Tooltip("x:Q", title="−uniformity", format=".3f")]
    tooltip.append(alt.Tooltip("y:Q", title="tolerance", format=".3f"))
    points = chart_of(records).mark_point(filled=True, size=110, opacity=0.9, stroke="var(--paper)")
    middle = max(abs(record["x"]) for record in [*records, *corners]) / 2
    places = {"x": alt.X("x:Q"), "y": alt.Y("y:Q")}
    text: Json = {"fontSize": 11, "color": INK, "opacity": 0.7}
    layers = []
    for corner in corners:
        theory = chart_of([corner]).encode(**places)
        mark = theory.mark_point(shape="diamond", size=90, color=INK, opacity=0.6, strokeWidth=1.5)
        side: Json = {"align": "right", "dx": -9} if corner["x"] > middle else {"align": "left", "dx": 9}
        layers += [mark.encode(tooltip=alt.Tooltip("says:N", title="theory"))]
        layers += [theory.mark_text(dy=9 if corner["y"] else -9, **side, **text).encode(text="says:N")]
    chart = alt.layer(*layers, points.encode(x=x, y=y, tooltip=tooltip, **recipe_encodings(runs, points=True)))
    return Figure("uniformity-tolerance", fit_to_page(chart, 360, "uniformity and tolerance"), about, wide=True)


def _corners(run: ComparedRun, uniform: Measure) -> tuple[Json, ...]:
    """The theory's values: even over the sphere; classes at the vertices of a simplex. No x: there is no such value."""
    even: Json = {"says": "even over the sphere"}
    if uniform.theory:
        even |= {"x": -round(uniform.theory, 3), "y": 0.0}
    vertices: Json = {"says": "classes at simplex vertices"}
    corner = simplex_corner(run.simplex("embeddings"), run.arrays.get("labels"))
    if corner is not None:
        vertices |= {"x": -round(corner[1], 3), "y": 1.0}
    return even, vertices


def classes(runs: Sequence[ComparedRun]) -> Figure | None:
    """Accuracy of each class by the protocol that most runs have; of many classes those that differ most."""
    per = {
        protocol: {label: record for label, record in records.items() if record.per_class}
        for protocol, records in by_protocol(runs).items()
    }
    protocol, have = max(per.items(), key=lambda item: len(item[1]), default=(None, {}))
    if protocol is None or len(have) < 2:
        return None
    names = next(iter(have.values())).class_names or []
    records: list[Json] = []
    for group in groups(runs):
        per_class = [have[run.label].per_class or [] for run in runs if run.group == group and run.label in have]
        count = min(map(len, per_class), default=0)
        for k in range(count):
            values = [100 * value for one in per_class if (value := one[k]) is not None]
            if values:
                name = str(names[k]) if k < len(names) else f"class {k}"
                mean = sum(values) / len(values)
                records.append({"class": name, "value": mean, "n": len(values), "recipe": group})
    order, left_out = _most_different(records)
    records = [record for record in records if record["class"] in order]
    about = f"{protocol.title}. Means over seeds; the classes that differ most come first"
    about += f", and {left_out} that differ less are left out." if left_out else "."
    base = chart_of(records).encode(y=alt.Y("class:N", sort=order, title=None, axis=alt.Axis(grid=True)))
    span = base.mark_rule(color=INK, opacity=0.3).encode(x="min(value):Q", x2="max(value):Q")
    points = base.mark_point(filled=True, size=80, opacity=0.9).encode(
        x=alt.X("value:Q", title="accuracy of the class (%)", scale=alt.Scale(zero=False)),
        **recipe_encodings(runs, points=True),
        tooltip=["class:N", "recipe:N", alt.Tooltip("value:Q", format=".1f"), alt.Tooltip("n:Q", title="seeds")],
    )
    return Figure("classes", fit_to_page(span + points, 24 * len(order), "accuracy of each class"), about, wide=True)


def _most_different(records: Sequence[Json]) -> tuple[list[str], int]:
    """The classes by the distance between the runs, and how many are left out."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(record["class"], []).append(record["value"])
    order = sorted(values, key=lambda name: min(values[name]) - max(values[name]))
    return order[:MOST_CLASSES], max(len(order) - MOST_CLASSES, 0)


def simplex(runs: Sequence[ComparedRun]) -> list[Figure]:
    """Cosines between class means, and of samples to their mean, with the optimum drawn."""
    figures = []
    for key, title in (("between_means", "cosines between class means"), ("within", "cosines of rows to their mean")):
        records = [
            {**describe_run(run), **quantiles(run.arrays[key])} for run in runs if len(run.arrays.get(key, ())) > 0
        ]
        if len(records) > 1:
            figures.append(
                Figure(f"simplex-{key.replace('_', '-')}", _cosines(runs, records, title, _optimum(runs, key)))
            )
    return figures


def _optimum(runs: Sequence[ComparedRun], key: str) -> float | None:
    if key == "within":
        return 1.0
    values = {run.simplex("embeddings").get("optimum") for run in runs}
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return numbers[0] if len(numbers) == 1 else None


def _cosines(runs: Sequence[ComparedRun], records: Sequence[Json], title: str, optimum: float | None) -> Json:
    """The quantiles of each run, and the optimum."""
    order = [record["run"] for record in records]
    axis = alt.Axis(labelLimit=180)
    base = chart_of(records).encode(
        y=alt.Y("run:N", sort=order, title=None, axis=axis),
        color=recipe_encodings(runs, legend=False)["color"],
        tooltip=["run:N", *quantile_tips()],
    )
    layers = spans(base, "x", bar=11, tick=18)
    if optimum is not None:
        theory = chart_of([{"x": optimum, "says": f"optimum {optimum:.3g}".replace("-", "−")}])
        layers.append(theory.mark_rule(strokeDash=[4, 3], color=INK).encode(x="x:Q", tooltip="says:N"))
        beside: Json = {"align": "right", "dx": -4} if optimum > 0.5 else {"align": "left", "dx": 4}
        words = theory.mark_text(dy=-6, fontSize=11, color=INK, **beside)
        layers.append(words.encode(x="x:Q", y=alt.value(0), text="says:N"))
    return fit_to_page(alt.layer(*layers), 26 * len(order), title)
