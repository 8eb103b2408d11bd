"""TCL's procedure for k1 and k2 on invented scores, and its remark about k1 below 5,000."""

from __future__ import annotations

import math

import pytest

from kontrast.experiments.tune.search import MOST_K2, SUPCON, Score, Setting, check_remark, choose_k
from tests.experiments.tune.made_up import Scoring, run, settings


def near(k1: float, k2: float = 1.0, base: float = 0.0) -> Scoring:
    """A score that falls with the distance from a place; SupCon's is ``base``."""

    def score(at: Setting) -> float:
        return base if at == SUPCON else 1.0 - abs(at["k1"] - k1) / 10_000 - abs(at["k2"] - k2)

    return score


def test_a_peak_at_4000_needs_no_range() -> None:
    phases, ending = run(choose_k(), near(4000))
    assert settings(phases, "k1", "k2") == [(0, 1), (4000, 1), (5000, 1), (4000, 1.2), (4000, 1.1)]
    assert [phase.name for phase in phases] == ["start", "k2", "k2, half steps"]
    assert ending.chosen == {"k1": 4000, "k2": 1}
    assert ending.why == "at k1 = 4000, raising k2 above 1 (1.1, 1.2) did not improve the score"


def test_a_peak_at_8000_is_found_where_the_start_does_not_beat_supcon() -> None:
    phases, ending = run(choose_k(), near(8000, base=0.75))
    assert settings(phases[:2], "k1", "k2") == [(0, 1), (4000, 1), (5000, 1), (2000, 1), (6000, 1), (8000, 1)]
    assert phases[1].why == "neither k1 = 4000 nor 5000 beat SupCon: 2000 to 8000 in steps of 2000"
    assert ending.chosen == {"k1": 8000, "k2": 1}


def test_a_start_that_beats_supcon_is_enough_whatever_lies_beyond() -> None:
    _, ending = run(choose_k(), near(8000))
    assert ending.chosen == {"k1": 5000, "k2": 1}


def test_k2_rises_as_long_as_it_helps() -> None:
    phases, ending = run(choose_k(), near(5000, 1.4))
    raised = [(1.2,), (1.4,), (1.6,), (1.5,), (1.3,)]
    assert settings(phases[1:], "k2") == raised
    assert [len(phase.settings) for phase in phases[1:]] == [1, 1, 1, 2]
    assert ending.chosen == {"k1": 5000, "k2": 1.4}
    assert ending.why == "at k1 = 5000, raising k2 above 1.4 (1.5, 1.6) did not improve the score"


@pytest.mark.parametrize("k2", [1.1, 1.3, 1.5])
def test_half_steps_find_what_lies_between(k2: float) -> None:
    assert run(choose_k(), near(4000, k2))[1].chosen == {"k1": 4000, "k2": k2}


def test_flat_scores_leave_supcon() -> None:
    """Ties go to the first tried: nothing beat SupCon, so the range is tried too, and nothing is chosen over it."""
    phases, ending = run(choose_k(), lambda at: 0.5)
    assert settings(phases, "k1", "k2") == [
        *((0, 1), (4000, 1), (5000, 1), (2000, 1), (6000, 1), (8000, 1)),
        *((4000, 1.2), (4000, 1.1)),
    ]
    assert ending.chosen == SUPCON
    assert ending.why.endswith("did not improve the score; but nothing tried beat SupCon")


def test_4000_before_5000_in_a_tie() -> None:
    assert run(choose_k(), lambda at: float(at["k1"] > 0))[1].chosen == {"k1": 4000, "k2": 1}


def test_k2_ends_somewhere() -> None:
    phases, ending = run(choose_k(), lambda at: at["k2"] + float(at["k1"] == 5000))
    assert ending.chosen == {"k1": 5000, "k2": MOST_K2}
    assert max(setting["k2"] for phase in phases for setting in phase.settings) == MOST_K2
    assert ending.why == f"at k1 = 5000, k2 = {MOST_K2:g} is the largest tried, and the score still rose"


# ----------------------------------------------------------------------------------------------- trials without a score


@pytest.mark.parametrize("failing", [4000.0, 5000.0])
def test_a_failed_start_leaves_the_other(failing: float) -> None:
    phases, ending = run(choose_k(), lambda at: math.nan if at["k1"] == failing else at["k1"])
    other = {4000.0: 5000.0, 5000.0: 4000.0}[failing]
    assert ending.chosen == {"k1": other, "k2": 1}
    assert "range" not in [phase.name for phase in phases]


