"""Every check holds, and can fail: each is run with a formula of its module replaced by a plausible mistake.

The mistakes stand in the module's own test file, in a table ``BREAKS``; a check without one is found here.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from pathlib import Path
from types import ModuleType

import pytest

from kontrast import theory
from kontrast.theory import check as module
from kontrast.theory.check import PAPERS, REGISTRY, checks, verify
from tests.theory.breaking import Breaks

SEEDS = (0, 1, 2)
NAMES = [check.name for check in checks()]


def breaks_of(module: str) -> Breaks:
    found: Breaks = importlib.import_module(f"tests.theory.test_{module}").BREAKS
    return found


@pytest.mark.parametrize(
    ("name", "seed"),
    [pytest.param(name, seed, marks=[pytest.mark.slow] if seed else []) for name in NAMES for seed in SEEDS],
)
def test_holds(name: str, seed: int) -> None:
    outcome = REGISTRY[name].run(seed)
    assert outcome.holds, outcome


@pytest.mark.parametrize("name", NAMES)
def test_can_fail(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module: ModuleType = importlib.import_module(REGISTRY[name].measure.__module__)
    formula, wrong = breaks_of(module.__name__.rpartition(".")[2])[name]
    assert callable(getattr(module, formula))
    monkeypatch.setattr(module, formula, wrong)
    outcome = REGISTRY[name].run(0)
    assert not outcome.holds
    assert not outcome.failure, "the wrong formula gives wrong numbers, it does not raise"


@pytest.mark.parametrize("module", PAPERS)
def test_every_check_is_broken_once(module: str) -> None:
    own = [name for name in NAMES if REGISTRY[name].measure.__module__ == f"kontrast.theory.{module}"]
    assert list(breaks_of(module)) == own


@pytest.mark.parametrize("name", NAMES)
def test_says_what_it_is(name: str) -> None:
    check = REGISTRY[name]
    assert 10 < len(check.statement) <= 110
    assert "\n" not in check.statement
    assert check.source.startswith(("Wang & Liu", "TCL", "SCE", "Graf et al."))
    assert 0 <= check.tolerance < 1e-7


def test_every_module_with_checks_is_run() -> None:
    folder = Path(theory.__file__).parent
    with_checks = {p.stem for p in folder.glob("*.py") if "@check(" in p.read_text()}
    assert with_checks == set(PAPERS)


@pytest.mark.parametrize("paper", ["Wang & Liu", "TCL", "SCE", "Graf et al."])
def test_each_paper_has_checks(paper: str) -> None:
    assert sum(check.source.startswith(paper) for check in checks()) >= 8


def test_patterns_choose() -> None:
    names = [check.name for check in checks(["sce-*", "gradient-balance"])]
    assert "gradient-balance" in names
    assert "sce-decomposition" in names
    assert all(name.startswith("sce-") or name == "gradient-balance" for name in names)


def test_unknown_name_is_an_error_that_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="no check is named 'gradient-balanse'; did you mean 'gradient-balance'"):
        checks(["gradient-balanse"])


def test_the_seed_changes_the_inputs() -> None:
    (first,), (again,), (other,) = (list(verify(["gradient-balance"], seed=s)) for s in (0, 0, 1))
    assert first.error == again.error != other.error


def test_a_check_that_raises_fails_and_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(generator: object) -> list[float]:
        raise RuntimeError("no such formula")

    names = ["gradient-balance", "sce-decomposition"]
    monkeypatch.setitem(module.REGISTRY, names[0], dataclasses.replace(module.REGISTRY[names[0]], measure=broken))
    found = {outcome.name: outcome for outcome in verify(names)}
    assert not found[names[0]].holds
    assert math.isnan(found[names[0]].error)
    assert found[names[0]].failure == "RuntimeError: no such formula"
    assert found[names[1]].holds


@pytest.mark.parametrize("error", [math.nan, math.inf, 2e-9])
def test_an_error_above_tolerance_or_no_number_fails(error: float) -> None:
    check = module.Check("name", "source", "statement", "", 1e-9, lambda generator: [0.0, error])
    assert not check.run().holds


def test_an_error_within_tolerance_holds() -> None:
    assert module.Check("name", "source", "statement", "", 1e-9, lambda generator: [1e-9]).run().holds
