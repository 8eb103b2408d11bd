"""A check that cannot fail checks nothing: each is run with a formula of its module replaced by a plausible mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import pytest

from kontrast.theory._check import REGISTRY, Outcome

SEEDS = (0, 1, 2)
Breaks = Mapping[str, tuple[str, Callable[..., Any]]]  # check: (formula, the wrong version of it)


def checks_of(module: ModuleType) -> list[str]:
    return [name for name, check in REGISTRY.items() if check.measure.__module__ == module.__name__]


def broken(monkeypatch: pytest.MonkeyPatch, module: ModuleType, breaks: Breaks, name: str) -> Outcome:
    formula, wrong = breaks[name]
    assert callable(getattr(module, formula))
    monkeypatch.setattr(module, formula, wrong)
    return REGISTRY[name].run(0)


def assert_well_described(name: str) -> None:
    check = REGISTRY[name]
    assert 0 < len(check.statement) <= 110
    assert "\n" not in check.statement
    assert check.source.startswith(("Wang & Liu", "TCL", "SCE"))
