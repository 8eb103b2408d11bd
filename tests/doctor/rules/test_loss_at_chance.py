"""The loss at chance."""

from __future__ import annotations

import dataclasses

import pytest

from kontrast import losses, recipes
from kontrast.data import DataSet, Split, load
from kontrast.doctor.record import Missing, Record
from kontrast.doctor.rules import RULES
from kontrast.doctor.rules._learned import standing_of
from kontrast.geometry import bounds
from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("slow")["loss-at-chance"].status == "problem"
    for name in patients.HEALTHY:
        assert patients.findings(name)["loss-at-chance"].status == "ok"


def standing(loss: float, chance: float, bound: float) -> tuple[float, str]:
    return standing_of(Record(patient="run", metrics=[{"step": 1, "loss": loss, "chance": chance, "bound": bound}]))


def test_the_share_of_the_way() -> None:
    assert standing(3.0, 5.0, 1.0)[0] == 0.5
    assert standing(6.0, 5.0, 1.0)[0] == -0.25


def test_one_class_leaves_no_room() -> None:
    with pytest.raises(Missing, match="are the same"):
        standing(5.0, 5.0, 5.0)
    assert patients.findings("one-class")["loss-at-chance"].status == "unknown"


def tcl(loss: float, at: bounds.Standing, **more: float) -> Record:
    line = {"step": 100, "loss": loss, "chance": at.chance, "bound": at.bound, **more}
    return Record(patient="run", resolved=resolve(recipes.find("tcl-fashion-mini")), metrics=[line])


def test_a_collapse_is_where_tcl_starts_from() -> None:
    at = bounds.standing(losses.TCLLoss(0.1, 5000.0, 1.0), labels=[i % 10 for i in range(120)], num_views=2)
    assert at.collapsed < at.chance - 5, "all embeddings equal cost far less than all similarities 0"
    record = tcl(at.collapsed, at, collapsed=at.collapsed)
    assert standing_of(record)[0] == pytest.approx(0, abs=1e-9)
    found = RULES["loss_at_chance"]()(record)
    assert found is not None
    assert found.status == "problem"
    assert "method.k1=500" in found.advice


def test_a_log_without_the_collapsed_value_has_it_computed() -> None:
    at = bounds.standing(losses.TCLLoss(0.1, 5000.0, 1.0), labels=[i % 10 for i in range(130)], num_views=2)
    record = dataclasses.replace(tcl(at.collapsed, at), open_data=lambda: fashion(130))
    # Batches of 128 have 12.8 of each of ten classes, 13 by rounding: the same as here.
    assert standing_of(record)[0] == pytest.approx(0, abs=1e-6)
    assert standing_of(tcl(at.collapsed, at))[0] > 0.5, "without classes chance is all there is"


def fashion(rows: int) -> tuple[DataSet, Split]:
    found = load("fashion-mini", limit=rows)
    return found, found.train


def test_the_cure_speaks_of_labels_and_views_only_where_there_are() -> None:
    def cure(method: str, *settings: str) -> str:
        recipe = resolve(patients.small(method).override(settings))
        lines = [{"step": 100, "loss": 5.0, "chance": 5.0, "bound": 1.0}]
        found = RULES["loss_at_chance"]()(Record(patient="run", resolved=recipe, metrics=lines))
        assert found is not None
        assert found.status == "problem"
        return str(found.advice)

    assert "labels" not in cure("simclr")
    assert "labels" in cure("supcon")
    assert "views" in cure("simclr")
    assert "views" not in cure("ce")
