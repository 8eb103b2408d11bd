"""The simple contrastive loss against Wang & Liu, eq 3, and what the paper and its code say it is the limit of."""

from __future__ import annotations

import math

import pytest
import torch

from kontrast.losses import InfoNCELoss, SimpleContrastiveLoss, hot_limit
from kontrast.losses.simple_contrastive import reference
from tests.losses.literal import (
    EXACT,
    PAIR_FORMS,
    D,
    K,
    N,
    Pair,
    assert_values,
    axes,
    dot,
    on_sphere,
    pair_inputs,
    pairs,
    points,
    rows,
    unit,
)

each_form = pytest.mark.parametrize("form", PAIR_FORMS)


def eq_1(pair: Pair, weight: float | None, k: int | None) -> float:
    kept = sorted(pair.negatives, reverse=True)[:k]
    return -pair.positive + (1 / len(kept) if weight is None else weight) * math.fsum(kept)


@each_form
@pytest.mark.parametrize("weight", [None, 0.0, 0.7])
@pytest.mark.parametrize("k", [None, 1, 3, 1000])
def test_value_is_eq_1(form: str, weight: float | None, k: int | None) -> None:
    inputs = pair_inputs(form)
    expected = [eq_1(pair, weight, k) for pair in pairs(**on_sphere(inputs))]
    assert_values(reference(**on_sphere(inputs), weight=weight, hard_negatives=k), expected)
    assert_values(SimpleContrastiveLoss(weight, k, reduction="none")(**inputs), expected)


@pytest.mark.parametrize("form", PAIR_FORMS[1:])
@pytest.mark.parametrize("weight", [None, 0.7])
@pytest.mark.parametrize("k", [None, 1, 3, 1000])
def test_value_over_the_keys_and_the_rows_given(form: str, weight: float | None, k: int | None) -> None:
    inputs, both = pair_inputs(form), {"negatives_in_batch": True}
    expected = [eq_1(pair, weight, k) for pair in pairs(**on_sphere(inputs), **both)]
    assert_values(reference(**on_sphere(inputs), **both, weight=weight, hard_negatives=k), expected)
    assert_values(SimpleContrastiveLoss(weight, k, reduction="none", **both)(**inputs), expected)


@pytest.mark.parametrize("weight", [None, 0.7])
@pytest.mark.parametrize("k", [None, 2])
def test_gradient_of_eq_1_is_constant(weight: float | None, k: int | None) -> None:
    """−1 to the positive, λ to each kept negative, however near it is; 0 to the others."""
    s = torch.tanh(rows(N, N, seed=1)).requires_grad_()
    SimpleContrastiveLoss(weight, k, normalize=False, reduction="sum")(s, axes(N)).backward()
    number = k or N - 1
    lam = 1 / number if weight is None else weight
    for i, pair in enumerate(pairs(s.detach(), axes(N))):
        cut = sorted(pair.negatives, reverse=True)[number - 1]
        expected = [lam if x >= cut else 0.0 for x in pair.negatives]
        expected.insert(i, -1.0)
        assert_values(s.grad[i], expected)


@pytest.mark.parametrize("k", [1, 4])
def test_exactly_k_equal_negatives_are_pushed(k: int) -> None:
    query = points([1.0, 0.0])
    negatives = points([0.6, 0.8]).expand(K, 2).clone().requires_grad_()
    value = SimpleContrastiveLoss(0.5, k, normalize=False)(query, query, negatives)
    (gradient,) = torch.autograd.grad(value, negatives)
    assert value.item() == pytest.approx(-1 + 0.5 * k * 0.6, rel=1e-12)
    assert sorted(gradient[:, 0].tolist()) == [0.0] * (K - k) + [0.5] * k
    assert (gradient[:, 1] == 0).all()


# ---------------------------------------------------------------------------------------------- worked by hand


