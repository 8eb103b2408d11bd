"""The loss at its bound: too easy without labels, all fitted with labels."""

from __future__ import annotations

import pytest

from kontrast.doctor.record import Record
from kontrast.doctor.rules import RULES
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("easy")["loss-at-bound"].status == "ill"
    for name in patients.HEALTHY:
        assert patients.findings(name)["loss-at-bound"].status == "healthy"


@pytest.mark.parametrize(
    ("method", "loss", "status"),
    [("supcon", 1.04, "watch"), ("supcon", 1.2, "healthy"), ("simclr", 1.04, "ill"), ("simclr", 1.4, "healthy")],
)
def test_with_labels_it_is_the_aim(method: str, loss: float, status: str) -> None:
    # 0.99, 0.95, 0.99 and 0.9 of the way
    lines = [{"step": 1, "loss": loss, "chance": 5.0, "bound": 1.0}]
    found = RULES["loss_at_bound"]()(Record(patient="run", written=resolve(patients.small(method)), lines=lines))
    assert found is not None
    assert found.status == status


def test_a_collapse_is_no_fit() -> None:
    assert patients.findings("pulled")["complete-collapse"].status == "ill"
    assert "loss-at-bound" not in patients.findings("pulled"), "its loss is at the bound, far below chance"
