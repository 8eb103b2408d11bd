"""SupCon against (1) to (3) of losses/supcon.py (Khosla et al.; Graf et al.'s L_SC), in every form of its inputs.

How labels, masks and lonely anchors are taken is the same in TCL, so those tests run over both losses.
"""

from __future__ import annotations

import itertools
import math
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import kontrast
from kontrast import simplex
from kontrast.losses import Loss, SupConLoss, TCLLoss
from kontrast.losses.supcon import reference
from tests.losses.literal import (
    EXACT,
    GROUP_FORMS,
    D,
    Group,
    K,
    N,
    as_anchor,
    assert_same,
    assert_values,
    dot,
    far_out,
    group_inputs,
    groups,
    in_both_roles,
    on_sphere,
    points,
    rows,
    unit,
    value_and_gradients,
)

each_form = pytest.mark.parametrize("form", GROUP_FORMS)
GROUPED: dict[str, Callable[..., Loss]] = {
    "out": lambda **options: SupConLoss(0.3, **options),
    "in": lambda **options: SupConLoss(0.3, form="in", **options),
    "tcl": lambda **options: TCLLoss(0.3, 5.0, 1.3, **options),
}
each_grouped = pytest.mark.parametrize("make", GROUPED.values(), ids=GROUPED)


def eq_1(group: Group, tau: float) -> float:
    if not group.positives:
        return 0.0
    total = math.fsum(math.exp(s / tau) for s in group.positives + group.negatives)
    return -math.fsum(math.log(math.exp(s / tau) / total) for s in group.positives) / len(group.positives)


def eq_3(group: Group, tau: float) -> float:
    if not group.positives:
        return 0.0
    total = math.fsum(math.exp(s / tau) for s in group.positives + group.negatives)
    return -math.log(math.fsum(math.exp(s / tau) for s in group.positives) / len(group.positives) / total)


@each_form
@pytest.mark.parametrize(("name", "equation"), [("out", eq_1), ("in", eq_3)])
@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_value_is_eq_1_and_eq_3(form: str, name: str, equation: Callable[[Group, float], float], tau: float) -> None:
    inputs = group_inputs(form)
    expected = [equation(group, tau) for group in groups(**on_sphere(inputs))]
    shape = inputs["embeddings"].shape[:-1]
    assert_values(reference(**on_sphere(inputs), temperature=tau, form=name), expected, *shape)
    assert_values(SupConLoss(tau, form=name, reduction="none")(**inputs), expected, *shape)


@each_form
@pytest.mark.parametrize(("name", "equation"), [("out", eq_1), ("in", eq_3)])
def test_value_where_a_maximum_is_subtracted(form: str, name: str, equation: Callable[[Group, float], float]) -> None:
    inputs = far_out(group_inputs(form))
    expected = [equation(group, 1.0) for group in groups(**inputs)]
    value = SupConLoss(1.0, form=name, normalize=False, reduction="none")(**inputs)
    assert_values(value, expected, *inputs["embeddings"].shape[:-1])


# --------------------------------------------------------------------------------------------------- gradients


def eq_2(s: dict[int, float], positives: set[int], tau: float) -> dict[int, float]:
    """∂L_i/∂s_ia: (P_ip − 1/|P(i)|)/τ for positives, P_in/τ for negatives."""
    e = {a: math.exp(x / tau) for a, x in s.items()}
    total = math.fsum(e.values())
    return {a: (e[a] / total - (a in positives) / max(len(positives), 1)) / tau if positives else 0.0 for a in s}


def slopes_of_in(s: dict[int, float], positives: set[int], tau: float) -> dict[int, float]:
    """The same for (3), where a positive's share is not 1/|P(i)| but e^{s_ip/τ} over the positives' sum."""
    e = {a: math.exp(x / tau) for a, x in s.items()}
    total, own = math.fsum(e.values()), math.fsum(e[p] for p in positives)
    return {a: (e[a] / total - (e[a] / own if a in positives else 0.0)) / tau if positives else 0.0 for a in s}


FORM_SLOPES = pytest.mark.parametrize(("name", "slopes"), [("out", eq_2), ("in", slopes_of_in)])


