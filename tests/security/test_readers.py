"""No file that somebody was handed can run anything: every reader gets every trap, and none springs."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import kontrast
from kontrast import doctor, models, report
from kontrast.cli._files import load_array, load_arrays
from kontrast.data.cache import CachedImages
from kontrast.data.images import decode
from kontrast.data.loading import load
from kontrast.data.sets.cifar10 import read_batch
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe, parse
from kontrast.train import checkpoint, exports
from kontrast.train.embedding import embed
from tests.security.traps import TRAPS
from tests.train.small import recipe

SUFFIXES = (".pt", ".pth", ".ckpt", ".pkl", ".bin", ".npy", ".npz", ".yaml", ".json", ".safetensors", ".png", "")
READERS: dict[str, Callable[[Path], Any]] = {
    "data": load,
    "arrays of the command line": load_arrays,
    "an array of the command line": lambda path: load_array(path, "labels"),
    "weights": lambda path: models.load_weights(torch.nn.Linear(2, 2), path),
    "a start from weights": lambda path: models.encoder("mlp", in_features=2, pretrained=path),
    "a checkpoint": checkpoint.load,
    "a recipe": Recipe.read,
    "an override": lambda path: parse(f"name={path.read_bytes().decode('latin1')}"),
    "an image": decode,
    "a cache of images": CachedImages,
    "a batch of CIFAR": lambda path: read_batch(path.read_bytes()),
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("reader", READERS)
def test_a_file(reader: str, trap: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    sprung = tmp_path / "sprung"
    for suffix in SUFFIXES:
        path = tmp_path / f"handed{suffix}"
        path.write_bytes(TRAPS[trap](sprung))
        with contextlib.suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS[reader](path)
        assert not sprung.exists(), f"{reader} ran what {path.name} holds"
    record_property("tried", len(SUFFIXES))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all its files."""
    made = run_recipe(recipe("supcon", tmp_path_factory.mktemp("runs"), **{"train.epochs": 1})).path
    doctor.write(made)
    return made


FILES = (
    "recipe.yaml", "run.json", "metrics.jsonl", "checkpoints/last.pt", "encoder.safetensors", "model.json",
    "result.json", "analysis.npz", "analysis.json", "doctor.json",
)  # fmt: skip
TRAINED_FROM = ("recipe.yaml", "run.json", "checkpoints/last.pt")
USES: dict[str, Callable[[Path], Any]] = {
    "report": lambda run: report.write([run]),
    "comparison": lambda run: report.write([run, run.parent / "good"], out=run.parent / "comparison.html"),
    "doctor": doctor.write,
    "load": kontrast.load,
    "embed": lambda run: embed(run, "digits", run.parent / "features.npz", split="test", limit=50),
    "export": lambda run: exports.export_run(run, "safetensors", run.parent / "exported"),
    "arrays": load_arrays,
    "training again": lambda run: run_recipe(Recipe.read(run / "recipe.yaml").override({"run.out": str(run.parent)})),
}


def test_the_uses_are_right(finished: Path, tmp_path: Path) -> None:
    """On a good folder each of them works: what it is refused below, the trap is refused."""
    good, run = (shutil.copytree(finished, tmp_path / name) for name in ("good", finished.name))
    assert {name for name in FILES if not (run / name).exists()} == set()
    for name, use in USES.items():
        assert use(run) is not None, name
    assert good.exists()


# The one that fits the file's kind; all of them in the long form.
FITTING = {".yaml": ("tagged",), ".pt": ("sealed",), ".npz": ("arrays",), ".safetensors": ("tensors",)}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["fitting", "every"])
@pytest.mark.parametrize("file", FILES)
def test_a_run_folder(
    file: str, every: bool, finished: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    sprung, tried = tmp_path / "sprung", 0
    shutil.copytree(finished, tmp_path / "good")
    run = shutil.copytree(finished, tmp_path / finished.name)  # the folder that the recipe itself would choose
    for trap in TRAPS if every else FITTING.get(Path(file).suffix, ("pickled",)):
        for name, use in USES.items():
            if name == "training again" and file not in TRAINED_FROM:
                continue
            (run / file).write_bytes(TRAPS[trap](sprung))
            if file == "checkpoints/last.pt":
                (run / "result.json").unlink(missing_ok=True)  # unfinished: it is to be continued
                (run / "run.json").write_text('{"status": "interrupted"}')
            with contextlib.suppress(ValueError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(run)
            assert not sprung.exists(), f"{name} ran the {trap} in {file}"
            tried += 1
    record_property("tried", tried)


def test_options_in_a_model_card_cannot_name_files(finished: Path, tmp_path: Path) -> None:
    """Older versions of timm unpickle a checkpoint_path; a model.json may be anybody's."""
    pytest.importorskip("timm")
    sprung, evil = tmp_path / "sprung", tmp_path / "evil.pth"
    evil.write_bytes(TRAPS["saved"](sprung))
    for option in ("checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir"):
        with pytest.raises(ValueError, match=f"{option}=.*: must be left out, since timm would read a file"):
            models.encoder("timm/resnet18", **{option: str(evil)})
    for name in ("timm/hf-hub:somebody/model", f"timm/local-dir:{tmp_path}"):
        with pytest.raises(ValueError, match="has no model"):
            models.encoder(name)
    assert not sprung.exists()


def test_an_image_that_is_a_program_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PIL hands EPS to Ghostscript, by its content, whatever the name: the suffix is no guard."""
    called = tmp_path / "called"
    fake = tmp_path / "bin" / "gs"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch {called}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    from PIL import EpsImagePlugin, Image

    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)  # asked anew
    path = tmp_path / "picture.png"
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n(%pipe%id) (r) file\n%%EOF\n")
    with pytest.raises(ValueError, match="not an image that PIL knows"):
        decode(path)
    assert not called.exists()
    with Image.open(path) as image, contextlib.suppress(OSError):
        image.load()
    assert called.exists(), "left to PIL alone it is run"


def test_the_traps_are_traps(tmp_path: Path) -> None:
    loaders: dict[str, Callable[[Path], Any]] = {
        "pickled": lambda path: pickle.loads(path.read_bytes()),
        "saved": lambda path: torch.load(path, weights_only=False),
        "saved_in_the_old_form": lambda path: torch.load(path, weights_only=False),
        "sealed": lambda path: torch.load(path, weights_only=False),
        "array": lambda path: np.load(path, allow_pickle=True),
        "arrays": lambda path: np.load(path, allow_pickle=True)["labels"],
        "tagged": lambda path: yaml.unsafe_load(path.read_text()),
        "program": lambda path: exec(path.read_text()),
    }
    assert loaders.keys() <= TRAPS.keys()
    for name, careless in loaders.items():
        sprung, path = tmp_path / f"sprung-{name}", tmp_path / "trap.npz"
        path.write_bytes(TRAPS[name](sprung))
        with contextlib.suppress(Exception):
            careless(path)
        assert sprung.exists(), name
