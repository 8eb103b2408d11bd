"""``norm="frozen"``: batch norm of a pretrained encoder keeps its running statistics, and its weights are trained."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from kontrast import methods, models
from kontrast.methods import ViewBatch
from kontrast.train.gradients import backward
from tests.models.encoders.test_timm import needs_timm

FEATURES = 6


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Weights of an mlp whose batch norm has seen data far from 0 and 1."""
    return saved(tmp_path)


def saved(folder: Path) -> Path:
    made = models.encoder("mlp", in_features=FEATURES, hidden=8, features=8, seed=0)
    for _ in range(20):
        made(3 + 2 * torch.randn(64, FEATURES, generator=torch.Generator().manual_seed(1)))
    path = folder / "weights.pt"
    torch.save(made.state_dict(), path)
    return path


def started(file: Path, norm: str | None = None) -> models.Encoder:
    return models.encoder("mlp", in_features=FEATURES, hidden=8, features=8, pretrained=file, norm=norm, seed=1)


def statistics(module: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.clone() for name, buffer in module.named_buffers() if "running" in name or "tracked" in name}


def unchanged(module: nn.Module, before: dict[str, Tensor]) -> None:
    after = statistics(module)
    assert after.keys() == before.keys() != set()
    for name, value in before.items():
        assert torch.equal(after[name], value), name


def batch(rows: int = 12) -> ViewBatch:
    draw = torch.Generator().manual_seed(0)
    return ViewBatch(torch.randn(rows, 2, FEATURES, generator=draw), torch.arange(rows) % 3)


def method_of(name: str, encoder: nn.Module, **options: object) -> methods.Method:
    return methods.method(name, encoder, models.head("none", in_dim=8), **options)


def test_a_pretrained_start_keeps_its_statistics_unless_asked(file: Path) -> None:
    x = torch.randn(16, FEATURES)
    frozen, moving = started(file), started(file, "train")
    assert (frozen.norm, moving.norm, models.encoder("mlp", in_features=2).norm) == ("frozen", "train", None)
    before = statistics(frozen)
    h = frozen.train()(x)
    unchanged(frozen, before)
    assert torch.equal(h, frozen.eval()(x)), "normalised with the running statistics"
    moving.train()(x)
    assert not torch.equal(statistics(moving)["layers.1.running_mean"], before["layers.1.running_mean"])
    frozen.train()(x).square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in frozen.layers[1].parameters()), (
        "weight and bias learn"
    )


def test_what_cannot_be(file: Path) -> None:
    with pytest.raises(
        ValueError, match=r"encoder.norm=frozen: .* starts from random weights. Use encoder.pretrained="
    ):
        models.encoder("mlp", in_features=2, norm="frozen")
    with pytest.raises(ValueError, match=r"encoder.norm='freeze': must be frozen or train"):
        started(file, "freeze")


def test_every_batch_norm_of_torch_and_ours() -> None:
    encoder = models.Encoder()
    encoder.parts = nn.ModuleList([nn.BatchNorm1d(4), nn.BatchNorm2d(4), nn.BatchNorm3d(4), nn.SyncBatchNorm(4)])
    encoder.more = models.sync_batch_norm(nn.Sequential(nn.BatchNorm2d(4)))
    encoder.split = models.split_batch_norm(nn.Sequential(nn.BatchNorm2d(4)), 2)
    encoder.drop = nn.Dropout(0.5)
    encoder.norm = "frozen"
    encoder.eval().train()
    before, shapes = statistics(encoder), [(6, 4), (6, 4, 2, 2), (6, 4, 2, 2, 2), (6, 4, 2, 2)]
    for part, shape in zip(encoder.parts, shapes, strict=True):
        part(torch.randn(shape))
    for part in (encoder.more, encoder.split):
        part(torch.randn(6, 4, 2, 2))
    unchanged(encoder, before)
    assert encoder.drop.training, "dropout is no batch norm"


@pytest.mark.parametrize("parts", [1, 4])
def test_momentum_copies_and_split_batch_norm(file: Path, parts: int) -> None:
    method = method_of("moco", started(file), queue=20, key_parts=parts).train()
    before = [statistics(net) for net in (method.online.encoder, method.pair.target.encoder)]
    for _ in range(3):
        backward(method, batch())
        with torch.no_grad():
            for p in method.online.parameters():
                p -= 0.01 * p.grad
        method.after_step()
        method.eval()
        method.train()
    for net, was in zip((method.online.encoder, method.pair.target.encoder), before, strict=True):
        unchanged(net, was)
    twin = copy.deepcopy(method).train()
    twin.online(batch().views[:, 0])
    unchanged(twin.online.encoder, before[0])


def test_micro_batches_give_the_undivided_gradient(file: Path) -> None:
    """With batch statistics they do not: each piece would be normalised by its own."""
    whole, pieces = (method_of("supcon", started(file)).train() for _ in range(2))
    before = statistics(whole)
    backward(whole, batch())
    backward(pieces, batch(), pieces=3)
    for p, q in zip(whole.parameters(), pieces.parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=1e-6)
    unchanged(whole, before)
    unchanged(pieces, before)


@needs_timm
def test_timms_batch_norm_with_an_activation(tmp_path: Path) -> None:
    name, x = "timm/mobilenetv3_small_050", torch.randn(2, 3, 32, 32)
    torch.save(models.encoder(name, image_size=32, seed=0).state_dict(), tmp_path / "weights.pt")
    made = models.encoder(name, image_size=32, pretrained=tmp_path / "weights.pt", seed=1, drop_rate=0.5)
    before = statistics(made)
    for convert in (lambda e: e, models.sync_batch_norm, lambda e: models.split_batch_norm(e, 2)):
        convert(made).train()(x)
        unchanged(made, before)


def test_a_tag_is_refused_and_the_message_says_what_to_do() -> None:
    """It trained random weights without a word; timm need not be there to be told so."""
    says = (
        r"timm/resnet50.a1_in1k: the tag 'a1_in1k' .* encoder.pretrained=true .* encoder.pretrained=FILE .* for random"
    )
    with pytest.raises(ValueError, match=says):
        models.encoder("timm/resnet50.a1_in1k")
