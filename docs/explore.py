"""The picture of docs/explore.md, docs/explore.png: parts of the page of one exploration, side by side.

    python docs/explore.py                 trains simclr-fashion-mini for five epochs, explores fashion-mini, takes it
    python docs/explore.py --run RUN       explores fashion-mini with a finished run

A copy of a test image lies among the training images, and some labels are wrong: the set itself has few. Left: title,
numbers and map, with the neighbours of the first label error; right: near-duplicates and label errors. Needs Chromium
and playwright.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from PIL import Image

from kontrast import data
from kontrast.explore import explore

PICTURE = Path(__file__).with_suffix(".png")
COLOURS = 96  # of the palette
RECIPE, ROWS, WRONG, COPIES = "simclr-fashion-mini", 3000, 60, 12
LEFT, RIGHT = ("header", "#found", "#map"), ("#near-duplicates", "#likely-label-errors")
CLICKED = "figure[data-name=label-errors] .thumb"


def train() -> Path:
    """Run `kontrast train` and return the run's folder."""
    subprocess.run([sys.executable, "-m", "kontrast", "train", RECIPE, "train.epochs=5"], check=True)
    return max(Path("runs").glob(f"{RECIPE}-*"), key=lambda run: run.stat().st_mtime)


def planted(seed: int = 0) -> dict[str, np.ndarray]:
    """Some of fashion-mini, with wrong labels and copies of test images among the training images."""
    draw = np.random.default_rng(seed)
    whole = data.load("fashion-mini", limit=ROWS - 1000, test_limit=1000)
    assert whole.test is not None
    arrays = {}
    for name, split in (("train", whole.train), ("test", whole.test)):
        arrays[f"x_{name}"] = split.inputs.values.numpy().copy()  # type: ignore[attr-defined]
        arrays[f"y_{name}"] = split.require_labels("the picture").numpy().copy()
    wrong = draw.choice(len(arrays["y_train"]), WRONG, replace=False)
    arrays["y_train"][wrong] = (arrays["y_train"][wrong] + draw.integers(1, 10, WRONG)) % 10
    to = draw.choice(np.setdiff1d(np.arange(len(arrays["y_train"])), wrong), COPIES, replace=False)
    of = draw.choice(len(arrays["y_test"]), COPIES, replace=False)
    arrays["x_train"][to], arrays["y_train"][to] = arrays["x_test"][of], arrays["y_test"][of]
    return arrays | {"class_names": np.array(whole.class_names)}


def report() -> ModuleType:
    """docs/report.py, which knows how a page is photographed."""
    spec = importlib.util.spec_from_file_location("docs_report_page", Path(__file__).with_name("report.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: Sequence[str] | None = None) -> None:
    """Train unless a run is named, explore, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="RUN", help="a finished run, instead of training one")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture is written")
    options = parser.parse_args(arguments)
    pages = report()
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder, "fashion.npz"), Path(folder, "fashion.html")
        np.savez(file, **planted())
        found = explore(options.run or train(), file, page)
        print(found.summary())
        images = pages.photograph(page, (*LEFT, *RIGHT), click=CLICKED)
    picture = pages.compose(images[: len(LEFT)], images[len(LEFT) :])
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}  {picture.width} × {picture.height}, {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
