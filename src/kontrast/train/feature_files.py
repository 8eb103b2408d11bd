"""Write features into a file batch by batch, so that they never fill the memory. The file appears when it is complete.

| file | holds |
|---|---|
| ``.npy`` | features float32 [N, D]; ``numpy.load(file, mmap_mode="r")`` reads it in place |
| ``.npz`` | features, and what there is of labels int64 [N], class_names, paths |
| ``.parquet`` | a row each: features (a list of D float32), label, class, path; needs the extra ``kontrast[parquet]`` |

Labels are places in class_names. Paths are those of image files, from the folder that was given. A parquet file also
has where its features are from, as JSON under ``kontrast`` in the metadata of its schema.
"""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kontrast.files import finite, whole_file

Array = np.ndarray[Any, Any]
GROUP = 32_000_000  # bytes of features in a row group of parquet: what a reader takes at once


@dataclass(frozen=True)
class Table:
    """Features that are computed batch by batch ``[n, D]``, ``rows`` in all, with labels and paths of the rows."""

    features: Iterator[Array]
    rows: int
    labels: Array | None = None
    class_names: Sequence[str] | None = None
    paths: Sequence[str] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


def check(to: Path) -> None:
    """Raise a ValueError if the file cannot be written, before anything is computed for it.

    >>> check(Path("out.csv"))
    Traceback (most recent call last):
        ...
    ValueError: to=out.csv: must end in .npz, .npy or .parquet
    """
    if to.suffix not in WRITERS:
        raise ValueError(f"to={to}: must end in .npz, .npy or .parquet")
    if not to.parent.is_dir():
        raise ValueError(f"there is no folder {to.parent} to write {to.name} into")
    if to.suffix == ".parquet":
        _pyarrow()


def write(to: Path, table: Table) -> tuple[int, int]:
    """Write the table in the format of the file's ending.

    Returns:
        The numbers of rows and columns.
    """
    check(to)
    first = next(table.features, None)
    if first is None:
        raise ValueError(f"features for {to}: must have at least one row")
    dim = int(first.shape[1])
    batches = (np.ascontiguousarray(batch, dtype="<f4") for batch in itertools.chain([first], table.features))
    with whole_file(to) as file:
        WRITERS[to.suffix](file, batches, dim, table)
    return table.rows, dim


def _npy(file: BinaryIO, batches: Iterator[Array], dim: int, table: Table) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (table.rows, dim)}
    np.lib.format.write_array_header_1_0(file, header)
    for batch in _check_count(batches, table.rows):
        file.write(batch.data)


def _npz(file: BinaryIO, batches: Iterator[Array], dim: int, table: Table) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("features.npy", "w", force_zip64=True) as member:
            _npy(member, batches, dim, table)  # type: ignore[arg-type]
        names = None if table.class_names is None else np.array(list(table.class_names), dtype=np.str_)
        paths = None if table.paths is None else np.array(list(table.paths), dtype=np.str_)
        for name, array in (("labels", table.labels), ("class_names", names), ("paths", paths)):
            if array is not None:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)  # type: ignore[arg-type]


def _parquet(file: BinaryIO, batches: Iterator[Array], dim: int, table: Table) -> None:
    pa, parquet = _pyarrow()
    kinds = [("features", pa.list_(pa.float32(), dim))]
    kinds += [] if table.labels is None else [("label", pa.int64())]
    has_names = table.labels is not None and table.class_names is not None
    kinds += [("class", pa.dictionary(pa.int32(), pa.string()))] if has_names else []
    kinds += [] if table.paths is None else [("path", pa.string())]
    about = json.dumps(finite(table.about), ensure_ascii=False, allow_nan=False)
    schema = pa.schema(kinds, metadata={"kontrast": about})
    options = {"use_dictionary": ["class"]}  # features hardly repeat
    with parquet.ParquetWriter(file, schema, **options) as writer:
        start = 0
        for group in _group(_check_count(batches, table.rows), max(1, GROUP // (4 * dim))):
            place = slice(start, start + len(group))
            columns = {"features": pa.FixedSizeListArray.from_arrays(pa.array(group.reshape(-1)), dim)}
            if table.labels is not None:
                labels = table.labels[place]
                columns["label"] = pa.array(labels)
                if table.class_names is not None:
                    codes = pa.array(labels.astype(np.int32))
                    columns["class"] = pa.DictionaryArray.from_arrays(codes, pa.array(list(table.class_names)))
            if table.paths is not None:
                columns["path"] = pa.array(list(table.paths[place]))
            writer.write_table(pa.table(columns, schema=schema), row_group_size=len(group))
            start = place.stop


WRITERS: dict[str, Callable[[BinaryIO, Iterator[Array], int, Table], None]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
}


def _check_count(batches: Iterator[Array], rows: int) -> Iterator[Array]:
    """Pass the batches on; raise ValueError if they have another number of rows than the file's header says."""
    count = 0
    for batch in batches:
        count += len(batch)
        yield batch
    if count != rows:
        raise ValueError(f"{count} rows of features came, {rows} were announced; nothing was written")


def _group(batches: Iterator[Array], rows: int) -> Iterator[Array]:
    """Join batches until they have so many rows."""
    parts: list[Array] = []
    for batch in batches:
        parts.append(batch)
        if sum(map(len, parts)) >= rows:
            yield np.concatenate(parts)
            parts = []
    if parts:
        yield np.concatenate(parts)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import pyarrow.parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError("a .parquet file needs pyarrow: pip install kontrast[parquet]") from error
    return pyarrow, pyarrow.parquet
