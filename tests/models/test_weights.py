from __future__ import annotations

import argparse
import hashlib
import json
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save, save_file
from torch import Tensor, nn

from kontrast import models
from kontrast.models import weights


def network(seed: int, channels: int = 3) -> nn.Module:
    return models.encoder("small-resnet", width=4, in_channels=channels, seed=seed)


def same(a: nn.Module, b: nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def prefixed(prefix: str, seed: int = 1, **more: Tensor) -> dict[str, Tensor]:
    return {**{prefix + name: tensor for name, tensor in network(seed).state_dict().items()}, **more}


PREFIXES = ["", "module.", "encoder.", "backbone.", "encoder_q.", "module.encoder_q.", "model.backbone.", "net."]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_usual_prefixes_are_taken_off(prefix: str) -> None:
    module = network(0)
    report = models.load_weights(module, prefixed(prefix), strict=True)
    assert same(module, network(1))
    assert report.prefix == prefix
    assert (report.missing, report.unexpected, report.mismatched) == ([], [], [])


@pytest.mark.parametrize("form", ["safetensors", "run folder", "plain", "checkpoint", "nested", "lightning"])
def test_every_kind_of_file(form: str, tmp_path: Path) -> None:
    state: dict[str, Any] = {
        "safetensors": prefixed(""),
        "run folder": prefixed(""),
        "plain": prefixed("module."),
        "checkpoint": {"step": 7, "encoder": prefixed(""), "optimizer": {"state": {0: {"momentum": torch.ones(3)}}}},
        "nested": {"method": {"online": prefixed("")}, "rng": torch.ones(8, dtype=torch.uint8)},
        "lightning": {"epoch": 3, "state_dict": prefixed("backbone.", **{"projector.0.weight": torch.ones(2, 2)})},
    }[form]
    path = tmp_path / {"safetensors": "weights.safetensors", "run folder": "encoder.safetensors"}.get(form, "last.pt")
    if path.suffix == ".safetensors":
        save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    else:
        torch.save(state, path)
    module = network(0)
    report = models.load_weights(module, tmp_path if form == "run folder" else path, strict=True)
    assert same(module, network(1))
    assert len(report.loaded) == len(module.state_dict())


def test_an_encoder_starts_from_a_file(tmp_path: Path) -> None:
    torch.save(prefixed("encoder."), tmp_path / "x.pt")
    made = models.encoder("small-resnet", width=4, pretrained=tmp_path / "x.pt", seed=0)
    assert same(made, network(1))
    assert made.stem[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_mocos_query_encoder_is_taken_and_its_momentum_encoder_on_request() -> None:
    both = prefixed("module.encoder_k.", seed=2) | prefixed("module.encoder_q.", seed=1)
    module = network(0)
    models.load_weights(module, {"state_dict": both})
    assert same(module, network(1))
    models.load_weights(module, {"state_dict": both}, prefix="module.encoder_k.")
    assert same(module, network(2))
    only_k = prefixed("module.encoder_k.", seed=2)
    with pytest.raises(ValueError, match=r"nothing in a mapping fits: .* prefix='module.encoder_k.' would fit"):
        models.load_weights(module, only_k)


SEQUENCES = ["0.", "online.0.", "module.0.", "online.module.0.", "online.0._orig_mod."]


@pytest.mark.parametrize("prefix", SEQUENCES)
def test_the_first_of_a_sequence_is_the_encoder(prefix: str) -> None:
    state = {prefix[: prefix.index("0")] + "1.linear.weight": torch.ones(2, 2), **prefixed(prefix)}
    state |= prefixed("target.0.", seed=2)
    module = network(0)
    report = models.load_weights(module, state, strict=True)
    assert same(module, network(1)), "the online one, though the target fits too"
    assert (report.prefix, report.unexpected) == (prefix, [])


def test_a_momentum_pair_over_encoder_and_head_gives_back_its_encoder(tmp_path: Path) -> None:
    pair = models.MomentumPair(nn.Sequential(network(1), models.head("tcl", in_dim=16)))
    for parameter in pair.target.parameters():
        parameter.zero_()
    torch.save(pair.state_dict(), tmp_path / "pair.pt")
    made = models.encoder("small-resnet", width=4, pretrained=tmp_path / "pair.pt", seed=0)
    assert same(made, network(1))


def test_an_encoder_takes_a_prefix_beside_its_file(tmp_path: Path) -> None:
    torch.save(prefixed("target.0.", seed=2) | prefixed("online.0.", seed=1), tmp_path / "x.pt")
    made = models.encoder("small-resnet", width=4, pretrained=tmp_path / "x.pt", prefix="target.0.", seed=0)
    assert same(made, network(2))
    with pytest.raises(ValueError, match=r"prefix='target.': must go with pretrained=FILE"):
        models.encoder("small-resnet", width=4, prefix="target.")


@pytest.mark.parametrize("names", [("teacher", "student"), ("student", "teacher"), ("model_ema", "model")], ids=str)
def test_of_two_networks_that_fit_the_learning_one_is_taken(names: tuple[str, str]) -> None:
    """DINO's student is wrapped, its teacher is not: the longer prefix must not decide."""
    learns = next(name for name in names if name in ("student", "model"))
    file = {n: prefixed("module.backbone." if n == learns else "backbone.", seed=1 + (n != learns)) for n in names}
    module = network(0)
    report = models.load_weights(module, file, strict=True)
    assert same(module, network(1))
    assert report.table == learns
    assert f"tensors from a mapping, table '{learns}', prefix 'module.backbone.' taken off" in str(report)


def test_the_one_that_fits_best_is_taken_even_if_it_follows() -> None:
    half = {name: t for name, t in prefixed("", seed=1).items() if name.startswith("stem.")}
    module = network(0)
    report = models.load_weights(module, {"student": half, "teacher": prefixed("", seed=2)}, strict=True)
    assert same(module, network(2))
    assert report.table == "teacher"


def test_half_of_a_larger_network_is_said_and_refused_when_strict() -> None:
    deep = models.encoder("resnet34", image_size=16, seed=1)
    module = models.encoder("resnet18", image_size=16, seed=0)
    start = models.encoder("resnet18", image_size=16, seed=0)
    more = len(deep.state_dict()) - len(module.state_dict())
    unknown = sum(not name.endswith("num_batches_tracked") for name in deep.state_dict()) - sum(
        not name.endswith("num_batches_tracked") for name in module.state_dict()
    )
    with pytest.raises(ValueError, match=rf"the file has {unknown} tensors that ResNet has not.*another network"):
        models.load_weights(module, deep.state_dict(), strict=True)
    assert same(module, start), "a refused file changes nothing"
    with pytest.warns(UserWarning, match=rf"The file has {unknown} tensors that ResNet has not.*another network"):
        report = models.load_weights(module, deep.state_dict())
    assert len(report.unexpected) == more


@pytest.mark.parametrize(
    "name",
    [
        "fc.weight", "fc.2.bias", "head.mlp.weight", "head_dist.bias", "classifier.weight", "projector.0.weight",
        "projection_head.weight", "momentum_projector.1.bias", "predictor.bias", "prototypes.weight", "queue",
        "queue_ptr", "last_linear.weight", "net.fc.weight", "stem.1.num_batches_tracked2.num_batches_tracked",
    ],
)  # fmt: skip
def test_heads_and_queues_beside_the_encoder_are_usual(name: str) -> None:
    report = models.load_weights(network(0), prefixed("", **{name: torch.zeros(2)}), strict=True)
    assert report.unexpected == [name]
    assert report.foreign == []


@pytest.mark.parametrize("name", ["blocks.9.fc.weight", "decoder.weight", "headless.weight", "blocks.3.mlp.fc1.weight"])
def test_other_tensors_beside_the_encoder_are_not(name: str) -> None:
    with pytest.raises(ValueError, match=f"the file has 1 tensors that SmallResNet has not.*unexpected: {name}"):
        models.load_weights(network(0), prefixed("", **{name: torch.zeros(2)}), strict=True)


def test_what_is_missing_is_said_and_refused_when_strict() -> None:
    state = prefixed("", **{"fc.bias": torch.zeros(3)})
    del state["stem.0.weight"]
    state["blocks.0.conv1.weight"] = torch.zeros(1, 2, 3, 3)
    module, before = network(0), network(0).state_dict()
    with pytest.raises(ValueError, match=r"SmallResNet is not wholly in the file: .*missing: stem.0.weight, blocks.0"):
        models.load_weights(module, state, strict=True)
    assert same(module, network(0)), "a refused file changes nothing"
    with pytest.warns(UserWarning, match=r"missing: stem.0.weight, blocks.0.conv1.weight; mismatched: blocks.0.conv1"):
        report = models.load_weights(module, state)
    assert report.unexpected == ["fc.bias"]
    assert report.mismatched == ["blocks.0.conv1.weight"]
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name] if name in report.missing else state[name]), name


