r"""Free points: a loss minimised over the embeddings themselves, without an encoder between.

N = K·n points z_n with labels y_n, and weights w_1 … w_K where the loss has a classifier. A powerful enough encoder
could put its embeddings anywhere. So `free_points` puts them there directly, by plain gradient descent (Graf et al.,
"Numerical Simulation": K = 4, n = 100, on S²):

    (1)  Z ← Z − η_Z ∂L/∂Z,   W ← W − η_W ∂L/∂W
    (2)  SC, TCL:        z_n ← ρ z_n/‖z_n‖                     the points live on the sphere of radius ρ
    (3)  cross-entropy:  Z ← Z · min(1, ρ/max_n ‖z_n‖)         the points live in the ball

SC here is SupCon over all points as one balanced batch, s_ij = ⟨z_i, z_j⟩/τ. Where a loss has its bound, the classes
are collapsed onto the vertices ζ_k of a regular simplex of radius ρ, and the weights are one too, aligned to it:

    (4)  z_n = ζ_{y_n},   w_k = (r/ρ) ζ_k                      r = r_W with a penalty λ‖W‖²

Without a penalty the weights grow without limit, as the logarithm of the steps: the bound is then the one at their
present ‖W‖, and it falls together with the loss. (4) is approached at that pace only: after a thousand steps the
cosines of four class means are some hundredths from it, those of ten some tenths. SC and TCL are as slow at low
temperatures, below τ' = 0.2 or so, once the classes are so far apart that e^{s/τ'} has no gradient left.

One learning rate, if given, serves points and weights, as in the authors' code. Otherwise that of the points grows with
N and τ², as the gradient of a mean and the curvature of a softmax fall with them; that of the weights is 1/curvature:

    (5)  η_Z = 0.075 N ρ² min(1, τ'/0.3)²,   τ' = τ/ρ², or τ if the loss normalises;  cross-entropy: without the minimum
    (6)  η_W = 1/(2λ + ρ²/(2(K−1)))

(6) does not count an energy penalty of the loss: where that is large (above 1 or so), give a small learning rate.

How far points and weights are from (4), in lengths of the radius: vectors v_1 … v_K are a regular simplex of radius ρ
centred at the origin iff (7) is all 0; classes with means μ_k are collapsed onto it iff (8) is 0 as well, and weights
w_k are aligned to them iff (9) is (Graf et al., S1–S3; with S2 equal distances are equal cosines):

    (7)  origin ‖(1/K) Σ_k v_k‖/ρ,   norm max_k |‖v_k‖ − ρ|/ρ,   cosine max_{k≠l} |cos(v_k, v_l) + 1/(K−1)|
    (8)  collapse max_n ‖z_n − μ_{y_n}‖/ρ
    (9)  alignment max_k ‖w_k/‖w_k‖ − μ_k/‖μ_k‖‖

`minimise_on_sphere` finds a minimum on the sphere to the last digits, by L-BFGS from several starts.

Deviates: the authors build their optimiser anew at each step, so their momentum of 0.9 never acts; there is none here.
Their penalty is weight decay, half of it times ‖W‖². Their two settings are ``learning_rate=7.5, steps=500`` with
``temperature=0.3`` and ``weight_penalty=0.05``, and ``learning_rate=10, steps=1000`` with ``weight_penalty=0.005``.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast import losses, simplex
from kontrast.checks import number, one_of, temperature_now, whole_number
from kontrast.eager import LBFGS
from kontrast.geometry import bounds, optimum, pairwise_cosines
from kontrast.registry import quoted
from kontrast.sphere import unit

Supervised = losses.SupConLoss | losses.TCLLoss | losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss
Objective = Callable[[Tensor], Tensor]  # points [N, D] → a scalar
FEW_POINTS = 1000  # a step with fewer takes less time than handing it to threads
ROUNDS = 6
SEARCH = {"max_iter": 40, "tolerance_grad": 1e-11, "tolerance_change": 1e-15, "line_search_fn": "strong_wolfe"}
POLISH = {"max_iter": 20, "tolerance_grad": 0.0, "tolerance_change": 0.0}


@contextlib.contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """Compute with one thread of torch inside (only if ``when``); also a decorator.

    Many small steps are faster so: on a busy machine, threads that wait for each other take ten times as long.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if when:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# ---------------------------------------------------------------------------------------- distances from a simplex


