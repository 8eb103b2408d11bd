"""Plain values: what YAML, or Python, may bring into a recipe, and how errors tell of what is none.

Numbers, words, true and false, null, lists and mappings of them: nothing else is in a recipe, so that it can be
written, read back and hashed. YAML's anchors can make a file of ten lines unfold to gigabytes, and lists can hold
themselves; how much a recipe may hold is bounded before anything walks through it.

Files that a run wrote are plain values too, and may be damaged and still be JSON. A *shape* says of which type a value
is to be; `checked` keeps what is, leaves out what is not, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from kontrast.files import open_regular
from kontrast.registry import one_line, quoted

MOST_VALUES, DEEPEST = 10_000, 20  # of a recipe; the largest that there is has 90, four deep
MOST_BYTES = 1_000_000  # of a file; the largest there is has 2,000
LARGEST = 3.4e38  # what float32 holds
LINES = "\x85\u2028\u2029"  # PyYAML writes them as they are, and takes them for line breaks when it reads
MOST_TOLD = 5  # wrong values in one error

# What PyYAML raises on words it cannot make the values of: besides its own error, whatever int(), float(), a table of
# truth values or a date's pattern say, and too deep a nest.
NO_YAML = (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)


def from_yaml(text: str) -> Any:
    """What YAML has; no tags but its own, so nothing is run. Text that is none is a `ValueError`.

    >>> from_yaml("{epochs: 5}"), from_yaml("!!float many")
    Traceback (most recent call last):
        ...
    ValueError: it is not YAML: could not convert string to float: 'many'
    """
    try:
        return yaml.safe_load(text)
    except NO_YAML as error:
        said = "it is nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ValueError(f"it is not YAML: {said[:300]}") from None


def from_file(path: Path) -> Any:
    """What a file of YAML has, or an error that names it."""
    with open_regular(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES:,} bytes; expected a recipe")
    try:
        return from_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not YAML: {error.reason} at byte {error.start}; expected a recipe in UTF-8"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} {str(error).removeprefix('it ')}; expected a recipe") from None


def to_yaml(values: Any) -> str:
    r"""YAML that `from_yaml` takes back to the same values.

    >>> to_yaml({"name": "ü", "epochs": 5}), from_yaml(to_yaml(["a\x85b"])) == ["a\x85b"]
    ('name: ü\nepochs: 5\n', True)
    """
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    if not any(character in text for character in LINES):
        return text
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=False, width=100)


def check_plain(values: Any) -> None:
    """Plain values, finite, and not more than a recipe has; else a `ValueError` that says where.

    >>> check_plain({"train": {"epochs": 5}})
    >>> check_plain({"method": {"k1": float("inf")}})
    Traceback (most recent call last):
        ...
    ValueError: method.k1 is inf; expected a finite number of at most 3.4e+38
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"a recipe is {quoted(values)}; expected a mapping with data, method, train, …")
    count = 0

    def look(value: Any, path: str, depth: int) -> None:
        nonlocal count
        count += 1
        if count > MOST_VALUES or depth > DEEPEST:
            raise ValueError(
                f"more than {MOST_VALUES:,} values, or more than {DEEPEST} one inside the other, with anchors written "
                "out; expected a recipe"
            )
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"{one_line(path) or 'the recipe'} has the key {quoted(key)}; expected a word")
                look(inner, f"{path}.{key[:40]}" if path else key[:40], depth + 1)
        elif isinstance(value, list | tuple):
            for i, inner in enumerate(value):
                look(inner, f"{path}.{i}", depth + 1)
        elif isinstance(value, float) and not abs(value) <= LARGEST:
            raise ValueError(f"{one_line(path)} is {value:g}; expected a finite number of at most {LARGEST:.1e}")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{one_line(path)} is {quoted(value)}; expected a whole number of at most 2⁶³ − 1")
        elif not isinstance(value, str | bool | int | float | BaseModel | Path | None):
            raise ValueError(
                f"{one_line(path)} is {quoted(value)}, a {type(value).__name__}; expected a number, a word, true or "
                "false, null, or lists and mappings of them. A date or time that is meant as a word stands in quotes"
            )

    look(values, "", 0)


Shape = Callable[[Any, str, list[str]], Any]
"""Takes a value, its place, and what was wrong so far; returns what is kept of the value, `NOTHING` if nothing is."""
NOTHING = object()
MOST_WRONG = 5  # values of a file that are told one by one


