r"""Free points: a loss minimised over the embeddings themselves, with no encoder between.

N = K·n points z_n with labels y_n, and weights w_1 … w_K where the loss has a classifier. A powerful enough encoder
could put its embeddings anywhere; so put them there directly, by plain gradient descent (Graf et al., "Numerical
Simulation": K = 4, n = 100, on S²):

    (1)  Z ← Z − η_Z ∂L/∂Z,   W ← W − η_W ∂L/∂W
    (2)  SC, TCL:        z_n ← ρ z_n/‖z_n‖                     the points live on the sphere of radius ρ
    (3)  cross-entropy:  Z ← Z · min(1, ρ/max_n ‖z_n‖)         the points live in the ball

SC here is SupCon over all points as one balanced batch, s_ij = ⟨z_i, z_j⟩/τ. Where a loss has its bound, the classes
are collapsed onto the vertices ζ_k of a regular simplex of radius ρ, and the weights are one too, aligned to it:

    (4)  z_n = ζ_{y_n},   w_k = (r/ρ) ζ_k                      r = r_W with a penalty λ‖W‖²

Without a penalty the weights grow without limit, as the logarithm of the steps: the bound that counts is the one at
their present ‖W‖, and it falls beside the loss. (4) is then approached at that pace only: after a thousand steps the
cosines of four class means are some hundredths from it, those of ten some tenths. SC and TCL are as slow when cold,
below τ' = 0.2 or so, once the classes are so far apart that e^{s/τ'} has no gradient left.

One learning rate, if given, serves points and weights, as in the authors' code. Else that of the points grows with N
and τ², as the gradient of a mean and the curvature of a softmax fall with them; that of the weights is 1/curvature:

    (5)  η_Z = 0.075 N ρ² min(1, τ'/0.3)²,   τ' = τ/ρ², or τ if the loss normalises;  cross-entropy: without the minimum
    (6)  η_W = 1/(2λ + ρ²/(2(K−1)))

(6) does not count an energy penalty of the loss: where that is large (above 1 or so), give a small learning rate.

Deviates: the authors build their optimiser anew at each step, so their momentum of 0.9 never acts; there is none here.
Their penalty is weight decay, half of it times ‖W‖². Their two settings are ``learning_rate=7.5, steps=500`` with
``temperature=0.3`` and ``weight_penalty=0.05``, and ``learning_rate=10, steps=1000`` with ``weight_penalty=0.005``.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast import losses
from kontrast.checks import number, whole_number
from kontrast.sphere import unit
from kontrast.theory import _objective
from kontrast.theory._deviation import Deviation, WeightDeviation, class_means, deviation, weight_deviation
from kontrast.theory._threads import one_thread

SMALL = 1000  # points; a step with fewer takes less than handing it to threads


@dataclass(frozen=True, eq=False)
class FreePoints:
    """Where the points went. T steps are recorded, the start and the end among them."""

    points: Tensor  # [N, D]
    labels: Tensor  # [N]
    weights: Tensor | None  # [K, D]; None where the loss has no classifier
    steps: Tensor  # [T], how many had been done
    path: Tensor  # [T, N, D]
    weight_path: Tensor | None  # [T, K, D]
    values: Tensor  # [T], the loss
    bounds: Tensor  # [T], what it cannot go below; moves only with weights that no penalty holds
    radius: float
    optimal_weight_radius: float | None  # r_W; None where nothing sets the length of the weights
    deviation: Deviation  # of the points from (4), in lengths of ρ
    weight_deviation: WeightDeviation | None  # of the weights from (4), in lengths of r_W or their own

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
        """‖W‖_F/√K, the root mean square length of a weight, to be held against ``optimal_weight_radius``."""
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

    - ``loss``: "sc", "tcl", "ce", "ce-l2" (with a penalty) or "ce-fix" (weights fixed at a simplex), tuned by
      ``temperature`` (0.3), ``k1`` (5), ``k2`` (1), ``weight_penalty`` (0.005) where it has them; or a `SupConLoss`,
      `TCLLoss`, `CrossEntropyLoss` or `SimplexCrossEntropyLoss` with options of its own, which stays as it is (a copy
      is minimised, its weights started anew).
    - ``learning_rate``: of the mean loss, for points and weights; (5) and (6) if left out.
    - ``record_every``: so many steps apart; about 50 records if left out.

    With dim < num_classes − 1 there is no room for a simplex: the points are minimised all the same, and ``excess``
    and ``deviation`` stay above 0. So they may for SupCon's ``form="in"``, which has the same bound but also minima
    above it, with a class in two opposite halves.

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
    given = {"temperature": temperature, "k1": k1, "k2": k2, "weight_penalty": weight_penalty}
    objective = _objective.objective(loss, {name: x for name, x in given.items() if x is not None}, k, d)
    contrastive = isinstance(objective, losses.SupConLoss | losses.TCLLoss)
    if contrastive and n < 2:
        raise ValueError(f"per_class is {n}: {type(objective).__name__} compares a point with others of its class")
    on_sphere = contrastive or objective.normalize

    generator = torch.Generator().manual_seed(whole_number("seed", seed, least=0))
    labels = torch.arange(k).repeat_interleave(n)
    z = rho * unit(torch.randn(k * n, d, dtype=torch.float64, generator=generator))
    if not on_sphere:
        z *= torch.rand(k * n, 1, dtype=torch.float64, generator=generator)
    moved, rates = [z.requires_grad_()], [_objective.point_rate(objective, k * n, rho)]
    if isinstance(objective, losses.CrossEntropyLoss):
        with torch.no_grad():  # each as long as in the authors' code
            objective.weight.copy_(1.5 * unit(torch.randn(k, d, dtype=torch.float64, generator=generator)))
        moved.append(objective.weight)
        rates.append(_objective.weight_rate(objective, rho))
    if learning_rate is not None:
        rates = [number("learning_rate", learning_rate, above=0.0)] * len(rates)

    recorded, path, weight_path, values, bounds = [], [], [], [], []
    with one_thread(len(z) < SMALL):
        for step in range(steps + 1):
            value = objective(z, labels)
            if step % every == 0 or step == steps:
                recorded.append(step)
                path.append(z.detach().clone())
                weight_path.append(_objective.weights(objective))
                values.append(float(value.detach()))
                bounds.append(_objective.bound(objective, labels, rho))
            if step == steps:
                break
            slopes = torch.autograd.grad(value, moved)
            with torch.no_grad():
                for x, eta, slope in zip(moved, rates, slopes, strict=True):
                    x.sub_(slope, alpha=eta)  # (1)
                if on_sphere:
                    z.copy_(rho * unit(z))  # (2)
                else:
                    z.div_((z.norm(dim=1).max() / rho).clamp(min=1.0))  # (3)

    weights = [w for w in weight_path if w is not None]
    optimum = _objective.optimal_weight_radius(objective, rho)
    return FreePoints(
        points=path[-1],
        labels=labels,
        weights=weights[-1] if weights else None,
        steps=torch.tensor(recorded),
        path=torch.stack(path),
        weight_path=torch.stack(weights) if weights else None,
        values=torch.tensor(values, dtype=torch.float64),
        bounds=torch.tensor(bounds, dtype=torch.float64),
        radius=rho,
        optimal_weight_radius=optimum,
        deviation=deviation(path[-1], labels, rho),
        weight_deviation=weight_deviation(weights[-1], class_means(path[-1], labels), optimum) if weights else None,
    )