@dataclass(frozen=True)
class SimplexDeviation:
    """(7): how far vectors are from a regular simplex; all 0 there."""

    origin: float
    norm: float
    cosine: float

    @property
    def largest(self) -> float:
        """The largest of all numbers."""
        return float(max(astuple(self)))


@dataclass(frozen=True)
class Deviation(SimplexDeviation):
    """(7), (8): how far points are from classes collapsed onto a regular simplex; all 0 there."""

    collapse: float


@dataclass(frozen=True)
class WeightDeviation(SimplexDeviation):
    """(7), (9): how far weights are from a regular simplex aligned to the class means; all 0 there."""

    alignment: float


def class_means(points: Tensor, labels: Tensor, num_classes: int | None = None) -> Tensor:
    """μ_1 … μ_K of points ``[N, D]`` with ``labels [N]`` in 0 … K − 1; nan for a class without points."""
    k = int(labels.max()) + 1 if num_classes is None else num_classes
    return torch.stack([points[labels == c].mean(0) for c in range(k)])


def deviation(points: Tensor, labels: Tensor, radius: float = 1.0) -> Deviation:
    """(7) of the class means, and (8).

    >>> corners = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> deviation(corners, torch.tensor([0, 1]))  # a right angle instead of a straight one
    Deviation(origin=0.707..., norm=0.0, cosine=1.0, collapse=0.0)
    """
    means = class_means(points, labels)
    return Deviation(*simplex_conditions(means, radius), float((points - means[labels]).norm(dim=1).max()) / radius)


def weight_deviation(weights: Tensor, means: Tensor, radius: float | None = None) -> WeightDeviation:
    """(7) of the weights, and (9); without a ``radius`` in lengths of their own root mean square.

    >>> line = torch.tensor([[1.0], [-1.0]])
    >>> weight_deviation(2 * line, line).largest
    0.0
    """
    length = float(weights.square().sum(1).mean().sqrt()) if radius is None else radius
    alignment = float((unit(weights) - unit(means)).norm(dim=1).max())
    return WeightDeviation(*simplex_conditions(weights, length), alignment)


def simplex_conditions(vectors: Tensor, radius: float = 1.0) -> tuple[float, float, float]:
    """(7): origin, norm, cosine."""
    return (
        float(vectors.mean(0).norm()) / radius,
        float((vectors.norm(dim=1) - radius).abs().max()) / radius,
        float((pairwise_cosines(vectors) - optimum(len(vectors))).abs().max()),
    )


# ------------------------------------------------------------------------------------------------------ the losses


def classifier(num_classes: int, dim: int, weight_penalty: float = 0.0, **options: Any) -> losses.CrossEntropyLoss:
    """Cross-entropy in float64, its weights still to be set; torch's global random state does not change."""
    with torch.random.fork_rng(devices=[]):
        loss = losses.CrossEntropyLoss(num_classes, dim, weight_penalty, gather_distributed=False, **options)
    return loss.double()


LOSSES: dict[str, tuple[Callable[..., losses.Loss], dict[str, float]]] = {
    "sc": (lambda _k, _dim, **options: losses.SupConLoss(**options, normalize=False), {"temperature": 0.3}),
    "tcl": (
        lambda _k, _dim, **options: losses.TCLLoss(**options, normalize=False),
        {"temperature": 0.3, "k1": 5.0, "k2": 1.0},
    ),
    "ce": (classifier, {}),
    "ce-l2": (classifier, {"weight_penalty": 0.005}),
    "ce-fix": (losses.SimplexCrossEntropyLoss, {}),
}
"""The losses by name: what makes them for K classes in D dimensions, and their options."""


def _named_loss(name: str, options: dict[str, float], num_classes: int, dim: int) -> losses.Loss:
    make, defaults = LOSSES[one_of("loss", name, tuple(LOSSES))]
    for option, value in options.items():
        if option not in defaults:
            has = ", ".join(defaults) or "no options"
            raise ValueError(f"{option}={quoted(value)}: must be left out for loss={name!r}, which has {has}")
    return make(num_classes, dim, **defaults | options)


