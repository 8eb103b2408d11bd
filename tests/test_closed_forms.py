"""Lower bounds: equation numbers are those of `kontrast.closed_forms`, the losses are the real ones."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath
import pytest
import torch
from scipy import optimize
from torch import Tensor

from kontrast import losses
from kontrast.geometry import bounds, gradient_response
from kontrast.simplex import vertices
from tests.descent import arrangements, assert_not_below, descend, in_ball
from tests.geometry.samples import rows, sphere

# ------------------------------------------------------------------------------------------------- cross-entropy


def classifier(weight: Tensor, penalty: float = 0.0, reduction: str = "mean") -> losses.CrossEntropyLoss:
    """The loss with these weights."""
    loss = losses.CrossEntropyLoss(*weight.shape, weight_penalty=penalty, reduction=reduction)
    loss.weight = torch.nn.Parameter(weight.detach().clone())
    return loss


@pytest.mark.parametrize("k", [2, 4, 10, 100])
@pytest.mark.parametrize(("radius", "length"), [(1.0, 1.0), (0.3, 2.0), (5.0, 3.0)])
def test_eq_1_is_reached_at_the_simplex(k: int, radius: float, length: float) -> None:
    v = vertices(k, k + 1, seed=0, dtype=torch.float64)
    found = classifier(length * v)(radius * v.repeat(3, 1), torch.arange(3 * k) % k)
    assert found.item() == pytest.approx(bounds.cross_entropy(k, radius, length * math.sqrt(k)), rel=1e-10)
    assert found.item() == pytest.approx(math.log1p((k - 1) * math.exp(-k * radius * length / (k - 1))), rel=1e-10)


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("radius", [0.5, 2.0])
@pytest.mark.parametrize("dim", [2, 6])
def test_eq_1_holds_for_points_and_weights_that_descend(k: int, radius: float, dim: int) -> None:
    """Both free, points kept in the ball, weights of whatever norm they have come to."""
    labels = torch.arange(2 * k) % k
    for seed in range(2):
        z, w = rows(2 * k, dim, seed=seed).requires_grad_(), rows(k, dim, seed=seed + 50).requires_grad_()
        optimiser = torch.optim.Adam([z, w], lr=0.1)
        for _ in range(50):
            loss = classifier(w)
            value = loss(in_ball(z, radius), labels)
            assert_not_below(value.item(), bounds.cross_entropy(k, radius, w.detach().norm().item()), f"seed {seed}")
            optimiser.zero_grad()
            value.backward()
            w.grad = loss.weight.grad
            optimiser.step()


def test_eq_1_is_come_near_to() -> None:
    """Weights fixed at the simplex, points free: they go to the edge of the ball, towards their weights."""
    w = 2 * vertices(4, dtype=torch.float64)
    labels, loss = torch.arange(8) % 4, classifier(w)
    bound = bounds.cross_entropy(4, 1.5, 4.0)
    last = descend(
        lambda z: loss(in_ball(z, 1.5), labels), [rows(8, 3)], lambda value: assert_not_below(value, bound), steps=600
    )
    assert last == pytest.approx(bound, rel=1e-4)


SHARES = [[4, 4, 0], [7, 1, 1], [1, 2, 5], [9, 0, 0], [3, 3, 3]]


@pytest.mark.parametrize("counts", SHARES)
@pytest.mark.parametrize("norm", [0.5, 4.0])
def test_eq_9_holds_for_labels_of_any_kind(counts: list[int], norm: float) -> None:
    """Points free in the ball, weights free on the sphere of their norm."""
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(counts))
    bound = bounds.cross_entropy_any([c / len(labels) for c in counts], 1.0, norm)
    for seed in range(2):
        z, w = rows(len(labels), 3, seed=seed).requires_grad_(), rows(3, 3, seed=seed + 50).requires_grad_()
        optimiser = torch.optim.Adam([z, w], lr=0.1)
        for _ in range(60):
            weight = w * (norm / w.norm())
            loss = classifier(weight)
            value = loss(in_ball(z, 1.0), labels)
            assert_not_below(value.item(), bound, f"seed {seed}")
            optimiser.zero_grad()
            value.backward()
            w.grad = torch.autograd.grad(weight, w, loss.weight.grad)[0]
            optimiser.step()


def test_eq_1_is_no_bound_for_unbalanced_labels_but_eq_9_is() -> None:
    """Two of three classes at opposite weights: below the balanced formula."""
    w = torch.tensor([[1.0, 0], [-1.0, 0], [0, 0]], dtype=torch.float64) / math.sqrt(2)
    z = torch.tensor([[1.0, 0], [-1.0, 0]], dtype=torch.float64)
    found = classifier(w)(z, torch.tensor([0, 1])).item()
    assert found < bounds.cross_entropy(3, 1.0, 1.0) - 0.05
    assert_not_below(found, bounds.cross_entropy_any([0.5, 0.5, 0.0], 1.0, 1.0))


@pytest.mark.parametrize("k", [2, 4, 10, 100])
def test_eq_9_of_equal_shares_is_eq_1(k: int) -> None:
    assert bounds.cross_entropy_any([1 / k] * k, 0.7, 3.0) == pytest.approx(
        bounds.cross_entropy(k, 0.7, 3.0), rel=1e-12
    )


def test_eq_1_keeps_its_digits_far_out() -> None:
    """log(1 + x) for x of 1e-30, and no overflow for what cannot be."""
    assert bounds.cross_entropy(3, 10.0, 10.0) == pytest.approx(2 * math.exp(-math.sqrt(3) * 50), rel=1e-12, abs=0)
    assert bounds.cross_entropy(3, 1e6, 1e6) == 0.0
    assert bounds.cross_entropy(3, 0.0, 5.0) == pytest.approx(math.log(3), rel=1e-15)


# ---------------------------------------------------------------------------------------------- its penalised form


def at_radius(r: float, k: int, rho: float, penalty: float) -> float:
    return math.log1p((k - 1) * math.exp(-k * rho * r / (k - 1))) + penalty * k * r * r


@pytest.mark.parametrize(("k", "penalty", "known"), [(4, 0.005, 2.6583), (4, 0.05, 1.2281), (10, 1e-4, 6.0375)])
def test_eq_2_known_radii(k: int, penalty: float, known: float) -> None:
    assert round(bounds.regularised_weight_radius(k, 1.0, penalty), 4) == known


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
@pytest.mark.parametrize("rho", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("penalty", [1e-8, 1e-3, 0.1, 50.0])
def test_eq_2_is_the_root_and_the_minimum(k: int, rho: float, penalty: float) -> None:
    r = bounds.regularised_weight_radius(k, rho, penalty)
    left = math.log(2 * penalty * r) + math.log(math.exp(k * rho * r / (k - 1)) + k - 1)
    assert left == pytest.approx(math.log(rho), abs=1e-10)
    best = optimize.minimize_scalar(
        at_radius, bounds=(0, 4 * r), args=(k, rho, penalty), method="bounded", options={"xatol": 1e-10 * r}
    )
    found = bounds.regularised_cross_entropy(k, rho, penalty)
    assert found == pytest.approx(at_radius(r, k, rho, penalty), rel=1e-10)
    # A minimum is flat: it is known to the square of the radius's precision.
    assert found == pytest.approx(best.fun, rel=1e-9)


def test_eq_2_is_reached_by_points_and_weights_that_descend() -> None:
    k, rho, penalty = 4, 1.0, 0.05
    labels = torch.arange(8) % k
    bound = bounds.regularised_cross_entropy(k, rho, penalty)
    z, w = rows(8, 3).requires_grad_(), rows(k, 3, seed=1).requires_grad_()
    optimiser = torch.optim.Adam([z, w], lr=0.03)
    value = math.inf
    for _ in range(600):
        loss = classifier(w, penalty)
        found = loss(in_ball(z, rho), labels)
        value = found.item()
        assert_not_below(value, bound)
        optimiser.zero_grad()
        found.backward()
        w.grad = loss.weight.grad
        optimiser.step()
    assert value == pytest.approx(bound, rel=1e-4)
    lengths = w.detach().norm(dim=1)
    # The value is flat there, so the lengths are known to the root of its precision.
    assert lengths.tolist() == pytest.approx([bounds.regularised_weight_radius(k, rho, penalty)] * k, rel=1e-2)


@pytest.mark.parametrize("seed", range(5))
def test_eq_2_holds_for_weights_of_any_norm(seed: int) -> None:
    bound = bounds.regularised_cross_entropy(3, 2.0, 0.01)
    labels = torch.arange(6) % 3
    for scale in (0.0, 0.3, 1.0, 3.0):
        found = classifier(scale * rows(3, 4, seed=seed), 0.01)(in_ball(9 * rows(6, 4, seed=seed + 9), 2.0), labels)
        assert_not_below(found.item(), bound)


# ----------------------------------------------------------------------------------------------------- all batches


def all_batches(z: Tensor, labels: Tensor, batch_size: int, radius: float) -> float:
    """L_SC of Graf et al.: every multiset of this many samples, with the real loss; ρ² = 1/τ on unit rows."""
    loss = losses.SupConLoss(1 / radius**2, reduction="sum")
    found = []
    for batch in itertools.combinations_with_replacement(range(len(z)), batch_size):
        chosen = list(batch)
        if max(Counter(labels[chosen].tolist()).values()) > 1:
            found.append(loss(z[chosen], labels[chosen]).item())
    return math.fsum(found)


@pytest.mark.parametrize(
    ("k", "n", "b", "radius", "known"),
    [(3, 3, 4, 1.0, 908.1147), (3, 2, 5, 1.0, 912.1781), (4, 2, 4, 1.3, 398.3715), (3, 3, 9, 1.0, 298599.830)],
)
def test_eq_3_known_values(k: int, n: int, b: int, radius: float, known: float) -> None:
    assert bounds.supcon_all_batches(k, n, b, radius) == pytest.approx(known, abs=6e-4 if known > 1e5 else 6e-5)


def test_eq_3_value_stored_in_the_authors_notebook() -> None:
    assert round(bounds.supcon_all_batches(3, per_class=2, batch_size=9), 3) == 25205.689


@pytest.mark.parametrize(("k", "n", "b", "radius"), [(3, 2, 4, 1.0), (2, 3, 3, 1.4), (4, 1, 3, 0.8), (2, 2, 5, 2.0)])
def test_eq_3_is_reached_at_the_simplex_and_held_elsewhere(k: int, n: int, b: int, radius: float) -> None:
    labels = torch.arange(n * k) % k
    bound = bounds.supcon_all_batches(k, n, b, radius)
    at_simplex = all_batches(vertices(k, 3, dtype=torch.float64)[labels], labels, b, radius)
    assert at_simplex == pytest.approx(bound, rel=1e-10)
    for name, z in arrangements(labels, 3).items():
        assert_not_below(all_batches(z, labels, b, radius), bound, name)


def test_eq_3_random_points_are_well_above() -> None:
    labels = torch.arange(6) % 3
    assert all_batches(sphere(6, 2), labels, 4, 1.0) > bounds.supcon_all_batches(3, 2, 4) + 10


@pytest.mark.parametrize(("k", "n", "b"), [(2, 2, 2), (3, 2, 4), (2, 3, 5), (4, 1, 3)])
def test_eq_3_counts_batches(k: int, n: int, b: int) -> None:
    labels = [i % k for i in range(n * k)]
    found: Counter[int] = Counter()
    for batch in itertools.combinations_with_replacement(range(n * k), b):
        counts = Counter(labels[i] for i in batch)
        found.update(counts[c] for c in range(k))
    assert [bounds.batches_with(k, n, b, m) for m in range(b + 1)] == [found[m] for m in range(b + 1)]


def test_eq_3_beyond_float64() -> None:
    with pytest.raises(ValueError, match=r"beyond float64.*supcon_batch"):
        bounds.supcon_all_batches(100, per_class=500, batch_size=512)


# ------------------------------------------------------------------------------------------------------- one batch

BALANCED = [(2, 2, 0.1), (2, 5, 1.0), (3, 2, 0.5), (4, 3, 0.2), (6, 2, 10.0), (3, 4, 0.07)]


@pytest.mark.parametrize(("k", "m", "tau"), BALANCED)
@pytest.mark.parametrize("form", ["out", "in"])
def test_eq_4(k: int, m: int, tau: float, form: str) -> None:
    """Reached at the simplex, held by whatever else: in more dimensions than needed and in fewer, on the way down."""
    loss, labels = losses.SupConLoss(tau, form=form), torch.arange(k * m) % k
    bound = bounds.supcon_batch(k, m, tau)
    assert bound == pytest.approx(math.log(m - 1 + (k - 1) * m * math.exp(-k / ((k - 1) * tau))), rel=1e-12, abs=1e-15)
    at_simplex = loss(vertices(k, 7, seed=0, dtype=torch.float64)[labels], labels).item()
    assert at_simplex == pytest.approx(bound, rel=1e-9, abs=1e-14)
    for dim in (2, 7):
        for name, z in arrangements(labels, dim).items():
            assert_not_below(loss(z, labels).item(), bound, name)
            if name in ("random 0", "samples at two poles", "simplex with noise 0.1"):
                descend(lambda z: loss(z, labels), [z], lambda v, name=name: assert_not_below(v, bound, name), steps=40)


@pytest.mark.parametrize(("k", "m", "tau"), BALANCED)
@pytest.mark.parametrize(("k1", "k2"), [(0.0, 1.0), (1.0, 1.5), (5000.0, 1.0), (2.0, 0.0)])
def test_eq_5(k: int, m: int, tau: float, k1: float, k2: float) -> None:
    loss, labels = losses.TCLLoss(tau, k1=k1, k2=k2), torch.arange(k * m) % k
    bound = bounds.tcl_batch(k, m, tau, k1, k2)
    apart = math.exp(-k / ((k - 1) * tau))
    expected = math.log((m - 1) * (1 + k1 * math.exp(-1 - 1 / tau)) + k2 * (k - 1) * m * apart)
    assert bound == pytest.approx(expected, rel=1e-12, abs=1e-15)
    at_simplex = loss(vertices(k, 7, seed=0, dtype=torch.float64)[labels], labels).item()
    assert at_simplex == pytest.approx(bound, rel=1e-9, abs=1e-14)
    for name, z in arrangements(labels, 5).items():
        assert_not_below(loss(z, labels).item(), bound, name)
    descend(lambda z: loss(z, labels), [sphere(k * m, 5)], lambda v: assert_not_below(v, bound), steps=40)


def test_eqs_4_to_6_are_come_near_to() -> None:
    """Free points on the sphere, from random starts."""
    labels = torch.arange(6) % 3
    problems = [
        (lambda z: losses.SupConLoss(0.5)(z, labels), bounds.supcon_batch(3, 2, 0.5), 1),
        (lambda z: losses.TCLLoss(0.5, k1=5.0, k2=1.2)(z, labels), bounds.tcl_batch(3, 2, 0.5, 5.0, 1.2), 1),
        (lambda q, k: losses.InfoNCELoss(0.5)(q, k), bounds.info_nce(6, 0.5), 2),
    ]
    for loss, bound, inputs in problems:
        last = descend(
            loss,
            [sphere(6, 6, seed=i) for i in range(inputs)],
            lambda value, bound=bound: assert_not_below(value, bound),
            steps=500,
        )
        assert last == pytest.approx(bound, rel=1e-4)


PAIRS = [(2, 0.1), (2, 1.0), (3, 0.3), (7, 0.2), (7, 10.0), (12, 0.07)]


@pytest.mark.parametrize(("n", "tau"), PAIRS)
def test_eq_6(n: int, tau: float) -> None:
    """Queries and keys free of each other: also all queries opposite all keys, and keys at a simplex's negative."""
    loss, bound = losses.InfoNCELoss(tau), bounds.info_nce(n, tau)
    assert bound == pytest.approx(math.log1p((n - 1) * math.exp(-n / ((n - 1) * tau))), rel=1e-9, abs=1e-14)
    v = vertices(n, n + 2, seed=0, dtype=torch.float64)
    assert loss(v, v).item() == pytest.approx(bound, rel=1e-9, abs=1e-14)
    keys = {f"{name} keys": z for name, z in arrangements(torch.arange(n), n + 2).items()}
    for name, q in arrangements(torch.arange(n), n + 2).items():
        for other, k in keys.items():
            assert_not_below(loss(q, k).item(), bound, f"{name}, {other}")
            assert_not_below(loss(q, -k).item(), bound, f"{name}, opposite {other}")
    for dim in (1, 2, n):
        start = [sphere(n, dim, seed=1), sphere(n, dim, seed=2)]
        descend(lambda q, k: loss(q, k), start, lambda v: assert_not_below(v, bound), steps=40)


