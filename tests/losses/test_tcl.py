"""TCL against (1) to (3) of losses/tcl.py (Animesh & Chandraker): the loss, Lemma 2, Theorems 1 and 2.

How labels, masks and lonely anchors are taken is tested together with SupCon's, in test_supcon.py.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from kontrast import simplex
from kontrast.losses import SupConLoss, TCLLoss
from kontrast.losses.tcl import reference
from tests.losses.literal import (
    EXACT,
    GROUP_FORMS,
    Group,
    N,
    as_anchor,
    assert_same,
    assert_values,
    axes,
    dot,
    far_out,
    group_inputs,
    groups,
    in_both_roles,
    on_sphere,
    points,
    rows,
    value_and_gradients,
)

each_form = pytest.mark.parametrize("form", GROUP_FORMS)
each_tuning = pytest.mark.parametrize(("k1", "k2"), [(5000.0, 1.0), (1.0, 1.5), (0.0, 2.0), (3.0, 0.0)])


def eq_2(group: Group, tau: float, k1: float, k2: float) -> float:
    """D_i. The k1 term has no temperature."""
    return (
        math.fsum(math.exp(s / tau) for s in group.positives)
        + k1 * math.fsum(math.exp(-s) for s in group.positives)
        + k2 * math.fsum(math.exp(s / tau) for s in group.negatives)
    )


def eq_1(group: Group, tau: float, k1: float, k2: float) -> float:
    if not group.positives:
        return 0.0
    d = eq_2(group, tau, k1, k2)
    return -math.fsum(math.log(math.exp(s / tau) / d) for s in group.positives) / len(group.positives)


@each_form
@each_tuning
@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_is_eq_1(form: str, k1: float, k2: float, tau: float) -> None:
    inputs = group_inputs(form)
    expected = [eq_1(group, tau, k1, k2) for group in groups(**on_sphere(inputs))]
    shape = inputs["embeddings"].shape[:-1]
    assert_values(reference(**on_sphere(inputs), temperature=tau, k1=k1, k2=k2), expected, *shape)
    assert_values(TCLLoss(tau, k1, k2, reduction="none")(**inputs), expected, *shape)


@each_form
@each_tuning
def test_value_is_eq_1_where_a_maximum_is_subtracted(form: str, k1: float, k2: float) -> None:
    inputs = far_out(group_inputs(form))
    expected = [eq_1(group, 1.0, k1, k2) for group in groups(**inputs)]
    value = TCLLoss(1.0, k1, k2, normalize=False, reduction="none")(**inputs)
    assert_values(value, expected, *inputs["embeddings"].shape[:-1])


# --------------------------------------------------------------------------------------------------- gradients


def eq_3(s: dict[int, float], positives: set[int], tau: float, k1: float, k2: float) -> dict[int, float]:
    """∂L_i/∂s_ia: (P_ip − X_ip − Y_ip)/τ for positives, P_in/τ for negatives (Lemma 2)."""
    if not positives:
        return dict.fromkeys(s, 0.0)
    d = eq_2(Group([s[a] for a in s if a in positives], [s[a] for a in s if a not in positives]), tau, k1, k2)
    slopes = {}
    for a, x in s.items():
        if a in positives:
            slopes[a] = (math.exp(x / tau) / d - 1 / len(positives) - tau * k1 * math.exp(-x) / d) / tau
        else:
            slopes[a] = k2 * math.exp(x / tau) / d / tau
    return slopes


@each_tuning
def test_gradient_is_eq_3(k1: float, k2: float) -> None:
    """Lemma 2, z_i as an anchor only: the candidates are a reference set, held fixed."""
    tau = 0.3
    inputs = on_sphere(group_inputs("ref+labels", seed=1))
    z, c = inputs["embeddings"].requires_grad_(), inputs["ref_emb"].tolist()
    TCLLoss(tau, k1, k2, normalize=False, reduction="sum")(**inputs).backward()
    for i, label in enumerate(inputs["labels"].tolist()):
        s = {a: dot(z[i].tolist(), row) for a, row in enumerate(c)}
        positives = {a for a, other in enumerate(inputs["ref_labels"].tolist()) if other == label}
        assert_values(z.grad[i], as_anchor(eq_3(s, positives, tau, k1, k2), c))


@each_tuning
def test_gradient_of_a_batch_is_eq_3_in_both_roles(k1: float, k2: float) -> None:
    tau = 0.3
    inputs = on_sphere(group_inputs("labels", seed=2))
    z, labels = inputs["embeddings"].requires_grad_(), inputs["labels"].tolist()
    TCLLoss(tau, k1, k2, normalize=False, reduction="sum")(**inputs).backward()
    slopes = []
    for i in range(N):
        s = {a: dot(z[i].tolist(), z[a].tolist()) for a in range(N) if a != i}
        slopes.append(eq_3(s, {a for a in s if labels[a] == labels[i]}, tau, k1, k2))
    torch.testing.assert_close(z.grad, points(*in_both_roles(slopes, z.tolist())), **EXACT)


# ---------------------------------------------------------------------------------------------- worked by hand


def test_four_rows_by_hand() -> None:
    # (1,0), (0.6,0.8), (0,1) of class 0 and (−1,0) of class 1; τ = 0.5, k1 = 10, k2 = 3. D_i is, of
    #   row 0, positives at 0.6, 0, negative at −1: e^{1.2} + 1 + 10(e^{−.6} + 1) + 3e^{−2}
    #   row 1, positives at 0.6, 0.8, negative at −0.6: e^{1.2} + e^{1.6} + 10(e^{−.6} + e^{−.8}) + 3e^{−1.2}
    #   row 2, positives at 0, 0.8, negative at 0: 1 + e^{1.6} + 10(1 + e^{−.8}) + 3
    # and from log D_i the mean of s_ip/τ is taken: 0.6, 1.4, 0.8. Row 3 has no positive.
    z = points([1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0])
    e = math.exp
    expected = [
        math.log(e(1.2) + 1 + 10 * (e(-0.6) + 1) + 3 * e(-2)) - 0.6,
        math.log(e(1.2) + e(1.6) + 10 * (e(-0.6) + e(-0.8)) + 3 * e(-1.2)) - 1.4,
        math.log(1 + e(1.6) + 10 * (1 + e(-0.8)) + 3) - 0.8,
        0.0,
    ]
    assert_values(TCLLoss(0.5, 10.0, 3.0, reduction="none")(z, [0, 0, 0, 1]), expected)


def test_the_k1_term_knows_no_temperature() -> None:
    # Two equal rows of one class: D = e^{1/τ} + k1 e^{−1}, less 1/τ: log(1 + k1 e^{−1−1/τ}).
    z = points([1.0, 0.0], [1.0, 0.0])
    for tau in (0.1, 0.5, 2.0):
        expected = math.log(1 + 5000 * math.exp(-1 - 1 / tau))
        assert_values(TCLLoss(tau, reduction="none")(z, [0, 0]), [expected] * 2)


def test_one_class_only_has_no_negatives() -> None:
    # Two rows at s = 0.6, τ = 0.5, whatever k2 is: log(e^{1.2} + 10 e^{−.6}) − 1.2.
    z = points([1.0, 0.0], [0.6, 0.8])
    expected = math.log(math.exp(1.2) + 10 * math.exp(-0.6)) - 1.2
    for k2 in (0.0, 1.0, 7.0):
        assert_values(TCLLoss(0.5, 10.0, k2, reduction="none")(z, [2, 2]), [expected] * 2)


@pytest.mark.parametrize(("k", "m", "tau", "k1", "k2"), [(3, 4, 0.5, 2.0, 1.5), (10, 2, 0.1, 5000.0, 1.0)])
def test_a_balanced_batch_at_the_simplex(k: int, m: int, tau: float, k1: float, k2: float) -> None:
    """m − 1 positives at 1, b − m negatives at −1/(K−1), e^{1/τ} taken out of D_i."""
    labels = torch.arange(k * m) % k
    z = simplex.vertices(k, dtype=torch.float64)[labels]
    pushed = k2 * (k * m - m) * math.exp(-k / ((k - 1) * tau))
    expected = math.log((m - 1) * (1 + k1 * math.exp(-1 - 1 / tau)) + pushed)
    assert_values(TCLLoss(tau, k1, k2, reduction="none")(z, labels), [expected] * (k * m))


# --------------------------------------------------------------------------------------------------- relations


@each_form
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_with_k1_0_and_k2_1_it_is_supcon(form: str, tau: float) -> None:
    inputs = group_inputs(form, seed=3)
    names = [k for k in ("embeddings", "ref_emb") if k in inputs]
    assert_same(
        value_and_gradients(TCLLoss(tau, 0.0, 1.0, reduction="none"), inputs, *names),
        value_and_gradients(SupConLoss(tau, reduction="none"), inputs, *names),
    )
    for reduction in ("mean", "sum"):
        expected = SupConLoss(tau, reduction=reduction)(**inputs)
        torch.testing.assert_close(TCLLoss(tau, 0.0, 1.0, reduction=reduction)(**inputs), expected, **EXACT)


def test_denominators_of_the_columns_leave_the_mean_but_not_the_values() -> None:
    """The authors' code divides entry (i, p) by D_p instead of D_i; rows of one class have equally many positives."""
    tau, k1, k2 = 0.3, 5.0, 1.5
    inputs = on_sphere(group_inputs("two views+labels", seed=4))
    z, labels = inputs["embeddings"].reshape(2 * N, -1), inputs["labels"].repeat_interleave(2)
    log_d = [math.log(eq_2(group, tau, k1, k2)) for group in groups(z, labels)]
    authors = []
    for i in range(2 * N):
        own = [p for p in range(2 * N) if p != i and labels[p] == labels[i]]
        authors.append(-math.fsum(dot(z[i].tolist(), z[p].tolist()) / tau - log_d[p] for p in own) / len(own))
    ours = TCLLoss(tau, k1, k2, reduction="none")(**inputs).flatten().tolist()
    assert math.fsum(ours) == pytest.approx(math.fsum(authors), rel=1e-12)
    assert max(abs(a - b) for a, b in zip(ours, authors, strict=True)) > 0.01


