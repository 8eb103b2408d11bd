"""Where a loss stands: every loss of the family, each number held to the real loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kontrast import losses
from kontrast.geometry import bounds, penalty_entropy
from kontrast.geometry.bounds import Standing, standing
from kontrast.simplex import vertices
from tests.descent import assert_not_below, in_ball
from tests.geometry.samples import rows, sphere

N, QUEUE, DIM, CLASSES = 6, 9, 40, 3
BALANCED = torch.arange(N) % CLASSES
UNBALANCED = torch.tensor([0, 1, 1, 0, 0, 2])  # class 2 is there once

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A loss, the rows of each input it is computed on, and what `standing` is told of them."""

    key: str
    options: dict[str, Any]
    sizes: dict[str, int]  # rows of each input that is made of embeddings
    fixed: Inputs = field(default_factory=dict)  # labels and indices
    told: dict[str, Any] = field(default_factory=dict)
    views: int = 1
    radius: float | None = None
    name: str = ""

    def __str__(self) -> str:
        return f"{self.key} {self.name}".strip()

    @property
    def anchors(self) -> int:
        """How many the sum has more than the mean."""
        labels = self.fixed.get("labels")
        if self.key in ("supcon", "tcl") and labels is not None and self.options.get("no_positive") != "zero":
            return int((labels.bincount()[labels] * self.views > 1).sum()) * self.views
        return next(iter(self.sizes.values())) * (2 if self.key == "nt-xent" else 1)

    def make(self, reduction: str = "mean") -> losses.Loss:
        """The loss; its weights, if it has any, are random but the same, and in float64."""
        torch.manual_seed(0)
        loss = losses.FAMILY[self.key](**self.options, reduction=reduction)
        return loss.double()

    def embeddings(self, make: Callable[[int], Tensor]) -> Inputs:
        """Inputs whose rows, all together, are those of ``make(total)``."""
        parts = make(sum(self.sizes.values())).split(list(self.sizes.values()))
        found: Inputs = dict(zip(self.sizes, parts, strict=True))
        if self.views > 1:
            found["embeddings"] = found["embeddings"].view(-1, self.views, found["embeddings"].shape[1])
        return found | self.fixed

    def stand(self, loss: losses.Loss, inputs: Inputs, value: float | None = None) -> Standing:
        told = dict(self.told) | ({} if self.radius is None else {"radius": self.radius})
        if "target" in self.sizes:
            told["target_entropy"] = target_entropy(loss, inputs)
        return standing(loss, value, **told)


def target_entropy(loss: losses.Loss, inputs: Inputs) -> float:
    """As the docstring of `standing` says."""
    assert isinstance(loss, losses.SCELoss | losses.ReSSLLoss)
    return (
        penalty_entropy(
            inputs["target"],
            inputs["target"],
            inputs.get("queue"),
            temperature=loss.target_temperature,
            normalize=loss.normalize,
        )
        .mean()
        .item()
    )


PAIR = {"query": N, "key": N}
AGAINST_QUEUE = PAIR | {"negatives": QUEUE}
RELATED = {"online": N, "target": N}
BANK = {"own_index": torch.arange(N)}
IN_BATCH, IN_QUEUE = {"num_pairs": N}, {"num_pairs": N, "num_negatives": QUEUE}
ROWS = {"embeddings": N}
FREE = {"normalize": False}
BESIDE = {"negatives_in_batch": True}


