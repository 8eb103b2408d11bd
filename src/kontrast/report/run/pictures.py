"""Pictures: some images with their nearest training images, and the views the model learned from.

The queries are test images. In a run without a test split they are training images, and a query is not its own
neighbour.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import altair as alt
from numpy.typing import NDArray

from kontrast.recipe import Part, View
from kontrast.report.drawing import Json, chart_of
from kontrast.report.figures import COLOURS, INK, LIGHT
from kontrast.report.page import Gallery, Picture, Section, Strip, Text, data_url
from kontrast.report.records import RunRecord

MOST = 24  # queries


def neighbours(run: RunRecord) -> Section | None:
    """Images with their nearest training images; those with the most wrong classes first."""
    arrays = run.arrays
    queries, images, labels = arrays.get("query_images"), arrays.get("neighbour_images"), arrays.get("neighbour_labels")
    rows, near_rows, truth = arrays.get("query_rows"), arrays.get("neighbours"), _truth(run)
    files, near_files = arrays.get("query_names"), arrays.get("neighbour_names")
    if queries is None or images is None or rows is None:
        return None
    strips: list[tuple[int, Strip]] = []
    for i, row in enumerate(rows.tolist()):
        truth_of_query = truth.get(row)
        others, errors = [], 0
        for j in range(images.shape[1]):
            label = None if labels is None else int(labels[i, j])
            right = truth_of_query is not None and label == truth_of_query
            tone = "" if truth_of_query is None or label is None else "good" if right else "bad"
            errors += tone == "bad"
            file = _file(near_files, near_rows, (i, j))
            of = file if label is None else run.class_name(label)
            others.append(Picture(data_url(images[i, j]), of, tone, _join(of, file)))
        file = f"row {row}" if files is None else str(files[i])
        name = file if truth_of_query is None else run.class_name(truth_of_query)
        tone = "" if not any(picture.tone for picture in others) else "bad" if errors else "good"
        strips.append((errors, Strip(Picture(data_url(queries[i]), name, about=_join(name, file)), others, tone)))
    strips.sort(key=lambda strip: -strip[0])
    best = [strip for _, strip in strips]
    if len(best) > MOST:  # the worst, and as many of the best
        best = [*best[: MOST // 2], *best[-MOST // 2 :]]
    near = sum(picture.tone == "good" for _, strip in strips for picture in strip.others)
    labelled = sum(picture.tone != "" for _, strip in strips for picture in strip.others)
    about = _about_queries(run)
    if labelled:
        about += f" Of all {len(strips)} queries, {near} of {labelled} neighbours have the query's class."
    return Section(
        "Nearest neighbours", [Gallery(best, about, "only queries with a wrong neighbour" if labelled else "")]
    )


def views(run: RunRecord) -> Section | None:
    """Training images, and their views after augmentation."""
    images, augmented = run.arrays.get("sample_images"), run.arrays.get("sample_views")
    if images is None or augmented is None:
        return None
    recipe = run.contents.recipe
    presets = [] if recipe is None else [_title(view) for view in recipe.augment.views]
    strips = []
    for image, views in zip(images, augmented, strict=True):
        names = [presets[j] if len(presets) == len(views) else f"view {j + 1}" for j in range(len(views))]
        pictures = [Picture(data_url(view), name) for view, name in zip(views, names, strict=True)]
        strips.append(Strip(Picture(data_url(image), "image"), pictures))
    about = "Left: the training image. Right: its views; new ones are drawn in every epoch."
    note = Text(
        "You should still recognise what a view shows. Views that are nearly the image teach little; views that nobody "
        "could recognise teach the wrong thing.",
        "note",
    )
    return Section("Views", [Gallery(strips, about), note])


def _file(files: NDArray[Any] | None, rows: NDArray[Any] | None, at: tuple[int, int]) -> str:
    """A neighbour's file, or its row if rows are not files."""
    if files is not None:
        return str(files[at])
    return "" if rows is None else f"row {int(rows[at])}"


