"""The files of an exploration.

    explore.html              the page
    explore.parquet           a row for each image: file, split, label, place on the map, what was found
                              (explore.images.csv without the extra kontrast[parquet])
    explore.duplicates.csv, explore.outliers.csv, explore.label-errors.csv, explore.overlaps.csv    the lists
    explore.pictures/         sprite sheets, of more than `ONE_FILE` images

All are written anew, and begin with the page's name: two pages can share a folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kontrast.explore.lists import csv, table
from kontrast.explore.page import page, sheet_name
from kontrast.explore.reading import ONE_FILE
from kontrast.explore.record import Exploration, Rows
from kontrast.files import staging, whole_file, write_atomically
from kontrast.report.page import render


def check(out: Path) -> Path:
    """The page's file of ``out``, which may be a folder; its folder is made.

    Raises:
        ValueError: It has another ending, or its folder cannot be made.

    >>> check(Path("page.pdf"))
    Traceback (most recent call last):
        ...
    ValueError: out=page.pdf: must end in .html, or be a folder
    """
    if out.suffix not in ("", ".html") and not out.is_dir():
        raise ValueError(f"out={out}: must end in .html, or be a folder")
    file = out if out.suffix == ".html" and not out.is_dir() else out / "explore.html"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {file.parent} cannot be made: {error.strerror}; choose another --out") from error
    return file


def write(found: Exploration, file: Path) -> list[Path]:
    """Write the page and the lists.

    Args:
        found: The record.
        file: The page's file (`check`).

    Returns:
        The files, the page first.
    """
    small = found.catalogue.thumbnails
    beside = f"{file.stem}.pictures" if small is not None and len(small) > ONE_FILE else ""
    folder = file.with_name(f"{file.stem}.pictures")
    if small is not None and beside:
        with staging(folder) as part:
            sheets = part / "sheets"
            sheets.mkdir()
            for number, sheet in enumerate(small.sheets):
                (sheets / sheet_name(number)).write_bytes(sheet)
            shutil.rmtree(folder, ignore_errors=True)
            sheets.rename(folder)
    else:
        shutil.rmtree(folder, ignore_errors=True)  # of a larger exploration before
    write_atomically(file, render(page(found, beside=beside)).encode(errors="replace"))
    written = [file, _images(found.images, file)]
    for name, lines in found.tables.items():
        path = file.with_name(f"{file.stem}.{name}.csv")
        write_atomically(path, csv(table(lines, COLUMNS[name])).encode(errors="replace"))
        written.append(path)
    return written + ([folder] if beside else [])


COLUMNS = {
    "duplicates": ("group", "leak", "labels_differ", "similarity", "name", "split", "row"),
    "outliers": ("name", "split", "row", "score"),
    "label-errors": ("name", "split", "row", "label", "probability", "suggested", "suggested_probability"),
    "overlaps": ("class", "other_class", "overlap", "mixed_neighbours", "confused", "rows"),
}
"""Of lists without a line."""


def _images(lines: Rows, file: Path) -> Path:
    """All rows as a parquet file, or as .csv without pyarrow."""
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from pyarrow import parquet
    except ImportError:
        path = file.with_name(f"{file.stem}.images.csv")
        write_atomically(path, csv(table(lines)).encode(errors="replace"))
        return path
    path = file.with_name(f"{file.stem}.parquet")
    columns: dict[str, Any] = {key: [line[key] for line in lines] for key in lines[0]}
    with whole_file(path) as target:
        parquet.write_table(pyarrow.table(columns), target)
    return path
