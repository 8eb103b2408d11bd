"""Where the runs ended: uniformity against tolerance, class by class, how near the simplex."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kontrast.report.comparison._paint import Json, drawn, fitted, groups, named, told_apart
from kontrast.report.comparison.collect import Run
from kontrast.report.comparison.statistics import by_protocol
from kontrast.report.corners import simplex_corner
from kontrast.report.page import Figure

MOST_CLASSES = 25
INK = "currentColor"


def plane(runs: Sequence[Run]) -> Figure | None:
    """Uniformity and tolerance of the embeddings, with the theory's corners where they are the same for all."""
    import altair as alt

    records, each = [], list[tuple[Json, ...]]()
    for run in runs:
        uniform, tolerant = run.line("uniformity"), run.line("tolerance")
        if uniform is not None and tolerant is not None:
            records.append({"x": -uniform["value"], "y": tolerant["value"], **named(run)})
            each.append(_corners(run, uniform))
    if not records:
        return None
    apart = [corner for corner in zip(*each, strict=True) if any(one != corner[0] for one in corner)]
    corners = [one for one in each[0] if "x" in one and all(one not in corner for corner in apart)]
    said = "Of the embeddings; diamonds: what the theory says."
    if apart:
        said += f" The runs have different ones, left out: {' and '.join(corner[0]['says'] for corner in apart)}."
    x = alt.X("x:Q", title="−uniformity (t = 2): right is more uniform", scale=alt.Scale(nice=True, zero=True))
    y = alt.Y("y:Q", title="tolerance: up is tighter classes", scale=alt.Scale(nice=True))
    tooltip = [alt.Tooltip("run:N"), alt.Tooltip("x:Q", title="−uniformity", format=".3f")]
    tooltip.append(alt.Tooltip("y:Q", title="tolerance", format=".3f"))
    points = drawn(records).mark_point(filled=True, size=110, opacity=0.9, stroke="var(--paper)")
    middle = max(abs(record["x"]) for record in [*records, *corners]) / 2
    places = {"x": alt.X("x:Q"), "y": alt.Y("y:Q")}
    text: Json = {"fontSize": 11, "color": INK, "opacity": 0.7}
    layers = []
    for corner in corners:
        theory = drawn([corner]).encode(**places)
        mark = theory.mark_point(shape="diamond", size=90, color=INK, opacity=0.6, strokeWidth=1.5)
        side: Json = {"align": "right", "dx": -9} if corner["x"] > middle else {"align": "left", "dx": 9}
        layers += [mark.encode(tooltip=alt.Tooltip("says:N", title="theory"))]
        layers += [theory.mark_text(dy=9 if corner["y"] else -9, **side, **text).encode(text="says:N")]
    chart = alt.layer(*layers, points.encode(x=x, y=y, tooltip=tooltip, **told_apart(runs, points=True)))
    made = fitted(chart, 360, "uniformity and tolerance")
    return Figure("uniformity-tolerance", made, said, wide=True)


def _corners(run: Run, uniform: Json) -> tuple[Json, ...]:
    """Even over the sphere; each class one point, the points a regular simplex. Without x: there is none."""
    even: Json = {"says": "even over the sphere"}
    if uniform.get("theory"):
        even |= {"x": -round(uniform["theory"], 3), "y": 0.0}
    vertices: Json = {"says": "classes at simplex vertices"}
    found = simplex_corner((run.geometry.get("simplex") or {}).get("embeddings"), run.arrays.get("labels"))
    if found is not None:
        vertices |= {"x": -round(found[1], 3), "y": 1.0}
    return even, vertices


