"""The file gives, in onnxruntime, what the run's encoder gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

import kontrast
from kontrast.train.exports import export_run
from tests.train.exports.made import made, normalised

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

ENCODERS = [
    ("small-resnet", (1, 12, 12), {"width": 4}),
    ("mlp", (5,), {"hidden": 8}),
    pytest.param("resnet18", (3, 16, 16), {}, marks=pytest.mark.slow),
    ("timm/resnet10t", (3, 32, 32), {}),
    pytest.param("timm/vit_tiny_patch16_224", (3, 32, 32), {"depth": 2}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "shape", "options"), ENCODERS)
def test_every_kind_of_encoder(tmp_path: Path, name: str, shape: tuple[int, ...], options: dict[str, int]) -> None:
    """Raw inputs in a batch of a size that was not exported; to 1e-5 of the largest, rounding in float32 being 1e-6."""
    if name.startswith("timm"):
        pytest.importorskip("timm")
    run = made(tmp_path / "run", name, shape, **options)
    before = torch.random.get_rng_state()
    folder = export_run(run, "onnx", tmp_path / "out")
    assert torch.equal(before, torch.random.get_rng_state())
    assert sorted(file.name for file in folder.iterdir()) == ["README.md", "encoder.onnx", "model.json"]
    session = onnxruntime.InferenceSession(str(folder / "encoder.onnx"), providers=["CPUExecutionProvider"])
    (given,), (answer,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape) == ("vectors" if len(shape) == 1 else "images", ["batch", *shape])
    assert (answer.name, answer.shape[0]) == ("features", "batch")
    x = torch.rand(7, *shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted = kontrast.load(run)(normalised(x, json.loads((run / "model.json").read_text())))
    (features,) = session.run(None, {given.name: x.numpy()})
    assert float((torch.from_numpy(features) - wanted).abs().max()) < 1e-5 * float(wanted.abs().max())


def test_normalised_outside_and_the_files_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "run", "mlp", (1, 4, 4), hidden=8)
    folder = export_run(run, "onnx", tmp_path / "out", normalise="outside", opset=19)
    card = json.loads((folder / "model.json").read_text())
    monkeypatch.chdir(folder)
    found: dict[str, object] = {}
    exec(card["load"], found)  # the lines of the card, on zeros
    with torch.no_grad():
        wanted = kontrast.load(run)(torch.zeros(1, 1, 4, 4))
    torch.testing.assert_close(torch.from_numpy(found["features"]), wanted)
    assert "(x − mean) / std: mean (0.3), std (0.2)" in (folder / "README.md").read_text()
    model = onnx.load(folder / "encoder.onnx")
    assert [entry.version for entry in model.opset_import if not entry.domain] == [19]
    (kept,) = [entry.value for entry in model.metadata_props if entry.key == "kontrast"]
    assert (json.loads(kept)["hash"], json.loads(kept)["normalise"]) == ("0123abcd", "outside")


def test_a_file_that_disagrees_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontrast.train.exports._target.TOLERANCE", 0.0)
    run = made(tmp_path / "run", "mlp", (16,), hidden=64)
    with pytest.raises(ValueError, match=r"onnxruntime gives features that differ from the run's by .* of the largest"):
        export_run(run, "onnx")
    assert not (run / "exports" / "onnx").exists()


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_without_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    run = made(tmp_path / "run", "mlp", (5,), hidden=8)
    with pytest.raises(ImportError, match=r"needs onnx, onnxruntime and onnxscript .*pip install kontrast\[onnx\]"):
        export_run(run, "onnx")


@pytest.mark.parametrize(("options", "says"), [({"normalise": "no"}, "'inside'"), ({"opset": 11}, "18 or more")])
def test_mistakes(tmp_path: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        export_run(tmp_path, "onnx", **options)
