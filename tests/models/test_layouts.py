"""Checkpoints of other projects: the features of our encoder are those of the network that was saved.

In double, so that the order in which sums are taken makes no difference above 1e-9.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import Tensor, nn

from kontrast import models
from kontrast.models.layouts import PADDED_BY_TWO, WITHOUT_RELU, layouts
from kontrast.pipeline import run_recipe
from tests.models import foreign
from tests.train.small import recipe


@pytest.fixture(autouse=True)
def same_draws() -> Iterator[None]:
    """Networks draw their first weights from torch's own generator: the same in every test, and put back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def images(side: int = 16) -> Tensor:
    return torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@torch.no_grad()
def same(encoder: nn.Module, original: nn.Module, side: int = 16) -> None:
    x = images(side)
    torch.testing.assert_close(encoder.double().eval()(x), original(x).flatten(1), rtol=1e-9, atol=1e-9)


def saved(tmp_path: Path, content: dict[str, Any], **options: Any) -> Path:
    torch.save(content, tmp_path / "file.pth", **options)
    return tmp_path / "file.pth"


@pytest.mark.parametrize(
    ("name", "blocks", "expansion", "parallel"),
    [
        ("resnet18", [2, 2, 2, 2], 1, True),
        ("resnet18", [2, 2, 2, 2], 1, False),
        pytest.param("resnet50", [3, 4, 6, 3], 4, True, marks=pytest.mark.slow),
    ],
)
def test_supcontrast(tmp_path: Path, name: str, blocks: list[int], expansion: int, parallel: bool) -> None:
    """util.py saves the options of the command line too, and after a step of the rate a number of numpy's."""
    network = foreign.lived(foreign.SupContrastResNet(blocks, expansion))
    whole = foreign.SupContrast(network, 512 * expansion, parallel=parallel)
    optimizer = {"param_groups": [{"lr": np.float64(0.05) * 0.1, "params": [0]}], "state": {}}
    content = {
        "opt": argparse.Namespace(model=name, lr_decay_epochs=[700, 800]),
        "model": whole.state_dict(),
        "optimizer": optimizer,
        "epoch": 1000,
    }
    encoder = models.encoder(name, image_size=32, seed=3)
    report = models.load_weights(encoder, saved(tmp_path, content), strict=True)
    assert (report.table, report.prefix) == ("model", "encoder.module." if parallel else "encoder.")
    assert report.layout == "shortcut"
    same(encoder, network)


def test_an_encoder_starts_from_supcontrasts_file(tmp_path: Path) -> None:
    network = foreign.lived(foreign.SupContrastResNet([2, 2, 2, 2], 1))
    file = saved(tmp_path, {"model": foreign.SupContrast(network, 512, parallel=True).state_dict()})
    same(models.encoder("resnet18", image_size=32, pretrained=file, seed=4), network)


def test_a_recipe_starts_from_supcontrasts_file(tmp_path: Path) -> None:
    """At a rate of next to nothing, what was loaded is what is exported."""
    network = foreign.lived(foreign.SupContrastResNet([2, 2, 2, 2], 1)).float()
    content = {
        "opt": argparse.Namespace(model="resnet18"),
        "model": foreign.SupContrast(network, 512, parallel=True).state_dict(),
    }
    file = saved(tmp_path, content)
    changes = {
        "encoder": {"name": "resnet18", "pretrained": str(file)},
        "data.channels": 3,
        "data.limit": 20,
        "train.epochs": None,
        "train.steps": 1,
        "train.batch_size": 10,
        "optim.lr": 1e-30,
        "evaluate.protocols": [],
    }
    encoder = run_recipe(recipe("supcon", tmp_path / "runs", **changes)).encoder()
    assert torch.equal(encoder.layer2[0].downsample[0].weight, network.layer2[0].shortcut[0].weight)
    assert torch.equal(encoder.conv1.weight, network.conv1.weight)


@pytest.mark.parametrize("mlp", [False, True], ids=["v1", "v2"])
def test_moco(tmp_path: Path, mlp: bool) -> None:
    """As released: in the old form of torch.save, of a module in DistributedDataParallel."""
    moco = foreign.lived(foreign.MoCo(mlp=mlp))
    content = {"epoch": 200, "arch": "resnet18", "state_dict": foreign.Wrapped(moco).state_dict()}
    encoder = models.encoder("resnet18", seed=3)
    file = saved(tmp_path, content, _use_new_zipfile_serialization=False)
    report = models.load_weights(encoder, file, strict=True)
    assert (report.prefix, report.layout, report.foreign) == ("module.encoder_q.", "", [])
    moco.encoder_q.fc = nn.Identity()
    same(encoder, moco.encoder_q, side=64)


def solo_learn(tmp_path: Path, *, cifar: bool) -> tuple[nn.Module, Path]:
    omegaconf = pytest.importorskip("omegaconf")
    method = foreign.lived(foreign.SoloLearn(cifar=cifar))
    content = {
        "epoch": 999,
        "pytorch-lightning_version": "2.1.2",
        "state_dict": method.state_dict(),
        "hyper_parameters": omegaconf.OmegaConf.create({"method": "byol", "optimizer": {"lr": 0.3, "kwargs": [1]}}),
    }
    return method.backbone, saved(tmp_path, content)


