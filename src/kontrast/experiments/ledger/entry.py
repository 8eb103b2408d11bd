"""A finished cell as one line of JSON, and back.

Written with sorted keys, so that the same cell is the same line. Arrays are packed: their bytes, little-endian,
compressed (zlib) and as text (base64). Reading is strict: what does not fit is an error that names the field.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from kontrast.experiments.cell import Value
from kontrast.experiments.experiment import Row
from kontrast.recipe import format_validation_error
from kontrast.registry import quoted

FORMAT: Literal[1] = 1
MOST_BYTES = 50_000
"""Of a line; a cell has 1,000 to 15,000."""
MOST_NUMBERS = 2**20  # of an array
KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
Key = tuple[Any, ...]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Packed(_Strict):
    """An array as text.

    >>> Packed.of(np.arange(3, dtype=np.uint8)).array()
    array([0, 1, 2], dtype=uint8)
    """

    dtype: Literal[KINDS]  # type: ignore[valid-type]
    shape: tuple[int, ...] = Field(strict=False, max_length=4)
    data: str

    @staticmethod
    def of(x: np.ndarray) -> Packed:
        """Pack an array of finite numbers.

        Raises:
            ValueError: It has another type than `KINDS`, or numbers that are not finite.
        """
        if x.dtype.name not in KINDS:
            raise ValueError(
                f"an array of {x.dtype.name} [{', '.join(map(str, x.shape))}]; expected {', '.join(KINDS)}"
            )
        packed = zlib.compress(np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<"), copy=False).tobytes(), 9)
        return Packed(dtype=x.dtype.name, shape=x.shape, data=base64.b64encode(packed).decode())

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        self.array()
        return self

    def array(self) -> np.ndarray:
        """Unpack it; at most as many bytes as the shape says are ever made."""
        if any(length < 0 for length in self.shape) or math.prod(self.shape) > MOST_NUMBERS:
            raise ValueError(f"shape is {list(self.shape)}; expected at most {MOST_NUMBERS:,} numbers")
        kind = np.dtype(self.dtype).newbyteorder("<")
        length = math.prod(self.shape) * kind.itemsize
        try:
            unpacking = zlib.decompressobj()
            content = unpacking.decompress(base64.b64decode(self.data, validate=True), length + 1)
        except (binascii.Error, ValueError, zlib.error) as error:
            raise ValueError(f"data cannot be unpacked ({error}); expected base64 of zlib") from None
        if len(content) != length or not unpacking.eof:
            raise ValueError(f"data does not have the {length:,} bytes that dtype and shape say")
        x = np.frombuffer(content, kind).astype(kind.newbyteorder("="))
        if not np.isfinite(x).all():
            raise ValueError("data has numbers that are not finite")
        return x.reshape(self.shape)


class Origin(_Strict):
    """Where a cell came from: information, no part of its key."""

    run: str  # the name of its run folder
    recipe: str  # the hash of everything that decided it
    version: str  # of kontrast
    commit: str | None = None
    torch: str | None = None
    device: str | None = None
    finished: str | None = None
    seconds: float | None = Field(None, ge=0)
    data: str | None = None  # digest of the data file, where there is one


class Entry(_Strict):
    """One finished cell, or one baseline (raw pixels, an untrained encoder).

    ``settings`` are what was set by hand for every recipe; with the experiment and the preset they are the design.
    ``at`` has the value on every axis. ``values`` are the measures with their marks (of a baseline: the accuracy in
    percent by protocol). ``curve`` has a list a column, of one length, with null where a column has no value.
    """

    format: Literal[1]
    experiment: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    preset: str = Field(min_length=1, max_length=40, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    settings: dict[str, Any] = Field(default_factory=dict)
    baseline: str | None = None
    at: dict[str, Value]
    seed: int = Field(ge=0)
    values: dict[str, float | None]
    curve: dict[str, list[float | None]] = Field(default_factory=dict)
    arrays: dict[str, Packed] = Field(default_factory=dict)
    origin: Origin

    @field_validator("at")
    @classmethod
    def _has_no_seed(cls, at: dict[str, Value]) -> dict[str, Value]:
        if "seed" in at:
            raise ValueError("has the seed, which is a field of its own")
        return at

    @field_validator("curve")
    @classmethod
    def _is_rectangular(cls, curve: dict[str, list[float | None]]) -> dict[str, list[float | None]]:
        lengths = {name: len(column) for name, column in curve.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"its columns have the lengths {lengths}; expected one length")
        if curve and ("step" not in curve or None in curve["step"]):
            raise ValueError("has no step for each of its points")
        return curve

    @property
    def design(self) -> tuple[str, str, str]:
        """Experiment, preset and settings: what the cells of one table have in common."""
        return self.experiment, self.preset, json.dumps(self.settings, sort_keys=True)

    @property
    def key(self) -> Key:
        """What tells a cell from all others."""
        return *self.design, self.baseline, frozenset(self.at.items()), self.seed

    @property
    def name(self) -> str:
        """The key in words."""
        words = [f"{axis}={value}" for axis, value in self.at.items()]
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        of = [] if self.baseline is None else [self.baseline]
        return " ".join([self.experiment, *settings, "--preset", self.preset, *of, *words, f"seed={self.seed}"])

    @property
    def order(self) -> tuple[Any, ...]:
        """Where the line stands in its file: baselines first, then by place, then by seed."""
        return self.baseline is None, self.baseline or "", [_rank(*item) for item in sorted(self.at.items())], self.seed

    def row(self) -> Row:
        """The cell as the row that tables, claims and charts are made from."""
        arrays = {name: packed.array() for name, packed in self.arrays.items()}
        return Row(
            {**self.at, "seed": self.seed},
            self.origin.run,
            "done",
            self.values,
            seconds=self.origin.seconds,
            arrays=arrays,
            curve=points(self.curve),
        )

    def line(self) -> str:
        """One line of JSON, without the line break.

        Raises:
            ValueError: It is longer than `MOST_BYTES`; the message names the largest array.
        """
        text = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True, ensure_ascii=False)
        if (size := len(text.encode())) > MOST_BYTES:
            sizes = {name: len(packed.data) for name, packed in self.arrays.items()} or {"values": size}
            largest = max(sizes, key=lambda name: sizes[name])
            raise ValueError(
                f"{self.name} takes {size:,} bytes, {largest} alone {sizes[largest]:,}; a cell has at most "
                f"{MOST_BYTES:,}. Let the experiment's `keeps` give histograms or quantiles"
            )
        return text


def read_line(content: bytes) -> Entry:
    """The entry of a line; a ValueError that names the field if it is none.

    >>> read_line(b'{"format": 2}')
    Traceback (most recent call last):
        ...
    ValueError: format: is 2; this version reads format 1. Use the version of kontrast that wrote it, or a newer one
    """
    try:
        record = json.loads(content.decode(), object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise ValueError(f"no JSON that a ledger has ({reason})") from None
    if not isinstance(record, dict):
        raise ValueError(f"holds {type(record).__name__}; expected an object")
    if record.get("format") != FORMAT:
        raise ValueError(
            f"format: is {quoted(record.get('format'))}; this version reads format {FORMAT}. Use the version of "
            "kontrast that wrote it, or a newer one"
        )
    try:
        return Entry.model_validate(record)
    except ValidationError as error:
        raise ValueError(format_validation_error(error)) from None


def points(columns: Mapping[str, Sequence[float | None]]) -> list[dict[str, float]]:
    """A curve by points, without what a point does not have.

    >>> points({"step": [10, 20], "knn": [None, 0.5]})
    [{'step': 10}, {'step': 20, 'knn': 0.5}]
    """
    count = len(next(iter(columns.values()), ()))
    return [{name: value for name, column in columns.items() if (value := column[i]) is not None} for i in range(count)]


def columns(curve: Iterable[Mapping[str, float]]) -> dict[str, list[float | None]]:
    """The inverse of `points`, with six digits a number.

    >>> columns([{"step": 10}, {"step": 20, "knn": 1 / 3}])
    {'step': [10, 20], 'knn': [None, 0.333333]}
    """
    lines = list(curve)
    names = dict.fromkeys(name for line in lines for name in line)
    return {name: [_short(line.get(name)) for line in lines] for name in names}


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Eight digits over the settings of a design."""
    return hashlib.sha256(json.dumps(dict(settings), sort_keys=True).encode()).hexdigest()[:8]


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return value if isinstance(value, int) else float(f"{value:.6g}")


def _rank(axis: str, value: Value) -> tuple[Any, ...]:
    """A place among the values of an axis, of whatever types they are."""
    kinds = (type(None), bool, int | float, str)
    kind = next(i for i, kind_of_value in enumerate(kinds) if isinstance(value, kind_of_value))
    return axis, kind, 0 if value is None else value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{quoted(next(name for name in names if names.count(name) > 1))} stands twice in one object")
    return result


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")
