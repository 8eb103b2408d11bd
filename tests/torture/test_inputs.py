"""Bad input: the judgement itself, and a few cases of every kind; `python torture/inputs.py` tries thousands."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest
from hypothesis import strategies as st

import inputs
from bad_input import judging
from bad_input.judging import Kind, bounded, judged, unclear

FEW = {"recipe files": 40, "recipe mappings": 40, "settings": 20, "image files": 40, "image folders": 30, "losses": 40}


def raising(error: BaseException) -> Any:
    def attempt(case: Any) -> None:
        raise error

    return attempt


def test_only_a_paragraph_that_says_what_to_do_is_an_error() -> None:
    assert judged(lambda case: None, 0).verdict == "result"
    assert judged(raising(ValueError("k is 0; expected at least 1")), 0).verdict == "error"
    for error in (
        KeyError("expected"),
        RuntimeError("expected"),
        RecursionError("expected"),
        MemoryError(),
        AssertionError("another hash"),
        ValueError(""),
        ValueError("division by zero"),
        ValueError("two\nlines; expected one"),
        ValueError("red \x1b[31m; expected plain"),
        ValueError("x" * 5000 + "; expected less"),
        ValueError("'NoneType' object has no attribute 'x'; expected"),
        judging.TooLong(),
    ):
        assert judged(raising(error), 0).verdict == "fault", repr(error)
    assert unclear("no recipe 'x'; did you mean 'y'?") is None


def test_a_case_without_end_or_bounds_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 1)
    monkeypatch.setattr(judging, "MEMORY", 50 << 20)

    def endless(case: Any) -> None:
        while True:
            time.sleep(0.01)

    def large(case: Any) -> None:
        bytearray(500 << 20)

    with bounded():
        assert judged(endless, 0).says.startswith("no end")
    if sys.platform == "linux":
        with bounded():
            assert judged(large, 0).says.startswith("MemoryError")
    large(0)  # and the bound is gone again


def test_faults_are_counted_and_made_small() -> None:
    def attempt(case: int) -> None:
        if case > 100:
            raise KeyError(case)
        if case % 2:
            raise ValueError("odd; expected even")

    kind = Kind("numbers", "size", st.integers(0, 200), attempt)
    tally = inputs.try_cases(kind, 100)
    assert tally.counts.total() == 100
    assert all(tally.counts[verdict] > 5 for verdict in ("result", "error", "fault"))
    with pytest.raises(AssertionError, match="KeyError: 101"):
        inputs.try_cases(kind, 100, shrink=True)
    rows = inputs.table([tally]).splitlines()
    assert rows[-1].startswith("| **all** |")
    assert rows[-1].split("|")[3].strip() == "100"


@pytest.mark.parametrize("kind", inputs.KINDS, ids=lambda kind: kind.name)
@pytest.mark.filterwarnings("ignore")  # what is odd may be warned of
def test_a_few_cases_of_every_kind(kind: Kind) -> None:
    tally = inputs.try_cases(kind, FEW.get(kind.name, 20 * kind.cost))
    assert not tally.faults, next(iter(tally.faults.values()))
    assert tally.counts["error"] > 0, "nothing that is bad was drawn"
    assert tally.counts.total() >= 15
