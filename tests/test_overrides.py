"""Settings by dotted keys."""

from __future__ import annotations

import pytest

from kontrast.overrides import parse, place, unknown_key


def test_values_as_yaml_has_them() -> None:
    assert parse("a=[1, x]") == ("a", [1, "x"])
    assert parse("a=null") == ("a", None)
    assert parse("a=1e-3") == ("a", 0.001)
    assert parse("a=b=c") == ("a", "b=c")
    assert parse("a={") == ("a", "{")


def test_places_in_lists_and_mappings() -> None:
    assert place({"a": 1}, "a", "x", new=False) == "a"
    assert place({"a": 1}, "b", "x", new=True) == "b"
    with pytest.raises(ValueError, match="x has no key 'aa'; did you mean 'a'"):
        place({"a": 1}, "aa", "x", new=False)
    with pytest.raises(ValueError, match="x: expected a number from 0 to 1, seen '2'"):
        place([1, 2], "2", "x", new=True)
    with pytest.raises(ValueError, match="x is 3, which has nothing inside"):
        place(3, "y", "x", new=True)
    assert unknown_key("q", [], "x") == "x has no key 'q'. Known: none"
