"""A queue too small: against the batch, and against the classes."""

from __future__ import annotations

import pytest

from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("short-queue")["small-queue"].status == "problem"
    assert patients.findings("healthy-queue")["small-queue"].status == "ok"


@pytest.mark.parametrize(
    ("queue", "batch", "status"), [(128, 256, "problem"), (8, 4, "problem"), (300, 256, "warning"), (2048, 256, "ok")]
)
def test_recipes(queue: int, batch: int, status: str) -> None:
    settings = (f"method.queue={queue}", f"train.batch_size={batch}", "method.key_parts=1")
    assert patients.of_recipe("moco", *settings)["small-queue"].status == status
