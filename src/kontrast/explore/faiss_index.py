"""An index of the features for other programs: which rows are nearest to a new image.

The file is faiss's, exact, for the inner product of unit vectors, which is their cosine. Row i of the index is row i of
the exploration's table (``row`` of the .parquet file, in order):

    index = faiss.read_index("photos.faiss")
    cosines, rows = index.search(unit_features, 10)

Needs the extra ``kontrast[index]``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from kontrast.files import write_atomically
from kontrast.sphere import directions


def check(file: Path) -> Path:
    """The file, if an index can be written there; before anything is computed for it.

    Raises:
        ValueError: Its folder does not exist.
        ImportError: faiss is not installed.
    """
    if not file.parent.is_dir():
        raise ValueError(f"index={file}: must be in a folder that exists. Create {file.parent} first")
    _faiss()
    return file


def write(features: Tensor, file: Path) -> None:
    """Write the index of features ``[N, D]``."""
    faiss = _faiss()
    index = faiss.IndexFlatIP(features.shape[1])
    index.add(directions(features.float()).numpy())
    write_atomically(file, faiss.serialize_index(index).tobytes())


def _faiss() -> Any:
    try:
        import faiss  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError("an index needs faiss: pip install kontrast[index]") from error
    return faiss
