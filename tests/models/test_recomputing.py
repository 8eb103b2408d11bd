"""Activation checkpointing: the same gradients to the bit, statistics that move once, fewer bytes kept."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kontrast import methods, models
from kontrast.evaluate.activations import peak_bytes
from kontrast.methods import ViewBatch
from kontrast.train.gradients import backward
from tests.models.encoders.test_timm import needs_timm

SIDE, ROWS = 32, 8
TIMM = [
    pytest.param("timm/tf_efficientnet_lite0", {"drop_path_rate": 0.3}, marks=[needs_timm, pytest.mark.slow]),
    pytest.param("timm/mobilenetv3_small_050", {"drop_path_rate": 0.3}, marks=needs_timm),
    pytest.param("timm/vit_tiny_patch16_224", {"depth": 2, "proj_drop_rate": 0.3}, marks=needs_timm),
]
ENCODERS = [("small-resnet", {"depth": 2, "features": 24}), ("resnet18", {"stem": "large"}), *TIMM]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The same bits need the same sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pair(
    name: str, options: dict[str, Any], *, method: str = "supcon", **more: Any
) -> tuple[methods.Method, methods.Method]:
    """A method, and one of the same weights whose encoder computes its activations again."""
    made = []
    for again in (False, True):
        encoder = models.encoder(name, image_size=SIDE, seed=0, **options)
        if again:
            assert encoder.recomputed_parts()
            for part in encoder.recomputed_parts():
                models.recompute(part)
        head = models.head("wang-liu", in_dim=encoder.feature_dim, seed=1)
        made.append(methods.method(method, encoder, head, **more))
    return made[0], made[1]


def batch() -> ViewBatch:
    draw = torch.Generator().manual_seed(0)
    return ViewBatch(torch.rand(ROWS, 2, 3, SIDE, SIDE, generator=draw), torch.arange(ROWS) % 3, seed=5)


def same(plain: methods.Method, again: methods.Method) -> None:
    for (name, p), q in zip(plain.named_parameters(), again.named_parameters(), strict=True):
        assert name == q[0]
        assert (p.grad is None) == (q[1].grad is None), name
        assert p.grad is None or torch.equal(p.grad, q[1].grad), name  # type: ignore[arg-type]
    for (name, b), c in zip(plain.named_buffers(), again.buffers(), strict=True):
        assert torch.equal(b, c), name


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(("name", "options"), ENCODERS)
def test_gradients_and_statistics_are_those_of_one_forward_pass_to_the_bit(
    name: str, options: dict[str, Any], pieces: int
) -> None:
    plain, again = pair(name, options)
    for method in (plain, again):
        backward(method, batch(), pieces=pieces)
        backward(method, batch(), pieces=pieces)
    same(plain, again)
    counters = {int(b) for n, b in again.named_buffers() if n.endswith("num_batches_tracked")}
    assert counters in (set(), {2 * pieces})


def test_the_target_of_a_momentum_method_is_bound_to_its_own_parts() -> None:
    plain, again = pair("small-resnet", {}, method="moco", queue=16, key_parts=2, momentum=0.5)
    for method in (plain, again):
        optimiser = torch.optim.SGD([p for p in method.parameters() if p.requires_grad], lr=0.5)
        for _ in range(2):
            optimiser.zero_grad()
            backward(method, batch())
            optimiser.step()
            method.after_step()
    same(plain, again)
    assert models.is_recomputed(again.pair.target.encoder.blocks[0])  # type: ignore[union-attr, index, operator]
    assert again.pair.target.encoder.blocks[0].forward.__self__ is again.pair.target.encoder.blocks[0]  # type: ignore[union-attr, index, operator]


def test_fewer_bytes_are_kept() -> None:
    """Instead of all activations of 18 blocks their inputs, and at the peak the inside of one block more."""
    plain, again = pair("small-resnet", {"depth": 6})
    kept = []
    for method in (plain, again):
        bytes_kept = 0

        def pack(x: Tensor) -> Tensor:
            nonlocal bytes_kept
            bytes_kept += x.nbytes
            return x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            method.embed(batch().views)
        kept.append(bytes_kept)
    assert kept[1] < kept[0] / 3
    peaks = [peak_bytes(lambda method=method: backward(method, batch())) for method in (plain, again)]
    assert peaks[1] < peaks[0] / 2


def test_without_a_gradient_a_part_is_simply_called() -> None:
    layer = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    calls: list[int] = []
    layer.register_forward_hook(lambda *_: calls.append(1))
    again = models.recompute(copy.deepcopy(layer))
    x = torch.randn(4, 2)
    with torch.no_grad():
        assert torch.equal(again(x), layer(x))
    again.requires_grad_(False)
    assert not again(x).requires_grad
    assert int(again[1].num_batches_tracked) == 2


def test_statistics_with_a_plain_mean_move_once_too() -> None:
    """``momentum=None`` divides by the counter, which must be right at the next step."""
    layers = [nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, momentum=None), nn.ReLU()) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    models.recompute(layers[1])
    for step in range(3):
        x = torch.randn(6, 2, generator=torch.Generator().manual_seed(step))
        for layer in layers:
            layer(x).square().sum().backward()
    for a, b in zip(layers[0].buffers(), layers[1].buffers(), strict=True):
        assert torch.equal(a, b)
    assert layers[1][1].momentum is None
