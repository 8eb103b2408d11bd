"""The remark about k1 below 5,000: paired, resolved or not, and honest with one seed."""

from __future__ import annotations

import pytest

from kontrast.experiments.tune.k import SUPCON
from kontrast.experiments.tune.remark import against, remark
from kontrast.experiments.tune.search import Score, Setting

SEEDS = [0, 1, 2]
BASE = (0.60, 0.80, 0.70)  # seeds differ far more than settings


def shifted(by: float, noise: float = 0.001) -> Score:
    return Score(tuple(y + by + e for y, e in zip(BASE, (noise, -noise, 0.0), strict=True)))


def at(k1: float, k2: float = 1.0) -> Setting:
    return {"k1": k1, "k2": k2}


def test_pairs_resolve_what_the_seeds_would_hide() -> None:
    found = against(shifted(0.01), Score(BASE), SEEDS)
    assert found.verdict == "above"
    assert found.difference is not None
    assert found.difference.mean == pytest.approx(0.01, abs=1e-12)  # sums of three doubles
    assert against(shifted(-0.01), Score(BASE), SEEDS).verdict == "below"
    assert against(shifted(0.001), Score(BASE), SEEDS).verdict == "not resolved"
    assert against(Score(BASE), Score(BASE), SEEDS).verdict == "not resolved", "an interval of nothing around 0"


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
    words, each = remark(tried, SEEDS)
    assert words.startswith(says)
    assert list(each) == list(scores)


def test_only_k2_of_1_counts() -> None:
    tried = [(SUPCON, Score(BASE)), (at(4000), shifted(0.01)), (at(4000, 1.2), shifted(-0.01))]
    words, each = remark(tried, SEEDS)
    assert words.startswith("holds")
    assert list(each) == [4000]


def test_one_seed_is_not_resolved() -> None:
    words, each = remark([(SUPCON, Score((0.5,))), (at(4000), Score((0.9,)))], [0])
    assert words == "not resolved: one seed has no interval"
    assert each[4000].verdict == "not resolved"
    assert each[4000].difference is not None
    assert each[4000].difference.half is None


def test_what_failed_or_was_stopped_is_not_measured() -> None:
    tried = [(SUPCON, Score(BASE)), (at(4000), Score((), "stopped early")), (at(2000), shifted(0.01))]
    words, each = remark(tried, SEEDS)
    assert each[4000].verdict == "not measured"
    assert words.startswith("not resolved")
    assert remark([(SUPCON, Score((), "failed")), (at(4000), shifted(0.01))], SEEDS)[1][4000].verdict == "not measured"