def test_by_hand() -> None:
    # s_ii = 0.6; negatives at 0.8, 0, −1. λ = 1/3: −0.6 − 0.2/3. Of the nearest two, λ = 1/2: −0.6 + 0.8/2.
    q, key = points([2.0, 0.0]), points([0.6, 0.8])
    negatives = points([-3.0, 0.0], [0.8, 0.6], [0.0, 1.0])
    assert_values(SimpleContrastiveLoss(reduction="none")(q, key, negatives), [-0.6 - 0.2 / 3])
    assert_values(SimpleContrastiveLoss(hard_negatives=2, reduction="none")(q, key, negatives), [-0.2])
    assert_values(SimpleContrastiveLoss(2.0, reduction="none")(q, key, negatives), [-0.6 - 0.4])
    assert_values(SimpleContrastiveLoss(2.0, 1, reduction="none")(q, key, negatives), [-0.6 + 1.6])


def test_without_negatives_only_the_positive_is_left() -> None:
    q, key = points([1.0, 0.0]), points([0.6, 0.8])
    for loss in (SimpleContrastiveLoss(), SimpleContrastiveLoss(hard_negatives=3), SimpleContrastiveLoss(0.3)):
        assert loss(q, key).item() == pytest.approx(-0.6, rel=1e-12)
        assert loss(q, key, key, torch.tensor([0])).item() == pytest.approx(-0.6, rel=1e-12)


# --------------------------------------------------------------------------------------------------- relations


@each_form
def test_the_hot_limit_of_info_nce_is_this_loss_scaled(form: str) -> None:
    """log n + ((n−1)/(nτ)) L_simple with λ = 1/(n−1), n = 1 + the number of negatives (Wang & Liu, eq 7)."""
    inputs = on_sphere(pair_inputs(form, seed=2))
    n = 1 + len(pairs(**inputs)[0].negatives)
    simple = SimpleContrastiveLoss(reduction="none")(**inputs)
    scaled = math.log(n) + (n - 1) / (n * 3.0) * simple
    torch.testing.assert_close(hot_limit(**inputs, temperature=3.0), scaled, **EXACT)


@each_form
def test_the_gradient_of_hot_info_nce_tends_to_this_one(form: str) -> None:
    """(nτ/(n−1)) ∇L_InfoNCE → ∇L_simple. P_ij differs from 1/n by a relative 2/τ at most, as s within ±1 do."""
    inputs = on_sphere(pair_inputs(form, seed=3))
    n = 1 + len(pairs(**inputs)[0].negatives)
    tau = 1e6
    query = inputs["query"].clone().requires_grad_()
    hot = InfoNCELoss(tau, reduction="sum")(**inputs | {"query": query}) * (n * tau / (n - 1))
    simple = SimpleContrastiveLoss(reduction="sum")(**inputs | {"query": query})
    got, expected = (torch.autograd.grad(value, query)[0] for value in (hot, simple))
    # Each side sums n terms of size ≤ 1 on unit rows, so 2/τ of each bounds the difference by 4/τ.
    torch.testing.assert_close(got, expected, rtol=0, atol=4 / tau)


def test_the_authors_flat_loss_is_this_one_scaled() -> None:
    """−s_ii + (1/N) Σ over the whole bank, the positive's row in it, is (N−1)/N times (1) with λ = 1/(N−1)."""
    bank, query = unit(rows(K, D, seed=4)), unit(rows(N, D, seed=5))
    own = torch.tensor([4, 0, 8, 2, 5, 7])
    mine = SimpleContrastiveLoss(reduction="none")(query, bank[own], bank, own)
    flat = []
    for q, i in zip(query.tolist(), own.tolist(), strict=True):
        s = [dot(q, row) for row in bank.tolist()]
        flat.append(-s[i] + math.fsum(s) / K)
    assert_values((K - 1) / K * mine, flat)


@each_form
def test_weight_none_is_one_over_the_number_kept(form: str) -> None:
    inputs = pair_inputs(form, seed=6)
    number = len(pairs(**inputs)[0].negatives)
    for k, kept in ((None, number), (2, 2), (1000, number)):
        given = SimpleContrastiveLoss(1 / kept, k, reduction="none")(**inputs)
        torch.testing.assert_close(SimpleContrastiveLoss(None, k, reduction="none")(**inputs), given, **EXACT)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ValueError, match=r"weight=-0\.1: must be a finite number of at least 0"):
        SimpleContrastiveLoss(-0.1)
