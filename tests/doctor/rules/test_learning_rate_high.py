"""Learning rate too high: a loss that is no number, that rises again, or does not fall."""

from __future__ import annotations

import pytest

from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rule import Finding
from kontrast.doctor.rules import RULES
from kontrast.doctor.rules._learned import Course, course_of
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    for name in ("fast", "diverged"):
        assert patients.findings(name)["learning-rate-high"].status == "problem"
    for name in ("slow", *patients.HEALTHY):
        assert patients.findings(name)["learning-rate-high"].status == "ok"


def log(losses: list[float], **more: float) -> list[dict[str, float]]:
    return [{"step": 4 * i, "loss": loss, "chance": 5.0, "bound": 1.0, **more} for i, loss in enumerate(losses, 1)]


def course(lines: list[dict[str, float]], method: str = "supcon") -> Course:
    return course_of(Record(patient="run", resolved=resolve(patients.small(method)), metrics=lines))


def test_equation_1_is_what_was_lost_again() -> None:
    falls = [5.0, 4.0, 3.0, 2.5, 2.2, 2.1, 2.05, 2.0, 2.0, 2.0]
    assert course(log(falls)).risen == 0
    rises = [*falls, 2.5, 3.0, 3.5]
    assert course(log(rises)).risen == pytest.approx((3.5 - 2) / (5 - 2))
    assert course(log([5.0, 4.95, 5.0, 4.97, 5.0, 5.0])).risen == 0, "no fall, nothing lost"


def test_a_bound_that_jumps_is_no_rise() -> None:
    # The loss only falls; with the bound of its own batch taken off each line, the fourth would be the least.
    losses = [2.33, 2.27, 2.22, 2.19, 2.16, 2.13, 2.10, 2.08, 2.07, 2.06, 2.06, 2.05]
    bounds = [0.23, 0.57, 0.40, 0.64, 0.40, 0.36, 0.33, 0.27, 0.31, 0.29, 0.25, 0.24]
    lines = [{**line, "bound": bound} for line, bound in zip(log(losses), bounds, strict=True)]
    assert course(lines, "ce").risen <= 0
    target = course([{**line, "step": 4 * i + 40} for i, line in enumerate(lines)], "ressl")
    # A target's entropy is taken off line by line: from 2.10 to 1.69, the mean of lines two to four, and up to 1.81.
    assert target.risen == pytest.approx((1.81 - 1.69) / (2.10 - 1.69))


def test_one_lucky_line_is_not_the_least() -> None:
    losses = [5.0, 4.0, 3.5, 3.2, 3.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    assert course(log(losses)).risen < 0.2, "3.0 is what it holds: (3.0 − 2.67)/(5 − 2.67)"


def test_a_change_of_the_loss_is_no_rise() -> None:
    hard = [{**line, "chance": 2.0, "bound": 0.5} for line in log([1.9, 1.8, 1.7, 1.6, 1.5, 1.4])]
    ordinary = [{**line, "bound": 4.9} for line in log([5.0, 4.99, 4.98])]
    assert course([*ordinary, *hard]).first == 1.9


def test_a_queue_has_to_fill_first() -> None:
    lines = log([3.0, 3.5, 4.0, 4.5, 4.6, 4.6, 4.2, 4.0, 3.8, 3.6, 3.5, 3.4])
    assert course(lines, "moco").first == 4.2, "2,048 keys of batches of 256: three times eight steps, six lines"
    assert course(lines, "simclr").first == 3.0


def test_a_moving_target_may_rise() -> None:
    lines = log([3.0] * 6 + [4.5, 3.0, 2.0, 2.0, 2.0, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5])
    for method, status in (("moco", "problem"), ("ressl", "ok")):
        record = Record(patient="run", resolved=resolve(patients.small(method)), metrics=lines)
        found = RULES["learning_rate_high"]()(record)
        assert found is not None
        assert found.status == status


def test_a_short_log_has_no_course() -> None:
    with pytest.raises(Missing, match="4 lines with a loss"):
        course(log([5.0, 4.0, 3.0, 2.0]))
    with pytest.raises(Missing, match="1 line with a loss"):
        course(log([5.0]))


@pytest.mark.parametrize(("lr", "status"), [(10.0, "problem"), (0.6, "warning"), (0.1, "ok")])
def test_recipes_against_the_published_ones(lr: float, status: str) -> None:
    # at a batch of 256: 20, 1.2 and 0.2; the largest published one is 0.3
    assert patients.of_recipe("supcon", f"optim.lr={lr}")["learning-rate-high"].status == status


def test_the_heads_own_rate_counts_if_it_is_the_higher_one_or_the_only_one() -> None:
    def found(*changes: str) -> Finding:
        return patients.of_recipe("supcon", *changes)["learning-rate-high"]

    high = found("optim.lr=0.1", "optim.head_lr=10")
    assert high.status == "problem"
    assert "sgd with head_lr 10 at a batch of 128" in high.evidence
    assert high.advice.startswith("lower optim.head_lr by 3 to 10")
    assert found("optim.lr=10", "optim.head_lr=0.1").status == "problem"
    assert found("optim.lr=10", "optim.head_lr=0.1", "train.freeze=all").status == "ok", "nothing learns at 10"


def test_large_batches_want_a_warm_up() -> None:
    cold = ("train.batch_size=2048", "optim.lr=0.8")
    assert patients.of_recipe("supcon", *cold)["learning-rate-high"].status == "warning"
    warm = patients.of_recipe("supcon", *cold, "schedule=warmup-cosine", "schedule.warmup_epochs=1")
    assert warm["learning-rate-high"].status == "ok"
