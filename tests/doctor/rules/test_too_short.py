"""A run too short to judge: told first, and what it has not learned is no disease."""

from __future__ import annotations

import pytest

from kontrast import doctor, recipes
from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    for name in patients.HEALTHY:
        assert patients.findings(name)["too-short"].status == "ok"
    found = doctor.examine_run(patients.run("divided"))  # two steps
    assert (found[0].rule, found[0].status) == ("too-short", "warning")
    assert found[0].evidence == "2 steps in all: too short to judge"
    assert found[0].advice == "train longer (train.epochs=250)", "two steps an epoch"


def test_what_a_short_run_has_not_learned_is_only_watched() -> None:
    found = patients.findings("divided")
    for rule in ("complete-collapse", "loss-at-chance"):
        assert found[rule].status == "warning"
        assert found[rule].advice.startswith("train longer")
    assert found["double-normalisation"].status == "problem", "whatever is seen without training stays"


def test_a_run_that_failed_has_other_troubles() -> None:
    assert "too-short" not in patients.findings("diverged")


@pytest.mark.parametrize(
    ("every", "lines", "said", "cure"),
    [
        (1, 1, "1 step in all", "train.epochs=500"),
        (10, 2, "20 steps in all", "train.epochs=250"),
        (50, 1, "1 line with a loss in 50 steps", "run.log_every=2"),
        (10, 5, "", ""),
    ],
)
def test_steps_and_lines(every: int, lines: int, said: str, cure: str) -> None:
    log = [{"step": every * i, "epoch": every * i / min(every, 2), "loss": 5.0} for i in range(1, lines + 1)]
    recipe = resolve(recipes.find("supcon-fashion-mini"))
    found = RULES["too_short"]()(Record(patient="run", resolved=recipe, metrics=log))
    assert found is not None
    assert found.status == ("warning" if said else "ok")
    assert said in found.evidence
    assert cure in found.advice


def test_steps_are_asked_for_where_the_recipe_counts_them() -> None:
    recipe = resolve(recipes.find("supcon-fashion-mini").override({"train.epochs": None, "train.steps": 20}))
    found = RULES["too_short"]()(Record(patient="run", resolved=recipe, metrics=[{"step": 20, "loss": 5.0}]))
    assert found is not None
    assert found.advice == "train longer (train.steps=500)"
