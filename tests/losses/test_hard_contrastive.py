"""The hard contrastive loss against Wang & Liu, eqs 8 and 9: InfoNCE over the negatives with s_ij ≥ s_α."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from kontrast.losses import HardContrastiveLoss, InfoNCELoss
from kontrast.losses.hard_contrastive import reference
from tests.losses.literal import (
    EXACT,
    PAIR_FORMS,
    D,
    K,
    N,
    Pair,
    assert_same,
    assert_values,
    axes,
    dot,
    far_out,
    on_sphere,
    pair_inputs,
    pairs,
    points,
    rows,
    value_and_gradients,
)

each_form = pytest.mark.parametrize("form", PAIR_FORMS)


def threshold(pair: Pair, k: int) -> float:
    """s_α for the α that keeps k negatives."""
    return sorted(pair.negatives, reverse=True)[min(k, len(pair.negatives)) - 1]


def eq_1(pair: Pair, tau: float, k: int) -> float:
    positive = math.exp(pair.positive / tau)
    kept = [s for s in pair.negatives if s >= threshold(pair, k)]
    return -math.log(positive / (positive + math.fsum(math.exp(s / tau) for s in kept)))


@each_form
@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_is_eq_1(form: str, k: int, tau: float) -> None:
    inputs = pair_inputs(form)
    expected = [eq_1(pair, tau, k) for pair in pairs(**on_sphere(inputs))]
    assert_values(reference(**on_sphere(inputs), temperature=tau, hard_negatives=k), expected)
    assert_values(HardContrastiveLoss(tau, k, reduction="none")(**inputs), expected)


@pytest.mark.parametrize("form", PAIR_FORMS[1:])
@pytest.mark.parametrize("k", [1, 3, 1000])
def test_the_nearest_of_the_keys_and_the_rows_given(form: str, k: int) -> None:
    inputs, both = pair_inputs(form), {"negatives_in_batch": True}
    expected = [eq_1(pair, 0.2, k) for pair in pairs(**on_sphere(inputs), **both)]
    assert_values(reference(**on_sphere(inputs), **both, temperature=0.2, hard_negatives=k), expected)
    assert_values(HardContrastiveLoss(0.2, k, reduction="none", **both)(**inputs), expected)


@each_form
def test_value_is_eq_1_where_a_maximum_is_subtracted(form: str) -> None:
    inputs = far_out(pair_inputs(form))
    expected = [eq_1(pair, 1.0, 3) for pair in pairs(**inputs)]
    assert_values(HardContrastiveLoss(1.0, 3, normalize=False, reduction="none")(**inputs), expected)


@pytest.mark.parametrize("k", [1, 3, N - 1])
def test_gradient_is_that_of_info_nce_renormalised_over_the_kept(k: int) -> None:
    """∂L_i/∂s_ij = P_ij/τ with P over the positive and the kept negatives; exactly 0 for the others."""
    tau = 0.3
    s = torch.tanh(rows(N, N, seed=1)).requires_grad_()
    HardContrastiveLoss(tau, k, normalize=False, reduction="sum")(s, axes(N)).backward()
    for i, pair in enumerate(pairs(s.detach(), axes(N))):
        e = [math.exp(x / tau) if x >= threshold(pair, k) else 0.0 for x in pair.negatives]
        total = math.fsum(e) + math.exp(pair.positive / tau)
        expected = [x / (total * tau) for x in e]
        assert [g == 0 for j, g in enumerate(s.grad[i].tolist()) if j != i] == [x == 0 for x in e]
        expected.insert(i, -math.fsum(expected))
        assert_values(s.grad[i], expected)


def nearest(inputs: dict[str, Tensor], i: int, k: int) -> list[int]:
    """The rows of the keys, or of the negatives, that are anchor i's k nearest negatives."""
    candidates = inputs.get("negatives", inputs["key"]).tolist()
    own = int(inputs["own_index"][i]) if "own_index" in inputs else None if "negatives" in inputs else i
    s = {j: dot(inputs["query"][i].tolist(), c) for j, c in enumerate(candidates) if j != own}
    return sorted(s, key=lambda j: -s[j])[:k]


@pytest.mark.parametrize("form", PAIR_FORMS[1:])
@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_no_gradient_to_negatives_that_no_anchor_kept(form: str, reduction: str) -> None:
    inputs = on_sphere(pair_inputs(form, seed=2))
    kept = {j for i in range(N) for j in nearest(inputs, i, 1)}
    assert len(kept) < K
    inputs["negatives"].requires_grad_()
    HardContrastiveLoss(0.2, 1, normalize=False, reduction=reduction)(**inputs).sum().backward()
    assert {j for j, g in enumerate(inputs["negatives"].grad) if g.abs().sum() > 0} == kept


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_no_gradient_to_keys_from_an_anchor_that_did_not_keep_them(reduction: str) -> None:
    """With the axes as queries, coordinate i of a key hears from anchor i alone."""
    inputs = {"query": axes(N), "key": rows(N, N, seed=8).requires_grad_()}
    HardContrastiveLoss(0.5, 2, normalize=False, reduction=reduction)(**inputs).sum().backward()
    for i in range(N):
        touched = {j for j, g in enumerate(inputs["key"].grad[:, i].tolist()) if g != 0}
        assert touched == {i, *nearest(inputs, i, 2)}


