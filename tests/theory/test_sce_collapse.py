"""ReSSL, SCE and collapse: every check holds, every check can fail, and what follows is seen in a descent."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.special import entr

from kontrast.losses import ReSSLLoss, SCELoss
from kontrast.sphere import unit
from kontrast.theory import sce_collapse as module
from kontrast.theory._similarities import on_sphere
from kontrast.theory.sce import online_distribution, relations, soft_target
from tests.theory.breaking import Breaks


def bound_with_own(target: Tensor, queue: Tensor | None = None, *, temperature: float) -> Tensor:
    return entr((relations(target, target, queue).target / temperature).softmax(1)).sum(1)


def gradient_without_the_others(
    target: Tensor, queue: Tensor | None = None, *, temperature: float, contrastive_weight: float
) -> Tensor:
    r = relations(target, target, queue)
    p = online_distribution(r, temperature=temperature)[r.own]
    return ((p - contrastive_weight) / temperature)[:, None] * target


def excess_of_log(candidates: int, contrastive_weight: float) -> float:
    """As if the target were the own row alone."""
    return contrastive_weight * math.log(candidates)


def rate_of_all_candidates(candidates: int, *, temperature: float, contrastive_weight: float) -> float:
    return 2 * (candidates * contrastive_weight - 1) / (candidates * temperature)


BREAKS: Breaks = {
    "ressl-is-content-with-equal-views": ("ressl_bound", bound_with_own),
    "sce-learns-from-equal-views": ("gradient_at_equal_views", gradient_without_the_others),
    "sce-is-above-its-bound-at-collapse": ("collapse_excess", excess_of_log),
    "sce-leaves-collapse": ("spreading_rate", rate_of_all_candidates),
}


def test_excess_by_hand() -> None:
    """w = (λ, (1−λ)/2, (1−λ)/2) against thirds."""
    assert module.collapse_excess(3, 0.5) == pytest.approx(0.5 * math.log(1.5) + 0.5 * math.log(0.75))
    assert module.collapse_excess(3, 1 / 3) == pytest.approx(0, abs=1e-15)
    w = soft_target(relations(torch.ones(3, 1), torch.ones(3, 1)), temperature=0.1, contrastive_weight=0.5)
    assert w[0].tolist() == pytest.approx([0.5, 0.25, 0.25])


def spread_after(loss: torch.nn.Module, steps: int = 200, lr: float = 0.005) -> tuple[float, float]:
    """V before and after a descent from near collapse, the targets being the rows themselves."""
    generator = torch.Generator().manual_seed(0)
    z = unit(on_sphere(generator, 1, 8) + 0.01 * on_sphere(generator, 10, 8))
    before = float((z - z.mean(0)).square().sum())
    for _ in range(steps):
        online = z.clone().requires_grad_()
        (grad,) = torch.autograd.grad(loss(online, z).sum(), online)
        z = unit(z - lr * grad)
    return before, float((z - z.mean(0)).square().sum())


def test_sce_drives_rows_apart_and_the_ceiling_draws_them_together() -> None:
    before, after = spread_after(SCELoss(0.1, 0.1, 0.5, reduction="none"))
    assert after > 100 * before
    before, after = spread_after(SCELoss(0.1, 0.1, 0.0, reduction="none"))
    assert after < before / 2


def test_ressl_stays_where_it_is() -> None:
    before, after = spread_after(ReSSLLoss(0.1, 0.1, reduction="none"))
    assert after == pytest.approx(before, rel=1e-9)
