"""Learning rates by stage: how far each part moves in its first step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kontrast import methods, models, optim

LR, DECAY, HEAD = 0.5, 0.5, 2.0  # powers of two: the steps are exact
EXCLUDE = {"sgd": "exclude_norm_and_bias", "adamw": "exclude_norm_and_bias", "lars": "exclude_bias_n_norm"}


def at_zero() -> methods.Method:
    """A network whose weights are 0 and whose gradients are 1, so that a first step is minus the rate."""
    encoder = models.encoder("small-resnet", image_size=16, seed=0)
    method = methods.method("supcon", encoder, models.head("tcl", in_dim=encoder.feature_dim, seed=0))
    for parameter in method.parameters():
        nn.init.zeros_(parameter)
        parameter.grad = torch.ones_like(parameter)
    return method


def moved(method: methods.Method) -> dict[str, float]:
    """How far each part has moved, the same in all of its weights."""
    parts: dict[str, list[nn.Parameter]] = {f"stage {i}": s for i, s in enumerate(models.stages_of(method.encoder))}  # type: ignore[arg-type]
    parts["head"] = list(method.network.head.parameters())
    distances = {name: torch.cat([-p.detach().flatten() for p in some]) for name, some in parts.items()}
    for name, distance in distances.items():
        assert bool((distance == distance[0]).all()), name
    return {name: float(distance[0]) for name, distance in distances.items()}


@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("name", optim.OPTIMIZERS.names())
def test_each_stage_moves_by_its_share_of_the_rate(name: str, exclude: bool) -> None:
    """(1) and (2) exactly; Adam divides by √v̂ + ε, so that 1e-6 of its step is rounding and ε = 1e-8."""
    method = at_zero()
    options: dict[str, Any] = {"weight_decay": 0.25, EXCLUDE[name]: exclude}
    optim.optimizer(name, method, lr=LR, layer_decay=DECAY, head_lr=HEAD, **options).step()
    expected = {f"stage {i}": LR * DECAY ** (3 - i) for i in range(3)} | {"head": HEAD}
    assert moved(method) == (pytest.approx(expected, rel=1e-6) if name == "adamw" else expected)


def test_one_of_the_two_alone() -> None:
    for options, expected in (
        ({"head_lr": HEAD}, [LR] * 3 + [HEAD]),
        ({"layer_decay": DECAY}, [LR * DECAY ** (3 - i) for i in range(3)] + [LR]),
    ):
        method = at_zero()
        optim.optimizer("sgd", method, lr=LR, **options).step()  # type: ignore[arg-type]
        assert list(moved(method).values()) == expected


def test_norms_and_biases_keep_their_rate_without_decay() -> None:
    method = at_zero()
    optimiser = optim.optimizer("sgd", method, lr=LR, layer_decay=DECAY, weight_decay=0.25, exclude_norm_and_bias=True)
    for group in optimiser.param_groups:
        is_vector = {p.ndim <= 1 for p in group["params"]}
        assert is_vector == {group["weight_decay"] == 0.0}
    rates = sorted({group["lr"] for group in optimiser.param_groups})
    assert rates == [LR * DECAY ** (3 - i) for i in range(3)] + [LR]


def test_what_is_frozen_is_in_no_group() -> None:
    method = at_zero()
    method.encoder.freeze(2)  # type: ignore[operator]
    optimiser = optim.optimizer("sgd", method, lr=LR, layer_decay=DECAY, weight_decay=0.25)
    assert [group["lr"] for group in optimiser.param_groups] == [LR, LR * DECAY]
    optimiser.step()
    assert not any(bool(p.any()) for stage in models.stages_of(method.encoder)[:2] for p in stage)  # type: ignore[arg-type]
    assert len(optimiser.state) == sum(p.requires_grad for p in method.parameters())


def test_groups_of_ones_own() -> None:
    layer = nn.Linear(2, 2)
    groups = [{"params": [layer.weight], "lr": 0.5}, {"params": [layer.bias]}]
    rates = [group["lr"] for group in optim.optimizer("lars", groups, lr=0.1).param_groups]
    assert rates == [0.5, 0.1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer_decay": 0.0}, r"optim.layer_decay=0.0: must be a finite number above 0 and of at most 1"),
        ({"layer_decay": "high"}, r"optim.layer_decay='high': must be"),
        ({"head_lr": -1.0}, r"optim.head_lr=-1.0: must be a finite number above 0"),
    ],
)
def test_wrong_numbers(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        optim.optimizer("sgd", at_zero(), lr=LR, **options)


def test_a_network_without_an_encoder_is_told_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"must be used on a module whose `encoder` is .*, got Linear. Leave them out"):
        optim.optimizer("sgd", nn.Linear(1, 1), lr=LR, layer_decay=DECAY)
