"""Stages of every encoder, and what a frozen one does."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from kontrast import models
from kontrast.models import Encoder, frozen_modules, stages_of
from tests.models.encoders.test_timm import needs_timm

SIDE = 32


def make(name: str, **options: object) -> Encoder:
    return models.encoder(name, image_size=SIDE, seed=0, **options)


@pytest.mark.parametrize("name", [n for n in models.names() if n not in ("resnet50", "resnet101", "timm/…")])
def test_every_parameter_is_in_one_stage_and_the_stages_follow_each_other(name: str) -> None:
    """A later stage never comes earlier: with the first k frozen, no gradient goes to what is before them."""
    made = make(name)
    stages = stages_of(made)
    assert sorted(id(p) for stage in stages for p in stage) == sorted(id(p) for p in made.parameters())
    assert all(stages)
    made.freeze(len(stages) - 1)
    h = made(torch.rand(4, 3, SIDE, SIDE))
    h.square().sum().backward()
    learned = [[p.grad is not None for p in stage] for stage in stages]
    assert learned == [[False] * len(stage) for stage in stages[:-1]] + [[True] * len(stages[-1])]


@needs_timm
@pytest.mark.parametrize(
    ("name", "count", "first", "last"),
    [
        ("vit_tiny_patch16_224", 12, {"cls_token", "pos_embed", "patch_embed", "blocks.0"}, {"blocks.11", "norm"}),
        ("tf_efficientnet_lite0", 7, {"conv_stem", "bn1", "blocks.0"}, {"blocks.6", "conv_head", "bn2"}),
        ("resnet10t", 4, {"conv1", "bn1", "layer1"}, {"layer4"}),
        ("convnext_atto", 4, {"stem", "stages.0"}, {"stages.3", "head"}),
    ],
)
def test_stages_of_timm(name: str, count: int, first: set[str], last: set[str]) -> None:
    stages = make(f"timm/{name}").stage_names()
    assert len(stages) == count
    for names, expected in ((stages[0], first), (stages[-1], last)):
        short = {n.removeprefix("net.") for n in names}
        assert all(any(n == part or n.startswith(f"{part}.") for part in expected) for n in short)
        assert all(any(n == part or n.startswith(f"{part}.") for n in short) for part in expected)


@pytest.mark.parametrize("name", ["resnet18", "small-resnet"])
def test_frozen_stages_stay_in_eval_mode_in_copies_and_among_other_norms_too(name: str) -> None:
    made = make(name)
    made.freeze(2)
    copied = models.split_batch_norm(models.sync_batch_norm(copy.deepcopy(made)), parts=2)
    assert isinstance(copied, Encoder)
    for encoder in (made, copied):
        encoder.eval().train()
        before = {n: b.clone() for n, b in encoder.named_buffers()}
        encoder(torch.rand(4, 3, SIDE, SIDE))
        frozen = {id(b) for part in frozen_modules(encoder, stages_of(encoder), 2) for b in part.buffers()}
        assert 0 < len(frozen) < len(before)
        assert encoder.training
        for n, b in encoder.named_buffers():
            assert torch.equal(b, before[n]) == (id(b) in frozen), n


def test_dropout_of_a_frozen_stage_does_nothing() -> None:
    class Dropping(Encoder):
        feature_dim = 2

        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
            self.second = nn.Linear(2, 2)

        def stage_names(self) -> list[list[str]]:
            return [["first"], ["second"]]

    made = Dropping()
    made.freeze(1)
    assert [part.training for part in (made, made.first[1], made.second)] == [True, False, True]
    with pytest.raises(ValueError, match="count=3: must be from 0 to 2, the number of stages"):
        made.freeze(3)


def test_a_whole_encoder_frozen() -> None:
    made = make("small-resnet")
    made.freeze(3)
    assert not made.train().training
    assert not made(torch.rand(2, 3, SIDE, SIDE)).requires_grad


def test_an_encoder_that_says_nothing_is_one_stage_and_one_that_forgets_a_part_is_told() -> None:
    class Plain(Encoder):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)
            self.scale = nn.Parameter(torch.ones(1))

    class Forgetful(Plain):
        def stage_names(self) -> list[list[str]]:
            return [["a"], ["b"]]

    assert [len(stage) for stage in stages_of(Plain())] == [5]
    assert Plain().recomputed_parts() == []
    with pytest.raises(ValueError, match=r"Forgetful.stage_names: must name every part .* 'scale' is in none of its 2"):
        stages_of(Forgetful())
