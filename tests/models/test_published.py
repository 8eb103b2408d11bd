"""Published weights: read from the libraries' caches; without a network an error says where to get them."""

from __future__ import annotations

import importlib.util
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from kontrast import models
from kontrast.models import published
from tests.models.encoders.test_timm import needs_timm

HASH = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches of torch and of the hub, and no network: nobody is asked."""

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch"))
    if importlib.util.find_spec("huggingface_hub"):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def into_hub(folder: Path, repository: str, state: dict[str, torch.Tensor]) -> None:
    """Where the hub's client keeps the file of a repository."""
    place = folder / "hub" / f"models--{repository.replace('/', '--')}"
    (place / "snapshots" / HASH).mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(HASH)
    save_file(state, place / "snapshots" / HASH / "model.safetensors")


@needs_timm
def test_timms_weights_come_from_the_hubs_cache(caches: Path) -> None:
    import timm

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        whole = timm.create_model("resnet10t", num_classes=7)
    into_hub(caches, "timm/resnet10t.c3_in1k", {k: v.contiguous() for k, v in whole.state_dict().items()})
    made = models.encoder("timm/resnet10t.c3_in1k", pretrained=True, seed=0)
    assert torch.equal(made.net.layer1[0].conv1.weight, whole.layer1[0].conv1.weight)
    assert made.loaded is not None
    assert (made.loaded.source, made.loaded.missing) == ("timm/resnet10t.c3_in1k", [])
    assert sorted(made.loaded.unexpected) == ["fc.bias", "fc.weight"]
    assert made.preprocessing == models.Preprocessing(
        176, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "bicubic", 0.875
    )
    assert made.norm == "frozen"
    grey = models.encoder("timm/resnet10t", in_channels=1, pretrained=True, seed=0)  # its first tag is this one
    assert grey.loaded is not None
    assert grey.loaded.adapted == ["net.conv1.0.weight"]


@needs_timm
def test_without_network_it_says_which_file_to_fetch_and_where_to_put_it() -> None:
    with pytest.raises(ValueError, match="Name or service not known") as caught:
        models.encoder("timm/resnet10t.c3_in1k", pretrained=True)
    said = str(caught.value)
    assert "https://huggingface.co/timm/resnet10t.c3_in1k/resolve/main/model.safetensors" in said
    assert "encoder.pretrained=FILE" in said
    assert "hf download timm/resnet10t.c3_in1k" in said


def test_torchvisions_weights_come_from_its_cache(caches: Path) -> None:
    import torchvision

    with pytest.raises(ValueError, match="cannot be downloaded") as caught:
        models.encoder("resnet18", pretrained="IMAGENET1K_V1")
    place = caches / "torch" / "checkpoints" / "resnet18-f37072fd.pth"
    assert f"Fetch https://download.pytorch.org/models/{place.name}" in str(caught.value)
    assert str(place) in str(caught.value)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        whole = torchvision.models.resnet18()
    place.parent.mkdir(parents=True)
    torch.save(whole.state_dict(), place)
    for named in (True, "IMAGENET1K_V1"):
        made = models.encoder("resnet18", pretrained=named, seed=0)
        assert torch.equal(made.conv1.weight, whole.conv1.weight)
        assert made.loaded is not None
        assert made.loaded.source == "resnet18 IMAGENET1K_V1"


@needs_timm
def test_a_damaged_file_in_the_cache_is_named(caches: Path) -> None:
    into_hub(caches, "timm/resnet10t.c3_in1k", {"conv1.0.weight": torch.zeros(1)})
    (file,) = (caches / "hub").rglob("model.safetensors")
    file.write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(ValueError, match=r"model.safetensors is not a whole safetensors file"):
        models.encoder("timm/resnet10t.c3_in1k", pretrained=True)


def test_torchvisions_damaged_file_is_named_too(caches: Path) -> None:
    place = caches / "torch" / "checkpoints" / "resnet18-f37072fd.pth"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"half")
    with pytest.raises(ValueError, match=r"resnet18-f37072fd.pth cannot be read as tensors alone"):
        models.encoder("resnet18", pretrained=True)


def test_a_proxy_decides_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Name or service not known" in published.out_of_reach("https://example.org/file")
    monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": "http://proxy"})
    assert published.out_of_reach("https://example.org/file") == ""