# -------------------------------------------------------------------------------------------------------- ties


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_exactly_k_are_kept_among_equals(k: int) -> None:
    """All similarities 1, the positive's too: each of the k + 1 kept is as likely, log(k + 1)."""
    same = points([0.6, 0.8]).expand(K, 2)
    anchors = same[:2]
    loss = HardContrastiveLoss(0.1, k, reduction="none")
    assert_values(loss(anchors, anchors, same), [math.log(k + 1)] * 2)
    assert_values(loss(anchors, anchors, same, torch.tensor([0, 4])), [math.log(k + 1)] * 2)
    assert_values(loss(same, same), [math.log(k + 1)] * K)
    assert_values(reference(anchors, anchors, same, temperature=0.1, hard_negatives=k), [math.log(k + 1)] * 2)


@pytest.mark.parametrize("k", [1, 4, 8])
def test_exactly_k_equal_negatives_are_pushed(k: int) -> None:
    query, key = points([1.0, 0.0]), points([0.0, 1.0])
    negatives = points([0.6, 0.8]).expand(K, 2).clone().requires_grad_()
    value = HardContrastiveLoss(0.5, k, normalize=False)(query, key, negatives)
    (gradient,) = torch.autograd.grad(value, negatives)
    pushed = [g for g in gradient[:, 0].tolist() if g != 0]
    # s_ii = 0 and k negatives at 0.6: each gets P/τ with P = e^{1.2}/(1 + k e^{1.2}).
    e = math.exp(1.2)
    assert pushed == pytest.approx([e / (1 + k * e) / 0.5] * k, rel=1e-10)


def test_duplicates_at_the_cut_are_not_all_kept() -> None:
    # Negatives at 0.8, 0.6, 0.6, 0.6, 0: k = 2 keeps 0.8 and one 0.6. The positive is at 1, τ = 0.2.
    q = points([1.0, 0.0])
    negatives = points([0.6, 0.8], [0.6, -0.8], [0.8, 0.6], [0.0, 1.0], [0.6, 0.8])
    assert_values(
        HardContrastiveLoss(0.2, 2, reduction="none")(q, q, negatives), [math.log(1 + math.exp(-1) + math.exp(-2))]
    )


# ---------------------------------------------------------------------------------------------- worked by hand


def test_nearest_two_of_four_by_hand() -> None:
    # s_ii = 0.6; negatives at 1, 0.8, 0, −1: k = 2 keeps 1 and 0.8. With τ = 0.2: log(1 + e^{2} + e^{1}).
    q, key = points([1.0, 0.0]), points([0.6, 0.8])
    negatives = points([-1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [1.0, 0.0])
    assert_values(
        HardContrastiveLoss(0.2, 2, reduction="none")(q, key, negatives), [math.log(1 + math.exp(2) + math.exp(1))]
    )


def test_a_far_positive_is_in_the_denominator_all_the_same() -> None:
    # The positive, at −1, is farther than every negative; s = 1 is the one kept: log(1 + e^{2/0.5}).
    q, key = points([1.0, 0.0]), points([-1.0, 0.0])
    negatives = points([1.0, 0.0], [0.0, 1.0])
    assert_values(HardContrastiveLoss(0.5, 1, reduction="none")(q, key, negatives), [math.log(1 + math.exp(4))])


# --------------------------------------------------------------------------------------------------- relations


@each_form
def test_with_all_negatives_kept_it_is_info_nce(form: str) -> None:
    inputs = pair_inputs(form, seed=3)
    names = [k for k in inputs if k != "own_index"]
    number = len(pairs(**inputs)[0].negatives)
    expected = value_and_gradients(InfoNCELoss(0.2, reduction="none"), inputs, *names)
    for k in (number, number + 1, 4095):
        assert_same(value_and_gradients(HardContrastiveLoss(0.2, k, reduction="none"), inputs, *names), expected)


@each_form
def test_it_is_info_nce_against_the_nearest_rows_alone(form: str) -> None:
    """The choice made outside, by a sort: InfoNCE of each anchor with its own small queue."""
    inputs = on_sphere(pair_inputs(form, seed=4))
    value = HardContrastiveLoss(0.2, 3, reduction="none")(**inputs)
    candidates = inputs.get("negatives", inputs["key"])
    for i in range(N):
        query, key, queue = inputs["query"][i : i + 1], inputs["key"][i : i + 1], candidates[nearest(inputs, i, 3)]
        torch.testing.assert_close(value[i], InfoNCELoss(0.2)(query, key, queue), **EXACT)


def test_each_further_negative_raises_the_loss() -> None:
    inputs = pair_inputs("negatives", seed=5)
    values = [HardContrastiveLoss(0.2, k, reduction="none")(**inputs) for k in range(1, K + 1)]
    assert all((b > a).all() for a, b in itertools.pairwise(values))
    assert torch.equal(values[-1], HardContrastiveLoss(0.2, K + 1, reduction="none")(**inputs))


def test_alone_in_the_batch_there_is_nothing_to_keep() -> None:
    q = rows(1, D, seed=6).requires_grad_()
    value = HardContrastiveLoss(0.1, 3)(q, rows(1, D, seed=7))
    assert value.item() == 0
    assert (torch.autograd.grad(value, q)[0] == 0).all()
