"""The losses that free points can be given: by name or made beforehand, with their rates, bounds and weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kontrast import losses, simplex
from kontrast.checks import temperature_now
from kontrast.geometry import bounds

Supervised = losses.SupConLoss | losses.TCLLoss | losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss
DEFAULTS: dict[str, dict[str, float]] = {
    "sc": {"temperature": 0.3},
    "tcl": {"temperature": 0.3, "k1": 5.0, "k2": 1.0},
    "ce": {},
    "ce-l2": {"weight_penalty": 0.005},
    "ce-fix": {},
}


def objective(loss: str | losses.Loss, options: dict[str, float], num_classes: int, dim: int) -> Supervised:
    """The loss with its options but nothing else of its past: in float64, in one process, its temperature fixed."""
    made = _named(loss, options, num_classes, dim) if isinstance(loss, str) else loss
    if not isinstance(made, Supervised):
        raise ValueError(f"free points need a loss over labels (SupCon, TCL, cross-entropy), not {type(made).__name__}")
    if not isinstance(loss, str) and options:
        raise ValueError(f"{', '.join(options)}: set in {type(made).__name__}(...) itself, which was made beforehand")
    if made.reduction != "mean":
        raise ValueError(f"{type(made).__name__} has reduction={made.reduction!r}; free points need 'mean'")
    scaled = made.normalize
    if isinstance(made, losses.SupConLoss):
        tau = temperature_now(made.temperature)
        return losses.SupConLoss(tau, form=made.form, normalize=scaled, gather_distributed=False)
    if isinstance(made, losses.TCLLoss):
        tau = temperature_now(made.temperature)
        return losses.TCLLoss(tau, made.k1, made.k2, normalize=scaled, gather_distributed=False)
    if (made.num_classes, made.dim) != (num_classes, dim):
        raise ValueError(
            f"{type(made).__name__} was made for num_classes={made.num_classes}, dim={made.dim}; "
            f"the points have {num_classes} and {dim}"
        )
    if isinstance(made, losses.SimplexCrossEntropyLoss):
        r, seed = made.radius, made.seed
        fixed = losses.SimplexCrossEntropyLoss(
            num_classes, dim, radius=r, seed=seed, normalize=scaled, gather_distributed=False
        )
        fixed.weight = simplex.vertices(num_classes, dim, radius=r, seed=seed, dtype=torch.float64)
        return fixed
    energy: dict[str, Any] = {"energy_penalty": made.energy_penalty, "energy_power": made.energy_power}
    return classifier(num_classes, dim, made.weight_penalty, normalize=scaled, **energy)


def classifier(num_classes: int, dim: int, weight_penalty: float = 0.0, **options: Any) -> losses.CrossEntropyLoss:
    """Cross-entropy in float64 whose weights are still to be set; the global random numbers stay where they are."""
    with torch.random.fork_rng(devices=[]):
        made = losses.CrossEntropyLoss(num_classes, dim, weight_penalty, gather_distributed=False, **options)
    return made.double()


def _named(name: str, options: dict[str, float], num_classes: int, dim: int) -> losses.Loss:
    if name not in DEFAULTS:
        raise ValueError(f"no loss is named {name!r}; the names are {', '.join(map(repr, DEFAULTS))}")
    if wrong := [option for option in options if option not in DEFAULTS[name]]:
        raise ValueError(f"{name!r} takes {', '.join(DEFAULTS[name]) or 'no options'}, not {', '.join(wrong)}")
    chosen = DEFAULTS[name] | options
    match name:
        case "sc":
            return losses.SupConLoss(chosen["temperature"], normalize=False)
        case "tcl":
            return losses.TCLLoss(chosen["temperature"], chosen["k1"], chosen["k2"], normalize=False)
        case "ce-fix":
            return losses.SimplexCrossEntropyLoss(num_classes, dim)
    return classifier(num_classes, dim, chosen.get("weight_penalty", 0.0))


def weights(loss: Supervised) -> Tensor | None:
    """A copy of the classifier's weights, if there is a classifier."""
    if isinstance(loss, losses.CrossEntropyLoss | losses.SimplexCrossEntropyLoss):
        return loss.weight.detach().clone()
    return None


def bound(loss: Supervised, labels: Tensor, radius: float) -> float:
    """What the loss cannot go below: with a penalty whatever the weights, without one at their present norm."""
    if isinstance(loss, losses.CrossEntropyLoss) and loss.weight_penalty:
        energy = loss.energy_penalty * bounds.hyperspherical_energy(loss.num_classes, loss.energy_power)
        return bounds.regularised_cross_entropy(loss.num_classes, _length(loss, radius), loss.weight_penalty) + energy
    return bounds.standing(loss, labels=labels, radius=radius).bound


def optimal_weight_radius(loss: Supervised, radius: float) -> float | None:
    """r_W: how long the weights are at the minimum, where the loss has a say in it or they are fixed."""
    if isinstance(loss, losses.SimplexCrossEntropyLoss):
        return loss.radius
    if isinstance(loss, losses.CrossEntropyLoss) and loss.weight_penalty:
        return bounds.regularised_weight_radius(loss.num_classes, _length(loss, radius), loss.weight_penalty)
    return None


def point_rate(loss: Supervised, num_points: int, radius: float) -> float:
    """(5) of `free_points`."""
    rate = 0.075 * num_points * radius**2
    if isinstance(loss, losses.SupConLoss | losses.TCLLoss):
        rate *= min(1.0, temperature_now(loss.temperature) / _length(loss, radius) ** 2 / 0.3) ** 2
    return rate


def weight_rate(loss: losses.CrossEntropyLoss, radius: float) -> float:
    """(6) of `free_points`."""
    return 1 / (2 * loss.weight_penalty + _length(loss, radius) ** 2 / (2 * (loss.num_classes - 1)))


def _length(loss: Supervised, radius: float) -> float:
    """Of the points as the loss sees them."""
    return 1.0 if loss.normalize else radius
