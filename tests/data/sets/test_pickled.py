"""CIFAR's batches are read without letting the pickle call anything."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.data.sets.cifar10 import read_batch

ROWS = np.random.default_rng(0).integers(0, 256, (4, 3072), dtype=np.uint8)
# As Python 2 with numpy 1.x wrote it, which is what the publishers' files are: text is bytes without an encoding.
OLD = (
    b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87R"
    b"(K\x01K\x02K\x03\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    b"\x89U\x06\x00\x01\x02\xfd\xfe\xfftbU\x06labelsq\x0a]q\x0b(K\x03K\x05eu."
)


@pytest.mark.parametrize("protocol", range(5))
def test_every_protocol(protocol: int) -> None:
    found = read_batch(pickle.dumps({"data": ROWS, "labels": [3, 8], "name": "batch 1"}, protocol))
    assert np.array_equal(found["data"], ROWS)
    assert found["data"].dtype == np.uint8
    assert (found["labels"], found["name"]) == ([3, 8], "batch 1")


def test_as_python_2_wrote_it() -> None:
    found = read_batch(OLD)
    assert found["data"].tolist() == [[0, 1, 2], [253, 254, 255]]
    assert found["labels"] == [3, 5]
    theirs: Any = pickle.loads(OLD, encoding="latin1")
    assert np.array_equal(found["data"], theirs["data"]), "as torchvision reads it"


class Trap:
    """Unpickled, it would make a folder."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.sprung),)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    sprung = tmp_path / "sprung"
    for value in ({"data": Trap(sprung)}, Trap(sprung), [Trap(sprung)]):
        with pytest.raises(ValueError, match=r"it names (posix|nt)\.mkdir\); objects are never unpickled"):
            read_batch(pickle.dumps(value, protocol))
    assert not sprung.exists()
    pickle.loads(pickle.dumps(Trap(sprung), protocol))
    assert sprung.exists(), "the trap is one"


@pytest.mark.parametrize(
    "value",
    [
        {"data": ROWS.astype(np.int64)},
        {"data": ROWS.astype(object)},
        {"data": np.asfortranarray(ROWS)},
        {"data": np.dtype("u1")},
        [1, 2],
    ],
    ids=["int64", "objects", "columns", "a type", "a list"],
)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no batch of CIFAR's"):
        read_batch(pickle.dumps(value, 2))


@pytest.mark.parametrize("content", [b"", b"\x80", OLD[:-1], OLD.replace(b"K\x02K\x03", b"K\x02K\x04"), b"PK\x03\x04"])
def test_damaged_bytes(content: bytes) -> None:
    with pytest.raises(ValueError, match="no batch of CIFAR's"):
        read_batch(content)
