"""The embedding map: which rows the encoder puts near each other, in two dimensions.

Rows are scaled to length 1, as for every measure. PCA is the plane of largest variance: distances have a meaning, but
much is left out. t-SNE (of at most `ROWS` rows, from a fixed start) keeps neighbourhoods; distances between its groups
mean nothing. Colour and shape together tell up to 24 classes apart; of more classes, those with the most errors are
coloured, and a list selects any class.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from kontrast.report.drawing import Json, chart_of
from kontrast.report.figures import COLOURS, INK
from kontrast.report.page import Figure, Section, Text, data_url
from kontrast.report.records import RunRecord
from kontrast.report.run.accuracy import confused

ROWS = 1000
FEWEST = 10  # rows that t-SNE makes sense of
APART = 20  # classes that have a colour and shape of their own
COLOURED = 10  # of more classes
SHAPES = ("circle", "square", "triangle-up", "diamond")
OTHER = "other classes"


def section(run: RunRecord) -> Section | None:
    """The map of a run; None if it left no features."""
    features = run.arrays.get("features")
    if features is None or features.ndim != 2 or len(features) < 3:
        return None
    selection = rows(run)
    x = unit(features[selection])
    maps = {"PCA": pca(x)}
    if len(selection) >= FEWEST:
        maps = {"t-SNE": tsne(x), **maps}
    split = run.geometry.protocol.split or "test"
    about = (
        f"{len(selection):,} {split} rows, features of length 1. t-SNE keeps neighbours together; distances between "
        "its groups mean nothing. PCA shows the two directions of largest variance."
    )
    figure = Figure(
        "embedding-map", chart(records(run, selection, maps), list(maps), _classes(run, selection)), about, wide=True
    )
    note = [] if "thumbnails" in run.arrays or run.arrays.get("sample_images") is None else [_NOTE]
    return Section("Embedding map", [figure, *note])


_NOTE = Text("This run was made before thumbnails were kept; train it again to see pictures here.", "note")


def rows(run: RunRecord) -> NDArray[np.int64]:
    """The rows of ``features`` on the map: those with thumbnails, or up to `ROWS`, as many of each class."""
    if "thumbnail_rows" in run.arrays:
        return np.asarray(run.arrays["thumbnail_rows"][:ROWS], dtype=np.int64)
    count, labels = len(run.arrays["features"]), run.arrays.get("labels")
    if count <= ROWS:
        return np.arange(count)
    if labels is None:
        return np.linspace(0, count - 1, ROWS).astype(np.int64)
    turn = np.zeros(count, dtype=np.int64)  # the place of a row within its class
    for label in np.unique(labels):
        turn[labels == label] = np.arange((labels == label).sum())
    return np.sort(np.argsort(turn, kind="stable")[:ROWS])


def unit(x: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1; zero rows and values that are not finite go to the origin."""
    x = np.nan_to_num(np.asarray(x, dtype=np.float64))
    result: NDArray[np.float64] = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    return result