def _join(label: str, file: str) -> str:
    """The text on hover: the class and the file, or the one that is known."""
    return label if file in ("", label) else f"{label}: {file}"


def _title(view: View) -> str:
    """A view's preset, or its operations."""
    return ", ".join(part.name for part in ((view,) if isinstance(view, Part) else view))


def _about_queries(run: RunRecord) -> str:
    search = run.geometry.protocol.neighbours
    among = f", of {search.searched:,}" if search is not None and search.searched else ""
    if search is not None and search.queries == "train":
        return (
            f"Left: a training image, because there is no test split. Right: the nearest other training images by "
            f"cosine{among}. The model has learned from all of them; test images would say more."
        )
    return f"Left: a test image. Right: its nearest training images by cosine{among}."


def _truth(run: RunRecord) -> dict[int, int]:
    """The class of each query, by row."""
    labels, rows = run.arrays.get("labels"), run.arrays.get("rows")
    queries, classes = run.arrays.get("query_rows"), run.arrays.get("query_labels")
    if queries is not None and classes is not None:
        return dict(zip(queries.tolist(), classes.tolist(), strict=True))
    if "test_labels" in run.arrays:
        return dict(enumerate(run.arrays["test_labels"].tolist()))
    if labels is None:
        return {}
    if rows is None:  # older runs: exact if all test rows were kept
        total = len(run.arrays.get("predictions", labels))
        return dict(enumerate(labels.tolist())) if total == len(labels) else {}
    return dict(zip(rows.tolist(), labels.tolist(), strict=True))


SIDE, LINE = 56, 84  # pixels of a picture, and from one to the next
BESIDE = 2  # queries in a line


def chart(section: Section) -> Any:
    """The gallery of `neighbours` as an Altair chart: `BESIDE` queries in a line, each followed by its neighbours.

    >>> picture = Picture("data:image/webp;base64,", "cat")
    >>> chart(Section("Nearest neighbours", [Gallery([Strip(picture, [picture, picture])])])).to_dict()["height"]
    84
    """
    (gallery,) = (part for part in section.parts if isinstance(part, Gallery))
    rows: list[Json] = []
    step = 1.4 + max(len(strip.others) for strip in gallery.strips)  # from a query to the next one in the line
    for i, strip in enumerate(gallery.strips):
        for j, picture in enumerate([strip.first, *strip.others]):
            sign = {"good": "✓ ", "bad": "✗ "}.get(picture.tone, "")
            what = {"what": picture.tone or "query", "label": f"{sign}{picture.label}", "about": picture.about}
            place = {"line": i // BESIDE, "place": i % BESIDE * step + j}
            rows.append({**place, "image": picture.source, **what})
    wide, high = 1 + max(row["place"] for row in rows), 1 + max(row["line"] for row in rows)
    base = chart_of(rows).encode(
        x=alt.X("place:Q", axis=None, scale=alt.Scale(domain=[-0.5, wide - 0.5], nice=False)),
        y=alt.Y("line:Q", axis=None, scale=alt.Scale(domain=[-0.5, high - 0.5], reverse=True)),
        tooltip=["label:N", "about:N"],
    )
    tones = alt.Scale(domain=["query", "good", "bad"], range=[LIGHT[INK], *COLOURS[2:3], *COLOURS[1:2]])
    pictures = base.mark_image(width=SIDE, height=SIDE).encode(url="image:N")
    words = base.mark_text(dy=SIDE // 2 + 8, fontSize=10, limit=LINE - 4).encode(
        text="label:N", color=alt.Color("what:N", scale=tones, legend=None)
    )
    title = {"text": section.title, "subtitle": wrap(gallery.caption, 110), "anchor": "start"}
    size = {"width": round(LINE * wide), "height": LINE * high}
    return alt.layer(pictures, words).properties(title=title, **size).configure_view(stroke=None)
