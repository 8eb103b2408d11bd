"""Bad input: the judgement itself, and a few cases of every kind; `python torture/inputs.py` tries thousands."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "torture"))

import inputs
from bad_input import judging
from bad_input.command_line import refusal
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


def test_a_refusal_is_found_among_warnings_and_usage() -> None:
    assert refusal("warning: few rows\nerror: no such thing; take another\n") == "error: no such thing; take another"
    box = "Usage: kontrast [OPTIONS]\n╭─ Error ───╮\n│ No such command 'x'. │\n╰─────╯\n"
    assert "No such command 'x'." in refusal(box)
    with pytest.raises(AssertionError, match="without a word"):
        refusal("Killed\n")


def test_faults_are_counted_and_made_small() -> None:
    def attempt(case: int) -> None:
        if case > 100:
            raise KeyError(case)
        if case % 2:
            raise ValueError("odd; expected even")

    kind = Kind("numbers", "size", st.integers(0, 200), attempt)
    tally = inputs.tried(kind, 100)
    assert tally.counts.total() == 100
    assert all(tally.counts[verdict] > 5 for verdict in ("result", "error", "fault"))
    with pytest.raises(AssertionError, match="KeyError: 101"):
        inputs.tried(kind, 100, shrink=True)
    rows = inputs.table([tally]).splitlines()
    assert rows[-1].startswith("| **all** |")
    assert rows[-1].split("|")[3].strip() == "100"


def test_the_page_holds_the_counts_between_its_marks() -> None:
    tally = inputs.Tally(Kind("numbers", "size", st.none(), lambda case: None))
    tally.add(0, judging.Outcome("error"))
    page = inputs.page(f"before\n{inputs.BEGIN}old\n{inputs.END}after\n", [tally], 10, 3)
    assert page.startswith(f"before\n{inputs.BEGIN}")
    assert page.endswith(f"{inputs.END}after\n")
    assert "old" not in page
    assert "| numbers | size | 1 | 0 | 1 | 0 |" in page
    assert "--examples 10 --seed 3" in page
    assert inputs.BEGIN in inputs.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", inputs.KINDS, ids=lambda kind: kind.name)
@pytest.mark.filterwarnings("ignore")  # what is odd may be warned of
def test_a_few_cases_of_every_kind(kind: Kind) -> None:
    tally = inputs.tried(kind, FEW.get(kind.name, 20 * kind.cost))
    assert not tally.faults, next(iter(tally.faults.values()))
    assert tally.counts["error"] > 0, "nothing that is bad was drawn"
    assert tally.counts.total() >= 15
