"""The example without torch and kontrast gives photos the classes that kontrast gives them, and their probabilities."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast import data, evaluate
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from kontrast.train.evaluation import labelled_subject
from tests.examples.running import EXAMPLES
from tests.train.small import recipe

for package in ("onnx", "onnxruntime", "onnxscript"):
    pytest.importorskip(package)

IMAGENETTE = Path(os.environ.get("KONTRAST_TEST_DATA") or "no data") / "imagenette-sample"
ALONE = """
import runpy, sys
sys.modules |= {"torch": None, "kontrast": None}
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def photos(folder: Path) -> Path:
    """Clothes in frames of several sizes, in colour and grey, JPEG (some of them twice as large as they are read) and
    PNG, some of them lying on their side as a camera writes them."""
    clothes = data.load("fashion-mini", limit=60, test_limit=30)
    for split in (clothes.train, clothes.test):
        assert split is not None
        assert split.labels is not None
        where = folder / ("train" if split is clothes.train else "test")
        pixels = split.inputs.read(torch.arange(len(split))).numpy()[:, 0]
        for i, (image, label) in enumerate(zip(pixels, split.labels.tolist(), strict=True)):
            (where / f"class {label}").mkdir(parents=True, exist_ok=True)
            big = Image.fromarray(image).resize((60 + i % 7, 56 + i % 5)).convert("RGB" if i % 2 else "L")
            exif = Image.Exif()
            exif[0x0112] = 6 if i % 3 else 1  # turned by a right angle, or not
            big.save(where / f"class {label}" / f"{i}.{'jpg' if i % 4 else 'png'}", exif=exif)
    return folder


def classified(file: Path, images: Sequence[Path]) -> list[tuple[str, float]]:
    """What the example prints, in a process that can import neither torch nor kontrast."""
    call = [sys.executable, "-c", ALONE, str(EXAMPLES / "classify_photo.py"), str(file), *map(str, images)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = [re.fullmatch(r".*: (.+) \(([\d.]+)%\)", line) for line in done.stdout.splitlines()]
    return [(line[1], float(line[2]) / 100) for line in lines if line is not None]


def check(run: Run, folder: Path) -> None:
    """Every test file has the class of the evaluation's own classifier, and its probability to a point."""
    exported = run.export("onnx", with_classifier=True)
    subject = labelled_subject(run)
    probe = next(part for part in run.recipe.evaluate.protocols if part.name == "probe")
    classifier = evaluate.fit_classifier(subject, probe.name, seed=run.recipe.seed, **probe.options)
    assert subject.data is not None
    assert subject.data.test is not None
    assert subject.data.test.names is not None
    found = classified(exported / "classifier.onnx", [folder / name for name in subject.data.test.names])
    probabilities = classifier.logits(subject.test).softmax(1)
    names = [classifier.class_names[i] for i in probabilities.argmax(1).tolist()]
    assert [name for name, _ in found] == names
    assert np.abs(np.array([p for _, p in found]) - probabilities.amax(1).numpy()).max() < 0.01


def test_it_agrees_on_files_of_every_kind(tmp_path: Path) -> None:
    """At 16 pixels, of images twice and more as large: JPEGs are decoded at a half."""
    folder = photos(tmp_path / "photos")
    small = {
        "data.name": str(folder),
        "data.limit": None,
        "data.test_limit": None,
        "augment": ["weak"] * 2,
        "augment.size": 16,
    }
    changes = {"train.epochs": None, "train.steps": 4, "evaluate.protocols": [{"name": "probe", "epochs": 5}]}
    check(run_recipe(recipe("supcon", tmp_path / "runs", **small, **changes)), folder)


@pytest.mark.slow
@pytest.mark.skipif(not IMAGENETTE.exists(), reason="no imagenette-sample in KONTRAST_TEST_DATA")
def test_it_agrees_on_real_photos(tmp_path: Path) -> None:
    """Resized and cropped as published weights often want it."""
    changes = {"data.name": str(IMAGENETTE), "data.limit": None, "data.test_limit": None, "augment": ["strong"] * 2}
    changes |= {"data.interpolation": "bicubic", "data.crop": 0.9}
    small = {"encoder": {"name": "small-resnet", "stem": "large"}, "augment.size": 64, "train.epochs": 1}
    run = run_recipe(recipe("supcon", tmp_path, **changes, **small, **{"evaluate.protocols": ["probe"]}))
    check(run, IMAGENETTE)