def cases() -> list[Case]:
    found = []
    for key, options in (
        ("info-nce", {"temperature": 0.3}),
        ("hard-contrastive", {"temperature": 0.3, "hard_negatives": 3}),
        ("hard-contrastive", {"temperature": 0.3, "hard_negatives": 1000}),
        ("simple-contrastive", {}),
        ("simple-contrastive", {"weight": 0.1}),
        ("simple-contrastive", {"weight": 3.0}),
        ("simple-contrastive", {"hard_negatives": 2}),
        ("simple-contrastive", {"hard_negatives": 2, "weight": 3.0}),
    ):
        about = ",".join(f"{k}={v}" for k, v in options.items() if k != "temperature")
        found += [
            Case(key, options, PAIR, {}, IN_BATCH, name=f"batch {about}"),
            Case(key, options, AGAINST_QUEUE, {}, IN_QUEUE, name=f"queue {about}"),
            Case(key, options, AGAINST_QUEUE, BANK, IN_QUEUE | {"num_negatives": QUEUE - 1}, name=f"bank {about}"),
            Case(key, options | FREE, PAIR, {}, IN_BATCH, radius=1.7, name=f"ball {about}"),
            Case(key, options | BESIDE, AGAINST_QUEUE, {}, IN_QUEUE, name=f"both {about}"),
            Case(key, options | BESIDE | FREE, AGAINST_QUEUE, {}, IN_QUEUE, radius=1.7, name=f"both, ball {about}"),
        ]
    found += [
        Case("nt-xent", {"temperature": 0.3}, {"view1": N, "view2": N}, {}, IN_BATCH),
        Case("nt-xent", {"temperature": 2.0} | FREE, {"view1": N, "view2": N}, {}, IN_BATCH, radius=1.7, name="ball"),
    ]
    for key, options in (
        ("supcon", {"temperature": 0.3}),
        ("supcon", {"temperature": 0.3, "form": "in"}),
        ("tcl", {"temperature": 0.3, "k1": 4.0, "k2": 1.5}),
    ):
        about = options.get("form", "")
        for labels, which in ((BALANCED, "balanced"), (UNBALANCED, "unbalanced"), (BALANCED * 0, "one class")):
            given = {"labels": labels}
            found.append(Case(key, options, ROWS, given, {"labels": labels}, name=f"{which} {about}"))
        given = {"labels": UNBALANCED}
        found += [
            Case(key, options | {"no_positive": "zero"}, ROWS, given, given, name=f"unbalanced zero {about}"),
            Case(
                key, options | FREE, ROWS, {"labels": BALANCED}, {"labels": BALANCED}, radius=1.7, name=f"ball {about}"
            ),
            Case(
                key,
                options,
                {"embeddings": 3 * N},
                {},
                {"num_pairs": N, "num_views": 3},
                views=3,
                name=f"views {about}",
            ),
            Case(
                key,
                options,
                {"embeddings": 2 * N},
                given,
                given | {"num_views": 2},
                views=2,
                name=f"views with labels {about}",
            ),
        ]
    for key, options in (
        ("ressl", {"temperature": 0.3, "target_temperature": 0.1}),
        ("sce", {"temperature": 0.3, "target_temperature": 0.1}),
        ("sce", {"temperature": 0.3, "target_temperature": 0.1, "contrastive_weight": 0.0}),
        ("sce", {"temperature": 0.3, "target_temperature": 0.1, "contrastive_weight": 1.0}),
        ("sce", {"temperature": 0.3, "target_temperature": 0.1, "self_logit": "zero"}),
        ("sce", {"temperature": 0.3, "target_temperature": 0.1, "self_logit": "zero", "contrastive_weight": 0.1}),
    ):
        about = ",".join(f"{k}={v}" for k, v in options.items() if "temperature" not in k)
        found += [
            Case(key, options, RELATED, {}, IN_BATCH, name=f"batch {about}"),
            Case(key, options, RELATED | {"queue": QUEUE}, {}, IN_QUEUE, name=f"queue {about}"),
        ]
    classes = {"num_classes": CLASSES, "dim": DIM}
    for labels, which in ((BALANCED, "balanced"), (UNBALANCED, "unbalanced"), (BALANCED * 0, "one class")):
        given = {"labels": labels}
        found += [
            Case("cross-entropy", classes, ROWS, given, given, radius=2.0, name=which),
            Case(
                "cross-entropy", classes | {"weight_penalty": 0.3}, ROWS, given, given, radius=2.0, name=f"{which} L2"
            ),
            Case(
                "cross-entropy",
                classes | {"energy_penalty": 0.3},
                ROWS,
                given,
                given,
                radius=2.0,
                name=f"{which} energy",
            ),
            Case("cross-entropy", classes | {"normalize": True}, ROWS, given, given, name=f"{which} sphere"),
            Case("simplex-cross-entropy", classes, ROWS, given, given, radius=2.0, name=which),
            Case(
                "simplex-cross-entropy", classes | {"radius": 3.0}, ROWS, given, given, radius=0.5, name=f"{which} far"
            ),
        ]
    return found


