"""Arrays: any shape, type, layout and value, labels of any kind; as data, and in files."""

from __future__ import annotations

import io
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from bad_input.judging import Kind
from kontrast.cli._files import load_arrays
from kontrast.data import load

Case = dict[str, Any]
TYPES = ("float32",) * 4 + (
    *("float64", "float16", ">f4", "longdouble", "int8", "int64", "uint8", "uint8", "uint16", "uint64", "bool"),
    *("complex64", "object", "U3", "S3", "datetime64[s]", "i4,f4"),
)
VALUES = ("random",) * 5 + (
    "zeros",
    "ones",
    "nan",
    "one nan",
    "inf",
    "huge",
    "tiny",
    "negative",
    "equal rows",
    "large offset",
)


def filled(shape: tuple[int, ...], kind: str, values: str, seed: int) -> np.ndarray[Any, Any]:
    """An array of the values, as near as its type can hold them."""
    rng = np.random.default_rng(seed)
    x = np.asarray(rng.random(shape))
    if values in ("zeros", "ones"):
        x = np.full(shape, float(values == "ones"))
    elif values in ("nan", "inf"):
        x = np.full(shape, float(values))
    elif values == "one nan" and x.size:
        x.reshape(-1)[rng.integers(x.size)] = np.nan
    elif values == "equal rows" and x.ndim and len(x):
        x[:] = x[0].copy()
    factors = {"huge": 1e38, "tiny": 1e-42, "negative": -5.0}
    x = np.asarray(x * factors.get(values, 1.0) + (1e7 if values == "large offset" else 0.0))
    x = np.asarray(x * 300) if np.dtype(kind).kind in "iu" else x
    with np.errstate(all="ignore"):
        try:
            return x.astype(kind) if kind != "i4,f4" else np.zeros(shape, kind)
        except (ValueError, TypeError):
            return np.zeros(shape, kind)


@st.composite
def inputs(draw: st.DrawFn, rank: int | None = None) -> Any:
    """Rows, a third of them vectors or images as they should be, most others of a shape that means something."""
    if draw(st.integers(0, 2)) == 0:
        shape, kind = draw(st.sampled_from([((12, 6), "float32"), ((30, 5), "float64"), ((12, 8, 8, 3), "uint8")]))
        return filled(shape if rank is None else (12, *(6,) * (rank - 1)), kind, "random", draw(st.integers(0, 5)))
    n = draw(st.sampled_from([0, 1, 2, 3, 8, 8, 12, 30]))
    shapes = [
        (n, 5),
        (n, 5),
        (n, 1),
        (n, 8, 8),
        (n, 8, 8, 3),
        (n, 3, 8, 8),
        (n, 3, 3, 3),
        (n, 8, 8, 2),
        (n, 0),
        (n,),
        (),
        (n, 2, 3, 4, 5),
    ]
    shape = draw(st.sampled_from(shapes)) if rank is None or draw(st.integers(0, 3)) == 0 else (n, *(6,) * (rank - 1))
    x = filled(shape, draw(st.sampled_from(TYPES)), draw(st.sampled_from(VALUES)), draw(st.integers(0, 5)))
    form = draw(
        st.sampled_from(
            ["plain"] * 5 + ["backwards", "fortran", "strided", "read-only", "tensor", "list", "masked", "matrix"]
        )
    )
    if form == "backwards" and x.ndim:
        x = x[::-1]
    elif form == "fortran":
        x = np.asfortranarray(x)
    elif form == "strided" and x.ndim:
        x = np.repeat(x, 2, axis=0)[::2]
    elif form == "read-only":
        x.flags.writeable = False
    elif form == "list":
        return x.tolist()
    elif form == "masked":
        return np.ma.masked_array(x)
    elif form == "tensor" and x.dtype.kind in "fiub" and x.dtype.isnative and x.dtype != np.longdouble:
        return torch.from_numpy(np.array(x))
    return x


LABELS = (
    *("classes",) * 20,
    *(
        "none",
        "negative",
        "whole floats",
        "floats",
        "nan",
        "strings",
        "odd strings",
        "bytes",
        "bad bytes",
        "mixed",
        "bools",
    ),
    *("one class", "all different", "too few", "too many", "column", "one-hot", "dates", "huge", "unsigned", "scalar"),
    *("ragged", "text", "tensor", "float tensor", "dict", "empty", "objects", "missing class"),
)


