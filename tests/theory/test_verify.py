"""All checks are found, chosen by name or pattern, and one that cannot be measured does not stop the others."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from kontrast import theory
from kontrast.theory import _check
from kontrast.theory.verify import PAPERS, checks, verify


def test_every_module_with_checks_is_run() -> None:
    folder = Path(theory.__file__).parent
    with_checks = {p.stem for p in folder.glob("*.py") if not p.name.startswith("_") and "@check(" in p.read_text()}
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
    def broken(generator: object) -> float:
        raise RuntimeError("no such formula")

    names = ["gradient-balance", "sce-decomposition"]
    monkeypatch.setitem(_check.REGISTRY, names[0], dataclasses.replace(_check.REGISTRY[names[0]], measure=broken))
    found = {outcome.name: outcome for outcome in verify(names)}
    assert not found[names[0]].holds
    assert math.isnan(found[names[0]].error)
    assert found[names[0]].failure == "RuntimeError: no such formula"
    assert found[names[1]].holds


@pytest.mark.parametrize("error", [math.nan, math.inf, 2e-9])
def test_an_error_above_tolerance_or_no_number_fails(error: float) -> None:
    check = _check.Check("name", "source", "statement", "", 1e-9, lambda generator: error)
    assert not check.run().holds


def test_an_error_within_tolerance_holds() -> None:
    assert _check.Check("name", "source", "statement", "", 1e-9, lambda generator: 1e-9).run().holds