def _fresh_copy(loss: losses.Loss, options: dict[str, float], num_classes: int, dim: int) -> Supervised:
    """The same loss in float64 and one process, its temperature fixed, its weights not set."""
    if not isinstance(loss, Supervised):
        raise ValueError(f"loss={type(loss).__name__}: must be a loss over labels (SupCon, TCL, cross-entropy)")
    kind = type(loss)
    if options:
        name, value = next(iter(options.items()))
        raise ValueError(f"{name}={quoted(value)}: must be left out with loss={kind.__name__}(...). Set it there")
    if loss.reduction != "mean":
        raise ValueError(f"loss={kind.__name__}(reduction={loss.reduction!r}): must have reduction='mean'")
    settings = {name: getattr(loss, name) for name in inspect.signature(kind).parameters}
    if "temperature" in settings:
        settings["temperature"] = temperature_now(settings["temperature"])
    sizes = {"num_classes": num_classes, "dim": dim}
    if any(settings.get(name, size) != size for name, size in sizes.items()):
        raise ValueError(
            f"loss={kind.__name__}(num_classes={settings['num_classes']}, dim={settings['dim']}): must have the sizes "
            f"of the points, num_classes={num_classes} and dim={dim}"
        )
    with torch.random.fork_rng(devices=[]):  # the random weights of a classifier are drawn, and replaced
        fresh = kind(**{**settings, "gather_distributed": False}).double()
    if isinstance(fresh, losses.SimplexCrossEntropyLoss):
        fresh.weight = simplex.vertices(num_classes, dim, radius=fresh.radius, seed=fresh.seed, dtype=torch.float64)
    return fresh


def _weights(loss: Supervised) -> Tensor | None:
    """A copy of the classifier's weights, if there is a classifier."""
    if isinstance(loss, losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss):
        return loss.weight.detach().clone()
    return None


def _bound(loss: Supervised, labels: Tensor, radius: float) -> float:
    """The lower bound of the loss: with a penalty whatever the weights, without one at their present norm."""
    if isinstance(loss, losses.CrossEntropyLoss) and loss.weight_penalty:
        energy = loss.energy_penalty * bounds.hyperspherical_energy(loss.num_classes, loss.energy_power)
        return bounds.regularised_cross_entropy(loss.num_classes, _length(loss, radius), loss.weight_penalty) + energy
    return loss.limits(losses.Batch(labels=labels, radius=radius)).bound


def _optimal_weight_radius(loss: Supervised, radius: float) -> float | None:
    """r_W: the length of the weights at the minimum; None if neither a penalty nor the loss itself sets it."""
    if isinstance(loss, losses.SimplexCrossEntropyLoss):
        return loss.radius
    if isinstance(loss, losses.CrossEntropyLoss) and loss.weight_penalty:
        return bounds.regularised_weight_radius(loss.num_classes, _length(loss, radius), loss.weight_penalty)
    return None


def _point_rate(loss: Supervised, num_points: int, radius: float) -> float:
    rate = 0.075 * num_points * radius**2  # (5)
    if isinstance(loss, losses.SupConLoss | losses.TCLLoss):
        rate *= min(1.0, temperature_now(loss.temperature) / _length(loss, radius) ** 2 / 0.3) ** 2
    return rate


def _length(loss: Supervised, radius: float) -> float:
    """The length of the points inside the loss."""
    return 1.0 if loss.normalize else radius


# ------------------------------------------------------------------------------------------------ gradient descent


@dataclass(frozen=True, eq=False)
class FreePoints:
    """The path of the points. T steps are recorded, the start and the end among them.

    Attributes:
        points: The points at the end, ``[N, D]``.
        labels: Their labels, ``[N]``.
        weights: The weights at the end, ``[K, D]``; None where the loss has no classifier.
        steps: The number of each recorded step, ``[T]``.
        path: The points at each recorded step, ``[T, N, D]``.
        weight_path: The weights at each recorded step, ``[T, K, D]``; None without a classifier.
        values: The loss at each recorded step, ``[T]``.
        bounds: Its lower bound, ``[T]``; it moves only with weights without a penalty.
        radius: ρ.
        optimal_weight_radius: r_W; None where nothing sets the length of the weights.
        deviation: How far the points are from (4), in lengths of ρ.
        weight_deviation: How far the weights are from (4), in lengths of r_W or their own; None without a classifier.

    >>> run = free_points("sc", num_classes=3, per_class=2, dim=2, steps=10, record_every=5)
    >>> run.steps, run.path.shape
    (tensor([ 0,  5, 10]), torch.Size([3, 6, 2]))
    """

    points: Tensor
    labels: Tensor
    weights: Tensor | None
    steps: Tensor
    path: Tensor
    weight_path: Tensor | None
    values: Tensor
    bounds: Tensor
    radius: float
    optimal_weight_radius: float | None
    deviation: Deviation
    weight_deviation: WeightDeviation | None

    @property
    def loss(self) -> float:
        """The value at the end."""
        return float(self.values[-1])

    @property
    def bound(self) -> float:
        """The bound at the end."""
        return float(self.bounds[-1])

    @property
    def excess(self) -> float:
        """Loss − bound at the end."""
        return self.loss - self.bound

    @property
    def weight_radius(self) -> float | None:
        """‖W‖_F/√K, the root mean square length of a weight; compare it with ``optimal_weight_radius``."""
        return None if self.weights is None else float(self.weights.square().sum(1).mean().sqrt())