def checked(value: Any, shape: Shape, name: str, troubles: list[str]) -> Any:
    """What of a file's content is of its shape, None if nothing is; the rest is told in ``troubles``.

    >>> troubles = []
    >>> checked({"step": 5, "error": [1]}, record({"step": number, "error": text}), "run.json", troubles), troubles
    ({'step': 5}, ['run.json is damaged: error is [1]; expected a text'])
    """
    wrong: list[str] = []
    kept = shape(value, "", wrong)
    troubles += [f"{name} is damaged: {said}" for said in wrong[:MOST_WRONG]]
    if len(wrong) > MOST_WRONG:
        troubles.append(f"{name} is damaged: {len(wrong) - MOST_WRONG:,} more values are not of their type")
    return None if kept is NOTHING else kept


def whole_or_error(value: Any, shape: Shape, path: Path, cure: str) -> Any:
    """What of a file's content is of its shape, if all is; else a `ValueError` that names the file."""
    wrong: list[str] = []
    kept = shape(value, "", wrong)
    if wrong:
        raise ValueError(f"{path} is damaged ({wrong[0]}); {cure}")
    return kept


def number(value: Any, place: str, wrong: list[str]) -> Any:
    """A finite number; NaN and infinity, which JSON does not have, are None."""
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return value
    return _other(value, place, wrong, "a number")


def whole(value: Any, place: str, wrong: list[str]) -> Any:
    """A whole number of 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    return _other(value, place, wrong, "a whole number")


def text(value: Any, place: str, wrong: list[str]) -> Any:
    """A text."""
    return value if isinstance(value, str) else _other(value, place, wrong, "a text")


def flag(value: Any, place: str, wrong: list[str]) -> Any:
    """True or false."""
    return value if isinstance(value, bool) else _other(value, place, wrong, "true or false")


def scalar(value: Any, place: str, wrong: list[str]) -> Any:
    """A text, a number, true or false."""
    return value if isinstance(value, str | bool) else number(value, place, wrong)


def items(shape: Shape, *, all_or_none: bool = False) -> Shape:
    """A list, of which those are kept that have the shape; if its places matter, all or none, and null is one."""

    def look(value: Any, place: str, wrong: list[str]) -> Any:
        if not isinstance(value, list):
            return _other(value, place, wrong, "a list")
        kept = [
            None if item is None and all_or_none else shape(item, f"{place}.{i}" if place else f"{i}", wrong)
            for i, item in enumerate(value)
        ]
        if all_or_none:
            return NOTHING if any(item is NOTHING for item in kept) else kept
        return [item for item in kept if item is not NOTHING and item is not None]

    return look


def record(known: Mapping[str, Shape], *, others: Shape | None = None, needed: Sequence[str] = ()) -> Shape:
    """A mapping: its ``known`` keys, ``others`` if they have a shape; none without the ``needed``.

    A null in a number's or a text's place is kept; a mapping or a list that is null is as if it were not there.
    """

    def look(value: Any, place: str, wrong: list[str]) -> Any:
        if not isinstance(value, Mapping):
            return _other(value, place, wrong, "a mapping")
        kept = {}
        for key, inner in value.items():
            shape = known.get(key, others)
            if shape is not None and (inner is not None or shape in (number, whole, text, flag, scalar)):
                where = f"{place}.{key[:40]}" if place else key[:40]
                kept[key] = None if inner is None else shape(inner, where, wrong)
        kept = {key: inner for key, inner in kept.items() if inner is not NOTHING}
        missing = [key for key in needed if kept.get(key) is None]
        if missing:
            wrong.append(f"{one_line(place) or 'it'} has no {missing[0]}")
        return NOTHING if missing else kept

    return look


def _other(value: Any, place: str, wrong: list[str], expected: str) -> Any:
    wrong.append(f"{one_line(place) or 'it'} is {quoted(value)}; expected {expected}")
    return NOTHING


def told(error: ValidationError) -> str:
    """What pydantic found, in a paragraph."""
    found = []
    for item in error.errors()[:MOST_TOLD]:
        where = one_line(".".join(str(place)[:60] for place in item["loc"]) or "the recipe")
        seen = "" if item["type"] in ("missing", "value_error") else f", seen {quoted(item['input'])}"
        message = item["msg"].removeprefix("Value error, ")
        message = "input should be a smaller whole number" if item["type"] == "int_parsing_size" else message
        found.append(f"{where}: {message[0].lower()}{message[1:]}{seen}")
    more = error.error_count() - MOST_TOLD
    return "; ".join(found) + (f"; and {more:,} more" if more > 0 else "")
