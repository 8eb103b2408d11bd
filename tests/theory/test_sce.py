"""SCE's decomposition: every check holds, every check can fail, and the formulas against loops."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.theory import sce as module
from kontrast.theory._check import REGISTRY
from kontrast.theory._similarities import on_sphere
from kontrast.theory.sce import Relations
from tests.theory.breaking import Breaks


def target_with_own(r: Relations, *, temperature: float) -> Tensor:
    return (r.target / temperature).softmax(1)


def ceil_of_own(r: Relations, *, temperature: float) -> Tensor:
    return -module.online_distribution(r, temperature=temperature)[r.own].log()


def ressl_with_own_slot(r: Relations, *, temperature: float, target_temperature: float) -> Tensor:
    s = module.target_distribution(r, temperature=target_temperature)
    return -(s * module.online_distribution(r, temperature=temperature).log()).sum(1)


def target_all_soft(r: Relations, *, temperature: float, contrastive_weight: float) -> Tensor:
    s = module.target_distribution(r, temperature=temperature)
    return contrastive_weight * r.own.to(s.dtype) + s


def ceil_nowhere(r: Relations, *, temperature: float) -> Tensor:
    return torch.zeros(len(r.own), dtype=r.online.dtype)


def divergence_the_other_way(w: Tensor, p: Tensor) -> Tensor:
    return (torch.xlogy(p, p) - torch.xlogy(p, w.clamp(min=1e-300))).sum(1)


BREAKS: Breaks = {
    "sce-is-cross-entropy": ("target_distribution", target_with_own),
    "sce-decomposition": ("ceil", ceil_of_own),
    "sce-terms-are-the-parts": ("ressl", ressl_with_own_slot),
    "sce-with-full-weight-is-infonce": ("soft_target", target_all_soft),
    "sce-without-contrast-is-not-ressl": ("ceil", ceil_nowhere),
    "sce-is-at-least-target-entropy": ("divergence", divergence_the_other_way),
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
