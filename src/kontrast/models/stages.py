r"""Stages of an encoder: the parts that it consists of, from the input on, so that the first ones can be frozen.

An encoder says of itself what its stages are (`kontrast.models.Encoder.stage_names`): names of submodules or of
parameters, the stem together with the first stage. Here the names become parameters and modules:

    stages 0 … S − 1        every parameter of the encoder is in one of them
    depth of stage i        S − i, counted from the top: 1 for the last stage; what stands behind the encoder has 0

A module is frozen when all of its parameters are in frozen stages; so is all that it contains (dropout too). A frozen
stage takes no gradient, so nothing before it keeps activations for a backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torch import nn


class Staged(Protocol):
    """A module that says what its stages are."""

    def stage_names(self) -> list[list[str]]:
        """The names of the parts of each stage."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters by name."""
        ...


def stages_of(encoder: Staged) -> list[list[nn.Parameter]]:
    """The parameters of each stage of an encoder, from the input on.

    Args:
        encoder: An encoder (`kontrast.models.Encoder`).

    Returns:
        A list of parameters for each stage.

    Raises:
        ValueError: A parameter is in no stage; the error names it.

    >>> from kontrast import models
    >>> [len(stage) for stage in stages_of(models.encoder("resnet18", image_size=32))]
    [15, 15, 15, 15]
    """
    names = encoder.stage_names()
    stages: list[list[nn.Parameter]] = [[] for _ in names]
    for name, parameter in encoder.named_parameters():
        stages[_stage_of(name, names, encoder)].append(parameter)
    return stages


def frozen_modules(encoder: nn.Module, stages: list[list[nn.Parameter]], count: int) -> list[nn.Module]:
    """The modules whose parameters are all in the first stages, the outermost ones alone.

    Args:
        encoder: The encoder.
        stages: Its parameters by stage (`stages_of`).
        count: How many of the first stages are frozen.

    Returns:
        The modules; what they contain is frozen with them.

    >>> from kontrast import models
    >>> encoder = models.encoder("resnet18", image_size=32)
    >>> [type(part).__name__ for part in frozen_modules(encoder, stages_of(encoder), 1)]
    ['Conv2d', 'BatchNorm2d', 'Sequential']
    """
    frozen = {id(parameter) for stage in stages[:count] for parameter in stage}

    def outermost(module: nn.Module) -> Iterator[nn.Module]:
        inside = [id(parameter) for parameter in module.parameters()]
        if inside and frozen.issuperset(inside):
            yield module
        elif not frozen.isdisjoint(inside):
            for child in module.children():
                yield from outermost(child)

    return list(outermost(encoder))


def _stage_of(name: str, stages: list[list[str]], encoder: object) -> int:
    for i, parts in enumerate(stages):
        if any(name == part or name.startswith(f"{part}.") for part in parts):
            return i
    raise ValueError(
        f"{type(encoder).__name__}.stage_names: must name every part of the encoder, and {name!r} is in none of its "
        f"{len(stages)} stages. Add it to one of them"
    )
