"""Forces between the rows of a batch: equation numbers are those of `kontrast.train.interaction`."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.losses import SupConLoss
from kontrast.train.interaction import agreement, forces, measure, shares

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 2, 3])  # the last is alone in its class


def rows(n: int = 8, dim: int = 5, seed: int = 0) -> Tensor:
    z = torch.randn(n, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return z / z.norm(dim=1, keepdim=True)


def loss_of(s: Tensor, labels: list[int]) -> Tensor:
    """(1) in loops, of the similarities."""
    n, total = len(labels), torch.zeros((), dtype=s.dtype)
    for i in range(n):
        positives = [j for j in range(n) if j != i and labels[j] == labels[i]]
        if positives:
            normaliser = torch.stack([s[i, k] for k in range(n) if k != i]).exp().sum().log()
            total = total - sum(s[i, p] - normaliser for p in positives) / len(positives)
    return total


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_eq_3_is_the_gradient_of_the_loss(tau: float) -> None:
    """Pull and push together are minus SupCon's gradient along the sphere; a lonely row counts as 0."""
    z = rows().requires_grad_()
    SupConLoss(tau, no_positive="zero", reduction="sum", normalize=False)(z, LABELS).backward()
    assert z.grad is not None
    unit, slope = z.detach(), z.grad
    along = slope - (slope * unit).sum(1, keepdim=True) * unit
    pull, push = forces(unit, LABELS, tau)
    torch.testing.assert_close(pull + push, -along, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_pull_and_push_are_the_parts_of_their_rows(tau: float) -> None:
    """∂L/∂s by autograd on (1) in loops; then the sum over the rows of a part, row by row."""
    z, names = rows(seed=1), LABELS.tolist()
    s = (z @ z.T / tau).requires_grad_()
    loss_of(s, names).backward()
    assert s.grad is not None
    pull, push = forces(z, LABELS, tau)
    for i in range(len(names)):
        parts = {True: torch.zeros(5, dtype=z.dtype), False: torch.zeros(5, dtype=z.dtype)}
        for j in range(len(names)):
            if j != i:
                parts[names[j] == names[i]] -= (s.grad[i, j] + s.grad[j, i]) * z[j] / tau
        for found, part in ((pull[i], parts[True]), (push[i], parts[False])):
            torch.testing.assert_close(found, part - (part @ z[i]) * z[i], rtol=1e-9, atol=1e-11)


def test_eqs_4_and_5_at_known_forces() -> None:
    pull = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    push = torch.tensor([[-1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    share, net = shares(pull, push)
    assert share[[0, 1, 3]].tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert net[[0, 1, 3]].tolist() == pytest.approx([0.0, math.sqrt(0.5), 1.0], abs=1e-7)
    assert bool(share[2].isnan())
    assert bool(net[2].isnan())


def test_classes_that_are_one_point_are_only_pushed() -> None:
    """Rows of a collapsed class cannot be pulled along the sphere; at a simplex the pushes cancel too."""
    angles = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.float64)
    z = torch.stack([angles.cos(), angles.sin()], 1)
    share, _ = shares(*forces(z, torch.tensor([0, 0, 1, 1]), 0.5))
    assert share.tolist() == pytest.approx([1.0] * 4)


def test_eq_6_sees_the_other_rows_of_the_batch() -> None:
    force = torch.randn(4, 6, 3, generator=torch.Generator().manual_seed(0))
    assert (agreement(force) < 1).all()
    assert agreement(force[:1].expand(4, 6, 3)).tolist() == pytest.approx([1.0] * 6)


def test_by_composition() -> None:
    """Classes of 10 rows and batches of 12 hold 2 and 4 rows; the same call gives the same numbers."""
    z, labels = rows(30), torch.arange(30) % 3
    found = measure(z, labels, 0.1, batch_size=12, seed=0)
    assert set(found) == {f"interaction/{name}_{m}" for name in ("share", "net", "agreement") for m in (2, 4)}
    assert all(0 < value <= 1 for value in found.values())
    assert measure(z, labels, 0.1, batch_size=12, seed=0) == found
    assert measure(z, torch.zeros(30, dtype=torch.int64), 0.1, batch_size=12, seed=0) == {}