def test_two_failed_starts_lead_to_the_range() -> None:
    phases, ending = run(choose_k(), lambda at: math.nan if at["k1"] in (4000, 5000) else at["k1"])
    assert phases[1].name == "range"
    assert ending.chosen == {"k1": 8000, "k2": 1}


def test_without_supcon_any_number_beats_it() -> None:
    _, ending = run(choose_k(), lambda at: math.nan if at == SUPCON else 0.1)
    assert ending.chosen == {"k1": 4000, "k2": 1}


def test_a_failed_k2_ends_the_climb_and_the_half_step_is_still_tried() -> None:
    phases, ending = run(choose_k(), lambda at: math.nan if at["k2"] == 1.4 else at["k1"] + at["k2"])
    assert settings(phases[1:], "k2") == [(1.2,), (1.4,), (1.3,), (1.1,)]
    assert ending.chosen == {"k1": 5000, "k2": 1.3}


def test_nothing_but_supcon_has_a_score() -> None:
    _, ending = run(choose_k(), lambda at: 0.3 if at == SUPCON else math.nan)
    assert ending.chosen == SUPCON
    assert ending.why == "no k1 from 2000 to 8000 has a score: every one failed or was stopped"


@pytest.mark.parametrize("supervised", [True, False])
def test_nothing_at_all_has_a_score(supervised: bool) -> None:
    _, ending = run(choose_k(supervised=supervised), lambda at: math.nan)
    assert ending.chosen is None
    assert "every one failed or was stopped" in ending.why


# ------------------------------------------------------------------------------------------------ without labels


def test_without_labels_k1_is_1_and_only_k2_rises() -> None:
    phases, ending = run(choose_k(supervised=False), near(1, 1.5))
    tried = settings(phases, "k1", "k2")
    assert tried == [(1, k2) for k2 in (1, 1.2, 1.4, 1.6, 1.5, 1.3)]
    assert ending.chosen == {"k1": 1, "k2": 1.5}


# ------------------------------------------------------------------------------------------------ the remark

SEEDS = [0, 1, 2]
BASE = (0.60, 0.80, 0.70)  # seeds differ far more than settings


def shifted(by: float, noise: float = 0.001) -> Score:
    return Score(tuple(y + by + e for y, e in zip(BASE, (noise, -noise, 0.0), strict=True)))


def at(k1: float, k2: float = 1.0) -> Setting:
    return {"k1": k1, "k2": k2}


@pytest.mark.parametrize(
    ("scores", "says"),
    [
        ({4000: 0.01, 5000: -0.01}, "holds: every k1 below 5000 that was tried (4000) is above SupCon"),
        ({4000: 0.01, 5000: 0.01, 2000: -0.01}, "does not hold: k1 = 2000 is below SupCon"),
        ({4000: 0.0, 5000: 0.01}, "not resolved: not every k1 below 5000 that was tried (4000) differs from SupCon"),
        ({4000: 0.01, 2000: 0.0}, "not resolved: not every k1 below 5000 that was tried (4000, 2000)"),
    ],
)
def test_the_verdict(scores: dict[float, float], says: str) -> None:
    tried = [(SUPCON, Score(BASE)), *((at(k1), shifted(by)) for k1, by in scores.items())]
    words, each = check_remark(tried, SEEDS)
    assert words.startswith(says)
    assert list(each) == list(scores)


def test_only_k2_of_1_counts() -> None:
    tried = [(SUPCON, Score(BASE)), (at(4000), shifted(0.01)), (at(4000, 1.2), shifted(-0.01))]
    words, each = check_remark(tried, SEEDS)
    assert words.startswith("holds")
    assert list(each) == [4000]


def test_one_seed_is_not_resolved() -> None:
    words, each = check_remark([(SUPCON, Score((0.5,))), (at(4000), Score((0.9,)))], [0])
    assert words == "not resolved: one seed has no interval"
    assert each[4000].verdict == "not resolved"
    assert each[4000].difference is not None
    assert each[4000].difference.half is None


def test_what_failed_or_was_stopped_is_not_measured() -> None:
    tried = [(SUPCON, Score(BASE)), (at(4000), Score((), "stopped early")), (at(2000), shifted(0.01))]
    words, each = check_remark(tried, SEEDS)
    assert each[4000].verdict == "not measured"
    assert words.startswith("not resolved")
    assert (
        check_remark([(SUPCON, Score((), "failed")), (at(4000), shifted(0.01))], SEEDS)[1][4000].verdict
        == "not measured"
    )
