"""What every search shares: nothing is tried twice, a number is better than none, of equals the first is best."""

from __future__ import annotations

import math

import pytest

from kontrast.experiments.tune.search import Score, Trials, compare_scores, describe_setting, is_better

A, B, C = {"k2": 1.0}, {"k2": 1.2}, {"k2": 1.4}


def test_only_new_settings_are_asked_for() -> None:
    tried = Trials()
    asking = tried.ask("first", "why", [A, B, A])
    assert next(asking).settings == (A, B)
    with pytest.raises(StopIteration):
        asking.send([Score((0.1,)), Score((0.2,))])
    asking = tried.ask("second", "why", [B, C])
    assert next(asking).settings == (C,)
    assert list(tried.ask("third", "why", [A, B])) == []


def test_a_score_for_each_is_expected() -> None:
    asking = Trials().ask("first", "why", [A, B])
    next(asking)
    with pytest.raises(ValueError, match="must be one for each of the 2 proposed settings"):
        asking.send([Score((0.1,))])


def test_the_best_is_the_first_of_the_largest_and_needs_a_score() -> None:
    tried = Trials()
    assert tried.best() is None
    tried.scores = [(A, Score((), "failed")), (B, Score((0.5, 0.7))), (C, Score((0.6, 0.6)))]
    assert tried.best() == B
    assert tried.best([A, C]) == C
    assert tried.best([A]) is None
    assert math.isnan(tried.mean(A))
    assert tried.mean(B) == pytest.approx(0.6, abs=1e-15)  # a mean of two: one rounding
    assert math.isnan(tried.mean({"k2": 9.0}))


def test_stopped_or_failed_scores_count_for_nothing() -> None:
    assert math.isnan(Score((0.9,), "stopped early").mean)
    assert math.isnan(Score(()).mean)
    assert not is_better(Score((0.9,), "failed").mean, 0.1)


def test_settings_in_words() -> None:
    assert (
        describe_setting({"temperature": 0.1, "target_temperature": 0.05})
        == "temperature = 0.1, target temperature = 0.05"
    )


def test_pairs_resolve_what_the_seeds_would_hide() -> None:
    base = (0.60, 0.80, 0.70)  # seeds differ far more than settings

    def shifted(by: float) -> Score:
        return Score(tuple(y + by + e for y, e in zip(base, (0.001, -0.001, 0.0), strict=True)))

    result = compare_scores(shifted(0.01), Score(base), [0, 1, 2])
    assert result.verdict == "above"
    assert result.difference is not None
    assert result.difference.mean == pytest.approx(0.01, abs=1e-12)  # sums of three doubles
    assert compare_scores(shifted(-0.01), Score(base), [0, 1, 2]).verdict == "below"
    assert compare_scores(shifted(0.001), Score(base), [0, 1, 2]).verdict == "not resolved"
    assert compare_scores(Score(base), Score(base), [0, 1, 2]).verdict == "not resolved", "an interval of 0 around 0"
