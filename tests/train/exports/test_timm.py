"""timm loads the folder by itself, and gives the run's features."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import kontrast
from kontrast.data import CentreCrop
from kontrast.train.exports import export_run
from tests.train.exports.made import made

timm = pytest.importorskip("timm")

ENCODERS = [
    ("timm/resnet10t", (1, 32, 32), {}),
    ("resnet18", (3, 32, 32), {"stem": "large"}),
    ("resnet18", (1, 32, 32), {"stem": "large"}),
    ("timm/vit_tiny_patch16_224", (3, 32, 32), {"depth": 1}),
]


@pytest.mark.parametrize(("name", "shape", "options"), ENCODERS)
def test_the_folder_is_one_of_timms(
    tmp_path: Path, name: str, shape: tuple[int, ...], options: dict[str, object]
) -> None:
    """In double, so that the layout of memory makes no difference in rounding."""
    run = made(tmp_path / "run", name, shape, **options)
    before = torch.random.get_rng_state()
    folder = export_run(run, "timm", tmp_path / "out")
    assert torch.equal(before, torch.random.get_rng_state())
    model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval().double()
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(model(x), kontrast.load(run).double()(x), rtol=1e-9, atol=1e-9)
    given = json.loads((run / "model.json").read_text())["input"]
    config = timm.data.resolve_data_config({}, model=model)
    assert tuple(config["input_size"]) == shape
    assert list(config["mean"]) == given["mean"]
    assert list(config["std"]) == given["std"]
    classifier = timm.create_model(f"local-dir:{folder}", pretrained=True, num_classes=3)
    assert classifier(x.float()).shape == (2, 3)


def test_the_small_stem_has_no_name_in_timm(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "resnet18", (3, 32, 32))
    with pytest.raises(
        ValueError, match=r"resnet18 cannot be exported to timm: .* that work: onnx, safetensors, torchvision"
    ):
        export_run(run, "timm")
    assert not (run / "exports").exists()


def test_timms_own_transform_crops_and_resizes_as_the_run_did(tmp_path: Path) -> None:
    """0.875 of the middle, bilinear, not timm's bicubic. PIL resizes before it crops, so edges differ by some levels of
    255; of a smooth image by less than 3."""
    run = made(tmp_path / "run", "resnet18", (3, 32, 32), stem="large")
    card = json.loads((run / "model.json").read_text())
    card["input"]["crop"] = 0.875
    (run / "model.json").write_text(json.dumps(card))
    model = timm.create_model(f"local-dir:{export_run(run, 'timm', tmp_path / 'out')}", pretrained=True)
    config = timm.data.resolve_data_config({}, model=model)
    assert (config["crop_pct"], config["crop_mode"], config["interpolation"]) == (0.875, "center", "bilinear")
    ramp = np.add.outer(np.arange(96), np.arange(128))[..., None].repeat(3, 2).astype(np.uint8)
    theirs = timm.data.create_transform(**config)(Image.fromarray(ramp))
    ours = CentreCrop(32, fraction=0.875)(torch.from_numpy(ramp).permute(2, 0, 1)) / 255
    mean, std = (torch.tensor(card["input"][key]).view(3, 1, 1) for key in ("mean", "std"))
    assert float((theirs * std + mean - ours).abs().max()) < 3 / 255
