"""SCE against (1) to (5) of losses/sce.py (Denize et al., supplement A and B), and its parts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.losses import InfoNCELoss, ReSSLLoss, SCELoss, sce_terms
from kontrast.losses.sce import reference
from tests.losses.literal import (
    EXACT,
    D,
    N,
    Relation,
    as_anchor,
    assert_same,
    assert_values,
    far_out,
    on_sphere,
    points,
    relation_inputs,
    relations,
    rows,
    value_and_gradients,
)

each_form = pytest.mark.parametrize("form", ["batch", "queue"])
each_self_logit = pytest.mark.parametrize("self_logit", ["masked", "zero"])
each_weight = pytest.mark.parametrize("lam", [0.0, 0.3, 0.5, 1.0])


def eq_1(relation: Relation, tau: float) -> list[float]:
    """p_ik, the own target row first."""
    e = [math.exp(x / tau) for x in (relation.own, *relation.online)]
    return [x / math.fsum(e) for x in e]


def eq_2(relation: Relation, tau_m: float, self_logit: str) -> list[float]:
    """s_ik, the own target row first: left out, or with the logit 0 of the published pseudo-code."""
    own = math.exp(0.0) if self_logit == "zero" else 0.0
    e = [own, *(math.exp(x / tau_m) for x in relation.target)]
    return [x / math.fsum(e) for x in e]


def eq_3(relation: Relation, tau_m: float, lam: float, self_logit: str) -> list[float]:
    return [lam * (k == 0) + (1 - lam) * s for k, s in enumerate(eq_2(relation, tau_m, self_logit))]


def eq_4(relation: Relation, tau: float, tau_m: float, lam: float, self_logit: str) -> float:
    w, p = eq_3(relation, tau_m, lam, self_logit), eq_1(relation, tau)
    return -math.fsum(w_k * math.log(p_k) for w_k, p_k in zip(w, p, strict=True))


@each_form
@each_self_logit
@each_weight
@pytest.mark.parametrize(("tau", "tau_m"), [(0.1, 0.05), (0.7, 0.4)])
def test_value_is_eq_4(form: str, self_logit: str, lam: float, tau: float, tau_m: float) -> None:
    inputs = relation_inputs(form)
    expected = [eq_4(relation, tau, tau_m, lam, self_logit) for relation in relations(**on_sphere(inputs))]
    options = {"temperature": tau, "target_temperature": tau_m, "contrastive_weight": lam, "self_logit": self_logit}
    assert_values(reference(**on_sphere(inputs), **options), expected)
    assert_values(SCELoss(**options, reduction="none")(**inputs), expected)


@each_form
@each_self_logit
def test_value_is_eq_4_where_a_maximum_is_subtracted(form: str, self_logit: str) -> None:
    inputs = far_out(relation_inputs(form))
    expected = [eq_4(relation, 1.0, 1.0, 0.4, self_logit) for relation in relations(**inputs)]
    loss = SCELoss(1.0, 1.0, 0.4, self_logit=self_logit, normalize=False, reduction="none")
    assert_values(loss(**inputs), expected)


@each_form
@each_self_logit
@each_weight
def test_gradient_of_eq_4_is_p_minus_w(form: str, self_logit: str, lam: float) -> None:
    """∂L_i/∂⟨z¹_i, z²_k⟩ = (p_ik − w_ik)/τ, and nothing goes through the target's side."""
    tau, tau_m = 0.3, 0.1
    inputs = {k: v.requires_grad_() for k, v in on_sphere(relation_inputs(form, seed=1)).items()}
    SCELoss(tau, tau_m, lam, self_logit=self_logit, normalize=False, reduction="sum")(**inputs).backward()
    for i, relation in enumerate(relations(**inputs)):
        p, w = eq_1(relation, tau), eq_3(relation, tau_m, lam, self_logit)
        slopes = {k: (p[k] - w[k]) / tau for k in range(len(p))}
        candidates = [inputs["target"][i].tolist(), *relation.candidates]
        assert_values(inputs["online"].grad[i], as_anchor(slopes, candidates))
    assert all(v.grad is None for k, v in inputs.items() if k != "online")


# ---------------------------------------------------------------------------------------------- worked by hand