CASES = cases()
every = pytest.mark.parametrize("case", CASES, ids=str)
REDUCTIONS = ("mean", "sum")
CLASSIFIERS = ("cross-entropy", "simplex-cross-entropy")


def call(loss: losses.Loss, inputs: Inputs) -> float:
    return loss(**inputs).item()


def penalty(case: Case, loss: losses.Loss) -> float:
    if case.key not in CLASSIFIERS:
        return 0.0
    squared = case.options.get("weight_penalty", 0.0) * loss.weight.detach().square().sum().item()
    distances = torch.pdist(torch.nn.functional.normalize(loss.weight.detach().double(), dim=1))
    return squared + case.options.get("energy_penalty", 0.0) * distances.pow(-2).mean().item()


def unrelated(case: Case, loss: losses.Loss) -> Inputs:
    """All similarities 0: rows along different axes; for a classifier, across its weights."""

    def axes(total: int) -> Tensor:
        if case.key not in CLASSIFIERS:
            return torch.eye(total, dtype=torch.float64) * (case.radius or 1.0)
        across = torch.linalg.svd(loss.weight.detach()).Vh[CLASSES:]
        return in_ball(rows(total, len(across)) @ across, case.radius or 1.0)

    return case.embeddings(axes)


def random(case: Case, seed: int, dim: int = DIM) -> Inputs:
    """Rows on the sphere, or anywhere in the ball."""

    def anywhere(total: int) -> Tensor:
        lengths = torch.rand(total, 1, generator=torch.Generator().manual_seed(seed)).double()
        return sphere(total, dim, seed=seed) * (1.0 if case.radius is None else case.radius * lengths)

    return case.embeddings(anywhere)


def test_every_loss_of_the_family_has_a_standing() -> None:
    assert {case.key for case in CASES} == set(losses.FAMILY)


def test_another_loss_has_none() -> None:
    class Unknown(losses.Loss):
        pass

    assert standing(Unknown(), 1.0, num_pairs=3) is None


@every
def test_chance_is_the_loss_of_unrelated_rows(case: Case) -> None:
    for reduction in REDUCTIONS:
        loss = case.make(reduction)
        inputs = unrelated(case, loss)
        assert case.stand(loss, inputs).chance == pytest.approx(call(loss, inputs), rel=1e-10, abs=1e-12), reduction


@every
def test_collapsed_is_the_loss_of_equal_rows(case: Case) -> None:
    inputs = case.embeddings(lambda total: sphere(1, DIM).repeat(total, 1) * (case.radius or 1.0))
    for reduction in REDUCTIONS:
        loss = case.make(reduction)
        at, value = case.stand(loss, inputs), call(loss, inputs)
        if case.key in CLASSIFIERS:  # the best of them: equal rows elsewhere, or other weights, are not below
            assert_not_below(value, at.collapsed, reduction)
        else:
            assert at.collapsed == pytest.approx(value, rel=1e-10, abs=1e-12), reduction


@every
def test_sum_is_the_mean_of_all_anchors(case: Case) -> None:
    """That the table has the number of anchors right, without which the sums above prove little."""
    mean, total = case.make("mean"), case.make("sum")
    inputs = random(case, 3)
    extra = penalty(case, mean)
    assert call(total, inputs) - extra == pytest.approx((call(mean, inputs) - extra) * case.anchors, rel=1e-10)
    at = [case.stand(loss, inputs) for loss in (mean, total)]
    for name in ("chance", "collapsed", "bound"):
        one, all_of_them = (getattr(x, name) - extra for x in at)
        assert all_of_them == pytest.approx(one * case.anchors, rel=1e-10, abs=1e-12), name