@pytest.mark.parametrize(("n", "tau"), PAIRS)
def test_eq_6_counts_each_pair_once_more_for_both_views_as_anchors(n: int, tau: float) -> None:
    """NT-Xent of N pairs is SupCon's (4) with N classes of two."""
    v = vertices(n, n, dtype=torch.float64)
    found = losses.NTXentLoss(tau)(v, v).item()
    assert found == pytest.approx(bounds.supcon_batch(n, 2, tau), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(("m", "tau"), [(1, 0.1), (5, 0.5), (40, 1.0), (40, 10.0)])
def test_eq_7(m: int, tau: float) -> None:
    """Negatives opposite reach it; no others, and no queries, keys and negatives on their way down, go below."""
    loss, bound = losses.InfoNCELoss(tau), bounds.info_nce_queue(m, tau)
    assert bound == pytest.approx(math.log1p(m * math.exp(-2 / tau)), rel=1e-9, abs=1e-14)
    q = sphere(1, 4).repeat(3, 1)
    assert loss(q, q, negatives=-q[:1].repeat(m, 1)).item() == pytest.approx(bound, rel=1e-9, abs=1e-14)
    for seed in range(3):
        start = [sphere(3, 4, seed=seed), sphere(3, 4, seed=seed + 5), sphere(m, 4, seed=seed + 9)]
        descend(lambda q, k, c: loss(q, k, negatives=c), start, lambda v: assert_not_below(v, bound), steps=50)


@pytest.mark.parametrize(("n", "m", "tau"), [(2, 1, 0.1), (2, 5, 1.0), (6, 4, 0.5), (6, 40, 10.0)])
def test_eq_10(n: int, m: int, tau: float) -> None:
    """Nothing goes below it: not the simplex, nor all queries and keys at one pole and the rows given at the other, nor
    anything between, and no points on their way down."""
    loss, bound = losses.InfoNCELoss(tau, negatives_in_batch=True), bounds.info_nce_beside(n, m, tau)
    gaps = (n - 1) * math.exp(-n / ((n - 1) * tau)) + m * math.exp(-2 / tau)
    assert bound == pytest.approx(math.log1p(gaps), rel=1e-9, abs=1e-14)
    v = torch.nn.functional.pad(vertices(n, n, dtype=torch.float64), (0, 1))
    pole = torch.zeros(n + 1, dtype=torch.float64)
    pole[-1] = 1.0
    for lean in (0.0, 0.3, 0.7, 1.0):  # from the simplex to the pole
        for other in (lean, 0.5 * lean):
            q, k = ((1 - a * a) ** 0.5 * v + a * pole for a in (lean, other))
            assert_not_below(loss(q, k, negatives=-pole.repeat(m, 1)).item(), bound, f"{lean}, {other}")
    for dim in (1, 2, n):
        start = [sphere(rows, dim, seed=seed) for seed, rows in enumerate((n, n, m))]
        descend(lambda q, k, c: loss(q, k, negatives=c), start, lambda v: assert_not_below(v, bound), steps=40)


# ------------------------------------------------------------------------------------------------ unbalanced labels


def any_labels(counts: list[int], tau: float) -> float:
    """(8), over the anchors that have a positive."""
    b = sum(counts)
    each = [math.log(c - 1 + (b - c) * math.exp(-2 / tau)) for c in counts if c > 1 for _ in range(c)]
    return math.fsum(each) / len(each)


def at_the_simplex(counts: list[int], tau: float) -> float:
    """What (4) would say if it were about any labels."""
    k, b = len(counts), sum(counts)
    each = [math.log(c - 1 + (b - c) * math.exp(-k / ((k - 1) * tau))) for c in counts if c > 1 for _ in range(c)]
    return math.fsum(each) / len(each)


@pytest.mark.parametrize("counts", [[8, 8, 1], [5, 3, 1], [7, 5, 1, 1]])
def test_the_simplex_is_no_bound_for_unbalanced_labels_but_eq_8_is(counts: list[int]) -> None:
    """Two large classes opposite each other, the rest across: below what the simplex has."""
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    places = torch.eye(len(counts), dtype=torch.float64)
    places[1] = -places[0]
    found = losses.SupConLoss(1.0)(places[labels], labels).item()
    assert found < at_the_simplex(counts, 1.0) - 1e-3
    assert_not_below(found, any_labels(counts, 1.0))


@pytest.mark.parametrize("counts", [[5, 2], [1, 6], [4, 3, 2], [6, 1, 1, 1], [2, 3, 4, 1]])
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_eq_8_holds_for_labels_of_any_kind(counts: list[int], tau: float) -> None:
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    loss, bound = losses.SupConLoss(tau), any_labels(counts, tau)
    for name, z in arrangements(labels, 4).items():
        assert_not_below(loss(z, labels).item(), bound, name)
    descend(lambda z: loss(z, labels), [sphere(len(labels), 4)], lambda v: assert_not_below(v, bound), steps=50)


def test_eq_8_is_reached_by_two_classes() -> None:
    labels = torch.tensor([0, 0, 0, 0, 0, 1, 1])
    poles = torch.tensor([[0.6, 0.8], [-0.6, -0.8]], dtype=torch.float64)
    assert losses.SupConLoss(0.7)(poles[labels], labels).item() == pytest.approx(any_labels([5, 2], 0.7), rel=1e-12)


# -------------------------------------------------------------------------------------------------------- the rest


@pytest.mark.parametrize("tau", [0.3, 2.0])
@pytest.mark.parametrize(("k1", "k2"), [(0.0, 1.0), (4.0, 1.5), (4.0, 0.0)])
def test_anchor_value_is_the_loss_of_an_anchor_so_placed(tau: float, k1: float, k2: float) -> None:
    """Three positives at one similarity and four negatives at another, by TCL against a reference set."""
    for s_p, s_n in itertools.product((-1.0, 0.0, 0.4, 1.0), repeat=2):
        anchor = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
        near, far = ([s, math.sqrt(1 - s * s)] for s in (s_p, s_n))
        others = torch.tensor([near] * 3 + [far] * 4, dtype=torch.float64)
        loss = losses.TCLLoss(tau, k1=k1, k2=k2)
        found = loss(anchor, [0], ref_emb=others, ref_labels=[0] * 3 + [1] * 4).item()
        assert bounds.anchor_value(3, 4, s_p, s_n, temperature=tau, k1=k1, k2=k2) == pytest.approx(found, rel=1e-10)


def test_anchor_value_without_positives_is_zero() -> None:
    assert bounds.anchor_value(0, 4, 0.0, 0.0, temperature=0.1) == 0.0


@pytest.mark.parametrize("tau", [0.02, 0.05, 0.1])
def test_bounds_near_zero_keep_their_digits(tau: float) -> None:
    """As the losses do: log(1 + x) is x for x = 1e-24, not 0."""
    with mpmath.workdps(60):
        batch = mpmath.log(1 + 9 * mpmath.exp(-mpmath.mpf(10) / 9 / mpmath.mpf(tau)))
        queue = mpmath.log(1 + 9 * mpmath.exp(-2 / mpmath.mpf(tau)))
    assert bounds.info_nce(10, tau) == pytest.approx(float(batch), rel=1e-10, abs=0)
    assert bounds.info_nce_queue(9, tau) == pytest.approx(float(queue), rel=1e-10, abs=0)
    v = vertices(10, dtype=torch.float64)
    assert losses.InfoNCELoss(tau)(v, v).item() == pytest.approx(float(batch), rel=1e-9, abs=0)


@pytest.mark.parametrize(("k", "m", "tau"), BALANCED)
@pytest.mark.parametrize(("k1", "k2"), [(0.0, 1.0), (2.0, 1.5), (5000.0, 1.0)])
def test_simplex_response_is_the_gradient_response_there(k: int, m: int, tau: float, k1: float, k2: float) -> None:
    labels = torch.arange(k * m) % k
    z = vertices(k, dtype=torch.float64)[labels]
    found = gradient_response(z, labels, temperature=tau, k1=k1, k2=k2)
    positive, negative = bounds.simplex_response(k, m, tau, k1=k1, k2=k2)
    # For two of a class and a cold temperature X − P is a difference of numbers near 1.
    assert found.positive.tolist() == pytest.approx([positive] * len(labels), rel=1e-9, abs=1e-14)
    assert found.negative.tolist() == pytest.approx([negative] * len(labels), rel=1e-9, abs=0)


def test_bounds_fall_with_the_temperature_and_rise_with_the_number() -> None:
    assert bounds.info_nce(8, 0.1) < bounds.info_nce(8, 0.5) < bounds.info_nce(16, 0.5) < math.log(16)
    assert bounds.info_nce_queue(8, 0.1) < bounds.info_nce_queue(8, 0.5) < bounds.info_nce_queue(16, 0.5)
    assert bounds.supcon_batch(4, 4, 0.1) < bounds.supcon_batch(4, 4, 0.5) < bounds.supcon_batch(4, 8, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.cross_entropy(1, 1.0, 1.0), "num_classes=.*: must be a whole number of at least 2"),
        (lambda: bounds.cross_entropy(3, -1.0, 1.0), "radius=.*: must be a finite number of at least 0"),
        (lambda: bounds.cross_entropy(3, 1.0, float("nan")), "weight_norm=.*: must be a finite number of"),
        (lambda: bounds.cross_entropy_any([0.5, 0.6], 1.0, 1.0), "shares must sum to 1"),
        (lambda: bounds.cross_entropy_any([1.0], 1.0, 1.0), "number of shares"),
        (lambda: bounds.cross_entropy_any([1.5, -0.5], 1.0, 1.0), "shares"),
        (lambda: bounds.cross_entropy_any([0.5, 0.5], -1.0, 1.0), "radius=.*: must be a finite number of at least 0"),
        (
            lambda: bounds.cross_entropy_any([0.5, 0.5], 1.0, -1.0),
            "weight_norm=.*: must be a finite number of",
        ),
        (lambda: bounds.regularised_weight_radius(3, 1.0, 0.0), "penalty=.*: must be a finite number above 0"),
        (lambda: bounds.regularised_weight_radius(3, 0.0, 1.0), "radius=.*: must be a finite number above 0"),
        (lambda: bounds.supcon_all_batches(3, 0, 4), "per_class=.*: must be a whole number of at least 1"),
        (lambda: bounds.supcon_all_batches(3, 2, 1), "batch_size=.*: must be a whole number of at least 2"),
        (lambda: bounds.supcon_batch(3, 1, 0.1), "per_class=.*: must be a whole number of at least 2"),
        (lambda: bounds.supcon_batch(3, 2, 0.0), "temperature=.*: must be a finite number above 0"),
        (lambda: bounds.tcl_batch(3, 2, 0.1, k1=-1.0, k2=1.0), "k1=.*: must be a finite number of at least 0"),
        (lambda: bounds.tcl_batch(3, 2, 0.1, k1=1.0, k2=-1.0), "k2=.*: must be a finite number of at least 0"),
        (lambda: bounds.info_nce(1, 0.1), "num_pairs=.*: must be a whole number of at least 2"),
        (lambda: bounds.info_nce(2.5, 0.1), "num_pairs=.*: must be a whole number of at least 2"),
        (lambda: bounds.info_nce_queue(0, 0.1), "num_negatives=.*: must be a whole number of at least 1"),
        (lambda: bounds.info_nce_beside(1, 5, 0.1), "num_pairs=.*: must be a whole number of at least 2"),
        (lambda: bounds.info_nce_beside(2, 0, 0.1), "num_negatives=.*: must be a whole number of at least 1"),
    ],
)
def test_errors(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
