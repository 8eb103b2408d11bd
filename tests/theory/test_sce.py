"""SCE: every check holds, every check can fail, the formulas against loops, and collapse seen in a descent."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.special import entr

from kontrast.losses import ReSSLLoss, SCELoss
from kontrast.sphere import unit
from kontrast.theory import sce as module
from kontrast.theory._inputs import on_sphere
from kontrast.theory.check import REGISTRY
from kontrast.theory.sce import Relations, online_distribution, relations, soft_target
from tests.theory.breaking import Breaks


def target_with_own(r: Relations, *, temperature: float) -> Tensor:
    return (r.target / temperature).softmax(1)


def ceil_of_own(r: Relations, *, temperature: float) -> Tensor:
    return -module.online_distribution(r, temperature=temperature)[r.is_own].log()


def ressl_with_own_slot(r: Relations, *, temperature: float, target_temperature: float) -> Tensor:
    s = module.target_distribution(r, temperature=target_temperature)
    return -(s * module.online_distribution(r, temperature=temperature).log()).sum(1)


def target_all_soft(r: Relations, *, temperature: float, contrastive_weight: float) -> Tensor:
    s = module.target_distribution(r, temperature=temperature)
    return contrastive_weight * r.is_own.to(s.dtype) + s


def ceil_nowhere(r: Relations, *, temperature: float) -> Tensor:
    return torch.zeros(len(r.is_own), dtype=r.online.dtype)


def divergence_the_other_way(w: Tensor, p: Tensor) -> Tensor:
    return (torch.xlogy(p, p) - torch.xlogy(p, w.clamp(min=1e-300))).sum(1)


def bound_with_own(target: Tensor, queue: Tensor | None = None, *, temperature: float) -> Tensor:
    return entr((relations(target, target, queue).target / temperature).softmax(1)).sum(1)


def gradient_without_the_others(
    target: Tensor, queue: Tensor | None = None, *, temperature: float, contrastive_weight: float
) -> Tensor:
    r = relations(target, target, queue)
    p = online_distribution(r, temperature=temperature)[r.is_own]
    return ((p - contrastive_weight) / temperature)[:, None] * target


def excess_of_log(candidates: int, contrastive_weight: float) -> float:
    """As if the target were the own row alone."""
    return contrastive_weight * math.log(candidates)


def rate_of_all_candidates(candidates: int, *, temperature: float, contrastive_weight: float) -> float:
    return 2 * (candidates * contrastive_weight - 1) / (candidates * temperature)


BREAKS: Breaks = {
    "sce-is-cross-entropy": ("target_distribution", target_with_own),
    "sce-decomposition": ("ceil", ceil_of_own),
    "sce-terms-are-the-parts": ("ressl", ressl_with_own_slot),
    "sce-with-full-weight-is-infonce": ("soft_target", target_all_soft),
    "sce-without-contrast-is-not-ressl": ("ceil", ceil_nowhere),
    "sce-is-at-least-target-entropy": ("divergence", divergence_the_other_way),
    "ressl-is-content-with-equal-views": ("ressl_bound", bound_with_own),
    "sce-learns-from-equal-views": ("gradient_at_equal_views", gradient_without_the_others),
    "sce-is-above-its-bound-at-collapse": ("collapse_excess", excess_of_log),
    "sce-leaves-collapse": ("spreading_rate", rate_of_all_candidates),
}


@pytest.mark.parametrize("formula", ["info_nce", "ressl", "ceil"])
def test_the_decomposition_notices_every_part(monkeypatch: pytest.MonkeyPatch, formula: str) -> None:
    right = getattr(module, formula)

    def wrong(*args: Any, **options: Any) -> Tensor:
        return 1.001 * right(*args, **options)

    monkeypatch.setattr(module, formula, wrong)
    assert not REGISTRY["sce-decomposition"].run(0).holds


def dot(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("with_queue", [False, True])
def test_formulas_against_loops(with_queue: bool) -> None:
    """(1) to (7) one candidate at a time."""
    generator, tau, tau_m, lam = torch.Generator().manual_seed(0), 0.2, 0.1, 0.3
    online, target = on_sphere(generator, 4, 3), on_sphere(generator, 4, 3)
    queue = on_sphere(generator, 5, 3) if with_queue else None
    r = module.relations(online, target, queue)
    p, s = module.online_distribution(r, temperature=tau), module.target_distribution(r, temperature=tau_m)
    w = module.soft_target(r, temperature=tau_m, contrastive_weight=lam)
    values = {
        "info_nce": module.info_nce(r, temperature=tau),
        "ressl": module.ressl(r, temperature=tau, target_temperature=tau_m),
        "ceil": module.ceil(r, temperature=tau),
        "sce": module.sce_loss(r, temperature=tau, target_temperature=tau_m, contrastive_weight=lam),
    }
    for i, (x, t) in enumerate(zip(online.tolist(), target.tolist(), strict=True)):
        candidates = target.tolist() if queue is None else [t, *queue.tolist()]
        own = i if queue is None else 0
        e = [math.exp(dot(x, c) / tau) for c in candidates]
        f = [0.0 if k == own else math.exp(dot(t, c) / tau_m) for k, c in enumerate(candidates)]
        total, others = math.fsum(e), math.fsum(e) - e[own]
        share = [v / math.fsum(f) for v in f]
        assert p[i].tolist() == pytest.approx([v / total for v in e])
        assert s[i].tolist() == pytest.approx(share)
        assert w[i].tolist() == pytest.approx([lam if k == own else (1 - lam) * v for k, v in enumerate(share)])
        assert float(values["info_nce"][i]) == pytest.approx(-math.log(e[own] / total))
        rest = [k for k in range(len(e)) if k != own]
        assert float(values["ressl"][i]) == pytest.approx(-math.fsum(share[k] * math.log(e[k] / others) for k in rest))
        assert float(values["ceil"][i]) == pytest.approx(-math.log(others / total))
        expected = -math.fsum(float(w[i, k]) * math.log(e[k] / total) for k in range(len(e)))
        assert float(values["sce"][i]) == pytest.approx(expected)


def test_cases_are_of_both_forms_and_have_equal_temperatures() -> None:
    found = list(module._cases(torch.Generator().manual_seed(0)))
    assert {case.queue is None for case in found} == {True, False}
    assert any(case.tau == case.tau_m for case in found)


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
