"""Ranges of settings, as ``kontrast tune`` takes them.

    optim.lr=0.01..1                  any number between the two
    optim.lr=log:0.01..1              the same, uniform in the logarithm
    train.batch_size=int:64..256      whole numbers; int:64..256:64 has a step
    method.temperature=0.05,0.1,0.2   one of these values
    augment.views=[weak,weak],[weak,strong]

Every other setting is an ordinary override. This module does not import torch, so that a typing error is reported at
once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kontrast.recipe import parse

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?:(log|int):)?({_NUMBER})\.\.({_NUMBER})(?::({_NUMBER}))?")
_LIKE_A_RANGE = re.compile(r"(log|int):.*|[-+.\deE]*\d[-+.\deE]*\.\..*|\.\.[-+.\d]*\d[-+.\deE:]*")
_PAIRS = {"[": "]", "{": "}", "(": ")"}
_FIXED = {
    "seed": "because every setting is trained on the same seeds. Use --seeds for more of them.",
    "name": "because it changes no result.",
    "data": "because every setting is scored on the same held-out rows. Tune each data set by itself.",
    "evaluate": "because every setting is scored in the same way. Use --by to choose the protocol.",
    "run": "because it changes no result.",
}
DIGITS = 3  # of a number drawn from a range: more do not change a result, and the command stays readable


@dataclass(frozen=True)
class Range:
    """The values of one setting: a list (``values``), or the numbers from ``low`` to ``high``.

    ``values`` are the words of the command line, so that lists and mappings can be values too; `value` reads them.

    >>> parse_range("optim.lr", "log:0.01..1")
    Range(text='log:0.01..1', values=(), low=0.01, high=1.0, step=None, log=True, whole=False)
    >>> parse_range("method.temperature", "0.05,0.1").values
    ('0.05', '0.1')
    """

    text: str
    values: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    step: float | None = None
    log: bool = False
    whole: bool = False

    def value(self, sample: Any) -> Any:
        """The value in a recipe of what a sampler drew: numbers from a range have three digits."""
        if self.values:
            return parse(f"value={sample}")[1]
        if self.whole:
            return int(sample)
        return min(max(float(f"{sample:.{DIGITS}g}"), self.low), self.high)

    def grid(self) -> tuple[Any, ...] | None:
        """Everything that can be drawn; None if that is not a finite list."""
        if self.values or self.step is None:
            return self.values or None
        count = int((self.high - self.low) / self.step + 1e-9) + 1
        numbers = [self.low + i * self.step for i in range(count)]
        return tuple(map(int, numbers)) if self.whole else tuple(float(f"{x:.12g}") for x in numbers)

    def examples(self) -> list[Any]:
        """Values to check the setting with: every value of a list, the ends of a range."""
        return [self.value(sample) for sample in self.values or (self.low, self.high)]


def split_ranges(settings: Sequence[str]) -> tuple[list[str], dict[str, Range]]:
    """Separate the ranges from the ordinary overrides.

    Args:
        settings: ``key=value`` words.

    Returns:
        The overrides, and the ranges by key.

    Raises:
        ValueError: A range is malformed, a key appears twice, or it cannot be searched.

    >>> fixed, ranges = split_ranges(["train.epochs=5", "optim.lr=log:0.01..1", "data=../photos"])
    >>> fixed, list(ranges)
    (['train.epochs=5', 'data=../photos'], ['optim.lr'])
    """
    fixed: list[str] = []
    ranges: dict[str, Range] = {}
    for setting in settings:
        key, equals, text = (part.strip() for part in setting.partition("="))
        range_of_key = parse_range(key, text) if equals else None
        if range_of_key is None:
            fixed.append(setting)
            continue
        reason = _FIXED.get(key.partition(".")[0])
        if reason is not None:
            raise ValueError(f"{key}={text}: must be one value, {reason}")
        if key in ranges:
            raise ValueError(f"{key}={text}: must be one range, and there is {key}={ranges[key].text} too. Remove one.")
        ranges[key] = range_of_key
    for setting in fixed:
        key = setting.partition("=")[0].strip()
        if key in ranges:
            raise ValueError(
                f"{setting}: must not be set, because it is searched ({key}={ranges[key].text}). Remove one."
            )
    return fixed, ranges


def parse_range(key: str, text: str) -> Range | None:
    """Read the right side of a setting.

    Args:
        key: The setting, for errors.
        text: ``log:0.01..1``, ``int:64..256:64``, ``0.1..0.5`` or ``0.05,0.1``.

    Returns:
        The range; None if the text is one value.

    Raises:
        ValueError: It is meant as a range and is none.

    >>> parse_range("optim.lr", "0.1") is None
    True
    >>> parse_range("optim.lr", "log:0..1")
    Traceback (most recent call last):
        ...
    ValueError: optim.lr=log:0..1: must start above 0 when the range is logarithmic. Use optim.lr=log:0.001..1.
    """
    words = _split_commas(text)
    if len(words) > 1:
        if "" in words:
            raise ValueError(
                f"{key}={text}: must be values with a comma between them, and one is empty. Remove a comma."
            )
        if len(set(words)) < len(words):
            raise ValueError(f"{key}={text}: must be different values. Remove the repeated one.")
        return Range(text, tuple(words))
    match = _RANGE.fullmatch(text)
    if match is None:
        if _LIKE_A_RANGE.fullmatch(text):
            raise ValueError(
                f"{key}={text}: must be low..high, two numbers, with log: or int: before them if wanted. "
                f"Use {key}=log:0.01..1, {key}=int:64..256 or {key}=0.1,0.2."
            )
        return None
    kind, *numbers = match.groups()
    low, high, step = (None if number is None else float(number) for number in numbers)
    assert low is not None
    assert high is not None
    if not low < high:
        raise ValueError(f"{key}={text}: must be low..high with the lower number first. Use {key}={high:g}..{low:g}.")
    if kind == "log" and low <= 0:
        raise ValueError(
            f"{key}={text}: must start above 0 when the range is logarithmic. Use {key}=log:{high / 1000:g}..{high:g}."
        )
    if step is not None and (kind == "log" or not 0 < step <= (high - low) * (1 + 1e-9)):
        expected = "without a step when it is logarithmic" if kind == "log" else "with a step above 0 that fits into it"
        raise ValueError(f"{key}={text}: must be a range {expected}. Use {key}={text.rpartition(':')[0]}.")
    if kind == "int" and not all(x is None or x.is_integer() for x in (low, high, step)):
        raise ValueError(f"{key}={text}: must have whole numbers after int:. Use {key}={low:g}..{high:g} for others.")
    step = 1.0 if kind == "int" and step is None else step
    if step is not None:  # the last value that the steps reach
        high = float(f"{low + int((high - low) / step + 1e-9) * step:.12g}")
    return Range(text, (), low, high, step, log=kind == "log", whole=kind == "int")


def grid_of(ranges: Mapping[str, Range]) -> list[dict[str, Any]]:
    """Every combination of the values, the last setting changing fastest.

    Raises:
        ValueError: A range has no list of values.

    >>> [tuple(point.values()) for point in grid_of(split_ranges(["method.k1=0,5000", "method.k2=1..1.2:0.2"])[1])]
    [('0', 1.0), ('0', 1.2), ('5000', 1.0), ('5000', 1.2)]
    """
    points: list[dict[str, Any]] = [{}]
    for key, values_of_key in ranges.items():
        values = values_of_key.grid()
        if values is None:
            raise ValueError(
                f"{key}={values_of_key.text}: must be a list of values or have a step when sampler=grid. "
                f"Use {key}={values_of_key.low:g},{values_of_key.high:g} or --sampler tpe."
            )
        points = [{**point, key: value} for point in points for value in values]
    return points


def _split_commas(text: str) -> list[str]:
    """Split at the commas outside of brackets and quotes."""
    words, start, closing, quote = [], 0, [], ""
    for i, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in _PAIRS:
            closing.append(_PAIRS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
        elif letter == "," and not closing:
            words.append(text[start:i].strip())
            start = i + 1
    return [*words, text[start:].strip()]