def pca(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The two coordinates of largest variance; the largest entry of each direction is positive.

    >>> pca(np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 1.0], [3.0, -1.0]])).round().astype(int).tolist()
    [[-3, 0], [3, 0], [0, 1], [0, -1]]
    """
    centred = x - x.mean(0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:2]
    if len(directions) < 2:
        directions = np.vstack([directions, np.zeros_like(directions)])[:2]
    signs = np.sign(directions[np.arange(2), np.abs(directions).argmax(1)])
    result: NDArray[np.float64] = centred @ (directions * np.where(signs == 0, 1, signs)[:, None]).T
    return result


def tsne(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """scikit-learn's t-SNE, from the PCA and a fixed seed."""
    from sklearn.manifold import TSNE

    start = pca(x)
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    model = TSNE(perplexity=min(30.0, (len(x) - 1) / 3), init=start, max_iter=500, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collapsed rows: all distances are zero, and the map shows that
        result: NDArray[np.float64] = model.fit_transform(x.astype(np.float32)).astype(np.float64)
    return result


def records(run: RunRecord, selection: NDArray[np.int64], maps: dict[str, NDArray[np.float64]]) -> list[Json]:
    """A record for each point: its place on each map, class, prediction and picture."""
    labels, thumbnails, files = (run.arrays.get(key) for key in ("labels", "thumbnails", "names"))
    predicted = _predictions(run)
    pictured = thumbnails is not None and len(thumbnails) >= len(selection) and "thumbnail_rows" in run.arrays
    points: list[Json] = []
    for i, row in enumerate(selection.tolist()):
        record: Json = {
            f"{name} {axis}": round(float(at[i, j]), 4) for name, at in maps.items() for j, axis in ((0, "x"), (1, "y"))
        }
        record |= {"row": row} if files is None else {"file": str(files[row])}
        if labels is not None:
            record["class"] = run.class_name(int(labels[row]))
        if predicted is not None:
            record["predicted"] = run.class_name(int(predicted[row]))
        if pictured and thumbnails is not None:
            record["image"] = data_url(thumbnails[i])
        points.append(record)
    return points


def _predictions(run: RunRecord) -> NDArray[np.int64] | None:
    """The predictions of the rows of ``features``, which may be some of the predicted rows."""
    predictions, features, part = run.arrays.get("predictions"), run.arrays["features"], run.arrays.get("rows")
    if predictions is None:
        return None
    if part is not None and len(part) == len(features) and (not len(part) or int(part.max()) < len(predictions)):
        values: NDArray[np.int64] = predictions[part]
        return values
    return predictions if len(predictions) == len(features) else None


def _classes(run: RunRecord, selection: NDArray[np.int64]) -> list[str]:
    """The classes with a colour: all, or the most confused and then the largest."""
    labels = run.arrays.get("labels")
    if labels is None:
        return []
    present, counts = np.unique(labels[selection], return_counts=True)
    if len(present) <= APART:
        return [run.class_name(int(label)) for label in present]
    order = [label for true, predicted, _ in confused(run, 40) for label in (true, predicted)]
    order += [int(label) for label in present[np.argsort(-counts, kind="stable")]]
    selected = [label for label in dict.fromkeys(order) if label in present][:COLOURED]
    return [run.class_name(label) for label in selected]


def chart(points: Sequence[Json], maps: Sequence[str], classes: Sequence[str]) -> Json:
    """The points, with a switch between the maps; the legend, or a list, selects a class."""
    names = sorted({str(point["class"]) for point in points if "class" in point})
    many = len(names) > len(classes)
    entries = [*classes, OTHER] if many else list(classes)
    which = alt.param("map", value=maps[0], bind=alt.binding_radio(options=list(maps), name="Map "))
    params: list[Any] = [which] if len(maps) > 1 else []
    place = {
        axis: " : ".join([*(f"map == '{m}' ? datum['{m} {axis}']" for m in maps[:-1]), f"datum['{maps[-1]} {axis}']"])
        for axis in "xy"
    }
    flat = alt.Axis(labels=False, ticks=False, domain=False, title=None, grid=False)
    keys = [key for key in ("class", "predicted", "file", "row", "image") if key in points[0]]
    base = chart_of(points).transform_calculate(**{f"_{axis}": text for axis, text in place.items()})
    encoding: dict[str, Any] = {
        "x": alt.X("_x:Q", axis=flat, scale=alt.Scale(zero=False, padding=8)),
        "y": alt.Y("_y:Q", axis=flat, scale=alt.Scale(zero=False, padding=8)),
        "tooltip": [alt.Tooltip(f"{key}:{'Q' if key == 'row' else 'N'}") for key in keys],
    }
    if not names:
        encoding["color"] = alt.value(COLOURS[0])
    else:
        if many:
            coloured = "[" + ",".join(_quoted(name) for name in classes) + "]"
            base = base.transform_calculate(colour=f"indexof({coloured}, datum.class) < 0 ? '{OTHER}' : datum.class")
            picked = alt.param(
                "pick", value="", bind=alt.binding_select(options=["", *names], labels=["all", *names], name="Class ")
            )
            params.append(picked)
            strong = "pick == '' ? datum.colour != '" + OTHER + "' : pick == datum.class"
            encoding["opacity"] = alt.condition(strong, alt.value(0.9), alt.value(0.15))
        else:
            base = base.transform_calculate(colour="datum.class")
            click = alt.selection_point(fields=["colour"], bind="legend", name="legend")
            params.append(click)
            encoding["opacity"] = alt.condition(click, alt.value(0.85), alt.value(0.06))
        colours = [INK if name == OTHER and many else COLOURS[i % len(COLOURS)] for i, name in enumerate(entries)]
        shapes = [SHAPES[i // len(COLOURS) % len(SHAPES)] for i in range(len(entries))]
        legend = alt.Legend(title=None, orient="right", columns=1, symbolOpacity=1, symbolSize=70)
        encoding["color"] = alt.Color("colour:N", scale=alt.Scale(domain=entries, range=colours), legend=legend)
        encoding["shape"] = alt.Shape("colour:N", scale=alt.Scale(domain=entries, range=shapes), legend=legend)
    chart = base.mark_point(filled=True, size=38, strokeWidth=0).encode(**encoding)
    spec: dict[str, Any] = chart.add_params(*params).properties(width="container", height=460).to_dict()
    return spec


def _quoted(name: str) -> str:
    """A string in Vega's expressions."""
    return json.dumps(name)