@every
def test_bound_is_not_above_chance_collapsed_or_random_rows(case: Case) -> None:
    for reduction, seed in itertools.product(REDUCTIONS, range(5)):
        loss, where = case.make(reduction), f"{reduction}, seed {seed}"
        inputs = random(case, seed, dim=DIM if case.key in CLASSIFIERS else 4)
        at = case.stand(loss, inputs)
        assert_not_below(at.chance, at.bound, f"chance, {where}")
        assert_not_below(call(loss, inputs), at.bound, where)
        if case.key not in CLASSIFIERS:
            assert_not_below(at.collapsed, at.bound, f"collapsed, {where}")


@every
def test_bound_holds_on_the_way_down(case: Case) -> None:
    """Adam on every input that gets a gradient, and on a classifier's weights; targets stay as they are."""
    loss = case.make()
    inputs = random(case, 1, dim=DIM if case.key in CLASSIFIERS else 4)
    names = [k for k in case.sizes if k not in ("target", "queue")]
    for name in names:
        inputs[name] = inputs[name].clone().requires_grad_()
    optimiser = torch.optim.Adam([*(inputs[k] for k in names), *loss.parameters()], lr=0.25)
    first = last = math.nan
    for step in range(16):
        used = inputs | {k: in_ball(inputs[k], case.radius) for k in names if case.radius}
        value = loss(**used)
        last = value.item()
        first = last if step == 0 else first
        assert_not_below(last, case.stand(loss, {k: v.detach() for k, v in used.items()}).bound, f"step {step}")
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    assert last <= first + 1e-12, "nothing was led down, so nothing was tried"


# --------------------------------------------------------------------------------------------- where it is reached


def poles(count: int, sign: float = 1.0) -> Tensor:
    return sign * sphere(1, 5, seed=2).repeat(count, 1)


def reaching() -> list[tuple[str, losses.Loss, Inputs, dict[str, Any]]]:
    v = vertices(N, 8, seed=0, dtype=torch.float64)
    w = vertices(CLASSES, 4, dtype=torch.float64)
    queue = {"query": poles(N), "key": poles(N), "negatives": poles(QUEUE, -1.0)}
    batch = {"query": v, "key": v}
    opposite = {"query": poles(N), "key": poles(N, -1.0)}
    two = torch.tensor([0, 0, 0, 1, 1])
    halves = {"embeddings": torch.where(two[:, None] == 0, poles(5), poles(5, -1.0)), "labels": two}
    classes = {"embeddings": w[BALANCED], "labels": BALANCED}
    labels, split = {"labels": BALANCED}, {"labels": two}
    fixed = losses.SimplexCrossEntropyLoss(CLASSES, 4).double()
    learned = losses.CrossEntropyLoss(CLASSES, 4, weight_penalty=0.1)
    learned.weight = torch.nn.Parameter(2.5 * w)
    related, spread = {"online": v, "target": v}, {"online": sphere(N, 4), "target": sphere(N, 4)}
    entropy = {"target_entropy": math.log(N - 1)}
    own = 1 / (1 + (N - 1) * math.exp(-N / ((N - 1) * 0.5)))  # of the simplex's own row at τ = 0.5
    return [
        ("InfoNCE, batch", losses.InfoNCELoss(0.5), batch, IN_BATCH),
        ("InfoNCE, queue", losses.InfoNCELoss(0.5), queue, IN_QUEUE),
        ("hard, batch", losses.HardContrastiveLoss(0.5, 2), batch, IN_BATCH),
        ("hard, queue", losses.HardContrastiveLoss(0.5, 2), queue, IN_QUEUE),
        ("simple, batch", losses.SimpleContrastiveLoss(), batch, IN_BATCH),
        ("simple, batch, heavy negatives", losses.SimpleContrastiveLoss(3.0), opposite, IN_BATCH),
        ("simple, queue", losses.SimpleContrastiveLoss(0.7), queue, IN_QUEUE),
        ("NT-Xent", losses.NTXentLoss(0.5), {"view1": v, "view2": v}, IN_BATCH),
        ("SupCon, balanced", losses.SupConLoss(0.5), classes, labels),
        ("SupCon, in", losses.SupConLoss(0.5, form="in"), classes, labels),
        ("SupCon, two classes of different size", losses.SupConLoss(0.5), halves, split),
        ("TCL, balanced", losses.TCLLoss(0.5, 3.0, 1.5), classes, labels),
        ("TCL, two classes of different size", losses.TCLLoss(0.5, 3.0, 1.5), halves, split),
        (
            "ReSSL, the same relations",
            losses.ReSSLLoss(0.5, 0.5),
            spread,
            IN_BATCH | {"target_entropy": target_entropy(losses.ReSSLLoss(0.5, 0.5), spread)},
        ),
        ("SCE, the same relations", losses.SCELoss(0.5, 0.5, own), related, IN_BATCH | entropy),
        ("CE with penalty", learned, {"embeddings": 1.5 * w[BALANCED], "labels": BALANCED}, labels | {"radius": 1.5}),
        ("CE-fix", fixed, {"embeddings": 2 * fixed.weight[BALANCED], "labels": BALANCED}, labels | {"radius": 2.0}),
    ]


