"""Learning rate too low, or training too short."""

from __future__ import annotations

import pytest

from kontrast import recipes
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("slow")["learning-rate-low"].status == "ill"
    for name in patients.HEALTHY:
        assert patients.findings(name)["learning-rate-low"].status == "healthy"
    assert "learning-rate-low" not in patients.findings("fast"), "nobody with a rate of 1000 is to raise it"


def test_still_falling_at_the_end() -> None:
    def examined(losses: list[float]) -> str:
        lines = [{"step": 4 * i, "loss": loss, "chance": 9.0, "bound": 1.0} for i, loss in enumerate(losses, 1)]
        record = Record(patient="run", written=resolve(recipes.find("supcon-fashion-mini")), lines=lines)
        found = RULES["learning_rate_low"]()(record)
        return str(found and found.status)

    assert examined([10.0 - 0.4 * i for i in range(20)]) == "watch", "a straight fall: a fifth in the last fifth"
    assert examined([2 + 7 * 0.7**i for i in range(20)]) == "healthy"


@pytest.mark.parametrize(("lr", "status"), [(1e-5, "ill"), (1e-3, "watch"), (0.1, "healthy")])
def test_recipes_against_the_published_ones(lr: float, status: str) -> None:
    # at a batch of 256: 2e−5, 2e−3 and 0.2; the smallest published one is 0.036
    assert patients.of_recipe("supcon", f"optim.lr={lr}")["learning-rate-low"].status == status


def test_adaptive_rates_have_limits_of_their_own() -> None:
    for lr, low, high in ((1e-3, "healthy", "healthy"), (1e-8, "ill", "healthy"), (0.1, "healthy", "ill")):
        found = patients.of_recipe("supcon", "optim=adamw", f"optim.lr={lr}")
        assert (found["learning-rate-low"].status, found["learning-rate-high"].status) == (low, high)
