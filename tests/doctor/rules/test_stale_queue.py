"""A queue too stale: the drift of the target while a key waits, and passes over the data."""

from __future__ import annotations

import pytest

from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("stale")["stale-queue"].status == "problem"
    assert patients.findings("healthy-queue")["stale-queue"].status == "ok"
    assert "stale-queue" not in patients.findings("healthy-self"), "no queue"


@pytest.mark.parametrize(("momentum", "status"), [(0.5, "problem"), (0.8, "warning"), (0.99, "ok")])
def test_drift(momentum: float, status: str) -> None:
    # 2,048 keys of batches of 256 are eight steps old: 4, 1.6 and 0.08
    found = patients.of_recipe("moco", f"method.momentum={momentum}")["stale-queue"]
    assert found.status == status


def test_keys_of_both_views_wear_out_twice_as_fast() -> None:
    settings = ("method.momentum=0.8", "method.symmetric=true")
    assert patients.of_recipe("sce", *settings)["stale-queue"].status == "ok"


@pytest.mark.parametrize(("limit", "status"), [(900, "problem"), (1500, "warning"), (4000, "ok")])
def test_passes_over_the_data(limit: int, status: str) -> None:
    found = patients.of_recipe("moco", f"data.limit={limit}")["stale-queue"]
    assert found.status == status
    assert status == "ok" or f"the {limit:,} training rows" in found.advice
