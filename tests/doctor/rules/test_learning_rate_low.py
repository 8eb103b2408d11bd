"""Learning rate too low, or training too short."""

from __future__ import annotations

import pytest

from kontrast import recipes
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.doctor.rules._setup import usual_rates
from kontrast.optim.scaling import scale_rate
from kontrast.runs import Finding
from kontrast.train import resolve
from tests.doctor import patients


def test_usual_rates_are_those_of_the_recipes() -> None:
    papers = [recipe for book in recipes.BOOKS if book is not recipes.small for recipe in book.RECIPES.values()]
    for name in {recipe.optim.name for recipe in papers}:
        chosen = [recipe for recipe in papers if recipe.optim.name == name]
        rates = [scale_rate(recipe.optim.options["lr"], 256, base=recipe.train.batch_size) for recipe in chosen]
        assert usual_rates(name) == (min(rates), max(rates))


def test_runs() -> None:
    assert patients.findings("slow")["learning-rate-low"].status == "problem"
    for name in patients.HEALTHY:
        assert patients.findings(name)["learning-rate-low"].status == "ok"
    assert "learning-rate-low" not in patients.findings("fast"), "nobody with a rate of 1000 is to raise it"


def test_still_falling_at_the_end() -> None:
    def examined(losses: list[float]) -> str:
        lines = [{"step": 4 * i, "loss": loss, "chance": 9.0, "bound": 1.0} for i, loss in enumerate(losses, 1)]
        record = Record(patient="run", resolved=resolve(recipes.find("supcon-fashion-mini")), metrics=lines)
        found = RULES["learning_rate_low"]()(record)
        return str(found and found.status)

    assert examined([10.0 - 0.4 * i for i in range(20)]) == "warning", "a straight fall: a fifth in the last fifth"
    assert examined([2 + 7 * 0.7**i for i in range(20)]) == "ok"


def flat(method: str, *settings: str, rise: float = 0.0) -> Finding:
    """A loss that stays, or rises by so much, after six lines in which a queue fills."""
    losses = [6.0] * 6 + [6.0 + rise * i / 9 for i in range(10)]
    lines = [{"step": 4 * i, "loss": loss, "chance": 6.2, "bound": 0.0} for i, loss in enumerate(losses, 1)]
    recipe = resolve(patients.small(method).override(settings))
    found: Finding | None = RULES["learning_rate_low"]()(Record(patient="run", resolved=recipe, metrics=lines))
    assert found is not None
    return found


def test_only_a_rate_below_the_published_ones_is_too_low() -> None:
    low = flat("supcon", "optim.lr=0.001")  # 0.002 at 256
    assert low.status == "problem"
    assert "raise optim.lr towards 0.018" in low.advice, "0.036 at a batch of 256, halved for 128"
    assert flat("moco", "optim.lr=0.001").status == "problem"
    for method in ("supcon", "moco"):
        found = flat(method)  # 0.2 and 0.12 at 256
        assert found.status == "ok"
        assert "not because of the rate" in found.evidence


def test_nobody_is_to_raise_the_rate_of_a_loss_that_rises() -> None:
    found = flat("moco", "optim.lr=0.001", rise=0.5)
    assert found.status == "ok"
    assert "it rose" in found.evidence


def test_a_temperature_too_high_is_not_the_rates_doing() -> None:
    assert "temperature" in flat("supcon", "optim.lr=0.001", "method.temperature=5").evidence
    assert flat("supcon", "optim.lr=0.001", "method.temperature=5").status == "ok"


def test_who_falls_on_is_to_train_longer_and_faster_only_below_the_others() -> None:
    def cure(lr: float) -> str:
        lines = [{"step": 4 * i, "loss": 10.0 - 0.4 * i, "chance": 9.0, "bound": 1.0} for i in range(20)]
        recipe = resolve(recipes.find("supcon-fashion-mini").override([f"optim.lr={lr}"]))
        found = RULES["learning_rate_low"]()(Record(patient="run", resolved=recipe, metrics=lines))
        assert found is not None
        return str(found.advice)

    assert "raise optim.lr" in cure(0.01)
    assert "raise optim.lr" not in cure(0.1), "three times 0.2 at 256 is above all published ones"


@pytest.mark.parametrize(("lr", "status"), [(1e-5, "problem"), (1e-3, "warning"), (0.1, "ok")])
def test_recipes_against_the_published_ones(lr: float, status: str) -> None:
    # at a batch of 256: 2e−5, 2e−3 and 0.2; the smallest published one is 0.036
    assert patients.of_recipe("supcon", f"optim.lr={lr}")["learning-rate-low"].status == status


def test_adaptive_rates_have_limits_of_their_own() -> None:
    for lr, low, high in ((1e-3, "ok", "ok"), (1e-8, "problem", "ok"), (0.1, "ok", "problem")):
        found = patients.of_recipe("supcon", "optim=adamw", f"optim.lr={lr}")
        assert (found["learning-rate-low"].status, found["learning-rate-high"].status) == (low, high)
        assert "commonly 1e-05 to 0.003" in found["learning-rate-high"].evidence, "no recipe here has it"
