"""Files of features: whole or not there, read by others, and never all of it in memory."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.train import feature_files
from kontrast.train.feature_files import Table, write

ROWS, DIM = 10, 3
X = np.random.default_rng(0).normal(size=(ROWS, DIM)).astype(np.float32)
LABELS = np.arange(ROWS) % 2
NAMES = ["cat", "naïve | <dog>"]
PATHS = [f"{NAMES[i % 2]}/{i}.png" for i in range(ROWS)]


def batches(size: int = 4) -> Iterator[np.ndarray[Any, Any]]:
    for start in range(0, ROWS, size):
        yield X[start : start + size]


def table(**more: Any) -> Table:
    return Table(batches(), ROWS, LABELS, NAMES, PATHS, {"run": "0123abcd", "card": {"feature_dim": DIM}}, **more)


def test_npy(tmp_path: Path) -> None:
    assert write(tmp_path / "x.npy", table()) == (ROWS, DIM)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy", allow_pickle=False, mmap_mode="r"), X)


def test_npz(tmp_path: Path) -> None:
    write(tmp_path / "x.npz", table())
    with np.load(tmp_path / "x.npz", allow_pickle=False) as found:
        assert found.files == ["features", "labels", "class_names", "paths"]
        np.testing.assert_array_equal(found["features"], X)
        np.testing.assert_array_equal(found["labels"], LABELS)
        assert found["class_names"].tolist() == NAMES
        assert found["paths"].tolist() == PATHS


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(feature_files, "GROUP", 5 * 4 * DIM)  # five rows
    write(tmp_path / "x.parquet", table())
    file = parquet.ParquetFile(tmp_path / "x.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [8, 2]
    found = file.read()
    assert found.column_names == ["features", "label", "class", "path"]
    assert str(found.schema.field("features").type) == "fixed_size_list<element: float>[3]"
    np.testing.assert_array_equal(np.array(found["features"].to_pylist(), dtype=np.float32), X)
    assert found["label"].to_pylist() == LABELS.tolist()
    assert found["class"].to_pylist() == [NAMES[i] for i in LABELS]
    assert found["path"].to_pylist() == PATHS
    about = json.loads(found.schema.metadata[b"kontrast"])
    assert about == {"run": "0123abcd", "card": {"feature_dim": DIM}}


def test_parquet_of_what_has_neither_labels_nor_paths(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(tmp_path / "x.parquet", Table(batches(), ROWS))
    assert parquet.read_table(tmp_path / "x.parquet").column_names == ["features"]
    write(tmp_path / "x.parquet", Table(batches(), ROWS, LABELS))
    assert parquet.read_table(tmp_path / "x.parquet").column_names == ["features", "label"]


@pytest.mark.parametrize("suffix", feature_files.WRITERS)
def test_a_failure_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    """Whether the features stop coming, or fewer came than were announced."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    to = tmp_path / f"x{suffix}"
    to.write_bytes(b"old")

    def broken() -> Iterator[np.ndarray[Any, Any]]:
        yield X[:4]
        raise RuntimeError("the disk of the images is gone")

    with pytest.raises(RuntimeError, match="is gone"):
        write(to, Table(broken(), ROWS))
    with pytest.raises(ValueError, match="10 rows of features came, 11 were announced"):
        write(to, Table(batches(), ROWS + 1))
    assert to.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == [to.name]


@pytest.mark.parametrize("suffix", feature_files.WRITERS)
def test_memory_is_that_of_a_few_batches(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MB of features in batches of 1 MB: at most 8 MB of Python's memory at once, parquet's groups being 2 MB."""
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(feature_files, "GROUP", 2_000_000)
    made = (np.full((1000, 250), i, dtype=np.float32) for i in range(64))
    write(tmp_path / f"warm{suffix}", Table(batches(), ROWS))
    tracemalloc.start()
    try:
        write(tmp_path / f"x{suffix}", Table(made, 64_000))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / f"x{suffix}").stat().st_size > (0 if suffix == ".parquet" else 64_000_000)
    assert most < 8_000_000


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"x: must end in \.npz, \.npy or \.parquet"):
        write(tmp_path / "x", table())
    with pytest.raises(ValueError, match="there is no folder"):
        write(tmp_path / "nowhere" / "x.npy", table())
    with pytest.raises(ValueError, match="must have at least one row"):
        write(tmp_path / "x.npy", Table(iter(()), 0))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install kontrast\[parquet\]"):
        feature_files.check(tmp_path / "x.parquet")