@pytest.mark.parametrize(("loss", "inputs", "told"), [x[1:] for x in reaching()], ids=[x[0] for x in reaching()])
def test_bound_is_reached(loss: losses.Loss, inputs: Inputs, told: dict[str, Any]) -> None:
    """The simplex, opposite poles, the target's own relations: the share is 1, and 0 at chance."""
    value = call(loss, inputs)
    at = standing(loss, value, **told)
    # float32 vertices of CE-fix are a simplex to 1e-7.
    precision = 1e-6 if isinstance(loss, losses.SimplexCrossEntropyLoss) else 1e-9
    assert value == pytest.approx(at.bound, rel=precision)
    assert at.share == pytest.approx(1.0, abs=precision)
    assert standing(loss, at.chance, **told).share == 0.0


@pytest.mark.parametrize("form", ["batch", "queue"])
@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_sce_with_the_zero_logit_and_targets_far_apart(form: str, weight: float) -> None:
    """The own slot's logit 0 takes nearly all of a target whose others are all at −1/2 or −1: its entropy is near 0,
    and so is the loss of the right answer."""
    loss = losses.SCELoss(0.1, 0.05, weight, self_logit="zero")
    v = vertices(3, dtype=torch.float64)
    inputs = {"online": v, "target": v} | ({"queue": -v[:1].repeat(QUEUE, 1)} if form == "queue" else {})
    if form == "queue":
        inputs |= {"online": v[:1].repeat(3, 1), "target": v[:1].repeat(3, 1)}
    told = {"num_pairs": 3} | ({"num_negatives": QUEUE} if form == "queue" else {})
    at = standing(loss, target_entropy=target_entropy(loss, inputs), **told)
    assert_not_below(call(loss, inputs), at.bound)


# ------------------------------------------------------------------------------------------------- the other rules


def test_share_between_chance_and_bound() -> None:
    at = Standing(chance=3.0, collapsed=3.0, bound=1.0, value=2.5)
    assert at.share == 0.25
    assert Standing(3.0, 3.0, 1.0, 4.0).share == -0.5
    assert Standing(3.0, 3.0, 1.0).share is None
    assert Standing(1.0, 1.0, 1.0, 1.0).share is None


def test_value_may_be_what_the_loss_returned() -> None:
    """With its graph, and without torch's warning of that, which comes only once unless told otherwise."""
    loss = losses.InfoNCELoss(0.5)
    q = rows(4, 5).requires_grad_()
    found, always = loss(q, rows(4, 5, seed=1)), torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        at = standing(loss, found, num_pairs=4)
    finally:
        torch.set_warn_always(always)
    assert at.value == found.item()
    assert at.share is not None


