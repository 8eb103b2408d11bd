"""Rows far from all others are found, copies do not vouch for each other, and equal rows are no outliers."""

from __future__ import annotations

import torch

from kontrast.evaluate import nearest_others
from kontrast.explore import outliers
from tests.explore.made import blobs


def test_foreign_rows_come_first() -> None:
    x, _ = blobs(500, 5, apart=6.0)
    x[[17, 300]] = 6 * torch.eye(16)[[9, 12]]
    found = outliers(*nearest_others(x, 20))
    assert set(found.rows[:2]) == {17, 300}
    assert found.score.argsort(descending=True)[:2].sort().values.tolist() == [17, 300]
    assert len(found.rows) < 30


def test_copies_do_not_vouch_for_each_other() -> None:
    x, _ = blobs(200, 4, apart=6.0)
    x[190:] = 6 * torch.eye(16)[10]
    cosines, near = nearest_others(x, 12)
    groups = torch.full((200,), -1)
    alone = outliers(cosines, near, groups)
    groups[190:] = 0
    assert set(range(190, 200)) <= set(outliers(cosines, near, groups).rows)
    assert not set(range(190, 200)) & set(alone.rows)


def test_rows_that_are_all_the_same() -> None:
    found = outliers(*nearest_others(torch.ones(50, 3), 10))
    assert found.rows == []
    assert bool(found.score.isfinite().all())
