"""InfoNCE against Wang & Liu: eqs 1, 2, 4 and the limits 6 and 7, which losses/info_nce.py numbers (1) to (5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from kontrast.losses import InfoNCELoss, cold_limit, hot_limit
from kontrast.losses.info_nce import reference
from tests.losses.literal import (
    EXACT,
    PAIR_FORMS,
    D,
    K,
    N,
    Pair,
    assert_values,
    axes,
    far_out,
    on_sphere,
    pair_inputs,
    pairs,
    points,
    rows,
)

each_form = pytest.mark.parametrize("form", PAIR_FORMS)


def eq_1(pair: Pair, tau: float) -> float:
    positive = math.exp(pair.positive / tau)
    return -math.log(positive / (positive + math.fsum(math.exp(s / tau) for s in pair.negatives)))


def eq_2(pair: Pair, tau: float) -> list[float]:
    """P_ij over the negatives."""
    total = math.exp(pair.positive / tau) + math.fsum(math.exp(s / tau) for s in pair.negatives)
    return [math.exp(s / tau) / total for s in pair.negatives]


@each_form
@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_is_eq_1(form: str, tau: float) -> None:
    inputs = pair_inputs(form)
    expected = [eq_1(pair, tau) for pair in pairs(**on_sphere(inputs))]
    assert_values(reference(**on_sphere(inputs), temperature=tau), expected)
    assert_values(InfoNCELoss(tau, reduction="none")(**inputs), expected)


@each_form
def test_unnormalised_value_is_eq_1_on_the_rows_as_they_are(form: str) -> None:
    inputs = pair_inputs(form)
    expected = [eq_1(pair, 0.9) for pair in pairs(**inputs)]
    assert_values(InfoNCELoss(0.9, normalize=False, reduction="none")(**inputs), expected)


@each_form
def test_value_is_eq_1_where_a_maximum_is_subtracted(form: str) -> None:
    inputs = far_out(pair_inputs(form))
    expected = [eq_1(pair, 1.0) for pair in pairs(**inputs)]
    assert_values(InfoNCELoss(1.0, normalize=False, reduction="none")(**inputs), expected)


# ------------------------------------------------------------------------------------------------- gradients
# With the axes on one side, s_ij is a coordinate of the other side.


def test_gradient_is_eq_3() -> None:
    tau = 0.3
    s = torch.tanh(rows(N, N, seed=0)).requires_grad_()
    loss = InfoNCELoss(tau, normalize=False, reduction="sum")
    (gradient,) = torch.autograd.grad(loss(s, axes(N)), s)
    for i, pair in enumerate(pairs(s.detach(), axes(N))):
        p = eq_2(pair, tau)
        expected = [p_ij / tau for p_ij in p]
        expected.insert(i, -math.fsum(p) / tau)
        assert_values(gradient[i], expected)


def test_gradient_to_the_keys_is_eq_3() -> None:
    """With the axes as queries, s_ij is coordinate i of key j."""
    tau = 0.3
    keys = torch.tanh(rows(N, N, seed=1)).requires_grad_()
    loss = InfoNCELoss(tau, normalize=False, reduction="sum")
    (gradient,) = torch.autograd.grad(loss(axes(N), keys), keys)
    for i, pair in enumerate(pairs(axes(N), keys.detach())):
        p = eq_2(pair, tau)
        expected = [p_ij / tau for p_ij in p]
        expected.insert(i, -math.fsum(p) / tau)
        assert_values(gradient[:, i], expected)


@pytest.mark.parametrize("form", PAIR_FORMS[1:])
def test_gradient_with_negatives_is_eq_3(form: str) -> None:
    """The bank's own row of an anchor gets nothing from it."""
    tau = 0.4
    key, negatives = rows(N, N, seed=2).tanh().requires_grad_(), rows(K, N, seed=3).tanh().requires_grad_()
    inputs = {k: v for k, v in pair_inputs(form).items() if k == "own_index"}
    loss = InfoNCELoss(tau, normalize=False, reduction="sum")
    to_key, to_negatives = torch.autograd.grad(loss(axes(N), key, negatives, **inputs), [key, negatives])
    for i, pair in enumerate(pairs(axes(N), key.detach(), negatives.detach(), **inputs)):
        p = eq_2(pair, tau)
        pushed = [p_ij / tau for p_ij in p]
        if "own_index" in inputs:
            pushed.insert(int(inputs["own_index"][i]), 0.0)
        assert_values(to_negatives[:, i], pushed)
        assert_values(to_key[:, i], [-math.fsum(p) / tau if d == i else 0.0 for d in range(N)])