def test_a_queue_by_hand() -> None:
    # Online (1,0), own target (0.6,0.8), queue (1,0), (0,1); τ = 0.2, τ_m = 0.2, λ = 0.4.
    # p ∝ e^{3}, e^{5}, 1. s ∝ e^{3}, e^{4} over the queue: s_1 = 1/(1 + e), s_2 = 1 − s_1.
    # L = log(e^{3} + e^{5} + 1) − 3λ − 5(1−λ)s_1.
    rows_given = points([1.0, 0.0]), points([0.6, 0.8]), points([1.0, 0.0], [0.0, 1.0])
    log_z = math.log(math.exp(3) + math.exp(5) + 1)
    expected = log_z - 3 * 0.4 - 5 * 0.6 / (1 + math.e)
    assert_values(SCELoss(0.2, 0.2, 0.4, reduction="none")(*rows_given), [expected])
    # With the logit 0 in the own slot, s ∝ 1, e^{3}, e^{4}: the own row takes s_0 of the soft part too.
    total = 1 + math.exp(3) + math.exp(4)
    leaked = log_z - 3 * (0.4 + 0.6 / total) - 5 * 0.6 * math.exp(3) / total
    assert_values(SCELoss(0.2, 0.2, 0.4, self_logit="zero", reduction="none")(*rows_given), [leaked])


def test_a_batch_by_hand() -> None:
    # Online = target = (1,0), (0,1), (−1,0); τ = 0.5, τ_m = 1, λ = 0.5. p of
    #   row 0 ∝ e^{2}, 1, e^{−2}; s over rows 1, 2 ∝ 1, e^{−1}: L = log(e² + 1 + e^{−2}) − 1 + s_2, s_2 = 1/(1 + e)
    #   row 1 ∝ 1, e^{2}, 1; s = ½, ½: L = log(e² + 2) − 1
    #   row 2 mirrors row 0
    z = points([1.0, 0.0], [0.0, 1.0], [-1.0, 0.0])
    e2 = math.exp(2)
    outer = math.log(e2 + 1 + 1 / e2) - 1 + 1 / (1 + math.e)
    assert_values(SCELoss(0.5, 1.0, 0.5, reduction="none")(z, z), [outer, math.log(e2 + 2) - 1, outer])


@each_self_logit
def test_how_much_a_zero_logit_leaks(self_logit: str) -> None:
    """A queue across the target: every logit is 0, and the own slot's e⁰ is one among K + 1 equals, or is not there."""
    own, k = points([1.0, 0.0]), 4
    queue = points([0.0, 1.0]).expand(k, 2)
    w_own = 1 / (k + 1) if self_logit == "zero" else 0.0
    p_own = math.exp(2) / (math.exp(2) + k)
    value = SCELoss(0.5, 0.1, 0.0, self_logit=self_logit, reduction="none")(own, own, queue)
    assert_values(value, [-w_own * math.log(p_own) - (1 - w_own) * math.log((1 - p_own) / k)])


# ----------------------------------------------------------------------------------------------- decomposition


@each_form
def test_terms_are_those_of_eq_5(form: str) -> None:
    tau, tau_m = 0.3, 0.1
    inputs = relation_inputs(form, seed=2)
    terms = sce_terms(**inputs, temperature=tau, target_temperature=tau_m)
    found = relations(**on_sphere(inputs))
    p = [eq_1(relation, tau) for relation in found]
    assert_values(terms.info_nce, [-math.log(mine[0]) for mine in p])
    assert_values(terms.ceil, [-math.log(1 - mine[0]) for mine in p])
    ressl = []
    for mine, relation in zip(p, found, strict=True):
        among_others = [x / math.fsum(mine[1:]) for x in mine[1:]]
        s = eq_2(relation, tau_m, "masked")[1:]
        ressl.append(-math.fsum(s_k * math.log(q) for s_k, q in zip(s, among_others, strict=True)))
    assert_values(terms.ressl, ressl)


@each_form
@each_weight
def test_loss_is_eq_5_in_value_and_gradient(form: str, lam: float) -> None:
    def combined(**inputs: Tensor) -> Tensor:
        terms = sce_terms(**inputs, temperature=0.2, target_temperature=0.1)
        return lam * terms.info_nce + (1 - lam) * (terms.ressl + terms.ceil)

    def by_itself(**inputs: Tensor) -> Tensor:
        return sce_terms(**inputs, temperature=0.2, target_temperature=0.1).combine(contrastive_weight=lam)

    inputs = relation_inputs(form, seed=3)
    expected = value_and_gradients(SCELoss(0.2, 0.1, lam, reduction="none"), inputs, "online")
    assert_same(value_and_gradients(combined, inputs, "online"), expected)
    assert_same(value_and_gradients(by_itself, inputs, "online"), expected)