def labels_of(kind: str, n: int) -> Any:
    """Labels for n rows."""
    y = np.arange(n) % 3
    made: dict[str, Any] = {
        "none": None,
        "negative": y - 1,
        "whole floats": y.astype(float),
        "floats": y + 0.5,
        "nan": np.where(y == 0, np.nan, y),
        "strings": np.array(["cat", "dog", "owl"])[y],
        "odd strings": np.array(["", "a\nb", "<b>ü\x1b[0m"])[y],
        "bytes": np.array([b"a", b"b", b"c"])[y],
        "bad bytes": np.array([b"\xff", b"b", b"c"])[y],
        "mixed": [["a", 1, None][i] for i in y],
        "bools": y > 0,
        "one class": np.zeros(n, int),
        "all different": np.arange(n),
        "too few": y[:-1],
        "too many": np.arange(n + 2) % 3,
        "column": y[:, None],
        "one-hot": np.eye(3)[y],
        "dates": y.astype("datetime64[D]"),
        "huge": y * 2**62,
        "unsigned": np.full(n, 2**64 - 1, np.uint64) - y.astype(np.uint64),
        "scalar": 3,
        "ragged": [[1], [1, 2]],
        "text": "labels",
        "tensor": torch.from_numpy(y),
        "float tensor": torch.from_numpy(y) + 0.25,
        "dict": {"a": 1},
        "empty": [],
        "objects": np.array([object() for _ in y], dtype=object),
        "missing class": y * 2,
    }
    return made.get(kind, y)


def length(x: Any) -> int:
    """Rows, where it has any."""
    return len(x) if np.ndim(x) or isinstance(x, list) else 0


@st.composite
def labelled(draw: st.DrawFn, rank: int | None = None) -> Case:
    """Rows and labels, perhaps others for testing."""
    x = draw(inputs(rank))
    y = labels_of(draw(st.sampled_from(LABELS)), length(x))
    how = draw(st.sampled_from(["none", "none", "same", "other"]))
    if how in ("none", "same"):
        return {"x": x, "y": y, **({"x_test": x, "y_test": y} if how == "same" else {"x_test": None, "y_test": None})}
    test = draw(inputs(rank))
    return {"x": x, "y": y, "x_test": test, "y_test": labels_of(draw(st.sampled_from(LABELS)), length(test))}


# ------------------------------------------------------------------------------------------------------- as data


@st.composite
def sets(draw: st.DrawFn) -> Case:
    """Rows and labels as a data set with its options."""
    options = {
        "size": draw(st.sampled_from([None, None, 4, 1])),
        "channels": draw(st.sampled_from([None, None, 1, 3])),
        "labelled": draw(st.sampled_from([None, None, None, True, False])),
        "limit": draw(st.sampled_from([None, None, 1, 5])),
        "noise": draw(st.sampled_from([0.0, 0.0, 0.5])),
        "layout": draw(st.sampled_from([None, None, "HWC", "CHW", "WHC"])),
    }
    return {**draw(labelled()), "options": options}


def as_data(case: Case) -> None:
    """`load`: finite rows, labels that count from 0, statistics that are numbers."""
    test = None if case["x_test"] is None else (case["x_test"], case["y_test"])
    right(load((case["x"], case["y"]), test=test, **case["options"]))


def right(data: Any) -> None:
    """What a data set promises."""
    for split in filter(None, (data.train, data.test)):
        rows = split.inputs.read(torch.arange(len(split)))
        assert rows.dtype in (torch.uint8, torch.float32)
        assert bool(torch.isfinite(rows.float()).all())
        assert split.labels is None or (len(split.labels) == len(rows) and int(split.labels.max()) < data.num_classes)
    assert all(math.isfinite(m) and math.isfinite(s) and s > 0 for m, s in zip(data.mean, data.std, strict=True))


# -------------------------------------------------------------------------------------------------------- in files


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    """An .npy or .npz file: of anything, whole or with bytes changed, cut off, or under the other's name."""
    case = draw(labelled(2))
    file = io.BytesIO()
    if draw(st.booleans()):
        np.save(file, np.asarray(case["x"]), allow_pickle=True)
        suffix = ".npy"
    else:
        names = draw(
            st.sampled_from(
                [("x_train", "y_train"), ("features", "labels"), ("x", "x"), ("foo", "bar"), ("x_train", "../y")]
            )
        )
        arrays = {
            name: np.asarray(case[key]) for name, key in zip(names, ("x", "y"), strict=True) if not _ragged(case[key])
        }
        np.savez(file, allow_pickle=True, **arrays)
        suffix = ".npz"
    made = bytearray(file.getvalue())
    if draw(st.booleans()):
        for _ in range(draw(st.integers(1, 4))):
            made[draw(st.integers(0, min(len(made), 128) - 1) | st.integers(0, len(made) - 1))] = draw(
                st.integers(0, 255)
            )
        made = made[: draw(st.integers(0, len(made)) | st.just(len(made)))]
    elif draw(st.integers(0, 5)) == 0:
        suffix = {".npy": ".npz", ".npz": ".npy"}[suffix]
    return suffix, bytes(made)


def _ragged(value: Any) -> bool:
    return isinstance(value, list) and len({np.ndim(item) and len(item) for item in value}) > 1


def in_a_file(case: tuple[str, bytes]) -> None:
    """Read as data for training, and as features for the commands."""
    suffix, content = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"given{suffix}"
        path.write_bytes(content)
        found = load_arrays(path)
        assert isinstance(found.x, np.ndarray)
        assert found.x.dtype.kind != "O"
        right(load(path))


KINDS = [
    Kind("arrays as data", "rank, type, layout, NaN, infinity; labels of every kind, one class, none", sets(), as_data),
    Kind("array files", ".npy and .npz of anything, whole, changed and cut off", files(), in_a_file),
]