@pytest.mark.parametrize("tau", [0.05, 0.5, 5.0])
def test_the_pull_on_the_positive_is_as_strong_as_all_pushes_together(tau: float) -> None:
    s = torch.tanh(rows(N, N, seed=4)).requires_grad_()
    InfoNCELoss(tau, normalize=False, reduction="sum")(s, axes(N)).backward()
    pull = s.grad.diagonal()
    pushes = s.grad - torch.diag(pull)
    assert (pull < 0).all()
    assert (pushes >= 0).all()
    torch.testing.assert_close(-pull, pushes.sum(1), **EXACT)


# ---------------------------------------------------------------------------------------------- worked by hand


def test_two_pairs_by_hand() -> None:
    # s_11 = s_22 = 0.6 and s_12 = s_21 = 0.8: each anchor prefers the other's key by 0.2/τ, log(1 + e^{0.2/0.1}).
    q, k = axes(2), points([0.6, 0.8], [0.8, 0.6])
    assert_values(InfoNCELoss(0.1, reduction="none")(q, k), [math.log(1 + math.exp(2))] * 2)


def test_a_queue_by_hand() -> None:
    # s_ii = 0.6; the queue is at 0 and −0.8: log(1 + e^{−0.6/0.2} + e^{−1.4/0.2}) = log(1 + e^{−3} + e^{−7}).
    q, k = points([2.0, 0.0]), points([3.0, 4.0])
    queue = points([0.0, 5.0], [-4.0, 3.0])
    assert_values(InfoNCELoss(0.2, reduction="none")(q, k, queue), [math.log(1 + math.exp(-3) + math.exp(-7))])


def test_identical_rows_cannot_be_told_apart() -> None:
    # Every candidate is as likely: log(1 + K), whatever the temperature.
    same = torch.ones(K, 3).double()
    for tau in (0.05, 1.0):
        assert_values(InfoNCELoss(tau, reduction="none")(same[:2], same[:2], same), [math.log(1 + K)] * 2)


def test_a_pair_alone_has_nothing_to_be_told_from() -> None:
    q = rows(1, 4, seed=5).requires_grad_()
    value = InfoNCELoss(0.1)(q, rows(1, 4, seed=6))
    assert value.item() == 0
    assert (torch.autograd.grad(value, q)[0] == 0).all()


# --------------------------------------------------------------------------------------------------- own rows


def test_own_index_is_the_bank_without_that_row() -> None:
    inputs = pair_inputs("negatives+own_index")
    got = InfoNCELoss(0.2, reduction="none")(**inputs)
    for i, own in enumerate(inputs["own_index"].tolist()):
        bank = torch.cat([inputs["negatives"][:own], inputs["negatives"][own + 1 :]])
        alone = InfoNCELoss(0.2)(inputs["query"][i : i + 1], inputs["key"][i : i + 1], bank)
        torch.testing.assert_close(got[i], alone, **EXACT)


@pytest.mark.parametrize(
    "kind", [lambda x: x.int(), lambda x: x.to(torch.uint8), lambda x: x.tolist(), lambda x: x.numpy().astype(np.int16)]
)
def test_own_index_of_any_integer_kind(kind: Any) -> None:
    inputs = pair_inputs("negatives+own_index")
    loss = InfoNCELoss(0.2, reduction="none")
    torch.testing.assert_close(
        loss(**inputs | {"own_index": kind(inputs["own_index"])}), loss(**inputs), rtol=0, atol=0
    )


def test_own_index_must_name_a_row_of_the_negatives() -> None:
    inputs = pair_inputs("negatives+own_index")
    with pytest.raises(ValueError, match="own_index names rows of negatives, but negatives is None"):
        InfoNCELoss()(inputs["query"], inputs["key"], own_index=inputs["own_index"])
    for wrong, seen in ((-1, "-1 … 8"), (K, "0 … 9")):
        index = inputs["own_index"].clone()
        index[0] = wrong
        with pytest.raises(ValueError, match=f"own_index holds {seen}, but negatives has rows 0 … 8"):
            InfoNCELoss()(**inputs | {"own_index": index})