def test_value_of_another_kind() -> None:
    """Any real number becomes a float; anything else is an error here and not where the share is asked for."""
    at = standing(losses.InfoNCELoss(0.5), np.float32(1.5), num_pairs=4)
    assert type(at.value) is float
    assert at.value == 1.5
    with pytest.raises(ValueError, match="value"):
        standing(losses.InfoNCELoss(0.5), "low", num_pairs=4)  # type: ignore[arg-type]


def test_temperature_that_is_learned() -> None:
    tau = torch.nn.Parameter(torch.tensor(0.4))
    fixed = standing(losses.InfoNCELoss(tau.item()), num_pairs=8)
    assert standing(losses.InfoNCELoss(tau), num_pairs=8) == fixed
    with torch.no_grad():
        tau.fill_(0.2)
    assert standing(losses.InfoNCELoss(tau), num_pairs=8).bound < fixed.bound


def test_closed_forms_behind_it() -> None:
    """The table of the design: in a batch, a queue, balanced and other labels, a classifier."""
    tau = 0.3
    assert standing(losses.InfoNCELoss(tau), num_pairs=8).bound == bounds.info_nce(8, tau)
    assert standing(losses.InfoNCELoss(tau), num_negatives=50).bound == bounds.info_nce_queue(50, tau)
    both = losses.InfoNCELoss(tau, negatives_in_batch=True)
    at = standing(both, num_pairs=8, num_negatives=50)
    assert at.bound == bounds.info_nce_beside(8, 50, tau)
    assert at.chance == pytest.approx(math.log(8 + 50))
    assert at.bound > max(bounds.info_nce(8, tau), bounds.info_nce_queue(50, tau))
    assert standing(both, num_pairs=1, num_negatives=50).bound == bounds.info_nce_queue(50, tau)
    assert standing(both, num_pairs=8) == standing(losses.InfoNCELoss(tau), num_pairs=8)
    with pytest.raises(ValueError, match="pass num_pairs beside num_negatives: with negatives_in_batch=True the other"):
        standing(both, num_negatives=50)
    assert standing(losses.SupConLoss(tau), labels=BALANCED).bound == pytest.approx(bounds.supcon_batch(3, 2, tau))
    assert standing(losses.NTXentLoss(tau), num_pairs=8).bound == pytest.approx(bounds.supcon_batch(8, 2, tau))
    tcl = standing(losses.TCLLoss(tau, 3.0, 1.2), labels=BALANCED)
    assert tcl.bound == pytest.approx(bounds.tcl_batch(3, 2, tau, 3.0, 1.2))
    unbalanced = standing(losses.SupConLoss(tau), labels=[0, 0, 0, 1, 1, 2])
    apart = math.exp(-2 / tau)
    assert unbalanced.bound == pytest.approx((3 * math.log(2 + 3 * apart) + 2 * math.log(1 + 4 * apart)) / 5)
    assert unbalanced.chance == pytest.approx(math.log(5))
    classifier = losses.CrossEntropyLoss(4, 6, normalize=True)
    norm = float(classifier.weight.detach().double().norm())
    assert standing(classifier).bound == pytest.approx(bounds.cross_entropy(4, 1.0, norm))


def test_no_positive() -> None:
    """skip: the mean over those that have one; zero: over all; error: as the loss does."""
    labels = [0, 0, 0, 1, 2]
    skip = standing(losses.SupConLoss(0.5), labels=labels)
    zero = standing(losses.SupConLoss(0.5, no_positive="zero"), labels=labels)
    assert skip.chance == pytest.approx(math.log(4))
    assert zero.chance == pytest.approx(0.6 * math.log(4))
    assert zero.bound == pytest.approx(0.6 * skip.bound)
    with pytest.raises(ValueError, match="no_positive='error'"):
        standing(losses.SupConLoss(0.5, no_positive="error"), labels=labels)
    assert standing(losses.SupConLoss(0.5, no_positive="error"), labels=[0, 0, 1, 1]).chance == pytest.approx(
        math.log(3)
    )


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_nobody_has_a_positive(reduction: str) -> None:
    at = standing(losses.SupConLoss(0.5, reduction=reduction), 0.0, labels=[0, 1, 2])
    assert (at.chance, at.collapsed, at.bound, at.share) == (0.0, 0.0, 0.0, None)