@FORM_SLOPES
def test_gradient_is_eq_2(name: str, slopes: Callable[..., dict[int, float]]) -> None:
    """z_i as an anchor only: the candidates are a reference set, held fixed."""
    tau = 0.3
    inputs = on_sphere(group_inputs("ref+labels", seed=1))
    z, c = inputs["embeddings"].requires_grad_(), inputs["ref_emb"].tolist()
    SupConLoss(tau, form=name, normalize=False, reduction="sum")(**inputs).backward()
    for i, label in enumerate(inputs["labels"].tolist()):
        s = {a: dot(z[i].tolist(), row) for a, row in enumerate(c)}
        positives = {a for a, other in enumerate(inputs["ref_labels"].tolist()) if other == label}
        assert_values(z.grad[i], as_anchor(slopes(s, positives, tau), c))


@FORM_SLOPES
def test_gradient_of_a_batch_is_eq_2_in_both_roles(name: str, slopes: Callable[..., dict[int, float]]) -> None:
    tau = 0.3
    inputs = on_sphere(group_inputs("labels", seed=2))
    z, labels = inputs["embeddings"].requires_grad_(), inputs["labels"].tolist()
    SupConLoss(tau, form=name, normalize=False, reduction="sum")(**inputs).backward()
    mine = []
    for i in range(N):
        s = {a: dot(z[i].tolist(), z[a].tolist()) for a in range(N) if a != i}
        mine.append(slopes(s, {a for a in s if labels[a] == labels[i]}, tau))
    torch.testing.assert_close(z.grad, points(*in_both_roles(mine, z.tolist())), **EXACT)


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.2, math.pi / 2])
def test_normalisation_shrinks_the_pull_of_an_easy_positive(angle: float) -> None:
    # Anchor w of length 2 along (1, 0), a positive at an angle, a negative at (−1, 0), which has no part across the
    # anchor. Through w/‖w‖ the gradient is (1/(2τ))·(1 − P_ip)·√(1 − s²) long, and zero for a positive at s = 1.
    tau, s = 0.5, math.cos(angle)
    w = points([2.0, 0.0]).requires_grad_()
    ref = points([s, math.sin(angle)], [-1.0, 0.0])
    SupConLoss(tau)(w, [0], ref_emb=ref, ref_labels=[0, 1]).backward()
    p = math.exp(s / tau) / (math.exp(s / tau) + math.exp(-1 / tau))
    assert_values(w.grad[0], [0.0, -(1 - p) * math.sqrt(1 - s * s) / (2 * tau)])


# ---------------------------------------------------------------------------------------------- worked by hand


def test_four_rows_by_hand() -> None:
    # (1,0), (0.6,0.8), (0,1) of class 0 and (−1,0) of class 1, τ = 1.
    #   row 0: positives at 0.6, 0, negative at −1: log(e^{.6} + 1 + e^{−1}) − 0.3
    #   row 1: positives at 0.6, 0.8, negative at −0.6: log(e^{.6} + e^{.8} + e^{−.6}) − 0.7
    #   row 2: positives at 0, 0.8, negative at 0: log(2 + e^{.8}) − 0.4
    #   row 3 has no positive: 0
    z = points([1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0])
    expected = [
        math.log(math.exp(0.6) + 1 + math.exp(-1)) - 0.3,
        math.log(math.exp(0.6) + math.exp(0.8) + math.exp(-0.6)) - 0.7,
        math.log(2 + math.exp(0.8)) - 0.4,
    ]
    labels = [0, 0, 0, 1]
    assert_values(SupConLoss(1.0, reduction="none")(z, labels), [*expected, 0.0])
    assert SupConLoss(1.0)(z, labels).item() == pytest.approx(math.fsum(expected) / 3, rel=1e-12)
    assert SupConLoss(1.0, no_positive="zero")(z, labels).item() == pytest.approx(math.fsum(expected) / 4, rel=1e-12)


def test_the_in_form_by_hand() -> None:
    # One anchor, positives at 1 and 0, a negative at 0, τ = 1: −log( ((e + 1)/2) / (e + 2) ).
    anchor, ref = points([1.0, 0.0]), points([1.0, 0.0], [0.0, 1.0], [0.0, -1.0])
    value = SupConLoss(1.0, form="in", reduction="none")(anchor, [3], ref_emb=ref, ref_labels=[3, 3, 4])
    assert_values(value, [-math.log((math.e + 1) / 2 / (math.e + 2))])


