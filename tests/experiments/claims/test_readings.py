"""What the runs of a part of the grid have, and the verdicts."""

from __future__ import annotations

import pytest

from kontrast.experiments.claims import FAILS, HOLDS, OPEN
from kontrast.experiments.claims.readings import Number, Readings, SingleSeed, lack, parts, sign_over_seeds, weakest
from kontrast.experiments.experiment import Row


def test_bounds_add_up_only_if_they_pull_one_way() -> None:
    low, exact = Number(3.0, "≥"), Number(1.0)
    assert low + exact == Number(4.0, "≥")
    assert exact + low.times(-1.0) == Number(-2.0, "≤")
    assert low + low.times(-2.0) == Number(-3.0, "?")
    assert low.times(0.0) == Number(0.0)


def test_a_seed_that_lacks_a_cell_is_left_out_whole() -> None:
    rows = [Row({"tau": t, "seed": s}, "", "done", {"knn": t}) for t in (0.1, 0.2) for s in (0, 1)]
    rows[3] = Row({"tau": 0.2, "seed": 1}, "", "failed")
    readings = Readings(rows, "knn", {})
    assert readings.complete(readings.places) == [0]
    assert lack(readings) == "1 of 4 cells have no value (1 failed)"
    assert list(parts(rows, ("tau",))) == ["tau=0.1", "tau=0.2"]
    with pytest.raises(ValueError, match="expected one run a seed"):
        Readings([rows[0], rows[0]], "knn", {})


@pytest.mark.parametrize(
    ("values", "verdict"), [((1.0, 1.1, 0.9), HOLDS), ((-1.0, -1.1, -0.9), FAILS), ((1.0, -1.0, 0.2), OPEN)]
)
def test_the_interval_decides(values: tuple[float, ...], verdict: str) -> None:
    assert sign_over_seeds("x", [Number(value) for value in values], 1).verdict == verdict


def test_one_seed_needs_an_error_of_its_own() -> None:
    assert sign_over_seeds("x", [Number(1.0)], 1).verdict == OPEN
    finding = sign_over_seeds("x", [Number(1.0)], 1, single=SingleSeed(0.1, 10, "the residuals of the fit"))
    assert (finding.verdict, finding.error) == (HOLDS, "the residuals of the fit")


def test_the_weakest_of_several_verdicts() -> None:
    assert weakest([HOLDS, OPEN]) == OPEN
    assert weakest([OPEN, FAILS, HOLDS]) == FAILS
