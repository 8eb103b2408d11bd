"""Gradients by hand against loops and autograd: equation numbers are those of `kontrast.geometry.gradients`.

Autograd gives ∂L/∂s when the anchor's coordinates are its similarities: candidates along the axes, rows as they are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from kontrast import geometry, losses
from kontrast.geometry import _rows, gradient_magnitudes, gradient_response, relative_penalty
from tests.geometry.samples import EXACT, FORMS, anchors, clusters, dot, keyed, on_sphere, rows, sphere, unit

TAUS = (0.05, 0.3, 1.0, 10.0)


def slopes(loss: losses.InfoNCELoss, positive: float, negatives: list[float]) -> tuple[float, list[float]]:
    """∂L/∂s by autograd: the positive's, the negatives'."""
    s = torch.tensor([[positive, *negatives]], dtype=torch.float64, requires_grad=True)
    axes = torch.eye(len(negatives) + 1, dtype=torch.float64)
    loss(s, axes[:1], negatives=axes[1:]).backward()
    assert s.grad is not None
    first, *rest = s.grad[0].tolist()
    return first, rest


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("normalize", [True, False])
def test_eq_1_is_autograd_of_info_nce(form: str, tau: float, normalize: bool) -> None:
    inputs = keyed(form, 9)
    found = gradient_magnitudes(**inputs, temperature=tau, normalize=normalize)
    loss = losses.InfoNCELoss(tau, normalize=False, reduction="sum")
    for i, (positive, negatives) in enumerate(anchors(**(on_sphere(inputs) if normalize else inputs))):
        pull, push = slopes(loss, positive, negatives)
        # 1/τ multiplies similarities that are off by some 1e-16; logarithms then lose the smallest probabilities.
        near = {"rel": 1e-9, "abs": 1e-13 / tau**2}
        assert found.positive[i].item() == pytest.approx(-pull, **near)
        assert found.negative[i].item() == pytest.approx(math.fsum(push), **near)
        assert found.hardest[i].item() == pytest.approx(max(push), **near)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", TAUS)
def test_pull_is_the_whole_push(form: str, tau: float) -> None:
    found = gradient_magnitudes(**keyed(form, 30), temperature=tau)
    torch.testing.assert_close(found.positive, found.negative, rtol=1e-10, atol=1e-13 / tau)
    assert bool((found.positive <= 1 / tau).all())
    assert bool((found.hardest <= found.negative * (1 + 1e-12)).all())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tau", TAUS)
def test_eq_2_is_the_relative_penalty_of_the_hardest(form: str, tau: float) -> None:
    inputs = keyed(form, 30)
    expected = relative_penalty(**inputs, temperature=tau).amax(1)
    torch.testing.assert_close(gradient_magnitudes(**inputs, temperature=tau).ratio, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [1e-3, 5e-3, 0.1])
def test_eq_2_where_the_push_is_too_small_for_a_float(dtype: torch.dtype, tau: float) -> None:
    """Positive 1, two negatives 0: e^{−1/τ} vanishes, but each still has half of it."""
    x = torch.eye(3, dtype=dtype)
    found = gradient_magnitudes(x, x, temperature=tau)
    torch.testing.assert_close(found.ratio, torch.full((3,), 0.5, dtype=dtype))
    assert bool(found.positive.isfinite().all())


@pytest.mark.parametrize("tau", [1e-3, 1e-2, 100.0])
def test_magnitudes_at_extreme_temperatures(tau: float) -> None:
    """In float32, where the logarithms are known to some eps/τ, and all is divided by τ."""
    inputs = {k: v.float() if v.is_floating_point() else v for k, v in keyed("bank", 40).items()}
    found = gradient_magnitudes(**inputs, temperature=tau)
    assert all(bool(x.isfinite().all()) for x in (found.positive, found.negative, found.hardest, found.ratio))
    eps = torch.finfo(torch.float32).eps
    torch.testing.assert_close(
        found.positive, found.negative, rtol=4 * eps * (1 + 1 / tau), atol=4 * eps * (1 + 1 / tau) / tau
    )


# ---------------------------------------------------------------------------------------------------- response


class Response(NamedTuple):
    """(3) of one anchor's hardest positive and negative, in plain floats."""

    s_positive: float
    s_negative: float
    x: float
    p: float
    y: float
    q: float


