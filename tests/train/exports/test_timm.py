"""timm loads the folder by itself, and gives the run's features."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import kontrast
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
