"""The page of an exploration: the map with its search, and below it the lists.

Up to `kontrast.explore.reading.ONE_FILE` images it is one file. Beyond, sprite sheets lie in a folder beside it and are
loaded when they are shown; everything else is inside. (Data in files of their own would need scripts that load: from
the disk a browser allows a page only those, and the page forbids itself all but its own.)
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kontrast.explore.catalogue import Catalogue
from kontrast.explore.lists import Table, table
from kontrast.explore.record import Exploration
from kontrast.explore.thumbnails import ROW
from kontrast.report.figures import COLOURS
from kontrast.report.page import Number, Numbers, Page, Part, Section, Text, Widget

MOST_COPIES = 24  # pictures of a group


def page(found: Exploration, *, beside: str = "") -> Page:
    """The page of a record.

    Args:
        found: The record.
        beside: The name of the folder beside the page that will hold the sprite sheets (`sheet_name`); empty: inside.

    Returns:
        What `kontrast.report.page.render` takes.
    """
    catalogue = found.catalogue
    splits = ", ".join(f"{count:,} {split}" for split, count in catalogue.counts.items())
    subtitle = " · ".join(
        [
            f"{len(catalogue):,} {'images' if catalogue.thumbnails else 'rows'}: {splits}",
            f"{catalogue.num_classes} classes" if catalogue.num_classes else "no labels",
            f"features of {catalogue.encoder}, {catalogue.features.shape[1]:,} numbers",
        ]
    )
    sections = [
        Section("Found", [_numbers(found)]),
        Section("Map", [_map(found, beside)]),
        Section("Near-duplicates", _near_duplicates(found)),
    ]
    if catalogue.num_classes:
        sections.append(Section("Likely label errors", _label_errors(found)))
    sections.append(Section("Outliers", _far(found)))
    if catalogue.num_classes:
        sections.append(Section("Classes that overlap", _overlaps(found)))
    return Page(f"{catalogue.title}, explored", subtitle, sections, beside=beside if catalogue.thumbnails else "")


def sheet_name(number: int) -> str:
    """The file of a sprite sheet.

    >>> sheet_name(3)
    '0003.jpg'
    """
    return f"{number:04d}.jpg"


def _numbers(found: Exploration) -> Numbers:
    copies = sum(len(group.rows) for group in found.groups)
    items = [
        Number(
            "leaks",
            f"{found.leaks:,}",
            "groups of near-duplicates with test rows and others",
            "bad" if found.leaks else "good",
        ),
        Number("near-duplicates", f"{len(found.groups):,}", f"groups, {copies:,} rows"),
        Number("outliers", f"{len(found.outliers.rows):,}", "far from all other rows"),
    ]
    if found.errors is not None:
        listed = f"{len(found.errors.rows):,} of {found.errors.judged:,} labels are listed, with their probabilities"
        items.insert(2, Number("likely label errors", f"≈ {found.errors.expected:.0f}", listed))
        items.append(Number("overlapping classes", f"{len(found.overlapping):,}", "pairs"))
    return Numbers(items)


# ------------------------------------------------------------------------------------------------------------- the map


def _map(found: Exploration, beside: str) -> Widget:
    catalogue = found.catalogue
    n, k = found.neighbours.shape
    low = found.places.amin(0)
    span = max(float((found.places.amax(0) - low).max()), 1e-12)
    middle = (found.places.amax(0) - low) / 2
    at = ((found.places - low - middle) / span + 0.5) * 65535
    splits = list(catalogue.counts)
    number = {split: i for i, split in enumerate(splits)}
    data: dict[str, Any] = {
        "names": [catalogue.name(row) for row in range(n)],
        "splits": splits,
        "split": _packed(np.array([number[split] for split in catalogue.splits]), np.uint8),
        "classes": None if catalogue.class_names is None else list(map(catalogue.class_name, _classes(catalogue))),
        "label": None,
        "at": _packed(at.round().numpy(), np.uint16),
        "k": k,
        "near": _packed(found.neighbours.numpy(), np.uint32 if n > 65535 else np.uint16),
        "cosine": _packed((255 * found.cosines.clamp(0, 1)).round().numpy(), np.uint8),
        "outlier": _packed((100 * found.outliers.score.clamp(-300, 300)).round().numpy(), np.int16),
        "group": _packed(np.array(found.group_of), np.uint32),
        "error": None,
        "suggested": None,
        "colours": list(COLOURS),
        "pictures": None,
    }
    if catalogue.num_classes and catalogue.labels is not None:
        data["label"] = _packed(catalogue.labels.numpy(), np.int16)
    if found.errors is not None:
        data["error"] = _packed((255 * found.errors.probability).round().numpy(), np.uint8)
        data["suggested"] = _packed(found.errors.suggested.numpy(), np.int16)
    small = catalogue.thumbnails
    if small is not None:
        if beside:
            sheets = [f"{beside}/{sheet_name(i)}" for i in range(len(small.sheets))]
        else:
            sheets = [f"data:image/jpeg;base64,{base64.b64encode(sheet).decode()}" for sheet in small.sheets]
        data["pictures"] = {
            "side": small.side,
            "across": ROW,
            "sizes": _packed(small.sizes, np.uint8),
            "sheets": sheets,
        }
    caption = (
        "t-SNE of the features: neighbours stay together; distances between groups, and their sizes, mean nothing. Of "
        f"the nearest on the map, trustworthiness {found.trust:.3f} (1: all are near among the features, 0.5: chance)."
    )
    style = f"<style>{_resource('explore.css')}</style>"
    return Widget("explore-map", style + _resource("map.html"), _resource("map.js"), data, caption)


def _classes(catalogue: Catalogue) -> range:
    return range(len(catalogue.class_names or ()))


def _packed(values: NDArray[Any], kind: Any) -> str:
    """Numbers as bytes, little-endian, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()


