"""The search for a temperature against made-up scores."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from kontrast.experiments.tune.search import CLOSE, LEAST, MOST, Setting, choose_temperature
from tests.experiments.tune.made_up import Scoring, run, settings


def peak(tau: float) -> Scoring:
    return lambda at: -abs(math.log(at["temperature"] / tau))


def test_the_recipe_s_own_comes_first_and_no_value_twice() -> None:
    phases, _ = run(choose_temperature(0.1), peak(0.1))
    tried = settings(phases, "temperature")
    assert tried[:5] == [(0.1,), (0.05,), (0.2,), (0.5,), (1.0,)]
    assert len(tried) == len(set(tried))


@pytest.mark.parametrize("tau", [0.05, 0.07, 0.1, 0.13, 0.24, 0.4, 0.7, 1.0])
def test_it_comes_close_to_a_peak(tau: float) -> None:
    """A round of the grid's factor 2 or 2.5 leaves √2.5; the next, as long as the best moves, its root, 1.26."""
    _, ending = run(choose_temperature(0.1), peak(tau))
    assert ending.chosen is not None
    assert max(ending.chosen["temperature"] / tau, tau / ending.chosen["temperature"]) < math.sqrt(math.sqrt(2.5))


def test_flat_scores_keep_the_recipe_s_own() -> None:
    phases, ending = run(choose_temperature(0.2), lambda at: 0.5)
    assert ending.chosen == {"temperature": 0.2}
    assert settings(phases[1:], "temperature") == [(0.14,), (0.32,)]
    assert ending.why == "0.14 and 0.32 did not improve on temperature = 0.2"


@pytest.mark.parametrize(("rising", "edge"), [(1, MOST), (-1, LEAST)])
def test_beyond_the_grid_within_bounds(rising: int, edge: float) -> None:
    phases, ending = run(choose_temperature(0.1), lambda at: rising * at["temperature"])
    assert ending.chosen is not None
    assert max(ending.chosen["temperature"] / edge, edge / ending.chosen["temperature"]) < 2
    assert all(LEAST <= tau <= MOST for (tau,) in settings(phases, "temperature"))


def test_values_differ_by_a_tenth_or_more() -> None:
    for tau in (0.06, 0.3, 0.75):
        phases, _ = run(choose_temperature(0.07), peak(tau))
        tried = sorted(t for (t,) in settings(phases, "temperature"))
        assert all(b / a >= CLOSE - 1e-12 for a, b in pairwise(tried))


def test_failed_trials_are_gone_round() -> None:
    _, ending = run(choose_temperature(0.05), lambda at: math.nan if at["temperature"] < 0.2 else -at["temperature"])
    assert ending.chosen == {"temperature": 0.2}
    phases, ending = run(choose_temperature(0.1), lambda at: math.nan)
    assert (len(phases), ending.chosen) == (1, None)
    assert ending.why == "no temperature has a score: every one failed or was stopped"


# ------------------------------------------------------------------------------------------------ two temperatures


def both(tau: float, tau_m: float) -> Scoring:
    def score(at: Setting) -> float:
        return -abs(math.log(at["temperature"] / tau)) - abs(math.log(at["target_temperature"] / tau_m))

    return score


def test_the_target_s_goes_along_and_then_has_its_turn() -> None:
    phases, ending = run(choose_temperature(0.1, 0.05), both(0.2, 0.14))
    names = [phase.name for phase in phases]
    assert names == sorted(names, key=["coarse", "temperature", "target temperature"].index)
    first = settings([p for p in phases if p.name != "target temperature"], "temperature", "target_temperature")
    # Two digits: the ratio is kept to half a unit of the second.
    assert all(tau_m / tau == pytest.approx(0.5, rel=0.05) for tau, tau_m in first)
    assert first[0] == (0.1, 0.05)
    assert ending.chosen == {"temperature": 0.2, "target_temperature": 0.14}


def test_the_target_s_stays_below() -> None:
    phases, _ = run(choose_temperature(0.1, 0.04), lambda at: at["target_temperature"] / at["temperature"])
    assert all(tau_m < tau for tau, tau_m in settings(phases, "temperature", "target_temperature"))
