"""Recall@k and mAP@R against loops that follow the definitions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kontrast.evaluate import ranking as module
from kontrast.evaluate.ranking import ranking
from tests.evaluate.conftest import clouds


def by_loops(q: torch.Tensor, y: torch.Tensor, c: torch.Tensor, z: torch.Tensor, own: bool) -> dict[str, float]:
    """The definitions, one query at a time."""
    s = F.normalize(q) @ F.normalize(c).T
    recalls: dict[int, list[float]] = {1: [], 5: [], 10: []}
    average: list[float] = []
    for i in range(len(q)):
        order = sorted((j for j in range(len(c)) if not (own and j == i)), key=lambda j: (-float(s[i, j]), j))
        hits = [bool(z[j] == y[i]) for j in order]
        total = sum(hits)
        if not total:
            continue
        for k in recalls:
            recalls[k].append(float(any(hits[:k])))
        average.append(sum(sum(hits[: r + 1]) / (r + 1) for r in range(total) if hits[r]) / total)
    means = {f"recall@{k}": sum(v) / len(v) for k, v in recalls.items()}
    return {**means, "mAP@R": sum(average) / len(average)}


@pytest.mark.parametrize("strip", [2**22, 256])
def test_among_each_other(strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRIP", strip)
    x, y = clouds(90, 7, 6, 1.5, 0)
    y = torch.where(torch.arange(90) < 20, y, y.clamp(max=2))  # classes of very different sizes
    y[0] = 7  # alone in its class
    found = ranking(x, y)
    # Sums of up to 90 float64 terms.
    assert {k: found.numbers[k] for k in by_loops(x, y, x, y, True)} == pytest.approx(
        by_loops(x, y, x, y, True), abs=1e-9
    )
    assert found.numbers["queries left out"] == 1
    assert not found.counted[0]


def test_against_references() -> None:
    (x, y), (c, z) = clouds(40, 5, 6, 1.5, 0), clouds(60, 5, 6, 1.5, 1)
    z = z.clamp(max=3)  # class 4 has no references
    found = ranking(x, y, c, z)
    expected = by_loops(x, y, c, z, False)
    assert {k: found.numbers[k] for k in expected} == pytest.approx(expected, abs=1e-9)
    assert found.numbers["queries left out"] == 8


def test_nothing_to_find_is_an_error() -> None:
    with pytest.raises(ValueError, match="no query has a reference"):
        ranking(torch.eye(3), torch.arange(3))
    with pytest.raises(ValueError, match="at least two"):
        ranking(torch.eye(3)[:1], torch.zeros(1, dtype=torch.int64))