def test_one_class_only_has_no_negatives() -> None:
    # Three rows pairwise at 0.6, 0 and 0.8, all of one class, τ = 0.5: the softmax runs over the two positives alone.
    z = points([1.0, 0.0], [0.6, 0.8], [0.0, 1.0]).requires_grad_()
    expected = [
        math.log(math.exp(1.2) + 1) - 0.6,
        math.log(math.exp(1.2) + math.exp(1.6)) - 1.4,
        math.log(1 + math.exp(1.6)) - 0.8,
    ]
    assert_values(SupConLoss(0.5, reduction="none")(z, [4, 4, 4]), expected)
    # All there is are positives, so their mean is in proportion to the denominator: (3) is log |P(i)|, and flat.
    value = SupConLoss(0.5, form="in", reduction="none")(z, [4, 4, 4])
    assert_values(value, [math.log(2)] * 3)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-14)


# --------------------------------------------------------------------------------------------------- relations


@each_form
def test_the_in_form_is_never_larger(form: str) -> None:
    """Jensen: the mean of logarithms is at most the logarithm of the mean."""
    inputs = group_inputs(form, seed=3)
    out, inside = (SupConLoss(0.2, form=name, reduction="none")(**inputs) for name in ("out", "in"))
    several = torch.tensor([len(g.positives) > 1 for g in groups(**inputs)]).view_as(out)
    assert (inside[several] < out[several]).all()
    torch.testing.assert_close(inside[~several], out[~several], **EXACT)


def test_with_one_positive_both_forms_are_equal() -> None:
    inputs = group_inputs("two views", seed=4)
    out, inside = (
        value_and_gradients(SupConLoss(0.2, form=name, reduction="none"), inputs, "embeddings")
        for name in ("out", "in")
    )
    assert_same(inside, out)


@pytest.mark.parametrize("form", ["labels", "two views", "two views+labels", "three views"])
def test_the_groups_may_be_given_as_a_mask(form: str) -> None:
    inputs = group_inputs(form, seed=5)
    labels = inputs.get("labels", torch.arange(N))
    masked = {"embeddings": inputs["embeddings"], "positives": labels[:, None] == labels}
    for name in ("out", "in"):
        loss = SupConLoss(0.2, form=name, reduction="none")
        assert_same(value_and_gradients(loss, masked, "embeddings"), value_and_gradients(loss, inputs, "embeddings"))


def test_views_with_labels_are_rows_with_repeated_labels() -> None:
    inputs = group_inputs("three views+labels", seed=6)
    flat = SupConLoss(0.2, reduction="none")(inputs["embeddings"].reshape(-1, D), inputs["labels"].repeat_interleave(3))
    torch.testing.assert_close(SupConLoss(0.2, reduction="none")(**inputs), flat.view(N, 3), **EXACT)


def test_a_reference_set_excludes_nobody() -> None:
    """Against its own rows as a reference set, each anchor has itself as one more positive, at s = 1."""
    inputs = on_sphere(group_inputs("labels", seed=7))
    z, labels = inputs["embeddings"], inputs["labels"]
    value = SupConLoss(0.5, reduction="none")(z, labels, ref_emb=z, ref_labels=labels)
    assert_values(value, [eq_1(Group([1.0, *g.positives], g.negatives), 0.5) for g in groups(z, labels)])


@pytest.mark.parametrize("tau", [0.1, 0.5])
def test_a_temperature_is_a_radius(tau: float) -> None:
    """Unit rows at temperature τ are rows of length ρ at temperature 1, ρ² = 1/τ (Graf et al.)."""
    inputs = on_sphere(group_inputs("two views+labels", seed=8))
    longer = inputs | {"embeddings": inputs["embeddings"] / math.sqrt(tau)}
    value = SupConLoss(1.0, normalize=False, reduction="none")(**longer)
    torch.testing.assert_close(value, SupConLoss(tau, reduction="none")(**inputs), **EXACT)


# ------------------------------------------------------------------------------------------------- the simplex


