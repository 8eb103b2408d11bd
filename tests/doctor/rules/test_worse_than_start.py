"""Worse than where it began: a pretrained encoder trained with far too high a rate, and one that was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kontrast import doctor
from kontrast.doctor import Finding
from tests.doctor import patients

RULE = "worse-than-start"


def test_runs() -> None:
    found = patients.findings("spoiled")[RULE]
    assert found.status == "problem"
    start = json.loads((patients.run("spoiled") / "result.json").read_text())["start"]
    assert f"{start['result']['value']:.1%} at the start" in found.evidence
    assert "encoder.norm=frozen" in found.advice
    assert "optim.lr=30" in found.advice
    assert patients.findings("tuned")[RULE].status == "ok"
    for name in patients.HEALTHY:
        assert RULE not in patients.findings(name), "a random start has nothing to lose"


@pytest.mark.parametrize(
    ("value", "error", "status"),
    [
        (-0.05, 0.02, "problem"),
        (-1.0, 0.0, "problem"),  # every row was right, and none is
        (-0.03, 0.02, "warning"),  # one and a half standard errors
        (-0.015, 0.02, "ok"),  # within one
        (-0.009, 0.001, "ok"),  # certain, and too little to act on
        (0.0, 0.0, "ok"),
        (0.05, 0.02, "ok"),
    ],
)
def test_the_difference_is_judged_by_its_error(value: float, error: float, status: str, tmp_path: Path) -> None:
    def change(result: dict[str, Any]) -> dict[str, Any]:
        result["start"]["difference"] |= {"value": value, "error": error}
        return result

    assert of(patients.edited("tuned", tmp_path / "run", result=change)).status == status


def test_a_run_without_the_number_is_unknown(tmp_path: Path) -> None:
    old = patients.edited("tuned", tmp_path / "run", result=lambda r: {k: v for k, v in r.items() if k != "start"})
    found = of(old)
    assert (found.status, "has no start" in found.evidence) == ("unknown", True)


def test_a_recipe_is_watched_only_if_its_statistics_will_drift() -> None:
    weights = f"encoder.pretrained={patients.run('healthy')}"
    assert patients.of_recipe("supcon", weights, "encoder.width=8")[RULE].status == "ok"
    moving = patients.of_recipe("supcon", weights, "encoder.width=8", "encoder.norm=train")[RULE]
    assert (moving.status, "encoder.norm=frozen" in moving.advice) == ("warning", True)
    assert RULE not in patients.of_recipe("supcon")


def of(run: Path) -> Finding:
    return next(finding for finding in doctor.examine_run(run) if finding.rule == RULE)
