"""Plain values: what a recipe may hold, from YAML or Python, and the errors about anything else.

A recipe holds numbers, strings, true, false, null, and lists and mappings of them, so that it can be written, read back
and hashed. The anchors of YAML can make ten lines unfold to gigabytes, and lists can contain themselves; so the size of
a recipe is checked before anything walks through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from kontrast.files import open_regular
from kontrast.registry import one_line, quoted

MOST_VALUES, DEEPEST = 10_000, 20  # of a recipe; the largest here has 90 values, four deep
MOST_BYTES = 1_000_000  # of a file; the largest here has 2,000
LARGEST = 3.4e38  # what float32 holds
LINES = "\x85\u2028\u2029"  # PyYAML writes them as they are, and reads them as line breaks
MOST_ERRORS = 5  # in one message

# What PyYAML raises besides its own error: the errors of int(), float(), of its tables and patterns, and of too deep
# nesting.
NO_YAML = (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)


def from_yaml(text: str) -> Any:
    """Read YAML, with standard tags only, so nothing is executed.

    Raises:
        ValueError: The text is not YAML.

    >>> from_yaml("{epochs: 5}"), from_yaml("!!float many")
    Traceback (most recent call last):
        ...
    ValueError: it is not YAML: could not convert string to float: 'many'
    """
    try:
        return yaml.safe_load(text)
    except NO_YAML as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ValueError(f"it is not YAML: {reason[:300]}") from None


def from_file(path: Path) -> Any:
    """Read a YAML file of at most `MOST_BYTES`.

    Raises:
        ValueError: The file is not YAML, not UTF-8 or too large; the message names it.
    """
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
    r"""Write YAML that `from_yaml` reads back to the same values.

    >>> to_yaml({"name": "ü", "epochs": 5}), from_yaml(to_yaml(["a\x85b"])) == ["a\x85b"]
    ('name: ü\nepochs: 5\n', True)
    """
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    if not any(character in text for character in LINES):
        return text
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=False, width=100)


def check_plain(values: Any) -> None:
    """Check that values are plain, finite and not too many.

    Raises:
        ValueError: A value is not; the message names its place.

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


def format_validation_error(error: ValidationError) -> str:
    """The errors of pydantic in one paragraph, at most `MOST_ERRORS` of them."""
    errors = []
    for item in error.errors()[:MOST_ERRORS]:
        where = one_line(".".join(str(place)[:60] for place in item["loc"]) or "the recipe")
        value = "" if item["type"] in ("missing", "value_error") else f", seen {quoted(item['input'])}"
        message = item["msg"].removeprefix("Value error, ")
        message = "input should be a smaller whole number" if item["type"] == "int_parsing_size" else message
        errors.append(f"{where}: {message[0].lower()}{message[1:]}{value}")
    more = error.error_count() - MOST_ERRORS
    return "; ".join(errors) + (f"; and {more:,} more" if more > 0 else "")
