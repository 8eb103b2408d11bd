"""Every check holds, and can fail: each is run with a formula of its module replaced by a plausible mistake.

The mistakes stand in the module's own test file, in a table ``BREAKS``; a check without one is found here.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from kontrast.theory._check import REGISTRY
from kontrast.theory.verify import PAPERS, checks
from tests.theory.breaking import Breaks

SEEDS = (0, 1, 2)
LONG = {  # their further seeds are left to `make test-all`
    "penalised-cross-entropy-finds-the-simplex",
    "all-batches-find-the-simplex",
    "batches-have-no-common-minimiser",
    "supcon-finds-the-simplex",
    "energy-finds-the-simplex",
    "energy-penalty-keeps-the-minimum",
}
NAMES = [check.name for check in checks()]


def breaks_of(module: str) -> Breaks:
    found: Breaks = importlib.import_module(f"tests.theory.test_{module}").BREAKS
    return found


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.slow] if name in LONG and seed else [])
        for name in NAMES
        for seed in SEEDS
    ],
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
