r"""Adaptation controls: which part of the network learns, and from which step on. All of them are off by default.

    train.freeze                    k: the first k stages of the encoder never learn; all: none of it does
    train.head_first                e: in the first e epochs only what is not the encoder learns
    train.checkpoint_activations    blocks of the encoder make their activations again in backward

(`optim.layer_decay`, `optim.head_lr`: `kontrast.optim.layer_rates`; `train.average`: `kontrast.train.averaging`;
`train.clip`: `kontrast.train.gradients.Precision.clip`.)

What does not learn takes no gradient, so the optimiser neither moves nor decays it and keeps no state of it, and it is
in eval mode: batch norm normalises with its running statistics and does not move them, dropout does nothing. The
optimiser does not know frozen stages at all; at the end of ``head_first`` the rest of the encoder joins with the first
gradient that it takes. That moment depends on the step alone, so a run can resume before it and after it. The schedule
of the learning rate goes on.

In momentum methods the target's encoder follows: it is a copy, frozen in the same stages, and in eval mode as long as
the online one is.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from kontrast import methods, models
from kontrast.recipe import Recipe, Train


def prepare(encoder: models.Encoder, recipe: Recipe) -> None:
    """Freeze stages of an encoder, and let its blocks be computed again, as a recipe says; before the method is made.

    Args:
        encoder: At its start.
        recipe: The resolved recipe.

    Raises:
        ValueError: There are not so many stages, or no blocks.

    >>> made = models.encoder("resnet18", image_size=32)
    >>> prepare(made, Recipe.of({"method": "supcon", "train": {"epochs": 1, "freeze": 4}}))
    Traceback (most recent call last):
        ...
    ValueError: train.freeze=4: must be from 1 to 3, or all: the encoder small-resnet has 4 stages. Use all, where ...
    """
    train, name = recipe.train, recipe.encoder.name
    if train.freeze is not None:
        stages = len(encoder.stage_names())
        if train.freeze == "all":
            encoder.freeze(stages)
        elif train.freeze < stages:
            encoder.freeze(train.freeze)
        else:
            few = f"from 1 to {stages - 1}, or all" if stages > 1 else "all"
            raise ValueError(
                f"train.freeze={train.freeze}: must be {few}: the encoder {name} has {stages} stage"
                f"{'s' * (stages > 1)}. Use all, where only the head learns, or fewer"
            )
    if train.checkpoint_activations:
        parts = encoder.recomputed_parts()
        if not parts:
            raise ValueError(
                f"train.checkpoint_activations=true: must be left out for the encoder {name}, which has no blocks to "
                "compute again. Use train.micro_batch to save memory"
            )
        for part in parts:
            models.recompute(part)


def check(method: methods.Method, recipe: Recipe, steps_per_epoch: int, total_steps: int, *, labelled: bool) -> None:
    """Raise if a recipe's controls leave nothing to learn, or nothing to choose by.

    Args:
        method: The method with its networks.
        recipe: The resolved recipe.
        steps_per_epoch: Of the run.
        total_steps: Of the run.
        labelled: Whether validation is by labels, and so looks at the encoder alone.

    Raises:
        ValueError: The head has no parameters and the encoder may not learn; ``head_first`` is as long as the run;
            early stopping of an encoder that does not change.
    """
    train = recipe.train
    steps = head_first_steps(train, steps_per_epoch)
    key = "train.freeze=all" if train.freeze == "all" else f"train.head_first={train.head_first}" if steps else None
    if key is None:
        return
    if not any(p.requires_grad for p in _besides_encoder(method)):
        raise ValueError(
            f"{key}: must leave something to learn, and with head={recipe.head.name} and method={recipe.method.name} "
            "only the encoder has parameters. Use a head that learns (head=tcl)"
        )
    if steps >= total_steps:
        raise ValueError(
            f"{key}: must be less than the whole run of {total_steps / steps_per_epoch:g} epochs. Use train.freeze=all "
            "if only the head is to learn"
        )
    if train.freeze == "all" and train.patience is not None and labelled:
        raise ValueError(
            f"train.patience={train.patience}: must be left out with train.freeze=all, as validation measures the "
            "encoder, which does not change. Leave one of them out"
        )


def head_first_steps(train: Train, steps_per_epoch: int) -> int:
    """How many steps ``train.head_first`` is; 0 without it.

    >>> head_first_steps(Train(epochs=10, head_first=1.5), steps_per_epoch=20), head_first_steps(Train(epochs=1), 20)
    (30, 0)
    """
    return 0 if train.head_first is None else max(1, round(train.head_first * steps_per_epoch))


def rest(method: methods.Method, resting: bool) -> None:
    """Let the encoder rest, or learn from now on; the method is left in train mode.

    Args:
        method: The method.
        resting: Whether the encoder neither learns nor moves its statistics.
    """
    encoders = [part for part in method.modules() if isinstance(part, models.Encoder)]  # the online one and its copies
    for encoder in encoders:
        encoder.resting = resting
    online = method.encoder
    assert isinstance(online, models.Encoder)
    for stage in models.stages_of(online)[online.frozen :]:
        for parameter in stage:
            parameter.requires_grad_(not resting)
    method.train()


def _besides_encoder(method: methods.Method) -> Iterator[nn.Parameter]:
    inside = {id(p) for p in method.encoder.parameters()}
    return (p for p in method.parameters() if id(p) not in inside)