def test_nothing_fitting_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the module has stem.0.weight.* and \d+ more; it has a.weight"):
        models.load_weights(network(0), {"a.weight": torch.zeros(3)})
    with pytest.raises(ValueError, match="it holds no tensors"):
        models.load_weights(network(0), {"epoch": 3})


@pytest.mark.parametrize("channels", [1, 6])
def test_other_channels_answer_a_grey_image_alike(channels: int) -> None:
    """A grey image in every channel gives the first layer what three equal channels gave; sums in float32."""
    rgb, other = network(1), network(0, channels=channels)
    report = models.load_weights(other, rgb.state_dict(), strict=True)
    assert report.adapted == ["stem.0.weight"]
    grey = torch.randn(2, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    first = [m.stem[0](grey.expand(-1, c, -1, -1)) for m, c in ((rgb, 3), (other, channels))]
    torch.testing.assert_close(first[0], first[1])


def test_channels_are_repeated_in_turn() -> None:
    rgb, two = network(1), network(0, channels=2)
    models.load_weights(two, rgb.state_dict())
    assert torch.equal(two.stem[0].weight, rgb.stem[0].weight[:, :2] * 1.5)


def test_files_without_the_counters_of_batch_norm_lack_nothing() -> None:
    state = {name: tensor for name, tensor in prefixed("").items() if not name.endswith("num_batches_tracked")}
    report = models.load_weights(network(0), state, strict=True)
    assert report.missing == []


class Trap:
    """Unpickled, it would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.path, "sprung"))


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung.txt"
    torch.save({"state_dict": prefixed(""), "extra": Trap(sprung)}, tmp_path / "trap.pt")
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps({"state_dict": Trap(sprung)}))
    for name in ("trap.pt", "plain.pkl"):
        with pytest.raises(ValueError, match=r"cannot be read as tensors alone, and other objects are never unpickled"):
            models.load_weights(network(0), tmp_path / name)
    assert not sprung.exists()


def test_options_beside_the_tensors_are_read_as_nothing(tmp_path: Path) -> None:
    """Neither kept nor built: what stands for them has no attribute of theirs."""
    beside = {"opt": argparse.Namespace(lr=0.1), "rate": np.float64(0.5), "where": tmp_path, "array": np.ones(2)}
    torch.save({"model": prefixed(""), **beside}, tmp_path / "x.pt")
    module = network(0)
    models.load_weights(module, tmp_path / "x.pt", strict=True)
    assert same(module, network(1))
    found = weights.read_tensors(tmp_path / "x.pt")
    for name in beside:
        assert isinstance(found[name], weights.StandIn), name
        assert vars(found[name]) == {}
    with pytest.raises(pickle.UnpicklingError):  # outside, torch is as strict as before
        torch.load(tmp_path / "x.pt", weights_only=True)


def test_other_objects_are_named(tmp_path: Path) -> None:
    torch.save({"model": prefixed(""), "more": Fraction(1, 2)}, tmp_path / "x.pt")
    with pytest.raises(ValueError, match=r"never unpickled: it holds a fractions\.Fraction\. Save its state_dict"):
        models.load_weights(network(0), tmp_path / "x.pt")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no file .*nowhere.pt; expected a .safetensors file"):
        models.load_weights(network(0), tmp_path / "nowhere.pt")
    (tmp_path / "cut.safetensors").write_bytes(b"12345")
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        models.load_weights(network(0), tmp_path / "cut.safetensors")
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(ValueError, match="holds a list; expected a state dict"):
        models.load_weights(network(0), tmp_path / "list.pt")


@pytest.mark.parametrize(
    "junk", [b"", b"abc", b"hello world", b"\x80\x02X\xff\xff\xff\xff", b"PK\x03\x04", b"\x80\x04."]
)
def test_bytes_that_are_no_file_of_torchs(junk: bytes, tmp_path: Path) -> None:
    (tmp_path / "junk.pt").write_bytes(junk)
    with pytest.raises(ValueError, match=r"junk.pt cannot be read as tensors alone.*: .+\. Save its"):
        models.load_weights(network(0), tmp_path / "junk.pt")


def test_damaged_weights_of_a_run_are_not_started_from(tmp_path: Path) -> None:
    content = save({"weight": torch.ones(1, 2)})
    (tmp_path / "encoder.safetensors").write_bytes(content)
    card = {
        "encoder": {"name": "mlp"},
        "input": {"kind": "vector", "shape": [2], "mean": [0.0], "std": [1.0]},
        "weights_sha256": hashlib.sha256(content).hexdigest(),
    }
    (tmp_path / "model.json").write_text(json.dumps(card))
    layer = nn.Linear(2, 1, bias=False)
    models.load_weights(layer, tmp_path)
    assert torch.equal(layer.weight.detach(), torch.ones(1, 2))
    (tmp_path / "encoder.safetensors").write_bytes(save({"weight": torch.zeros(1, 2)}))
    with pytest.raises(ValueError, match=r"encoder\.safetensors is damaged"):
        models.load_weights(layer, tmp_path)
