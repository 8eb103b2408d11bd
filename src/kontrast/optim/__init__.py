"""Optimisers and schedules, each by name; the learning rate's linear rule, for a recipe to write out.

An optimiser is one of torch's, ready for any loop; a schedule is a function of the step alone, so that a resumed run
needs none of its state:

>>> import torch
>>> from kontrast import optim
>>> network = torch.nn.Linear(8, 4)
>>> lr = optim.scale_rate(0.06, batch_size=512)  # 0.06 for 256 images, as sce has it
>>> optimiser = optim.optimizer("sgd", network, lr=lr, weight_decay=5e-4)
>>> factor = optim.schedule("warmup-cosine", total_steps=2000, steps_per_epoch=100)
>>> for step in (0, 100, 499, 1250, 1999):
...     for group in optimiser.param_groups:
...         group["lr"] = lr * factor(step)
...     print(step, round(group["lr"], 4))
0 0.0
100 0.024
499 0.12
1250 0.06
1999 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer

from kontrast.optim.layer_rates import check_rates, groups_by_rate
from kontrast.optim.scaling import scale_rate
from kontrast.registry import FAMILIES

OPTIMIZERS, SCHEDULES = FAMILIES["optimiser"], FAMILIES["schedule"]

__all__ = [
    "OPTIMIZERS",
    "SCHEDULES",
    "check_rates",
    "groups_by_rate",
    "optimizer",
    "scale_rate",
    "schedule",
]


def optimizer(
    name: str,
    module_or_parameters: nn.Module | Iterable[nn.Parameter] | Iterable[dict[str, Any]],
    *,
    lr: float,
    layer_decay: float | None = None,
    head_lr: float | None = None,
    **options: Any,
) -> Optimizer:
    """The optimiser of this name.

    Args:
        name: one of `OPTIMIZERS`.
        module_or_parameters: what is trained, or groups of it; parameters without gradient are left out.
        lr: the base learning rate.
        layer_decay: the rate of each stage of the encoder is this times that of the stage above it; None for one rate
            (see `kontrast.optim.layer_rates`). The module must have an ``encoder`` that says what its stages are.
        head_lr: the rate of all that is not the encoder; None for ``lr``.
        **options: the optimiser's own (``OPTIMIZERS.options(name)``).

    Returns:
        The optimiser.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a value outside its range.

    >>> import torch
    >>> optimizer("sgd", torch.nn.Linear(3, 2), lr=0.1, momentun=0.8)
    Traceback (most recent call last):
        ...
    ValueError: optimiser 'sgd' has no option 'momentun'; did you mean 'momentum'? It has lr, momentum, ...
    """
    if layer_decay is not None or head_lr is not None:
        module_or_parameters = groups_by_rate(module_or_parameters, lr=lr, layer_decay=layer_decay, head_lr=head_lr)
    return OPTIMIZERS.make(name, module_or_parameters, lr=lr, **options)  # type: ignore[no-any-return]


def schedule(name: str, *, total_steps: int, steps_per_epoch: int, **options: Any) -> Callable[[int], float]:
    """The schedule of this name: ``step`` (from 0) → the factor on the base learning rate.

    Args:
        name: one of `SCHEDULES`.
        total_steps: of the run.
        steps_per_epoch: of the run.
        **options: the schedule's own (``SCHEDULES.options(name)``).

    Returns:
        The schedule.

    Raises:
        ValueError: an unknown name or option (the error names the nearest one), or a value outside its range.

    >>> factor = schedule("multi-step", total_steps=200 * 390, steps_per_epoch=390, milestones=[160, 190])
    >>> factor
    MultiStep(total_steps=78000, steps_per_epoch=390, milestones=(160.0, 190.0), factor=0.1)
    >>> [round(factor(epoch * 390), 6) for epoch in (0, 159, 160, 190)]
    [1.0, 1.0, 0.1, 0.01]
    """
    steps = {"total_steps": total_steps, "steps_per_epoch": steps_per_epoch}
    return SCHEDULES.make(name, **steps, **options)  # type: ignore[no-any-return]