def free_points(
    loss: str | losses.Loss,
    num_classes: int,
    per_class: int,
    dim: int,
    *,
    radius: float = 1.0,
    steps: int = 1000,
    learning_rate: float | None = None,
    temperature: float | None = None,
    k1: float | None = None,
    k2: float | None = None,
    weight_penalty: float | None = None,
    seed: int = 0,
    record_every: int | None = None,
) -> FreePoints:
    """Minimise a loss over ``per_class`` free points of each class, starting from random ones.

    With dim < num_classes − 1 there is no room for a simplex: the points are minimised all the same, and ``excess``
    and ``deviation`` stay above 0. So they may for SupCon's ``form="in"``, which has the same bound but also minima
    above it, with a class in two opposite halves.

    Args:
        loss: "sc", "tcl", "ce", "ce-l2" (with a penalty) or "ce-fix" (weights fixed at a simplex); or a `SupConLoss`,
            `TCLLoss`, `CrossEntropyLoss` or `SimplexCrossEntropyLoss` with options of its own. Such a loss does not
            change: a copy is minimised, from new weights.
        num_classes: K.
        per_class: n.
        dim: D.
        radius: ρ.
        steps: How many steps of (1).
        learning_rate: Of the mean loss, for points and weights; (5) and (6) if left out.
        temperature: Of "sc" and "tcl"; 0.3 if left out.
        k1: Of "tcl"; 5 if left out.
        k2: Of "tcl"; 1 if left out.
        weight_penalty: λ of "ce-l2"; 0.005 if left out.
        seed: The seed of the random start.
        record_every: Steps between two records; about 50 records if left out.

    Returns:
        The path and its end.

    Raises:
        ValueError: An argument is out of range, does not belong to the loss, or the loss is of another kind.

    >>> run = free_points("sc", num_classes=4, per_class=5, dim=3)
    >>> run.excess < 1e-9, run.deviation.cosine < 1e-6, run.deviation.collapse < 1e-6
    (True, True, True)
    >>> run = free_points("ce-l2", num_classes=4, per_class=5, dim=3, weight_penalty=0.05)
    >>> round(run.weight_radius, 4), round(run.optimal_weight_radius, 4)
    (1.2281, 1.2281)
    """
    k, n = whole_number("num_classes", num_classes, least=2), whole_number("per_class", per_class, least=1)
    d, steps = whole_number("dim", dim, least=1), whole_number("steps", steps, least=0)
    rho = number("radius", radius, above=0.0)
    every = max(1, steps // 50) if record_every is None else whole_number("record_every", record_every, least=1)
    tuning = {"temperature": temperature, "k1": k1, "k2": k2, "weight_penalty": weight_penalty}
    options = {name: x for name, x in tuning.items() if x is not None}
    if isinstance(loss, str):
        loss, options = _named_loss(loss, options, k, d), {}
    objective = _fresh_copy(loss, options, k, d)
    contrastive = isinstance(objective, losses.SupConLoss | losses.TCLLoss)
    if contrastive and n < 2:
        raise ValueError(
            f"per_class={n}: must be at least 2, because {type(objective).__name__} compares a point with others of "
            "its class"
        )
    on_sphere = contrastive or objective.normalize

    generator = torch.Generator().manual_seed(whole_number("seed", seed, least=0))
    labels = torch.arange(k).repeat_interleave(n)
    z = rho * unit(torch.randn(k * n, d, dtype=torch.float64, generator=generator))
    if not on_sphere:
        z *= torch.rand(k * n, 1, dtype=torch.float64, generator=generator)
    variables, rates = [z.requires_grad_()], [_point_rate(objective, k * n, rho)]
    if isinstance(objective, losses.CrossEntropyLoss):
        with torch.no_grad():  # of the same length as in the authors' code
            objective.weight.copy_(1.5 * unit(torch.randn(k, d, dtype=torch.float64, generator=generator)))
        variables.append(objective.weight)
        rates.append(1 / (2 * objective.weight_penalty + _length(objective, rho) ** 2 / (2 * (k - 1))))  # (6)
    if learning_rate is not None:
        rates = [number("learning_rate", learning_rate, above=0.0)] * len(rates)

    record_steps, path, weight_path, values, bounds = [], [], [], [], []
    with one_thread(len(z) < FEW_POINTS):
        for step in range(steps + 1):
            value = objective(z, labels)
            if step % every == 0 or step == steps:
                record_steps.append(step)
                path.append(z.detach().clone())
                weight_path.append(_weights(objective))
                values.append(float(value.detach()))
                bounds.append(_bound(objective, labels, rho))
            if step == steps:
                break
            slopes = torch.autograd.grad(value, variables)
            with torch.no_grad():
                for x, eta, slope in zip(variables, rates, slopes, strict=True):
                    x.sub_(slope, alpha=eta)  # (1)
                if on_sphere:
                    z.copy_(rho * unit(z))  # (2)
                else:
                    z.div_((z.norm(dim=1).max() / rho).clamp(min=1.0))  # (3)

    weights = [w for w in weight_path if w is not None]
    weight_radius, means = _optimal_weight_radius(objective, rho), class_means(path[-1], labels)
    return FreePoints(
        points=path[-1],
        labels=labels,
        weights=weights[-1] if weights else None,
        steps=torch.tensor(record_steps),
        path=torch.stack(path),
        weight_path=torch.stack(weights) if weights else None,
        values=torch.tensor(values, dtype=torch.float64),
        bounds=torch.tensor(bounds, dtype=torch.float64),
        radius=rho,
        optimal_weight_radius=weight_radius,
        deviation=deviation(path[-1], labels, rho),
        weight_deviation=weight_deviation(weights[-1], means, weight_radius) if weights else None,
    )


# -------------------------------------------------------------------------------------- minima on a sphere, exactly


@one_thread()
def minimise_on_sphere(
    loss: Objective, num_points: int, dim: int, *, radius: float, starts: int, seed: int
) -> tuple[Tensor, float]:
    """Minimise a function of points on a sphere to the last digits, by L-BFGS on ρ x/‖x‖.

    The loss does not depend on ‖x‖, which long steps let grow until the gradient in x is too small to follow. So x is
    put back on the unit sphere a few times.

    Args:
        loss: The function; its values are of the order of 1.
        num_points: N.
        dim: D.
        radius: ρ.
        starts: How many random starts; the best end is taken.
        seed: The seed of the starts.

    Returns:
        The points ``[N, D]`` and their `slope`.
    """
    generator = torch.Generator().manual_seed(seed)
    ends = []
    for _ in range(starts):
        x = unit(torch.randn(num_points, dim, dtype=torch.float64, generator=generator))
        for _ in range(ROUNDS):
            x = _descend(loss, x, radius, **SEARCH)
        ends.append(x)
    return _sharpen(loss, radius * min(ends, key=lambda x: float(loss(radius * x))), radius)


def _sharpen(loss: Objective, points: Tensor, radius: float) -> tuple[Tensor, float]:
    """Where values agree to all digits, a line search cannot compare them; gradients still differ.

    torch's L-BFGS learns no curvature from steps with ⟨step, change of gradient⟩ < 1e-10, hence the large factor.
    """
    steepness = slope(loss, points)
    for _ in range(ROUNDS):
        candidate = radius * _descend(lambda z: 1e10 * loss(z), points, radius, **POLISH)
        candidate_slope = slope(loss, candidate)
        if candidate_slope >= steepness or float(loss(candidate) - loss(points)) > 1e-12:
            break
        points, steepness = candidate, candidate_slope
    return points, steepness


def _descend(loss: Objective, start: Tensor, radius: float, **options: Any) -> Tensor:
    """L-BFGS from a start; returns points of the unit sphere."""
    x = unit(start).requires_grad_()
    optimiser = LBFGS([x], history_size=20, **options)

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss(radius * unit(x))
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return unit(x.detach())


def slope(loss: Objective, points: Tensor) -> float:
    """The largest gradient of a point along its sphere; 0 at a minimum."""
    z = points.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z), z)
    outward = unit(points)
    along = gradient - (gradient * outward).sum(1, keepdim=True) * outward
    return float(along.norm(dim=1).max())