@pytest.mark.parametrize(("k", "m", "tau"), [(2, 2, 0.5), (3, 4, 1.0), (10, 2, 0.1), (4, 5, 0.07)])
def test_a_balanced_batch_at_the_simplex_has_the_value_of_the_bound(k: int, m: int, tau: float) -> None:
    """log(m − 1 + (b − m) e^{−K/((K−1)τ)}) for every anchor: m − 1 positives at 1, b − m negatives at −1/(K−1)."""
    labels = torch.arange(k * m) % k
    z = simplex.vertices(k, k + 1, seed=1, dtype=torch.float64)[labels]
    expected = math.log(m - 1 + (k * m - m) * math.exp(-k / ((k - 1) * tau)))
    assert_values(SupConLoss(tau, reduction="none")(z, labels), [expected] * (k * m))


def all_batches(z: Tensor, labels: Tensor, size: int) -> float:
    """L_SC: the sum over every multiset of that many rows, rows as they are, lonely anchors 0."""
    loss = SupConLoss(1.0, normalize=False, reduction="sum", no_positive="zero")
    batches = itertools.combinations_with_replacement(range(len(z)), size)
    return math.fsum(loss(z[list(b)], labels[list(b)]).item() for b in batches)


def bound_over_batches(k: int, n: int, b: int, radius: float) -> float:
    """Σ_l l M_l log(l − 1 + (b − l) e^{−Kρ²/(K−1)}), M_l how many batches hold l rows of a class, over the classes."""
    total = 0.0
    for count in range(2, b + 1):
        others = math.comb(n * (k - 1) + b - count - 1, b - count)
        number = k * math.comb(n + count - 1, count) * others
        total += count * number * math.log(count - 1 + (b - count) * math.exp(-k * radius**2 / (k - 1)))
    return total


@pytest.mark.parametrize(
    ("k", "n", "b", "radius", "known"),
    [(3, 3, 4, 1.0, 908.1147), (3, 2, 5, 1.0, 912.1781), (4, 2, 4, 1.3, 398.3715)],
)
def test_the_sum_over_all_batches_at_the_simplex(k: int, n: int, b: int, radius: float, known: float) -> None:
    labels = torch.arange(k * n) % k
    z = simplex.vertices(k, radius=radius, dtype=torch.float64)[labels]
    value = all_batches(z, labels, b)
    assert value == pytest.approx(known, abs=5e-5)  # the figures it is known to
    assert value == pytest.approx(bound_over_batches(k, n, b, radius), rel=1e-12)


def test_other_points_stay_above_the_sum_at_the_simplex() -> None:
    labels = torch.arange(6) % 3
    vertices = simplex.vertices(3, dtype=torch.float64)[labels]
    bound = bound_over_batches(3, 2, 4, 1.0)
    assert bound == pytest.approx(247.4, abs=0.05)
    assert all_batches(vertices, labels, 4) == pytest.approx(bound, rel=1e-12)
    for seed in range(3):
        assert all_batches(unit(rows(6, 2, seed=seed)), labels, 4) > bound
        assert all_batches(unit(vertices + 0.05 * rows(6, 2, seed=seed)), labels, 4) > bound


# ------------------------------------------------------------------------------------------------------ labels


@each_grouped
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool], ids=str)
def test_labels_of_every_integer_dtype(make: Callable[..., Loss], dtype: torch.dtype) -> None:
    z, labels = rows(N, D, seed=9), torch.tensor([1, 0, 0, 1, 1, 0])
    loss = make(reduction="none")
    assert torch.equal(loss(z, labels.to(dtype)), loss(z, labels))


@each_grouped
@pytest.mark.parametrize(
    "values", [(-1, 10**12, 4), (-(2**62), 0, 2**62), (254, 255, 256)], ids=lambda v: ",".join(map(str, v))
)
def test_labels_are_names_not_numbers(make: Callable[..., Loss], values: tuple[int, int, int]) -> None:
    z = rows(N, D, seed=10)
    places = [2, 0, 1, 1, 0, 2]
    labels = [values[p] for p in places]
    loss = make(reduction="none")
    expected = loss(z, torch.tensor(places))
    for given in (labels, tuple(labels), torch.tensor(labels), np.array(labels)):
        torch.testing.assert_close(loss(z, given), expected, **EXACT)