# ------------------------------------------------------------------------------------------- Theorems 1 and 2
# With the axes as candidates the similarities of an anchor are its coordinates, and τ times its gradient is the
# response to each: P − X − Y on a positive, P_in on a negative.


def responses(s: Tensor, number_of_positives: int, tau: float, k1: float, k2: float) -> Tensor:
    """τ ∂L_i/∂s_ia, the first candidates being every anchor's positives."""
    n, m = s.shape
    z = s.clone().requires_grad_()
    mask = (torch.arange(m) < number_of_positives).expand(n, m)
    loss = TCLLoss(tau, k1, k2, normalize=False, reduction="sum")
    (gradient,) = torch.autograd.grad(loss(z, positives=mask, ref_emb=axes(m)), z)
    return tau * gradient


@pytest.mark.parametrize(("k1", "k2"), [(1.0, 1.0), (1.0, 1.5), (5000.0, 1.0)])
@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_theorem_1_the_hardest_positive_is_pulled_harder_than_by_supcon(tau: float, k1: float, k2: float) -> None:
    s = torch.tanh(rows(200, 12, seed=5))
    hardest = s[:, :4].argmin(1, keepdim=True)
    tuned, supcon = (responses(s, 4, tau, *k).gather(1, hardest) for k in ((k1, k2), (0.0, 1.0)))
    assert (tuned.abs() > supcon.abs()).all()
    assert (tuned < 0).all()


