"""Is it good: every protocol's number, accuracy by class, and which classes are confused."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
from numpy.typing import NDArray

from kontrast.report.drawing import SHAPES, Json, chart_of, fit_to_page
from kontrast.report.figures import COLOURS, INK
from kontrast.report.page import Figure, Part, Section, Table
from kontrast.report.records import RunRecord
from kontrast.report.run.summary import chance, count_words, percent

MOST_CLASSES = 40  # that are readable beside each other; of more, those with the most errors are shown
PAIRS = 10


def section(run: RunRecord) -> Section | None:
    """Tables and charts of the protocols; None if the run was not evaluated."""
    if not run.results:
        return None
    parts: list[Part] = [_protocols(run)]
    labels = hardest(run)
    first = run.results[0]
    count = len(first.per_class or [])
    of = "" if len(labels) == count else f" The {len(labels)} of {count} classes with the most errors."
    if labels and count > 1:
        parts.append(Figure("per-class", per_class(run, labels), f"Accuracy by class, the hardest first.{of}"))
        about = f"Rows: the true class; columns: the predicted one ({first.protocol}).{of}"
        parts.append(Figure("confusion", confusion(run, labels), f"{about} {_SHARES[not of]}"))
        pairs = confused(run)
        if pairs:
            parts.append(_pairs(run, pairs))
    return Section("Accuracy", parts)


_SHARES = {
    True: "A row adds up to 100 %; counts on hover.",
    False: "Shares are of all rows of the class; columns of other classes are left out. Counts on hover.",
}


def hardest(run: RunRecord) -> list[int]:
    """The classes to show: all, or those with the most errors by the first protocol; in their own order."""
    counts = _counts(run)
    if not len(counts):
        return []
    errors = counts.sum(1) - np.diag(counts) + counts.sum(0) - np.diag(counts)
    order = np.argsort(-errors, kind="stable")[:MOST_CLASSES]
    return sorted(int(label) for label in order)


def confused(run: RunRecord, most: int = PAIRS) -> list[tuple[int, int, int]]:
    """The most frequent errors of the first protocol: (true class, predicted class, count)."""
    counts = _counts(run)
    if not len(counts):
        return []
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:most]
    true, predicted = np.unravel_index(order, counts.shape)
    errors = zip(true.tolist(), predicted.tolist(), counts.ravel()[order].tolist(), strict=True)
    return [(a, b, n) for a, b, n in errors if n]


def per_class(run: RunRecord, labels: Sequence[int]) -> Json:
    """A point for each class and protocol, the hardest class on top."""
    rows: list[Json] = []
    for result in run.results:
        values = result.per_class or []
        rows += [
            {"class": run.class_name(label), "accuracy": values[label], "protocol": result.name}
            for label in labels
            if label < len(values) and values[label] is not None
        ]
    names = [result.name for result in run.results]
    order = sorted(
        {row["class"] for row in rows}, key=lambda name: np.mean([r["accuracy"] for r in rows if r["class"] == name])
    )
    y = alt.Y("class:N", sort=order, title=None, axis=alt.Axis(grid=True, labelLimit=130))
    legend = alt.Legend(title=None, orient="top") if len(names) > 1 else None
    points = (
        chart_of(rows)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=alt.X(
                "accuracy:Q",
                title="accuracy",
                axis=alt.Axis(format="%", tickCount=5),
                scale=alt.Scale(zero=False, padding=10),
            ),
            y=y,
            color=alt.Color("protocol:N", legend=legend, scale=alt.Scale(domain=names, range=_cycled(COLOURS, names))),
            shape=alt.Shape("protocol:N", legend=legend, scale=alt.Scale(domain=names, range=_cycled(SHAPES, names))),
            tooltip=["class:N", "protocol:N", alt.Tooltip("accuracy:Q", format=".1%")],
        )
    )
    return fit_to_page(points, max(22 * len(order), 160), "Accuracy by class")


def confusion(run: RunRecord, labels: Sequence[int]) -> Json:
    """Shares of each true class's rows: blue where right, orange where wrong; deeper is more."""
    counts = _counts(run)
    rows: list[Json] = []
    for a in labels:
        total = int(counts[a].sum())
        for b in labels:
            if counts[a, b]:
                share = counts[a, b] / total
                pair = {"true": run.class_name(a), "predicted": run.class_name(b)}
                rows.append({**pair, "share": share, "rows": int(counts[a, b]), "of": total, "right": a == b})
    names = [run.class_name(label) for label in labels]
    side = {"step": 30 if len(names) <= 12 else max(10, 420 // len(names))}
    axis: Json = {"grid": False, "ticks": False, "domain": False, "labelLimit": 110, "labelOverlap": len(names) > 25}
    base = chart_of(rows).encode(
        x=alt.X("predicted:N", sort=names, scale=alt.Scale(domain=names), axis=alt.Axis(labelAngle=-45, **axis)),
        y=alt.Y("true:N", sort=names, scale=alt.Scale(domain=names), axis=alt.Axis(**axis)),
        tooltip=["true:N", "predicted:N", alt.Tooltip("share:Q", format=".1%"), "rows:Q", "of:Q"],
    )
    cells = base.mark_rect(cornerRadius=2).encode(
        color=alt.condition("datum.right", alt.value(COLOURS[0]), alt.value(COLOURS[1])),
        opacity=alt.Opacity("share:Q", legend=None, scale=alt.Scale(type="sqrt", domain=[0, 1], range=[0.04, 1])),
    )
    layers = [cells]
    if len(names) <= 12:
        text = base.mark_text(fontSize=10).encode(
            text=alt.Text("share:Q", format=".0%"),
            color=alt.condition("datum.share > 0.35", alt.value("white"), alt.value(INK)),
        )
        layers.append(text.transform_filter("datum.share >= 0.005"))
    spec: Json = alt.layer(*layers).properties(title="Confusion", width=side, height=side).to_dict()
    return spec


def _cycled(values: Sequence[str], names: Sequence[str]) -> list[str]:
    return [values[i % len(values)] for i in range(len(names))]


def _counts(run: RunRecord) -> NDArray[np.int64]:
    """The first protocol's confusion ``[true class, predicted class]``; empty if it has none."""
    counts = np.array((run.results[0].confusion if run.results else None) or [], dtype=np.int64)
    return counts if counts.ndim == 2 else np.zeros((0, 0), dtype=np.int64)


def _protocols(run: RunRecord) -> Table:
    rows = []
    for result in run.results:
        value = f"{100 * (result.value or 0.0):.2f}" + ("" if result.error is None else f" ± {100 * result.error:.2f}")
        top5 = "–" if result.top5 is None else f"{100 * result.top5:.2f}"
        rows.append(
            [result.name, value, top5, count_words(result.train_rows), count_words(result.test_rows), result.protocol]
        )
    guess = chance(run)
    if guess is not None:
        rows.append(["guessing", f"{100 * guess:.2f}", "–", "–", "–", "the most frequent class of the test rows"])
    columns = ["name", "top-1, %", "top-5, %", "train rows", "test rows", "protocol"]
    return Table(columns, rows, "± is one standard error over the test rows. Nothing was chosen by their results.")


def _pairs(run: RunRecord, pairs: Sequence[tuple[int, int, int]]) -> Table:
    counts = _counts(run)
    rows = [
        [run.class_name(a), run.class_name(b), f"{n}", percent(n / max(int(counts[a].sum()), 1))] for a, b, n in pairs
    ]
    return Table(["true class", "predicted as", "rows", "of the class"], rows, "The most frequent confusions.")