def responses(z: Tensor, labels: list[int], tau: float, k1: float, k2: float) -> dict[int, Response]:
    points = z.tolist()
    found = {}
    for i, a in enumerate(points):
        positives = [dot(a, b) for j, b in enumerate(points) if j != i and labels[j] == labels[i]]
        negatives = [dot(a, b) for j, b in enumerate(points) if labels[j] != labels[i]]
        if not positives:
            continue
        d = math.fsum(math.exp(s / tau) + k1 * math.exp(-s) for s in positives)
        d += k2 * math.fsum(math.exp(s / tau) for s in negatives)  # (4)
        s_p, s_n = min(positives), max(negatives, default=-math.inf)
        found[i] = Response(
            s_p,
            s_n,
            1 / len(positives),
            math.exp(s_p / tau) / d,
            tau * k1 * math.exp(-s_p) / d,
            k2 * math.exp(s_n / tau) / d,
        )
    return found


# One label is there once, so that its anchor has no positive.
LABELS = [4, 4, 9, 4, 2, 9, 2, 2, 4, 7, 9]


@pytest.mark.parametrize("tau", [0.1, 1.0])
@pytest.mark.parametrize(("k1", "k2"), [(0.0, 1.0), (2.0, 1.5), (5000.0, 1.0), (0.0, 0.0), (3.0, 0.0)])
@pytest.mark.parametrize("normalize", [True, False])
def test_eqs_3_to_5(tau: float, k1: float, k2: float, normalize: bool) -> None:
    z = rows(11, 4)
    expected = responses(unit(z) if normalize else z, LABELS, tau, k1, k2)
    found = gradient_response(z, LABELS, temperature=tau, k1=k1, k2=k2, normalize=normalize)
    assert found.anchors.tolist() == list(expected) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 10]
    s_p, s_n, x, p, y, q = (torch.tensor(v, dtype=torch.float64) for v in zip(*expected.values(), strict=True))
    near = {"rtol": 1e-9, "atol": 1e-13}
    torch.testing.assert_close(found.similarity_positive, s_p, **near)
    torch.testing.assert_close(found.similarity_negative, s_n, **near)
    torch.testing.assert_close(found.x, x, **near)
    torch.testing.assert_close(found.p_positive, p, **near)
    torch.testing.assert_close(found.y, y, **near)
    torch.testing.assert_close(found.p_negative, q, **near)
    torch.testing.assert_close(found.positive, (x - p + y).abs(), **near)
    torch.testing.assert_close(found.negative, q, **near)


@pytest.mark.parametrize(
    "loss",
    [
        losses.SupConLoss(0.2, normalize=False),
        losses.TCLLoss(0.2, k1=0.0, k2=1.0, normalize=False),
        losses.TCLLoss(0.2, k1=50.0, k2=1.3, normalize=False),
        losses.TCLLoss(1.0, k1=1.0, k2=1.5, normalize=False),
    ],
    ids=str,
)
def test_eq_5_is_autograd_of_the_losses(loss: losses.SupConLoss | losses.TCLLoss) -> None:
    """τ times ∂L_i/∂s: the anchor in coordinates that are its similarities, the others along the axes."""
    z, labels = unit(rows(11, 4)), torch.tensor(LABELS)
    k1, k2 = (loss.k1, loss.k2) if isinstance(loss, losses.TCLLoss) else (0.0, 1.0)
    found = gradient_response(z, labels, temperature=float(loss.temperature), k1=k1, k2=k2)
    for n, i in enumerate(found.anchors.tolist()):
        others = torch.arange(11) != i
        s = (z[i] @ z[others].T)[None].requires_grad_()
        axes = torch.eye(10, dtype=torch.float64)
        loss(s, labels[[i]], ref_emb=axes, ref_labels=labels[others]).backward()
        assert s.grad is not None
        slope = s.grad[0] * float(loss.temperature)
        same = labels[others] == labels[i]
        hardest_positive = s.detach()[0].masked_fill(~same, torch.inf).argmin()
        hardest_negative = s.detach()[0].masked_fill(same, -torch.inf).argmax()
        assert found.positive[n].item() == pytest.approx(abs(slope[hardest_positive].item()), rel=1e-9)
        assert found.negative[n].item() == pytest.approx(slope[hardest_negative].item(), rel=1e-9)


