"""Cells as lines: what is written comes back, and what is damaged is refused with its field."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any

import numpy as np
import pytest

from kontrast.experiments.ledger import Entry, Origin, Packed
from kontrast.experiments.ledger.entry import KINDS, MOST_BYTES, columns, points, read_line

ORIGIN = Origin(run="a-12345678", recipe="12345678", version="0.1.0", commit="abc", torch="2.9", seconds=3.5)


def entry(**changes: Any) -> Entry:
    """A finished cell."""
    given: dict[str, Any] = {
        "format": 1,
        "experiment": "demo",
        "preset": "cpu",
        "at": {"data": "digits", "temperature": 0.1},
        "seed": 0,
        "values": {"knn": 81.25, "censored:steps": 1.0, "nothing": None},
        "curve": columns([{"step": 10, "loss": 5.0, "chance": 5.5}, {"step": 20, "knn": 0.5}]),
        "arrays": {"counts": Packed.of(np.arange(6, dtype=np.uint16).reshape(2, 3))},
        "origin": ORIGIN,
    }
    return Entry(**{**given, **changes})


def test_a_line_gives_the_same_cell() -> None:
    made = entry(settings={"train.epochs": 20})
    line = made.line()
    assert "\n" not in line
    assert read_line(line.encode()) == made
    assert read_line(line.encode()).line() == line
    keys = list(json.loads(line))
    assert keys == sorted(keys)
    row = made.row()
    assert row.at == {"data": "digits", "temperature": 0.1, "seed": 0}
    assert (row.status, row.values["knn"], row.seconds, row.path) == ("done", 81.25, 3.5, None)
    assert list(row.curve) == [{"step": 10, "loss": 5.0, "chance": 5.5}, {"step": 20, "knn": 0.5}]
    assert row.arrays["counts"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_every_kind_come_back(kind: str) -> None:
    x = np.array([[0, 1, 7], [3, 2, 5]]).astype(kind)
    back = Packed.of(x).array()
    assert back.dtype == x.dtype
    assert np.array_equal(back, x)
    swapped = x.astype(x.dtype.newbyteorder(">"))
    assert np.array_equal(Packed.of(swapped).array(), x), "whatever the order of its bytes"
    assert Packed.of(x[:, ::2]).array().tolist() == x[:, ::2].tolist(), "whatever its strides"


def test_arrays_that_cannot_be_kept() -> None:
    with pytest.raises(ValueError, match="an array of object"):
        Packed.of(np.array([None]))
    with pytest.raises(ValueError, match="not finite"):
        Packed.of(np.array([1.0, np.nan]))


def test_a_bomb_is_not_unpacked() -> None:
    bomb = base64.b64encode(zlib.compress(bytes(50_000_000), 9)).decode()
    record = json.loads(entry().line())
    record["arrays"]["counts"] = {"dtype": "uint8", "shape": [4], "data": bomb}
    with pytest.raises(ValueError, match=r"arrays\.counts: data does not have the 4 bytes"):
        read_line(json.dumps(record).encode())
    record["arrays"]["counts"]["shape"] = [2**40]
    with pytest.raises(ValueError, match="at most 1,048,576 numbers"):
        read_line(json.dumps(record).encode())


def changed(**changes: Any) -> bytes:
    return json.dumps({**json.loads(entry().line()), **changes}).encode()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"", "no JSON that a ledger has"),
        (b"\xff\n", "no JSON that a ledger has"),
        (b"[" * 100_000, "no JSON that a ledger has"),
        (b"[]", "holds list; expected an object"),
        (b"{}", "format: is None; this version reads format 1"),
        (changed(format=2), "format: is 2; this version reads format 1"),
        (changed(format="1"), "format: is '1'"),
        (changed(seed=-1), "seed="),
        (changed(seed=0.5), "seed="),
        (changed(seed="0"), "seed="),
        (changed(values={"knn": "80"}), "values.knn="),
        (changed(extra=1), "extra: "),
        (changed(at={"data": []}), "at.data"),
        (changed(at={"seed": 1}), "at: has the seed"),
        (changed(experiment="../../etc"), "experiment: "),
        (changed(preset="a/b"), "preset: "),
        (changed(curve={"step": [1, 2], "loss": [1.0]}), "curve: its columns have the lengths"),
        (changed(curve={"loss": [1.0]}), "curve: has no step"),
        (changed(origin={"recipe": "1"}), "origin.run: "),
        (changed(arrays={"x": {"dtype": "object", "shape": [1], "data": ""}}), "arrays.x.dtype="),
        (changed(arrays={"x": {"dtype": "uint8", "shape": [1], "data": "§"}}), "arrays.x: data cannot be unpacked"),
        (b'{"format": 1, "format": 1}', "'format' stands twice"),
        (changed().replace(b"81.25", b"NaN"), "NaN is no number of JSON"),
        (changed().replace(b"81.25", b"1e999"), "values.knn="),
    ],
)
def test_what_is_damaged_is_named(line: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as told:
        read_line(line)
    assert "\n" not in str(told.value)


def test_a_cell_that_is_too_large_is_refused() -> None:
    noise = np.random.default_rng(0).random(20_000)
    with pytest.raises(ValueError, match=r"takes [\d,]+ bytes, features alone [\d,]+; a cell has at most 50,000"):
        entry(arrays={"features": Packed.of(noise)}).line()
    assert MOST_BYTES == 50_000


def test_keys_tell_designs_places_seeds_and_baselines_apart() -> None:
    many = [
        entry(),
        entry(seed=1),
        entry(preset="paper"),
        entry(settings={"train.epochs": 2}),
        entry(at={"data": "digits", "temperature": 0.2}),
        entry(baseline="raw pixels"),
        entry(experiment="other"),
    ]
    assert len({made.key for made in many}) == len(many)
    assert entry(origin=ORIGIN.model_copy(update={"recipe": "0"})).key == entry().key, "the recipe is information"
    assert entry(at={"temperature": 0.1, "data": "digits"}).key == entry().key, "the order of axes does not count"


def test_lines_are_ordered_by_number_not_by_letter() -> None:
    places = [None, False, 0.05, 0.5, 10, "a", "b"]
    made = [entry(at={"x": value}, seed=seed) for value in places for seed in (0, 1)]
    backwards = list(reversed(made))
    assert sorted(backwards, key=lambda e: e.order) == made
    assert sorted([entry(), entry(baseline="raw pixels")], key=lambda e: e.order)[0].baseline == "raw pixels"


def test_curves_by_columns_and_by_points() -> None:
    curve = [{"step": 1, "loss": 2.0}, {"step": 2, "knn": 0.123456789}]
    assert points(columns(curve)) == [{"step": 1, "loss": 2.0}, {"step": 2, "knn": 0.123457}]
    assert columns([]) == {}
    assert points({}) == []
