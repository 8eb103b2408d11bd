"""The loss at chance."""

from __future__ import annotations

import pytest

from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules._standing import standing_of
from tests.doctor import patients


def test_runs() -> None:
    for name in ("slow", "divided"):
        assert patients.findings(name)["loss-at-chance"].status == "ill"
    for name in patients.HEALTHY:
        assert patients.findings(name)["loss-at-chance"].status == "healthy"


def standing(loss: float, chance: float, bound: float) -> tuple[float, str]:
    return standing_of(Record(patient="run", lines=[{"step": 1, "loss": loss, "chance": chance, "bound": bound}]))


def test_the_share_of_the_way() -> None:
    assert standing(3.0, 5.0, 1.0)[0] == 0.5
    assert standing(6.0, 5.0, 1.0)[0] == -0.25


def test_one_class_leaves_no_room() -> None:
    with pytest.raises(Missing, match="are the same"):
        standing(5.0, 5.0, 5.0)
    assert patients.findings("one-class")["loss-at-chance"].status == "unknown"