def test_solo_learn_on_imagenet(tmp_path: Path) -> None:
    network, file = solo_learn(tmp_path, cifar=False)
    encoder = models.encoder("resnet18", seed=3)
    report = models.load_weights(encoder, file, strict=True)
    assert (report.table, report.prefix, report.notes) == ("state_dict", "backbone.", [])
    same(encoder, network, side=64)


def test_solo_learn_on_cifar_pads_by_two_and_is_told(tmp_path: Path) -> None:
    network, file = solo_learn(tmp_path, cifar=True)
    encoder = models.encoder("resnet18", image_size=32, seed=3)
    with pytest.warns(UserWarning, match="pad the first convolution by 2"):
        report = models.load_weights(encoder, file, strict=True)
    assert report.notes == [PADDED_BY_TWO]
    with pytest.raises(AssertionError, match="not close"):
        same(encoder, network)
    encoder.conv1.padding = (2, 2)
    same(encoder, network)


@pytest.mark.parametrize("small", [False, True])
def test_lightly_with_torchvisions_resnet(tmp_path: Path, small: bool) -> None:
    """Every example of lightly's: nn.Sequential(*list(resnet.children())[:-1]), and a projection head of its own."""
    modules = pytest.importorskip("lightly.models.modules")
    resnet = torchvision.models.resnet18()
    if small:
        resnet.conv1, resnet.maxpool = nn.Conv2d(3, 64, 3, stride=1, padding=1, bias=False), nn.Identity()

    class SimCLR(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = nn.Sequential(*list(resnet.children())[:-1])
            self.projection_head = modules.SimCLRProjectionHead(512, 512, 128)

    whole = foreign.lived(SimCLR())
    encoder = models.encoder("resnet18", image_size=32 if small else None, seed=3)
    content = {"state_dict": whole.state_dict(), "pytorch-lightning_version": "2.6.0", "hyper_parameters": {}}
    report = models.load_weights(encoder, saved(tmp_path, content), strict=True)
    assert (report.prefix, report.layout, report.notes) == ("backbone.", "a Sequential's numbers", [])
    same(encoder, whole.backbone, side=16 if small else 64)


def generated(name: str) -> nn.Module:
    lightly = pytest.importorskip("lightly.models")
    return foreign.lived(lightly.ResNetGenerator(name))


@pytest.mark.parametrize("depth", [18, pytest.param(50, marks=pytest.mark.slow)])
def test_lightlys_own_resnet(depth: int) -> None:
    """It averages over windows of 4×4, so 32 pixels it must be."""
    network = generated(f"resnet-{depth}")
    encoder = models.encoder(f"resnet{depth}", image_size=32, seed=3)
    report = models.load_weights(encoder, {"state_dict": network.state_dict()}, strict=True)
    assert (report.layout, report.unexpected) == ("shortcut", ["linear.weight", "linear.bias"])
    network.linear = nn.Identity()
    same(encoder, network, side=32)


def test_the_children_of_lightlys_own_resnet_lack_a_relu_and_it_is_told() -> None:
    """lightly's benchmarks on CIFAR: the ReLU of its forward is no child, and so not in the Sequential."""
    children = list(generated("resnet-18").children())[:-1]
    backbone = nn.Sequential(*children, nn.AdaptiveAvgPool2d(1)).eval()
    encoder = models.encoder("resnet18", image_size=32, seed=3)
    state = {f"backbone.{name}": tensor for name, tensor in backbone.state_dict().items()}
    with pytest.warns(UserWarning, match="have no ReLU behind the first batch norm"):
        report = models.load_weights(encoder, state, strict=True)
    assert report.notes == [WITHOUT_RELU]
    assert report.layout == "a Sequential's numbers and shortcut"
    with pytest.raises(AssertionError, match="not close"):
        same(encoder, backbone)
    encoder.relu = nn.Identity()
    same(encoder, backbone)


def test_another_stem_is_told_with_the_option_that_makes_it() -> None:
    small = models.encoder("resnet18", image_size=32, seed=1).state_dict()
    large = models.encoder("resnet18", seed=0)
    with pytest.warns(UserWarning, match=r"first convolution is 3×3, the module's 7×7: make .* with stem='small'"):
        models.load_weights(large, small)
    with pytest.raises(ValueError, match="stem='large'"):
        models.load_weights(models.encoder("resnet18", image_size=32), large.state_dict(), strict=True)


def test_a_small_resnet_keeps_its_own_shortcuts() -> None:
    """Its names have that word too; as they are, they fit."""
    state = models.encoder("small-resnet", width=4, seed=1).state_dict()
    report = models.load_weights(models.encoder("small-resnet", width=4, seed=0), state, strict=True)
    assert report.layout == ""


@pytest.mark.parametrize("places", [(4, 5, 6), (4, 5, 6, 8), (0, 1, 2, 3), (3, 4, 5, 6, 7)], ids=str)
def test_numbers_that_are_no_resnet_stay(places: tuple[int, ...]) -> None:
    table = {f"net.{place}.0.conv1.weight": torch.zeros(1) for place in places}
    assert len(list(layouts(table))) == 1
