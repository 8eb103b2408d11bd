r"""A learning rate for each part of a network: smaller ones further down the encoder, one of its own for the head.

The stages of the encoder are 0 … S − 1 from the input on (`kontrast.models.stages_of`); whatever else learns (head,
predictor, classifier, a temperature) stands above them, at depth 0:

    (1)  rate(stage i) = lr · d^(S − i)          d = layer_decay: lr·d for the last stage, lr·d^S for the first
    (2)  rate(what is not the encoder) = head_lr, or lr without one

What a pretrained network knows in its first stages fits most images, so they need smaller steps; a head that begins at
random needs larger ones. The schedule multiplies all of them by the same factor.

Deviates: none. (1) is what BEiT and timm do, with timm's coarse groups of layers as stages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn

from kontrast.checks import number
from kontrast.models import Encoder, stages_of
from kontrast.registry import quoted


def check_rates(layer_decay: float | None, head_lr: float | None) -> None:
    """Raise a ValueError for a value outside its range; None is no value.

    >>> check_rates(1.5, None)
    Traceback (most recent call last):
        ...
    ValueError: optim.layer_decay=1.5: must be a finite number above 0 and of at most 1
    """
    if layer_decay is not None:
        number("optim.layer_decay", layer_decay, above=0.0, most=1.0)
    if head_lr is not None:
        number("optim.head_lr", head_lr, above=0.0)


def groups_by_rate(
    module: nn.Module | Iterable[Any], *, lr: float, layer_decay: float | None = None, head_lr: float | None = None
) -> list[dict[str, Any]]:
    """The parameters of a network in groups, each with its rate: (2), then the stages from the first on (1).

    Args:
        module: A network with an ``encoder`` (`kontrast.models.Encoder`).
        lr: The base rate.
        layer_decay: d, above 0 and at most 1; None is 1.
        head_lr: The rate of all but the encoder; None is ``lr``.

    Returns:
        The groups, as torch's optimisers take them.

    Raises:
        ValueError: A number is outside its range, or the module has no such encoder.

    >>> from kontrast import methods, models
    >>> encoder = models.encoder("mlp", in_features=4, depth=2)
    >>> method = methods.method("supcon", encoder, models.head("tcl", in_dim=encoder.feature_dim))
    >>> [(len(g["params"]), g["lr"]) for g in groups_by_rate(method, lr=0.1, layer_decay=0.5, head_lr=1.0)]
    [(4, 1.0), (3, 0.025), (2, 0.05)]
    """
    check_rates(layer_decay, head_lr)
    encoder = getattr(module, "encoder", None)
    if not isinstance(module, nn.Module) or not isinstance(encoder, Encoder):
        raise ValueError(
            f"layer_decay={quoted(layer_decay)}, head_lr={quoted(head_lr)}: must be used on a module whose `encoder` "
            f"is a kontrast.models.Encoder, got {type(module).__name__}. Leave them out, or pass groups of parameters "
            'with a rate each: [{"params": …, "lr": …}, …]'
        )
    stages = stages_of(encoder)
    inside = {id(parameter) for stage in stages for parameter in stage}
    others = [parameter for parameter in module.parameters() if id(parameter) not in inside]
    d = 1.0 if layer_decay is None else layer_decay
    rates = [lr * d ** (len(stages) - i) for i in range(len(stages))]  # (1)
    above: dict[str, Any] = {"params": others, "lr": lr if head_lr is None else head_lr}  # (2)
    return [above, *({"params": stage, "lr": rate} for stage, rate in zip(stages, rates, strict=True))]