# ----------------------------------------------------------------------------------------------------------- the lists


def _near_duplicates(found: Exploration) -> list[Part]:
    if not found.groups:
        return [Text("None found.", "plain"), *_note(found, _COPIES)]
    entries = []
    for number, group in enumerate(found.groups, start=1):
        marks = [word for word, has in (("leak", group.leak), ("labels differ", group.differ)) if has]
        text = f"group {number}: {len(group.rows):,} rows, similarity {group.similarity:.2f}"
        if len(group.rows) > MOST_COPIES:
            text += f"; the first {MOST_COPIES} are shown"
        entries.append({"rows": group.rows[:MOST_COPIES], "marks": marks, "text": text, "marked": group.leak})
    rows = sum(len(group.rows) for group in found.groups)
    said = f"{len(found.groups):,} groups, {rows:,} rows; {found.leaks:,} across test and other splits"
    only = "only leaks" if 0 < found.leaks < len(found.groups) else ""
    list_ = _list("duplicates", "groups", said, entries, table(found.near_duplicates), only)
    return [*_note(found, _COPIES), list_]


_COPIES = (
    "Copies, resized or encoded again, and shots that are nearly the same. Neighbours among the features are "
    "candidates; pixels decide. A leak has rows of the test split and of another: the accuracy on those test rows is "
    "not that of unseen images."
)
_SAME = "Rows whose features are the same. A leak has rows of the test split and of another."


def _note(found: Exploration, text: str) -> list[Part]:
    return [Text(text if found.catalogue.thumbnails is not None else _SAME, "note")]


def _label_errors(found: Exploration) -> list[Part]:
    note = Text(
        "Classifiers that have not seen a row judge its label. The probability says how often such a label is wrong, "
        "by Bayes from what the classifier sees and from how often labels of that class hold. Look before you correct: "
        "rows between two classes, and rows that show both, are here too.",
        "note",
    )
    errors = found.errors
    if errors is None:
        return [Text("Not judged: fewer than two classes have five labelled rows.", "plain")]
    if not errors.rows:
        return [Text(f"None among {errors.judged:,} labels.", "plain"), note]
    of = found.catalogue
    entries = [
        {
            "rows": [row],
            "strong": f"{100 * float(errors.probability[row]):.0f} %",
            "text": f"label {of.class_name(of.label(row))}, looks like {of.class_name(int(errors.suggested[row]))}",
        }
        for row in errors.rows
    ]
    said = f"{len(entries):,} of {errors.judged:,} labels, about {errors.expected:.0f} of them wrong"
    return [note, _list("label-errors", "cards", said, entries, table(found.label_errors))]


def _far(found: Exploration) -> list[Part]:
    note = Text(
        "Rows whose nearest others are far: foreign or damaged images, rare kinds. The number counts deviations of the "
        "upper half of all rows.",
        "note",
    )
    if not found.outliers.rows:
        return [Text("None.", "plain"), note]
    of = found.catalogue
    entries = [
        {"rows": [row], "strong": f"{float(found.outliers.score[row]):.1f}", "text": of.class_name(of.label(row))}
        for row in found.outliers.rows
    ]
    return [note, _list("outliers", "cards", f"{len(entries):,}, the farthest first", entries, table(found.far_rows))]


def _overlaps(found: Exploration) -> list[Part]:
    note = Text(
        "Pairs of classes that a linear classifier on the features confuses, on rows it did not learn from, with the "
        "rows that lie most between them. Overlap is the mean probability of the other class; mixed neighbours are "
        "the share of nearest rows that have the other label.",
        "note",
    )
    if not found.overlapping:
        return [Text("None.", "plain"), note]
    names = found.catalogue.class_name
    entries = [
        {
            "rows": pair.rows,
            "strong": f"{names(pair.classes[0])} and {names(pair.classes[1])}: {100 * pair.overlap:.1f} %",
            "text": f" — {pair.confused:,} of {pair.count:,} rows confused, {100 * pair.mixed:.1f} % mixed neighbours",
        }
        for pair in found.overlapping
    ]
    said = f"{len(entries):,} pairs, the most first"
    return [note, _list("overlaps", "pairs", said, entries, table(found.overlaps))]


def _list(name: str, kind: str, said: str, entries: Sequence[dict[str, Any]], lines: Table, only: str = "") -> Widget:
    data = {
        "kind": kind,
        "said": said,
        "only": only,
        "file": f"{name}.csv",
        "entries": entries,
        "table": {"columns": lines.columns, "rows": lines.rows},
    }
    return Widget(name, _resource("list.html"), _resource("list.js"), data)


def _resource(name: str) -> str:
    return resources.files("kontrast.explore").joinpath(name).read_text(encoding="utf-8")
