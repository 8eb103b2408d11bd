"""ReSSL against (1) to (3) of losses/ressl.py (Zheng et al.; L_ReSSL in the supplement of SCE)."""

from __future__ import annotations

import math

import pytest
import torch

from kontrast.losses import ReSSLLoss
from kontrast.losses.ressl import reference
from tests.losses.literal import (
    EXACT,
    D,
    N,
    Relation,
    as_anchor,
    assert_values,
    far_out,
    on_sphere,
    points,
    relation_inputs,
    relations,
    rows,
    unit,
)

each_form = pytest.mark.parametrize("form", ["batch", "queue"])


def softmax(s: list[float], tau: float) -> list[float]:
    e = [math.exp(x / tau) for x in s]
    return [x / math.fsum(e) for x in e]


def eq_3(relation: Relation, tau: float, tau_m: float) -> float:
    s = softmax(relation.target, tau_m)  # (1)
    p = softmax(relation.online, tau)  # (2)
    return -math.fsum(s_k * math.log(p_k) for s_k, p_k in zip(s, p, strict=True))


@each_form
@pytest.mark.parametrize(("tau", "tau_m"), [(0.1, 0.04), (0.5, 0.5), (0.3, 0.9)])
def test_value_is_eq_3(form: str, tau: float, tau_m: float) -> None:
    inputs = relation_inputs(form)
    expected = [eq_3(relation, tau, tau_m) for relation in relations(**on_sphere(inputs))]
    assert_values(reference(**on_sphere(inputs), temperature=tau, target_temperature=tau_m), expected)
    assert_values(ReSSLLoss(tau, tau_m, reduction="none")(**inputs), expected)


@each_form
def test_value_is_eq_3_where_a_maximum_is_subtracted(form: str) -> None:
    inputs = far_out(relation_inputs(form))
    expected = [eq_3(relation, 1.0, 1.0) for relation in relations(**inputs)]
    assert_values(ReSSLLoss(1.0, 1.0, normalize=False, reduction="none")(**inputs), expected)


@each_form
def test_gradient_of_eq_3_is_p_minus_s(form: str) -> None:
    """∂L_i/∂⟨z¹_i, z²_k⟩ = (p_ik − s_ik)/τ, and nothing goes through the target's side."""
    tau, tau_m = 0.3, 0.1
    inputs = {k: v.requires_grad_() for k, v in on_sphere(relation_inputs(form, seed=1)).items()}
    ReSSLLoss(tau, tau_m, normalize=False, reduction="sum")(**inputs).backward()
    for i, relation in enumerate(relations(**inputs)):
        p, s = softmax(relation.online, tau), softmax(relation.target, tau_m)
        slopes = {k: (p[k] - s[k]) / tau for k in range(len(p))}
        assert_values(inputs["online"].grad[i], as_anchor(slopes, relation.candidates))
    assert all(v.grad is None for k, v in inputs.items() if k != "online")


# ---------------------------------------------------------------------------------------------- worked by hand


def test_a_queue_by_hand() -> None:
    # Queue (1,0), (0,1). Target (0.6,0.8) at τ_m = 0.2: s ∝ e^{3}, e^{4}. Online (1,0) at τ = 0.5: p ∝ e^{2}, 1.
    # −s·log p = log(e² + 1) − 2 s_1, s_1 = 1/(1 + e).
    value = ReSSLLoss(0.5, 0.2, reduction="none")(
        points([1.0, 0.0]), points([0.6, 0.8]), points([1.0, 0.0], [0.0, 1.0])
    )
    assert_values(value, [math.log(math.exp(2) + 1) - 2 / (1 + math.e)])