def test_theorem_1_is_not_for_every_positive() -> None:
    # Two positives at 1 and 0 and no negative, τ = 0.5: P^s = e²/(e² + 1) = 0.88 of the easy one is above X = 1/2, and
    # SupCon pushes it away by 0.38; TCL's k1 turns that push down first.
    s = points([1.0, 0.0])
    e2, e = math.exp(2), math.exp(-1)
    assert_values(responses(s, 2, 0.5, 0.0, 1.0)[0], [e2 / (e2 + 1) - 0.5, 0.5 - e2 / (e2 + 1)])
    d = e2 + 1 + e + 1
    assert_values(responses(s, 2, 0.5, 1.0, 1.0)[0], [(e2 - 0.5 * e) / d - 0.5, (1 - 0.5) / d - 0.5])
    easy, hard = responses(s, 2, 0.5, 1.0, 1.0)[0].abs() - responses(s, 2, 0.5, 0.0, 1.0)[0].abs()
    assert easy < 0 < hard


@pytest.mark.parametrize("k1", [0.0, 1.0, 5000.0])
@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_theorem_2_negatives_are_pushed_strictly_harder_with_k2(tau: float, k1: float) -> None:
    s = torch.tanh(rows(50, 12, seed=6))
    pushes = [responses(s, 4, tau, k1, k2)[:, 4:] for k2 in (0.0, 0.5, 1.0, 1.2, 1.5, 4.0)]
    assert (pushes[0] == 0).all()
    assert all((more > less).all() for less, more in itertools.pairwise(pushes))


def test_raising_k1_lowers_the_push_on_every_negative() -> None:
    s = torch.tanh(rows(50, 12, seed=7))
    pushes = [responses(s, 4, 0.2, k1, 1.0)[:, 4:] for k1 in (0.0, 1.0, 100.0, 5000.0)]
    assert all((more < less).all() for less, more in itertools.pairwise(pushes))


# ----------------------------------------------------------------------------------------------------- options


def test_negative_tunings_are_refused() -> None:
    for name in ("k1", "k2"):
        with pytest.raises(ValueError, match=f"{name}=-1.0: must be a finite number of at least 0"):
            TCLLoss(**{name: -1.0})


def test_the_defaults_are_the_papers_for_cifar_10() -> None:
    loss = TCLLoss()
    assert (loss.temperature, loss.k1, loss.k2) == (0.1, 5000.0, 1.0)


def test_no_term_that_is_not_there_can_overflow() -> None:
    """k1 = 0 with opposite rows of great length: e^{−s} alone would be infinite."""
    z = torch.tensor([[100.0, 0.0], [-100.0, 0.0], [0.0, 100.0]], requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    value = TCLLoss(temperature=1.0, k1=0.0, normalize=False)(z, labels)
    torch.testing.assert_close(value, SupConLoss(temperature=1.0, normalize=False)(z, labels))
    value.backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()
