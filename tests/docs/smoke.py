"""A command of the documentation in its smoke form, and the folder it runs in.

A page may name these as the user's own files: photos/ (a subfolder a class, several sizes), unlabelled/ (none),
photos.npz (x_train, y_train), features.npy with labels.npy, x.npy with y.npy, embeddings.npz (features, labels) and
mine.yaml, a recipe. Then:

    a folder below runs/ (also runs/…, RUN)     a finished run; the second one named in a command is another seed's;
                                                for export a ResNet-18, which every target takes
    a folder runs/<experiment>-<preset>         a finished sweep
    /shared/runs                                runs
    train, tune, demo                           two steps of 16 images, kNN; no warm-up; papers' sets are photos.npz;
                                                no report after train: after demo there is one, and report writes them
    reproduce                                   the preset smoke, one seed, the first value of every axis; no Ray
    verify                                      SCE's statements alone
    train.epochs=N, run.workers=N, …size=N      1, 1, 16
    --seeds N, --nproc-per-node N, --trials N   1, 2, 3
    python examples/sklearn_knn.py              one set, one split
    make TARGET                                 what it would do, and of that the commands of kontrast
    pip install                                 not done; the extras it names are there
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from kontrast import experiments, recipes
from kontrast.pipeline import run_recipe

SMALL = [
    "train.epochs=null",
    "train.steps=2",
    "train.batch_size=16",
    "data.limit=128",
    "data.test_limit=60",
    "evaluate.protocols=[knn20]",
    "run.progress=false",
]
BUNDLED = ("fashion-mini", "digits")
RUN = re.compile(r"^(RUN\d?|runs/.+|.*…)$")
SCRIPTS = {"examples/sklearn_knn.py": ["--sets", "wine", "--splits", "1"]}
SWEEP = "runs/graf-toy-smoke"
NUMBERS = {"--seeds": "1", "--nproc-per-node": "2", "--trials": "3"}
SETTINGS = {"train.epochs": "1", "run.workers": "1", "data.size": "16", "augment.size": "16"}


def fill(folder: Path) -> None:
    """The user's own files, those anew that a command may have written over."""
    draw = np.random.default_rng(0)
    for i in range(0 if (folder / "photos").exists() else 60):
        where = folder / "photos" / ("cat", "dog", "owl")[i % 3]
        where.mkdir(parents=True, exist_ok=True)
        (folder / "unlabelled").mkdir(exist_ok=True)
        size = (40 + i, 60 - i // 3)
        image = Image.fromarray(draw.integers(0, 255, (*size, 3), dtype=np.uint8))
        image.save(where / f"{i}.png")
        image.save(folder / "unlabelled" / f"{i}.png")
    labels = np.arange(128) % 4
    np.savez(folder / "photos.npz", x_train=draw.integers(0, 255, (128, 32, 32, 3), dtype=np.uint8), y_train=labels)
    features = draw.normal(size=(128, 16)).astype(np.float32) + 2 * np.eye(16, dtype=np.float32)[labels]
    for name, rows in (("features", features), ("labels", labels), ("x", features[::2]), ("y", labels[::2])):
        np.save(folder / f"{name}.npy", rows)
    np.savez(folder / "embeddings.npz", features=features, labels=labels)
    (folder / "mine.yaml").write_text(recipes.find("supcon-fashion-mini").to_yaml(), encoding="utf-8")


def small(words: list[str], folder: Path) -> list[str]:
    """The words after `kontrast`, cut down as the top of this file says; `folder` is where they run."""
    command = next(word for word in words if not word.startswith("-"))
    runs = (finished(folder, command == "export", seed) for seed in itertools.count())
    made = [_placed(word, folder, runs) for word in words]
    for i, word in enumerate(made):
        name = word.partition("=")[0]
        if name in SETTINGS and name != word:
            made[i] = f"{name}={SETTINGS[name]}"
        if i and made[i - 1] in NUMBERS:
            made[i] = NUMBERS[made[i - 1]]
    if command in ("train", "tune"):
        return [*made, *SMALL, *_cut(made)]
    if command == "demo":
        return [*made, *SMALL, "schedule=cosine"]
    if command == "verify" and "--only" not in made:
        return [*made, "--only", "sce-*"]
    if command == "reproduce":
        return _reproduce(made)
    return made


def script(words: list[str], root: Path) -> list[str]:
    """The words after `python`: a file of the repository by its place, cut down."""
    return [str(root / words[0]) if (root / words[0]).exists() else words[0], *words[1:], *SCRIPTS.get(words[0], [])]


@functools.cache
def finished(folder: Path, resnet: bool, seed: int) -> Path:
    """A run of two steps, made when it is first asked for."""
    words = [*SMALL, f"seed={seed}", f"name=finished-{seed}", f"run.out={folder / 'runs'}"]
    words += ["encoder=resnet18", "encoder.stem=large"] if resnet else []
    return run_recipe(recipes.find("supcon-fashion-mini").override(words)).path


def _placed(word: str, folder: Path, runs: Iterator[Path]) -> str:
    """A run or sweep in place of one that is only named."""
    word = word.removeprefix("/shared/")
    if not RUN.match(word) or (folder / word).exists():
        return word
    name = Path(word).name
    if any(name.startswith(f"{known}-") for known in experiments.names()):
        return SWEEP
    return next(runs).relative_to(folder).as_posix()


def _cut(words: list[str]) -> list[str]:
    """What a recipe has that is too long or too large: warm-up, papers' sets (which are not here), their encoders."""
    if words[1] not in recipes.names():
        return []
    named, given = recipes.find(words[1]), {word.partition("=")[0] for word in words}
    made = ["schedule.warmup_epochs=0"] if "warmup_epochs" in named.schedule.options else []
    if named.data.name in BUNDLED:
        return made
    made += [] if "data" in given else ["data=photos.npz"]
    return made + ([] if "encoder" in given else ["encoder=small-resnet", "encoder.width=8"])


def _reproduce(words: list[str]) -> list[str]:
    chosen = experiments.find(words[1])
    axes = {**chosen.axes, **chosen.presets["smoke"].axes}
    kept: list[str] = []
    for word, before in zip(words, ["", *words[:-1]], strict=True):
        if word in ("--preset", "--seeds") or before in ("--preset", "--seeds"):
            continue
        name, equals, values = word.partition("=")
        if equals and name in axes and values.startswith("["):
            word = f"{name}={values.strip('[]').split(',')[0]}"
        kept.append(word)
    given = {word.partition("=")[0] for word in kept}
    first = [f"{name}={values[0]}" for name, values in axes.items() if name not in given]
    return [*kept, *first, "--preset", "smoke", "--seeds", "1"]