def classes(runs: Sequence[Run]) -> Figure | None:
    """Accuracy of each class by the protocol that most runs have; of many classes those that differ most."""
    import altair as alt

    per = {
        protocol: {label: record for label, record in records.items() if record.get("per_class")}
        for protocol, records in by_protocol(runs).items()
    }
    protocol, have = max(per.items(), key=lambda item: len(item[1]), default=(None, {}))
    if protocol is None or len(have) < 2:
        return None
    names = next(iter(have.values())).get("class_names") or []
    records: list[Json] = []
    for group in groups(runs):
        per_class = [have[run.label]["per_class"] for run in runs if run.group == group and run.label in have]
        count = min(map(len, per_class), default=0)
        for k in range(count):
            values = [100 * one[k] for one in per_class if one[k] is not None]
            if values:
                name = str(names[k]) if k < len(names) else f"class {k}"
                mean = sum(values) / len(values)
                records.append({"class": name, "value": mean, "n": len(values), "recipe": group})
    order, left_out = _most_different(records)
    records = [record for record in records if record["class"] in order]
    said = f"{protocol.title}. Means over seeds; the classes that differ most come first"
    said += f", and {left_out} that differ less are left out." if left_out else "."
    base = drawn(records).encode(y=alt.Y("class:N", sort=order, title=None, axis=alt.Axis(grid=True)))
    span = base.mark_rule(color=INK, opacity=0.3).encode(x="min(value):Q", x2="max(value):Q")
    points = base.mark_point(filled=True, size=80, opacity=0.9).encode(
        x=alt.X("value:Q", title="accuracy of the class (%)", scale=alt.Scale(zero=False)),
        **told_apart(runs, points=True),
        tooltip=["class:N", "recipe:N", alt.Tooltip("value:Q", format=".1f"), alt.Tooltip("n:Q", title="seeds")],
    )
    return Figure("classes", fitted(span + points, 24 * len(order), "accuracy of each class"), said, wide=True)


def _most_different(records: Sequence[Json]) -> tuple[list[str], int]:
    """The classes by how far the runs are apart, and how many are left out."""
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(record["class"], []).append(record["value"])
    order = sorted(values, key=lambda name: min(values[name]) - max(values[name]))
    return order[:MOST_CLASSES], max(len(order) - MOST_CLASSES, 0)


def simplex(runs: Sequence[Run]) -> list[Figure]:
    """Cosines between class means, and of samples to their mean, with the optimum drawn."""
    found = []
    for key, title in (("between_means", "cosines between class means"), ("within", "cosines of rows to their mean")):
        records = [{**named(run), **_quantiles(run.arrays[key])} for run in runs if len(run.arrays.get(key, ())) > 0]
        if len(records) > 1:
            found.append(Figure(f"simplex-{key.replace('_', '-')}", _spans(runs, records, title, _optimum(runs, key))))
    return found


def _optimum(runs: Sequence[Run], key: str) -> float | None:
    if key == "within":
        return 1.0
    known = {((run.geometry.get("simplex") or {}).get("embeddings") or {}).get("optimum") for run in runs}
    found = [float(value) for value in known if value is not None]
    return found[0] if len(found) == 1 else None


def _quantiles(values: np.ndarray) -> Json:
    low, q1, middle, q3, high = (float(q) for q in np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]))
    return {"low": low, "q1": q1, "middle": middle, "q3": q3, "high": high}


def _spans(runs: Sequence[Run], records: Sequence[Json], title: str, optimum: float | None) -> Json:
    """A line for nine tenths of the values, a bar for the middle half, a tick at the median.

    The tick is higher than the bar and of its colour: where the values are nearly one, it is what one sees.
    """
    import altair as alt

    order = [record["run"] for record in records]
    axis = alt.Axis(labelLimit=180)
    base = drawn(records).encode(
        y=alt.Y("run:N", sort=order, title=None, axis=axis),
        color=told_apart(runs, legend=False)["color"],
        tooltip=["run:N", *(alt.Tooltip(f"{q}:Q", format=".3f") for q in ("low", "q1", "middle", "q3", "high"))],
    )
    x = alt.Scale(zero=False, nice=True)
    lines = base.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title="cosine", scale=x), x2="high:Q")
    bars = base.mark_bar(size=11, opacity=0.5).encode(x=alt.X("q1:Q"), x2="q3:Q")
    ticks = base.mark_tick(thickness=2.5, size=18).encode(x=alt.X("middle:Q"))
    layers = [lines, bars, ticks]
    if optimum is not None:
        theory = drawn([{"x": optimum, "says": f"optimum {optimum:.3g}".replace("-", "−")}])
        layers.append(theory.mark_rule(strokeDash=[4, 3], color=INK).encode(x="x:Q", tooltip="says:N"))
        beside: Json = {"align": "right", "dx": -4} if optimum > 0.5 else {"align": "left", "dx": 4}
        words = theory.mark_text(dy=-6, fontSize=11, color=INK, **beside)
        layers.append(words.encode(x="x:Q", y=alt.value(0), text="says:N"))
    return fitted(alt.layer(*layers), 26 * len(order), title)