def test_eq_6_is_what_reaches_the_unnormalised_output() -> None:
    """The part of z_p across z_i: ‖z_p − s z_i‖."""
    x, labels = clusters(30, 4, 3)
    z = unit(x)
    found = gradient_response(x, labels, temperature=0.3, k1=[0.0, 2.0], k2=[1.0, 1.5])
    positive, negative = found.through_normalisation()
    assert positive.shape == (30, 2, 2)
    for i in range(30):
        s = z @ z[i]
        same = labels == labels[i]
        n = s.masked_fill(same, -torch.inf).argmax()
        same[i] = False
        p = s.masked_fill(~same, torch.inf).argmin()
        across = [(z[j] - s[j] * z[i]).norm() for j in (p, n)]
        torch.testing.assert_close(positive[i], found.positive[i] * across[0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(negative[i], found.negative[i] * across[1], rtol=1e-7, atol=1e-9)


def test_eq_6_of_collapsed_classes_is_zero_for_the_positive() -> None:
    z = torch.eye(3, dtype=torch.float64)[torch.arange(12) % 3]
    positive, negative = gradient_response(
        z, torch.arange(12) % 3, temperature=0.5, k1=10.0, k2=1.0
    ).through_normalisation()
    assert positive.tolist() == [0.0] * 12
    assert bool((negative > 0).all())


def test_a_grid_is_as_many_calls() -> None:
    """Equal up to rounding: exponentials of a whole grid and of one number take other instructions on some CPUs.

    Each part is e^t in float64 with |t| ≤ 1/τ + log D < 50: rounding of t and of e^t is at most 100 units, and the
    result is rounded once more to the dtype of the rows. The response is a difference of such parts.
    """
    x, labels = clusters(25, 4, 3)
    unit = 100 * torch.finfo(torch.float64).eps + torch.finfo(x.dtype).eps
    k1s, k2s = [0.0, 1.0, 4000.0], [0.5, 1.0]
    grid = gradient_response(x, labels, temperature=0.1, k1=k1s, k2=k2s)
    assert grid.positive.shape == grid.negative.shape == (25, 3, 2)
    for i, k1 in enumerate(k1s):
        for j, k2 in enumerate(k2s):
            one = gradient_response(x, labels, temperature=0.1, k1=k1, k2=k2)
            assert one.positive.shape == (25,)
            for name in ("x", "p_positive", "y", "p_negative", "negative"):
                assert torch.allclose(getattr(grid, name)[:, i, j], getattr(one, name), rtol=unit, atol=0), name
            within = unit * (one.x + one.p_positive + one.y)
            assert bool(((grid.positive[:, i, j] - one.positive).abs() <= within).all())


def test_a_list_beside_a_number_is_a_grid_of_one_column() -> None:
    x, labels = clusters(25, 4, 3)
    assert gradient_response(x, labels, temperature=0.1, k1=[0.0, 1.0], k2=1.0).positive.shape == (25, 2, 1)
    assert gradient_response(x, labels, temperature=0.1, k1=1.0, k2=[1.0]).positive.shape == (25, 1, 1)


@pytest.mark.parametrize("kind", [int, np.float64, np.float32, np.int64])
def test_numbers_of_any_kind(kind: Any) -> None:
    x, labels = clusters(25, 4, 3)
    found = gradient_response(x, labels, temperature=kind(1), k1=kind(2), k2=kind(1))
    assert torch.equal(found.positive, gradient_response(x, labels, temperature=1.0, k1=2.0, k2=1.0).positive)


@pytest.mark.parametrize("bad", [-1.0, float("nan"), "1", None, [], [1.0, -2.0]])
@pytest.mark.parametrize("name", ["k1", "k2"])
def test_wrong_k(name: str, bad: Any) -> None:
    x, labels = clusters(25, 4, 3)
    with pytest.raises(ValueError, match=name):
        gradient_response(x, labels, temperature=0.1, **({"k1": 1.0, "k2": 1.0} | {name: bad}))


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), "1", [0.1]])
def test_wrong_temperature(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"temperature=.*: must be a finite number above 0"):
        gradient_response(*clusters(25, 4, 3), temperature=bad, k1=0.0, k2=1.0)
    with pytest.raises(ValueError, match=r"temperature=.*: must be a finite number above 0"):
        gradient_magnitudes(**keyed("batch", 9), temperature=bad)


def test_a_batch_of_one_class_has_no_negatives() -> None:
    z = rows(8, 3)
    found = gradient_response(z, [5] * 8, temperature=0.3, k1=1.0, k2=1.0)
    assert found.similarity_negative.tolist() == [-math.inf] * 8
    assert found.negative.tolist() == [0.0] * 8
    expected = responses(unit(z), [5] * 8, 0.3, 1.0, 1.0)
    assert found.positive.tolist() == pytest.approx([abs(r.x - r.p + r.y) for r in expected.values()], rel=1e-9)
    positive, negative = found.through_normalisation()
    assert negative.tolist() == [0.0] * 8
    assert bool(positive.isfinite().all())