# ------------------------------------------------------------------------- rows given beside the batch's own keys

given = pytest.mark.parametrize("form", PAIR_FORMS[1:])


@given
@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_of_both_is_eq_6(form: str, tau: float) -> None:
    inputs = pair_inputs(form)
    both = {"negatives_in_batch": True}
    expected = [eq_1(pair, tau) for pair in pairs(**on_sphere(inputs), **both)]
    assert_values(reference(**on_sphere(inputs), **both, temperature=tau), expected)
    assert_values(InfoNCELoss(tau, reduction="none", **both)(**inputs), expected)
    assert_values(
        InfoNCELoss(1.0, normalize=False, reduction="none", **both)(**far_out(inputs)),
        [eq_1(pair, 1.0) for pair in pairs(**far_out(inputs), **both)],
    )


def test_both_are_the_multiple_negatives_ranking_loss() -> None:
    """Cross-entropy over anchors × (positives and hard negatives), cosines times 20: the right column is the anchor's
    own."""
    anchors, positives, hard = (rows(N, D, seed=s).requires_grad_() for s in (0, 1, 2))
    cosine = F.normalize(anchors) @ F.normalize(torch.cat([positives, hard])).T
    theirs = F.cross_entropy(cosine * 20.0, torch.arange(N))
    mine = InfoNCELoss(1 / 20, negatives_in_batch=True)(anchors, positives, negatives=hard)
    torch.testing.assert_close(mine, theirs, **EXACT)
    leaves = [anchors, positives, hard]
    torch.testing.assert_close(torch.autograd.grad(mine, leaves), torch.autograd.grad(theirs, leaves), **EXACT)


@given
def test_both_are_the_keys_and_the_rows_given_as_one_bank(form: str) -> None:
    """The anchors' own keys stand first in it, so that own_index names them; own rows of the bank are cut out."""
    inputs = pair_inputs(form)
    got = InfoNCELoss(0.2, reduction="none", negatives_in_batch=True)(**inputs)
    for i in range(N):
        rest = [j for j in range(K) if "own_index" not in inputs or j != int(inputs["own_index"][i])]
        bank = torch.cat([inputs["key"], inputs["negatives"][rest]])
        alone = InfoNCELoss(0.2)(inputs["query"][i : i + 1], inputs["key"][i : i + 1], bank, torch.tensor([i]))
        torch.testing.assert_close(got[i], alone, **EXACT)


def test_the_default_is_the_rows_given_alone() -> None:
    inputs = pair_inputs("negatives")
    alone, both = (InfoNCELoss(0.2, negatives_in_batch=b)(**inputs) for b in (False, True))
    torch.testing.assert_close(InfoNCELoss(0.2)(**inputs), alone, rtol=0, atol=0)
    assert both > alone + 0.1
    batch = pair_inputs("batch")
    torch.testing.assert_close(InfoNCELoss(0.2, negatives_in_batch=True)(**batch), InfoNCELoss(0.2)(**batch))


@pytest.mark.parametrize("wrong", ["no", 1, None])
def test_negatives_in_batch_is_true_or_false(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"negatives_in_batch=.*: must be True or False"):
        InfoNCELoss(negatives_in_batch=wrong)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("wants", [("key",), ("negatives",), ("key", "negatives"), ()])
def test_only_the_part_that_wants_a_gradient_gets_products(wants: tuple[str, ...], bounded: bool) -> None:
    """The flops of a step: logits and the queries' gradient over all candidates, a third product only for the others
    that want theirs."""
    sizes = {"query": 4, "key": 4, "negatives": 64}
    inputs = {k: rows(n, D, seed=i).requires_grad_(k in (*wants, "query")) for i, (k, n) in enumerate(sizes.items())}

    def product(_: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> int:
        return 2 * a[0] * a[1] * b[1]

    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: product}) as counter:
        InfoNCELoss(0.5 if bounded else 0.001, negatives_in_batch=True)(**inputs).backward()
    learned = sum(sizes[name] for name in wants)
    assert counter.get_total_flops() == 2 * D * 4 * (2 * (4 + 64) + learned)


