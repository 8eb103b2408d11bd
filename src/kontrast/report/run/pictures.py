"""Pictures: some test images with their nearest training images, and the views the model learned from."""

from __future__ import annotations

from kontrast.report.images import data_url
from kontrast.report.page import Gallery, Picture, Section, Strip, Text
from kontrast.report.run.collect import Run

MOST = 24  # queries that are shown


def neighbours(run: Run) -> Section | None:
    """Test images, and the nearest training images of each: those with the most wrong classes first."""
    arrays = run.arrays
    queries, images, labels = arrays.get("query_images"), arrays.get("neighbour_images"), arrays.get("neighbour_labels")
    rows, truth = arrays.get("query_rows"), _truth(run)
    if queries is None or images is None or rows is None:
        return None
    strips: list[tuple[int, Strip]] = []
    for i, row in enumerate(rows.tolist()):
        own = truth.get(row)
        others, wrong = [], 0
        for j in range(images.shape[1]):
            label = None if labels is None else int(labels[i, j])
            right = own is not None and label == own
            tone = "" if own is None or label is None else "good" if right else "bad"
            wrong += tone == "bad"
            others.append(Picture(data_url(images[i, j]), "" if label is None else run.class_name(label), tone))
        name = f"row {row}" if own is None else run.class_name(own)
        strips.append((wrong, Strip(Picture(data_url(queries[i]), name), others, "bad" if wrong else "good")))
    strips.sort(key=lambda strip: -strip[0])
    shown = [strip for _, strip in strips]
    if len(shown) > MOST:  # the worst, and as many of the best
        shown = [*shown[: MOST // 2], *shown[-MOST // 2 :]]
    near = sum(picture.tone == "good" for _, strip in strips for picture in strip.others)
    known = sum(picture.tone != "" for _, strip in strips for picture in strip.others)
    said = f" Of all {len(strips)} queries, {near} of {known} neighbours have the query's class." if known else ""
    about = f"Left a test image, right its five nearest training images by cosine.{said}"
    return Section("Nearest neighbours", [Gallery(shown, about, "only those with a wrong neighbour" if known else "")])


def views(run: Run) -> Section | None:
    """Training images, and their views after augmentation."""
    images, seen = run.arrays.get("sample_images"), run.arrays.get("sample_views")
    if images is None or seen is None:
        return None
    presets = [str(view.get("name", "")) for view in (run.recipe.get("augment") or {}).get("views") or []]
    strips = []
    for image, views in zip(images, seen, strict=True):
        names = [presets[j] if len(presets) == len(views) else f"view {j + 1}" for j in range(len(views))]
        pictures = [Picture(data_url(view), name) for view, name in zip(views, names, strict=True)]
        strips.append(Strip(Picture(data_url(image), "image"), pictures))
    about = "Left the training image, right what the model saw of it: views are drawn anew in every epoch."
    ask = Text(
        "One should still see what a view is of. Views that are all but the image teach little; those of which nobody "
        "could tell what they show teach the wrong thing.",
        "note",
    )
    return Section("Views", [Gallery(strips, about), ask])


def _truth(run: Run) -> dict[int, int]:
    """The class of test rows, by row; those of ``features`` are known."""
    labels, rows = run.arrays.get("labels"), run.arrays.get("rows")
    if labels is None:
        return {}
    if rows is None:  # runs of before: exact where all test rows are there
        total = len(run.arrays.get("predictions", labels))
        return dict(enumerate(labels.tolist())) if total == len(labels) else {}
    return dict(zip(rows.tolist(), labels.tolist(), strict=True))
