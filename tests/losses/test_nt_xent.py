"""NT-Xent against SimCLR's equation, (1) of losses/nt_xent.py, and against the losses it is a case of."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.losses import InfoNCELoss, NTXentLoss, SupConLoss
from kontrast.losses.nt_xent import reference
from tests.losses.literal import (
    EXACT,
    D,
    N,
    Row,
    assert_same,
    assert_values,
    axes,
    dot,
    far_out,
    in_both_roles,
    points,
    rows,
    unit,
    value_and_gradients,
)


def two_views(*, seed: int = 0) -> dict[str, Tensor]:
    return {"view1": rows(N, D, seed=seed), "view2": rows(N, D, seed=seed + 1)}


def eq_1(z: list[Row], i: int, tau: float) -> float:
    """z holds the first views, then the second ones."""
    other = (i + len(z) // 2) % len(z)
    total = math.fsum(math.exp(dot(z[i], z[k]) / tau) for k in range(len(z)) if k != i)
    return -math.log(math.exp(dot(z[i], z[other]) / tau) / total)


@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_is_eq_1(tau: float) -> None:
    views = two_views()
    z = unit(torch.cat([views["view1"], views["view2"]])).tolist()
    expected = [eq_1(z, i + v * N, tau) for i in range(N) for v in range(2)]
    first, second = unit(views["view1"]), unit(views["view2"])
    assert_values(reference(first, second, temperature=tau), expected, N, 2)
    assert_values(NTXentLoss(tau, reduction="none")(**views), expected, N, 2)


def test_value_is_eq_1_where_a_maximum_is_subtracted() -> None:
    views = far_out(two_views())
    z = torch.cat(list(views.values())).tolist()
    expected = [eq_1(z, i + v * N, 1.0) for i in range(N) for v in range(2)]
    assert_values(NTXentLoss(1.0, normalize=False, reduction="none")(**views), expected, N, 2)


def test_gradient_of_eq_1_in_both_roles() -> None:
    """∂L_i/∂s_ik = (P_ik − 1[k = j(i)])/τ, P the softmax over all but i."""
    tau = 0.3
    views = {k: unit(v).requires_grad_() for k, v in two_views(seed=2).items()}
    value = NTXentLoss(tau, normalize=False, reduction="sum")(**views)
    gradient = torch.cat(torch.autograd.grad(value, list(views.values())))
    z = torch.cat(list(views.values())).tolist()
    slopes = []
    for i in range(2 * N):
        e = {k: math.exp(dot(z[i], z[k]) / tau) for k in range(2 * N) if k != i}
        slopes.append({k: (e[k] / math.fsum(e.values()) - (k == (i + N) % (2 * N))) / tau for k in e})
    torch.testing.assert_close(gradient, points(*in_both_roles(slopes, z)), **EXACT)


# ---------------------------------------------------------------------------------------------- worked by hand


def test_two_instances_by_hand() -> None:
    # z = (1,0), (0,1) and their views (0.6,0.8), (0,1), τ = 0.2. Similarities with the others, positive first:
    #   instance 1, view 1: 0.6 | 0, 0        view 2: 0.6 | 0.8, 0.8
    #   instance 2, view 1: 1 | 0, 0.8        view 2: 1 | 0, 0.8
    first, second = axes(2), points([0.6, 0.8], [0.0, 1.0])
    expected = [
        math.log(1 + 2 * math.exp(-3)),
        math.log(1 + 2 * math.exp(1)),
        math.log(1 + math.exp(-5) + math.exp(-1)),
        math.log(1 + math.exp(-5) + math.exp(-1)),
    ]
    assert_values(NTXentLoss(0.2, reduction="none")(first, second), expected, 2, 2)
    assert NTXentLoss(0.2)(first, second).item() == pytest.approx(math.fsum(expected) / 4, rel=1e-12)


def test_identical_rows_cannot_be_told_apart() -> None:
    # Each of the 2N − 1 candidates is as likely.
    same = torch.ones(N, 3).double()
    assert_values(NTXentLoss(0.07, reduction="none")(same, same), [math.log(2 * N - 1)] * (2 * N), N, 2)


def test_an_instance_alone_has_only_its_positive() -> None:
    z = rows(1, 4, seed=3).requires_grad_()
    value = NTXentLoss(0.1)(z, rows(1, 4, seed=4))
    (gradient,) = torch.autograd.grad(value, z)
    # The softmax over one candidate is 1; what is left is the rounding of e^{s/τ} and its logarithm.
    torch.testing.assert_close(value.detach(), torch.zeros(()).double(), rtol=0, atol=1e-14)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-13)


# --------------------------------------------------------------------------------------------------- relations


def test_equals_supcon_without_labels_on_two_views() -> None:
    def supcon(view1: Tensor, view2: Tensor) -> Tensor:
        return SupConLoss(0.2, reduction="none")(torch.stack([view1, view2], dim=1))

    views = two_views(seed=5)
    assert_same(
        value_and_gradients(NTXentLoss(0.2, reduction="none"), views, "view1", "view2"),
        value_and_gradients(supcon, views, "view1", "view2"),
    )
    stacked = torch.stack(list(views.values()), dim=1)
    torch.testing.assert_close(NTXentLoss(0.2)(**views), SupConLoss(0.2)(stacked), **EXACT)


def test_is_info_nce_in_which_each_anchor_also_sees_the_other_anchors() -> None:
    views = two_views(seed=6)
    value = NTXentLoss(0.2, reduction="none")(**views)
    for i in range(N):
        others = torch.cat([v[torch.arange(N) != i] for v in views.values()])
        own = [v[i : i + 1] for v in views.values()]
        for v, (query, key) in enumerate((own, own[::-1])):
            torch.testing.assert_close(value[i, v], InfoNCELoss(0.2)(query, key, others), **EXACT)


def test_views_may_change_places() -> None:
    views = two_views(seed=7)
    loss = NTXentLoss(0.2, reduction="none")
    torch.testing.assert_close(loss(views["view2"], views["view1"]), loss(**views).flip(1), **EXACT)