def test_a_batch_by_hand() -> None:
    # Targets a = (1,0), b = (0,1), c = (−1,0); online rows all (1,0); τ = 0.5, τ_m = 1. Self is in neither softmax:
    #   a: over b, c: s ∝ 1, e^{−1}; p ∝ 1, e^{−2}: log(1 + e^{−2}) + 2 s_c, s_c = 1/(1 + e)
    #   b: over a, c: s = ½, ½; p ∝ e^{2}, e^{−2}: log(e^{2} + e^{−2})
    #   c: over a, b: s ∝ e^{−1}, 1; p ∝ e^{2}, 1: log(e^{2} + 1) − 2 s_a, s_a = 1/(1 + e)
    target = points([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0])
    online = points([1.0, 0.0]).expand(3, 2)
    small, e2 = 1 / (1 + math.e), math.exp(2)
    expected = [math.log(1 + 1 / e2) + 2 * small, math.log(e2 + 1 / e2), math.log(e2 + 1) - 2 * small]
    assert_values(ReSSLLoss(0.5, 1.0, reduction="none")(online, target), expected)


# --------------------------------------------------------------------------------------------------- relations


def entropy(p: list[float]) -> float:
    return -math.fsum(x * math.log(x) for x in p)


@each_form
def test_it_is_at_least_the_entropy_of_the_target(form: str) -> None:
    """Gibbs: the cross-entropy of s with any other p is larger."""
    inputs = relation_inputs(form, seed=2)
    value = ReSSLLoss(0.3, 0.1, reduction="none")(**inputs).tolist()
    for got, relation in zip(value, relations(**on_sphere(inputs)), strict=True):
        assert got > entropy(softmax(relation.target, 0.1))


@each_form
def test_at_the_targets_own_rows_and_temperature_it_is_that_entropy_and_flat(form: str) -> None:
    inputs = on_sphere(relation_inputs(form, seed=3))
    online = inputs["target"].clone().requires_grad_()
    value = ReSSLLoss(0.3, 0.3, reduction="none")(**inputs | {"online": online})
    assert_values(value, [entropy(softmax(relation.target, 0.3)) for relation in relations(**inputs)])
    (gradient,) = torch.autograd.grad(value.sum(), online)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), **EXACT)


def test_the_own_target_row_is_in_neither_distribution() -> None:
    """In the queue form the own target gives the relations only; the queue alone is compared with."""
    inputs = on_sphere(relation_inputs("batch", seed=4))
    value = ReSSLLoss(0.2, 0.1, reduction="none")(**inputs)
    for i in range(N):
        others = inputs["target"][torch.arange(N) != i]
        alone = ReSSLLoss(0.2, 0.1)(inputs["online"][i : i + 1], inputs["target"][i : i + 1], others)
        torch.testing.assert_close(value[i], alone, **EXACT)


def test_one_candidate_leaves_nothing_to_learn() -> None:
    # Both softmaxes are 1 on it.
    online = rows(2, D, seed=5).requires_grad_()
    value = ReSSLLoss(0.5, 0.1, reduction="none")(online, rows(2, D, seed=6))
    torch.testing.assert_close(value.detach(), torch.zeros(2).double(), rtol=0, atol=1e-14)
    (gradient,) = torch.autograd.grad(value.sum(), online)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-13)


def test_alone_in_the_batch_it_is_zero() -> None:
    online = rows(1, D, seed=7).requires_grad_()
    for reduction in ("mean", "sum", "none"):
        value = ReSSLLoss(0.5, 0.1, reduction=reduction)(online, rows(1, D, seed=8))
        assert (value == 0).all()
        assert (torch.autograd.grad(value.sum(), online)[0] == 0).all()


def test_sharper_targets_lean_on_the_nearest_candidate() -> None:
    """τ_m → 0: s is 1 at the target's nearest candidate, and L the cross-entropy of p with it."""
    inputs = on_sphere(relation_inputs("queue", seed=9))
    value = ReSSLLoss(0.3, 1e-4, reduction="none")(**inputs)
    expected = []
    for relation in relations(**inputs):
        nearest = relation.target.index(max(relation.target))
        expected.append(-math.log(softmax(relation.online, 0.3)[nearest]))
    assert_values(value, expected)


def test_rows_are_normalised_on_every_side() -> None:
    inputs = relation_inputs("queue", seed=10)
    loss = ReSSLLoss(0.3, 0.1, reduction="none")
    for name in inputs:
        torch.testing.assert_close(loss(**inputs | {name: unit(inputs[name])}), loss(**inputs), **EXACT)