KINDS: dict[str, Callable[[Tensor], Any]] = {
    "strided tensor": lambda x: x.repeat_interleave(2)[::2],
    "strided array": lambda x: x.repeat_interleave(2).numpy()[::2],
    "int16 array": lambda x: x.numpy().astype(np.int16),
    "uint32 array": lambda x: x.numpy().astype(np.uint32),
    "uint64 array": lambda x: x.numpy().astype(np.uint64),
    "bool array": lambda x: x.numpy() > 0,
    "numpy scalars": lambda x: [np.int64(v) for v in x],
    "reversed array": lambda x: x.flip(0).numpy()[::-1],
    "big-endian array": lambda x: x.numpy().astype(">i4"),
    "read-only array": lambda x: np.frombuffer(x.numpy().tobytes(), dtype=np.int64),
}


@pytest.fixture
def every_warning() -> Iterator[None]:
    """torch says some things once a process; here it says them each time, so that tests do not depend on others."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


@each_grouped
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.usefixtures("every_warning")
def test_labels_of_every_kind(make: Callable[..., Loss], kind: Callable[[Tensor], Any]) -> None:
    z, labels = rows(N, D, seed=11), torch.tensor([1, 0, 0, 1, 1, 0])
    loss = make(reduction="none")
    assert torch.equal(loss(z, kind(labels)), loss(z, labels))
    ref = {"ref_emb": rows(N, D, seed=12)}
    assert torch.equal(loss(z, kind(labels), **ref, ref_labels=kind(labels)), loss(z, labels, **ref, ref_labels=labels))


# -------------------------------------------------------------------------------------- anchors without positives


@each_grouped
def test_lonely_anchors_are_left_out_of_the_mean_or_counted_as_zero(make: Callable[..., Loss]) -> None:
    """Row 3 of 6 is alone of its class; as a negative of the others it has its part in either case."""
    inputs = group_inputs("labels", seed=13)
    values = make(reduction="none")(**inputs)
    assert values[3] == 0
    assert (values[[0, 1, 2, 4, 5]] > 0).all()

    def mean(no_positive: str) -> tuple[Tensor, Tensor]:
        z = inputs["embeddings"].clone().requires_grad_()
        value = make(no_positive=no_positive)(z, inputs["labels"])
        return value.detach(), torch.autograd.grad(value, z)[0]

    (skipped, of_skipped), (zeroed, of_zeroed) = mean("skip"), mean("zero")
    torch.testing.assert_close(skipped, values.sum() / 5, **EXACT)
    torch.testing.assert_close(zeroed, values.sum() / 6, **EXACT)
    torch.testing.assert_close(of_skipped * 5, of_zeroed * 6, **EXACT)
    assert of_skipped[3].abs().sum() > 0
    for no_positive in ("skip", "zero"):
        assert_same(
            [make(reduction=r, no_positive=no_positive)(**inputs) for r in ("sum", "none")], [values.sum(), values]
        )


@each_grouped
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_lonely_anchor_pushes_nobody(make: Callable[..., Loss], reduction: str) -> None:
    """Against a reference set only anchors with positives send a gradient; the lonely one gets none either."""
    inputs = group_inputs("ref+labels", seed=14)
    z, ref = inputs["embeddings"].requires_grad_(), inputs["ref_emb"].requires_grad_()
    make(reduction=reduction)(**inputs).sum().backward()
    kept = torch.arange(N) != 3
    assert (z.grad[3] == 0).all()
    assert (z.grad[kept].abs().sum(1) > 0).all()
    alone = {"ref_emb": ref.detach().clone().requires_grad_(), "ref_labels": inputs["ref_labels"]}
    make(reduction=reduction)(z.detach()[kept], inputs["labels"][kept], **alone).sum().backward()
    torch.testing.assert_close(ref.grad, alone["ref_emb"].grad, **EXACT)


LONELY: dict[str, dict[str, Any]] = {
    "labels": {"labels": list(range(N))},
    "one view": {},
    "positives": {"positives": torch.zeros(N, N, dtype=torch.bool)},
    "self only": {"positives": torch.eye(N, dtype=torch.bool)},
    "ref": {"labels": list(range(N)), "ref_emb": rows(K, D, seed=15), "ref_labels": [99] * K},
    "ref positives": {"positives": torch.zeros(N, K, dtype=torch.bool), "ref_emb": rows(K, D, seed=16)},
}


@each_grouped
@pytest.mark.parametrize("form", LONELY)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_if_all_are_lonely_value_and_gradient_are_exactly_zero(
    make: Callable[..., Loss], form: str, reduction: str
) -> None:
    shape = (N, 1, D) if form == "one view" else (N, D)
    for no_positive in ("skip", "zero"):
        for scale in (1.0, 1e3):  # as they are, also beyond the range in which no maximum is subtracted
            z = (rows(*shape, seed=17) * scale).requires_grad_()
            loss = make(reduction=reduction, no_positive=no_positive, normalize=scale == 1)
            value = loss(z, **LONELY[form])
            assert value.shape == (shape[:-1] if reduction == "none" else ())
            assert (value == 0).all()
            (gradient,) = torch.autograd.grad(value.sum(), z)
            assert (gradient == 0).all()


@each_grouped
def test_lonely_anchors_can_be_an_error(make: Callable[..., Loss]) -> None:
    strict = make(no_positive="error")
    message = 'have no positive. Give each label at least two rows .or two views., or pass no_positive="skip"'
    with pytest.raises(ValueError, match=f"^1 of 6 anchors {message}"):
        strict(**group_inputs("labels"))
    with pytest.raises(ValueError, match=f"^6 of 6 anchors {message}"):
        strict(rows(N, 1, D, seed=18))
    paired = rows(N, 2, D, seed=18)
    torch.testing.assert_close(strict(paired), make()(paired), rtol=0, atol=0)


# --------------------------------------------------------------------------------------------------- conflicts


@each_grouped
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"embeddings of shape \[6, 5\] need labels \[N\] \(or a positives mask\); without labels pass views"),
        ({"labels": [0] * N, "positives": torch.ones(N, N).bool()}, "give labels or positives, not both"),
        ({"labels": [0] * N, "ref_labels": [0] * K}, "ref_labels come with ref_emb, which is missing"),
        (
            {"labels": [0] * N, "ref_emb": torch.ones(K, D)},
            r"ref_emb needs labels and ref_labels \(or a positives mask",
        ),
        (
            {"positives": torch.ones(N, K).bool(), "ref_emb": torch.ones(K, D), "ref_labels": [0] * K},
            "give ref_labels or positives, not both",
        ),
        ({"positives": torch.ones(N, N)}, r"positives must be a bool tensor of shape \[6, 6\] .* got torch.float32"),
        ({"positives": torch.ones(N, K).bool()}, r"positives must be a bool tensor of shape \[6, 6\] .* \[6, 9\]"),
        (
            {"positives": torch.ones(N, N).bool(), "ref_emb": torch.ones(K, D)},
            r"positives must be a bool tensor of shape \[6, 9\] .* got torch.bool \[6, 6\]",
        ),
        (
            {"labels": [0] * N, "ref_emb": torch.ones(K, D), "ref_labels": [0]},
            r"ref_labels has shape \[1\]; expected \[9\]",
        ),
        (
            {"labels": [0] * N, "ref_emb": torch.ones(K, D + 1), "ref_labels": [0] * K},
            r"ref_emb has shape \[9, 6\], which does not fit \[6, 5\]",
        ),
        ({"labels": [0] * (N - 1)}, r"labels has shape \[5\]; expected \[6\], one a row of the embeddings"),
        ({"labels": [0.0] * N}, "labels must be integers, one a row, got list of float64"),
        ({"labels": ["cat"] * N}, "labels must be integers, one a row"),
    ],
)
def test_what_does_not_go_together_is_a_value_error(
    make: Callable[..., Loss], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make()(torch.ones(N, D), **given)


@each_grouped
def test_a_reference_set_needs_labels_also_with_views(make: Callable[..., Loss]) -> None:
    with pytest.raises(ValueError, match="ref_emb needs labels and ref_labels"):
        make()(torch.ones(N, 2, D), ref_emb=torch.ones(K, D), ref_labels=[0] * K)


def test_a_step_passes_through_few_functions() -> None:
    """Which is most of the time of a small batch."""
    loss, z, labels = SupConLoss(), torch.randn(32, 8, requires_grad=True), torch.arange(32) % 4
    loss(z, labels).backward()  # what is done once only
    source, calls = str(Path(kontrast.__file__).parent), []

    def record(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(source):
            calls.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name))

    before = sys.getprofile()
    threading.setprofile(record)
    sys.setprofile(record)
    try:
        loss(z, labels).backward()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    assert ("supcon.py", "supcon") in calls
    assert 10 < len(calls) <= 30, calls
    assert len({file for file, _ in calls}) <= 7, calls