def test_the_shares_of_an_anchor_sum_to_one() -> None:
    """Two rows of a class and one other: P_p + Y_p/τ + P_n = 1."""
    found = gradient_response(rows(3, 4), [0, 0, 1], temperature=0.4, k1=3.0, k2=2.0)
    total = found.p_positive + found.y / 0.4 + found.p_negative
    torch.testing.assert_close(total, torch.ones(2, dtype=torch.float64), **EXACT)


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_theorem_1_holds_for_the_hardest_positive(tau: float) -> None:
    """k1, k2 ≥ 1: TCL answers a hard positive more than SupCon does."""
    for seed in range(10):
        x, labels = clusters(60, 5, 4, seed=seed, spread=1.5)
        found = gradient_response(x, labels, temperature=tau, k1=[0.0, 1.0, 5000.0], k2=[1.0, 1.5]).positive
        assert bool((found[:, 1:] > found[:, :1, :1]).all())


def test_theorem_2_the_push_rises_with_k2_and_falls_with_k1() -> None:
    x, labels = clusters(60, 5, 4)
    found = gradient_response(x, labels, temperature=0.2, k1=[0.0, 1.0, 100.0], k2=[0.5, 1.0, 1.2, 3.0])
    assert bool((found.negative.diff(dim=2) > 0).all())
    assert bool((found.negative.diff(dim=1) < 0).all())
    assert bool((found.p_positive.diff(dim=2) < 0).all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tau", [1e-3, 1e-2, 100.0])
@pytest.mark.parametrize("k1", [0.0, 5000.0])
def test_response_at_extreme_temperatures(dtype: torch.dtype, tau: float, k1: float) -> None:
    x, labels = clusters(60, 5, 4)
    found = gradient_response(x.to(dtype), labels, temperature=tau, k1=k1, k2=1.0)
    for response in (found.positive, found.negative, *found.through_normalisation()):
        assert bool(response.isfinite().all())
    # Probabilities, and X: sums are of logarithms that are known to eps/τ.
    slack = 1 + 100 * torch.finfo(dtype).eps / min(tau, 1.0)
    assert bool((found.p_positive <= slack).all())
    assert bool((found.p_negative <= slack).all())


def test_collapsed_rows() -> None:
    """All equal, four classes of five: P = 1/19 and X = 1/4, for SupCon."""
    z = sphere(1, 6).repeat(20, 1)
    found = gradient_response(z, torch.arange(20) % 4, temperature=0.1, k1=0.0, k2=1.0)
    assert found.positive.tolist() == pytest.approx([1 / 4 - 1 / 19] * 20, rel=1e-10)
    assert found.negative.tolist() == pytest.approx([1 / 19] * 20, rel=1e-10)


@pytest.mark.parametrize("counts", [[1, 40, 2], [20, 20], [3] * 20, [1, 1, 1, 2]])
def test_strips_that_cut_through_classes(monkeypatch: pytest.MonkeyPatch, counts: list[int]) -> None:
    """Strips of 16 rows: within a class, across several, and classes of one."""
    monkeypatch.setattr(_rows, "STRIP", 1)
    labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    labels = labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))]
    z = rows(len(labels), 3)
    expected = responses(unit(z), labels.tolist(), 0.3, 2.0, 1.5)
    found = gradient_response(z, labels, temperature=0.3, k1=2.0, k2=1.5)
    assert found.anchors.tolist() == list(expected)
    assert found.positive.tolist() == pytest.approx([abs(r.x - r.p + r.y) for r in expected.values()], rel=1e-9)
    assert found.negative.tolist() == pytest.approx([r.q for r in expected.values()], rel=1e-9)


def test_some_anchors_are_those_of_all() -> None:
    x, labels = clusters(60, 4, 5)
    every = geometry.gradient_response(x, labels, temperature=0.2, k1=[0.0, 7.0], k2=[1.0, 1.5])
    rows_wanted = torch.tensor([41, 3, 17, 58])
    some = geometry.gradient_response(x, labels, temperature=0.2, k1=[0.0, 7.0], k2=[1.0, 1.5], anchors=rows_wanted)
    assert some.anchors.tolist() == rows_wanted.tolist()
    for name in ("similarity_positive", "similarity_negative", "x", "p_positive", "y", "p_negative"):
        torch.testing.assert_close(getattr(some, name), getattr(every, name)[rows_wanted], rtol=1e-12, atol=0)


@pytest.mark.parametrize("anchors", [[], [60], [-1], [0.5]])
def test_wrong_anchors(anchors: list[float]) -> None:
    x, labels = clusters(60, 4, 5)
    with pytest.raises(ValueError, match="anchors"):
        geometry.gradient_response(x, labels, temperature=0.2, k1=1.0, k2=1.0, anchors=anchors)


def test_through_normalisation_is_of_unit_rows_only() -> None:
    x, labels = clusters(60, 4, 5)
    found = geometry.gradient_response(3 * x, labels, temperature=0.2, k1=1.0, k2=1.0, normalize=False)
    with pytest.raises(ValueError, match="unit rows"):
        found.through_normalisation()
