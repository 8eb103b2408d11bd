"""Plain values: YAML that is none, values that no recipe holds, and bounds on how much it may hold."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from kontrast.plain import (
    DEEPEST,
    MOST_BYTES,
    MOST_ERRORS,
    MOST_VALUES,
    check_plain,
    format_validation_error,
    from_file,
    from_yaml,
    to_yaml,
)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system [true]",
        "!!int abc",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "!!binary é",
        "a: 2024-99-99",
        "[" * 100_000,
        "9" * 5000,
        "*nobody",
        "{? [a] : b}",
        "a: \x00",
    ],
)
def test_what_is_no_yaml_is_a_value_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is not YAML: .") as caught:
        from_yaml(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_file_is_bounded_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\n".ljust(MOST_BYTES, b" "))
    assert from_file(path) == {"a": 1}
    path.write_bytes(b"a: 1\n".ljust(MOST_BYTES + 1, b" "))
    with pytest.raises(ValueError, match=r"x\.yaml has more than 1,000,000 bytes; expected a recipe"):
        from_file(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"x\.yaml is a pipe, not a file"):
        from_file(path)
    with pytest.raises(ValueError, match="/dev/zero is a device, not a file"):
        from_file(Path("/dev/zero"))


def test_anchors_are_taken() -> None:
    assert from_yaml("a: &x {k: 1}\nb: *x") == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(
    "text", ["a\x85b", "a\u2028b", "a\u2029b", "a\nb", " a ", "1e3", "ü 日本", "\udcff", "\t", "null"]
)
def test_any_text_comes_back(text: str) -> None:
    """A recipe with a line separator in a path had another hash when it was read again."""
    assert from_yaml(to_yaml({text: [text, {"a": text}]})) == {text: [text, {"a": text}]}


def laughs() -> dict[str, Any]:
    """Nine lines of YAML that unfold to 9⁹ words."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return from_yaml("\n".join(lines))  # type: ignore[no-any-return]


def test_what_unfolds_without_end_is_refused_before_it_does() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    for value in (laughs(), {"about": endless}, {"about": deep}, {"about": list(range(MOST_VALUES))}):
        with pytest.raises(ValueError, match="expected a recipe"):
            check_plain(value)
    check_plain({"about": list(range(MOST_VALUES - 2))})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"k1": float("nan")}, "method.k1 is nan; expected a finite number"),
        ({"k1": [1, float("-inf")]}, "method.k1.1 is -inf"),
        ({"k1": b"\xff"}, "method.k1 is b'\\xff', a bytes; expected a number, a word"),
        ({"k1": datetime.date(2024, 1, 2)}, "a date; expected"),
        ({"k1": {1, 2}}, "a set; expected"),
        ({5: 1}, "method has the key 5; expected a word"),
        ({None: 1}, "method has the key None"),
        ({"a\nb": {1: 2}}, "method.a\\nb has the key 1"),
        ({"k1": object}, "a type; expected"),
    ],
)
def test_what_is_not_plain_is_said_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        check_plain({"method": value})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [None, 3, "words", [{"a": 1}]])
def test_a_recipe_is_a_mapping(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a mapping with data, method, train"):
        check_plain(value)


def test_many_wrong_values_are_told_in_a_paragraph() -> None:
    class Whole(BaseModel):
        values: list[int]

    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"values": ["x" * 10_000] * 50})
    text = format_validation_error(caught.value)
    assert text.count("should be a valid integer") == MOST_ERRORS
    assert text.endswith(f"and {50 - MOST_ERRORS} more")
    assert len(text) < 1500