@given
def test_limits_with_both(form: str) -> None:
    inputs, both = on_sphere(pair_inputs(form)), {"negatives_in_batch": True}
    cold, hot = cold_limit(**inputs, **both), hot_limit(**inputs, **both, temperature=1e6)
    assert_values(cold, [max(max(p.negatives) - p.positive, 0.0) for p in pairs(**inputs, **both)])
    torch.testing.assert_close(InfoNCELoss(1e6, reduction="none", **both)(**inputs), hot, rtol=1e-9, atol=0)


# ------------------------------------------------------------------------------------------------------ limits


@each_form
def test_cold_limit_is_eq_4(form: str) -> None:
    inputs = on_sphere(pair_inputs(form))
    assert_values(cold_limit(**inputs), [max(max(p.negatives) - p.positive, 0.0) for p in pairs(**inputs)])


@each_form
@pytest.mark.parametrize("tau", [1e-1, 1e-2, 1e-3, 1e-4])
def test_cold_loss_tends_to_eq_4(form: str, tau: float) -> None:
    """τ log Σ_j e^{s_j/τ} lies between the largest s_j and that plus τ log n, so τ·L is as near to its limit."""
    inputs = on_sphere(pair_inputs(form))
    over = tau * InfoNCELoss(tau, reduction="none")(**inputs) - cold_limit(**inputs)
    n = 1 + len(pairs(**inputs)[0].negatives)
    assert (over >= -1e-12).all()
    assert (over <= tau * math.log(n)).all()


def test_cold_loss_has_reached_eq_4_where_the_gaps_are_many_temperatures() -> None:
    # s_ii = 0.2 with hardest negatives 0.7 and −0.3, the next ones 0.5 lower: what is left is e^{−0.5/0.01} ≈ 2e-22.
    key, negatives = axes(3)[:1], axes(3)[1:]
    q = points([0.2, 0.7, 0.2], [0.2, -0.3, -0.8]).requires_grad_()
    keys = key.expand(2, 3)
    limit = cold_limit(q, keys, negatives)
    assert_values(limit, [0.5, 0.0])
    loss = 0.01 * InfoNCELoss(0.01, normalize=False, reduction="none")(q, keys, negatives)
    torch.testing.assert_close(loss, limit, rtol=1e-12, atol=1e-20)
    (gradient,) = torch.autograd.grad(loss.sum(), q)
    assert_values(gradient[0], [-1.0, 1.0, 0.0])
    assert_values(gradient[1], [0.0, 0.0, 0.0])


def test_cold_limit_without_negatives_is_zero() -> None:
    z = axes(2)
    assert_values(cold_limit(z[:1], z[1:]), [0.0])
    assert_values(cold_limit(z[:1], z[1:], z[:1], torch.tensor([0])), [0.0])


@each_form
def test_hot_limit_is_eq_5(form: str) -> None:
    inputs = on_sphere(pair_inputs(form))

    def eq_5(pair: Pair, tau: float) -> float:
        n = 1 + len(pair.negatives)
        return math.log(n) - (n - 1) / (n * tau) * pair.positive + math.fsum(pair.negatives) / (n * tau)

    for tau in (0.5, 20.0):
        assert_values(hot_limit(**inputs, temperature=tau), [eq_5(pair, tau) for pair in pairs(**inputs)])


@each_form
@pytest.mark.parametrize("tau", [10.0, 100.0, 1000.0])
def test_hot_loss_tends_to_eq_5_as_the_second_order_says(form: str, tau: float) -> None:
    """L − (5) = Var_j(s_j)/(2τ²) + O(τ⁻³), s_j over the positive and the negatives.

    The third cumulant of numbers within ±1 is at most twice their variance, so the next term is at most 2/(3τ) of
    this one; the terms after it are smaller by further factors of 1/τ.
    """
    inputs = on_sphere(pair_inputs(form))
    over = InfoNCELoss(tau, reduction="none")(**inputs) - hot_limit(**inputs, temperature=tau)
    for got, pair in zip(over.tolist(), pairs(**inputs), strict=True):
        s = [pair.positive, *pair.negatives]
        mean = math.fsum(s) / len(s)
        variance = math.fsum((x - mean) ** 2 for x in s) / len(s)
        assert got == pytest.approx(variance / (2 * tau**2), rel=1 / tau)


def test_hot_limit_by_hand() -> None:
    # n = 2, s_ii = 1, s_ij = 0: log 2 − 1/(2·100).
    z = axes(2)
    assert_values(hot_limit(z, z, temperature=100.0), [math.log(2) - 0.005] * 2)