@each_form
def test_each_term_has_its_own_gradient(form: str) -> None:
    """∂Ceil/∂⟨z¹_i, z²_k⟩ = (p_ik − q_ik)/τ, q the softmax without the own row; the others are their own losses."""
    tau = 0.3
    inputs = on_sphere(relation_inputs(form, seed=4))

    def part(name: str) -> list[Tensor]:
        def value(**given: Tensor) -> Tensor:
            return getattr(sce_terms(**given, temperature=tau, target_temperature=0.1, normalize=False), name)

        return value_and_gradients(value, inputs, "online")

    ressl = ReSSLLoss(tau, 0.1, normalize=False, reduction="none")
    assert_same(part("ressl"), value_and_gradients(ressl, inputs, "online"))
    info_nce = SCELoss(tau, 0.1, 1.0, normalize=False, reduction="none")
    assert_same(part("info_nce"), value_and_gradients(info_nce, inputs, "online"))
    gradient = part("ceil")[1]
    weight = torch.linspace(-1, 2, N, dtype=torch.float64).tolist()
    for i, relation in enumerate(relations(**inputs)):
        p = eq_1(relation, tau)
        q = [0.0, *(x / math.fsum(p[1:]) for x in p[1:])]
        slopes = {k: weight[i] * (p[k] - q[k]) / tau for k in range(len(p))}
        assert_values(gradient[i], as_anchor(slopes, [inputs["target"][i].tolist(), *relation.candidates]))


def test_the_ceiling_rises_as_the_positive_dominates() -> None:
    """At p_ii = ½ it is log 2; the nearer the online row comes to its target, the higher."""
    target, queue = points([1.0, 0.0]), points([0.0, 1.0])
    towards = [sce_terms(points([math.cos(a), math.sin(a)]), target, queue).ceil.item() for a in (0.785, 0.5, 0.0)]
    assert towards[0] < towards[1] < towards[2]
    # cos and sin of 45° are equal, so both candidates are as likely; at 0° p_ii = 1/(1 + e^{−10}).
    middle = sce_terms(points([1.0, 1.0]), target, queue).ceil
    assert_values(middle, [math.log(2)])
    assert towards[2] == pytest.approx(math.log(1 + math.exp(10)), rel=1e-10)


# --------------------------------------------------------------------------------------------------- relations


@each_form
@each_self_logit
def test_lambda_1_is_info_nce(form: str, self_logit: str) -> None:
    inputs = relation_inputs(form, seed=5)

    def info_nce(online: Tensor, target: Tensor, queue: Tensor | None = None) -> Tensor:
        return InfoNCELoss(0.2, reduction="none")(online, target, queue)

    sce = SCELoss(0.2, 0.1, 1.0, self_logit=self_logit, reduction="none")
    assert_same(value_and_gradients(sce, inputs, "online"), value_and_gradients(info_nce, inputs, "online"))


@each_form
def test_lambda_0_is_ressl_and_the_ceiling_not_ressl(form: str) -> None:
    inputs = relation_inputs(form, seed=6)
    found = relations(**on_sphere(inputs))
    over = SCELoss(0.2, 0.1, 0.0, reduction="none")(**inputs) - ReSSLLoss(0.2, 0.1, reduction="none")(**inputs)
    assert_values(over, [-math.log(1 - eq_1(relation, 0.2)[0]) for relation in found])
    assert (over > 0).all()


def test_it_is_linear_in_lambda() -> None:
    inputs = relation_inputs("queue", seed=7)
    soft, hard = (SCELoss(0.2, 0.1, lam, reduction="none")(**inputs) for lam in (0.0, 1.0))
    for lam in (0.25, 0.5, 0.9):
        torch.testing.assert_close(
            SCELoss(0.2, 0.1, lam, reduction="none")(**inputs), lam * hard + (1 - lam) * soft, **EXACT
        )


def test_the_queue_replaces_the_batch() -> None:
    """With a queue an anchor sees its own target row and the queue, not the other rows of the batch."""
    inputs = relation_inputs("queue", seed=8)
    value = SCELoss(0.2, 0.1, reduction="none")(**inputs)
    for i in range(N):
        alone = SCELoss(0.2, 0.1)(inputs["online"][i : i + 1], inputs["target"][i : i + 1], inputs["queue"])
        torch.testing.assert_close(value[i], alone, **EXACT)


@each_self_logit
@each_weight
def test_alone_in_the_batch_it_is_zero(self_logit: str, lam: float) -> None:
    online = rows(1, D, seed=9).requires_grad_()
    target = rows(1, D, seed=10)
    value = SCELoss(0.2, 0.1, lam, self_logit=self_logit)(online, target)
    assert value.item() == 0
    (gradient,) = torch.autograd.grad(value, online)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-13)
    terms = sce_terms(online, target)
    assert all((term == 0).all() for term in terms)


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"contrastive_weight=1\.5: must be a finite number of at least 0 and of at most 1"
    ):
        SCELoss(contrastive_weight=1.5)