@pytest.mark.parametrize("key", ["info-nce", "hard-contrastive", "nt-xent", "simple-contrastive", "ressl", "sce"])
def test_a_batch_of_one_pair(key: str) -> None:
    """No negatives: what the real loss gives for equal rows, and nothing below."""
    loss, x = losses.FAMILY[key](), sphere(1, 4)
    at = standing(loss, num_pairs=1)
    assert at.collapsed == pytest.approx(loss(x, x).item(), abs=1e-12)
    for seed in range(5):
        assert_not_below(loss(sphere(1, 4, seed=seed), x).item(), at.bound)


@pytest.mark.parametrize("radius", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("labels", [[0] * 9 + [1], [0, 0, 1, 1], [0] * 5])
def test_collapsed_classifier_is_not_below_its_bound(radius: float, labels: list[int]) -> None:
    """A constant answer is an answer, so the bound holds for it too: also where the ball is too small for the best."""
    at = standing(losses.SimplexCrossEntropyLoss(2, 3), labels=labels, radius=radius)
    assert_not_below(at.collapsed, at.bound)


def test_collapsed_classifier_is_the_best_constant_answer() -> None:
    """Unbalanced labels, a wide ball: the entropy of the labels, which equal rows come near to."""
    labels = torch.tensor([0] * 6 + [1] * 3 + [2])
    loss = losses.SimplexCrossEntropyLoss(3, 2).double()
    at = standing(loss, labels=labels, radius=50.0)
    z = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([z], lr=0.05)
    value = math.inf
    for _ in range(300):
        found = loss(z.expand(10, -1), labels)
        value = found.item()
        assert_not_below(value, at.collapsed)
        optimiser.zero_grad()
        found.backward()
        optimiser.step()
    assert value == pytest.approx(at.collapsed, rel=1e-6)


@pytest.mark.parametrize("energy", [0.0, 0.4])
def test_penalty_counts_once(energy: float) -> None:
    """λ‖W‖² + μE on the mean and the sum, and not on the values per anchor."""
    for reduction, times in (("mean", 1), ("sum", 1), ("none", 0)):
        torch.manual_seed(0)
        loss = losses.CrossEntropyLoss(3, 4, weight_penalty=0.7, energy_penalty=energy, reduction=reduction)
        torch.manual_seed(0)
        plain = losses.CrossEntropyLoss(3, 4, reduction=reduction)
        with_penalty, without = (standing(x, labels=[0, 1, 2, 2], radius=1.0) for x in (loss, plain))
        distances = torch.pdist(torch.nn.functional.normalize(loss.weight.detach().double(), dim=1))
        extra = times * (
            0.7 * float(loss.weight.detach().double().square().sum()) + energy * float((distances**-2).mean())
        )
        for name in ("chance", "collapsed", "bound"):
            assert getattr(with_penalty, name) - getattr(without, name) == pytest.approx(extra, abs=1e-9), reduction


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (losses.InfoNCELoss(reduction="sum"), {"num_negatives": 50}),
        (losses.SimpleContrastiveLoss(reduction="sum", weight=2.0), {"num_negatives": 50}),
        (losses.SCELoss(reduction="sum"), {"num_negatives": 50}),
        (losses.SimplexCrossEntropyLoss(3, 2, reduction="sum"), {"radius": 1.0}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_sum_needs_the_number_of_anchors(loss: losses.Loss, told: dict[str, Any]) -> None:
    """Else its numbers would silently be those of one anchor."""
    with pytest.raises(ValueError, match="num_pairs"):
        standing(loss, **told)


@pytest.mark.parametrize(
    ("loss", "told", "message"),
    [
        (losses.InfoNCELoss(), {}, r"InfoNCELoss .*pass num_pairs \(in a batch\) or num_negatives"),
        (losses.NTXentLoss(), {}, "NTXentLoss .*pass num_pairs"),
        (losses.SupConLoss(), {}, "SupConLoss .*pass labels"),
        (losses.SCELoss(), {}, "SCELoss .*pass num_pairs"),
        (losses.InfoNCELoss(normalize=False), {"num_pairs": 3}, "does not normalise: pass radius"),
        (losses.TCLLoss(normalize=False), {"labels": [0, 0, 1, 1]}, "does not normalise: pass radius"),
        (losses.CrossEntropyLoss(3, 4), {}, "does not normalise: pass radius"),
        (losses.InfoNCELoss(), {"num_pairs": 0}, "num_pairs=.*: must be a whole number of at least 1"),
        (losses.InfoNCELoss(), {"num_negatives": 0}, "num_negatives=.*: must be a whole number of at least 1"),
        (losses.SupConLoss(), {"num_pairs": 4, "num_views": 0}, "num_views=.*: must be a whole number of at least 1"),
        (
            losses.SCELoss(),
            {"num_pairs": 4, "target_entropy": -1.0},
            "target_entropy=.*: must be a finite number",
        ),
        (losses.CrossEntropyLoss(3, 4), {"radius": -1.0}, "radius=.*: must be a finite number of at least 0"),
        (losses.SupConLoss(), {"labels": [0.5, 1.5]}, "labels must be integers"),
        (losses.SupConLoss(), {"labels": [[0, 1]]}, "labels has shape"),
        (losses.SupConLoss(), {"labels": 5}, "labels"),
        (losses.SupConLoss(), {"labels": []}, "labels"),
        (losses.CrossEntropyLoss(3, 4), {"labels": [], "radius": 1.0}, "labels"),
        (losses.CrossEntropyLoss(3, 4), {"labels": [0, 3], "radius": 1.0}, "labels"),
    ],
)
def test_errors(loss: losses.Loss, told: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        standing(loss, **told)


def test_views_without_labels_need_two_of_each() -> None:
    with pytest.raises(ValueError, match="num_views of at least 2"):
        standing(losses.SupConLoss(), num_pairs=256)


def test_target_entropy_above_the_most_there_can_be() -> None:
    with pytest.raises(ValueError, match="target_entropy is 50, above log 10"):
        standing(losses.ReSSLLoss(), num_negatives=10, target_entropy=50.0)


def test_a_fixed_simplex_has_its_bound_for_any_labels() -> None:
    """(1) is reached: every sample at the vertex of its class."""
    loss = losses.SimplexCrossEntropyLoss(3, 2, radius=2.0, normalize=True)
    labels = torch.tensor([0] * 5 + [1])
    at = standing(loss, labels=labels)
    assert at.bound == pytest.approx(float(loss(loss.weight[labels], labels)), abs=1e-6)


@pytest.mark.parametrize("labels", [[0] * 5 + [1], [0, 1, 2, 2]])
@pytest.mark.parametrize("radius", [0.5, 3.0])
def test_collapsed_is_the_best_that_one_embedding_can_do(labels: list[int], radius: float) -> None:
    """Against many constant embeddings: none is better, and the best of a fine search comes close."""
    torch.manual_seed(0)
    loss = losses.CrossEntropyLoss(3, 2).double()
    collapsed = standing(loss, labels=labels, radius=radius).collapsed
    angles, lengths = torch.linspace(0, 2 * math.pi, 720, dtype=torch.float64), torch.linspace(0, radius, 60)
    tried = []
    for length in lengths.double():
        z = length * torch.stack([angles.cos(), angles.sin()], 1)
        logits = z @ loss.weight.detach().T
        share = torch.bincount(torch.tensor(labels), minlength=3).double() / len(labels)
        tried.append((logits.logsumexp(1) - logits @ share).min())
    best = float(torch.stack(tried).min())
    assert collapsed <= best + 1e-9
    assert collapsed == pytest.approx(best, abs=2e-4)  # the search's own step
