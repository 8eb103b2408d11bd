"""The loss at its bound: too easy without labels, all fitted with labels."""

from __future__ import annotations

import pytest

from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("easy")["loss-at-bound"].status == "problem"
    for name in patients.HEALTHY:
        assert patients.findings(name)["loss-at-bound"].status == "ok"


@pytest.mark.parametrize(
    ("method", "loss", "status"),
    [("supcon", 1.04, "warning"), ("supcon", 1.2, "ok"), ("simclr", 1.04, "problem"), ("simclr", 1.4, "ok")],
)
def test_with_labels_it_is_the_aim(method: str, loss: float, status: str) -> None:
    # 0.99, 0.95, 0.99 and 0.9 of the way
    lines = [{"step": 1, "loss": loss, "chance": 5.0, "bound": 1.0}]
    found = RULES["loss_at_bound"]()(Record(patient="run", resolved=resolve(patients.small(method)), metrics=lines))
    assert found is not None
    assert found.status == status


def test_a_collapse_is_no_fit() -> None:
    assert patients.findings("pulled")["complete-collapse"].status == "problem"
    assert "loss-at-bound" not in patients.findings("pulled"), "its loss is at the bound, far below chance"
