"""What is killed: training runs of every kind, sweeps, and the writing of the image cache.

Everything is as small as it can be (an encoder of a few thousand weights, 200 images of 8×8 pixels, a hundred steps),
so that most of the time goes into starting processes; checkpoints are written every third step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from storm import same
from storm.crew import Crew, Moment

HERE = Path(__file__).parent
STARTING, WORKING = Moment("starting"), Moment("working")
CHECKPOINT = Moment("checkpoint", r"checkpoints/", most=12)
RECORDS = Moment("run.json", r"run\.json|recipe\.yaml", most=6)
ENDING = Moment("ending", r"(encoder|model|analysis|result|doctor|report)\.", most=7)


@dataclass(frozen=True)
class Kind:
    """Something to kill: ``plan`` has the moments of one round, ``share`` is its part of the kills of its group."""

    name: str
    group: str  # training, sweep or cache
    about: str
    command: Callable[[Path, Path], list[str]]  # of the folder of inputs and the folder it works in
    differences: Callable[[Path, Path], list[str]]
    plan: tuple[Moment, ...]
    share: float = 1.0
    crew: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda inputs: None  # writes the recipe and the data

    def crew_of(self, inputs: Path, out: Path, scratch: Path, environment: dict[str, str]) -> Crew:
        """The processes of one round; they work in ``out`` and print into ``scratch``."""
        return Crew(self.command(inputs, out), out, scratch, environment, **self.crew)


# ------------------------------------------------------------------------------------------------ training


def small(method: str, inputs: Path, changes: dict[str, Any]) -> dict[str, Any]:
    """A recipe of a hundred steps on digits, which lie in a file: scikit-learn, which has them, takes long to load."""
    momentum: dict[str, Any] = {"queue": 50, "key_parts": 1} if method in ("moco", "sce") else {}
    made: dict[str, Any] = {
        "name": f"{method}-storm",
        "data": {"name": str(inputs / "digits.npz")},
        "augment": [{"name": "crop-flip", "padding": 1}] * (1 if method == "instance" else 2),
        "encoder": {"name": "mlp", "hidden": 32, "features": 16},
        "head": {"name": "wang-liu", "out": 12},
        "method": {"name": method, **momentum},
        "optim": {"name": "sgd", "lr": 0.05},
        "train": {"steps": 100, "batch_size": 32},
        "evaluate": {"protocols": ["knn20"]},
        "run": {"threads": 1, "progress": False, "log_every": 2, "checkpoint_every": 3, "monitor_every": 25},
    }
    for section, values in changes.items():
        made[section] = {**made[section], **values} if isinstance(values, dict) else values
    return made


def training(name: str, about: str, method: str, /, *, ranks: int = 1, images: bool = False, **changes: Any) -> Kind:
    """A kind of training run."""
    file = f"{name.replace(' ', '-')}.yaml"

    def prepare(inputs: Path) -> None:
        made = small(method, inputs, changes)
        if images:
            photographs(inputs / "photographs", 200)
            made["data"]["name"], made["run"]["data_root"] = str(inputs / "photographs"), str(inputs)
        else:
            digits(inputs)
        (inputs / file).write_text(yaml.safe_dump(made))

    def command(inputs: Path, out: Path) -> list[str]:
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
        return [sys.executable, *launch, "-m", "kontrast", "train", str(inputs / file), "--out", str(out)]

    several: dict[str, Any] = {"victims": ("child", "child", "all", "all", "first"), "alone": True, "starting": 6.0}
    plan = (STARTING, WORKING, CHECKPOINT, WORKING, CHECKPOINT, RECORDS, CHECKPOINT, ENDING)
    return Kind(
        name,
        "training",
        about,
        command,
        same.runs,
        plan if ranks == 1 else (WORKING, CHECKPOINT, WORKING, ENDING),
        share=1.0 if ranks == 1 else 0.5,
        crew=several if ranks > 1 else {},
        prepare=prepare,
    )


def digits(inputs: Path) -> None:
    """200 digits to learn from, and 100 to be tested on, as an .npz file."""
    import numpy as np
    from sklearn.datasets import load_digits

    if not (inputs / "digits.npz").exists():
        found = load_digits()
        x, y = (16 * found.images).clip(0, 255).astype(np.uint8), found.target
        np.savez(inputs / "digits.npz", x_train=x[:200], y_train=y[:200], x_test=x[200:300], y_test=y[200:300])


def photographs(folder: Path, count: int) -> None:
    """Images of several sizes in ten classes, as PNG files."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(0)
    for i in range(count):
        path = folder / f"class-{i % 10}" / f"{i}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            image = draw.integers(0, 255, (48 + i % 7, 48 + i % 5, 3), dtype=np.uint8)
            Image.fromarray(image).save(path)


# ------------------------------------------------------------------------------------------------ sweeps and the cache


def program(name: str) -> Callable[[Path, Path], list[str]]:
    """A script of this folder, called with the inputs and where to work."""
    return lambda inputs, out: [sys.executable, str(HERE / f"{name}.py"), str(inputs), str(out)]


TABLES = Moment("tables", r"storm-tiny/", most=6)
CACHE = Moment("cache file", r"\.kimg", most=1, delay=0.25)
SWEPT = (WORKING, CHECKPOINT, WORKING, RECORDS, WORKING, ENDING, TABLES)
SWEEP: dict[str, Any] = {"victims": ("first", "child"), "working": 1.0}
BUILT = (STARTING, CACHE, WORKING, CACHE, WORKING, CACHE)

KINDS = (
    training("bank", "instance discrimination with a memory bank", "instance"),
    training("queue", "MoCo: momentum encoder and a queue", "moco"),
    training("momentum", "SCE: momentum encoder, queue, weak and strong view", "sce"),
    training("supervised", "SupCon on labels; validation and best.pt", "supcon", data={"validation": 0.2},
             train={"patience": 50}),
    training("gradient-cached", "SupCon in micro-batches of 10", "supcon", train={"micro_batch": 10}),
    training("images", "TCL on PNG files: image cache and two data workers", "tcl", images=True,
             data={"size": 16}, augment=[{"name": "weak"}] * 2,
             method={"k1": 5.0}, run={"workers": 2, "cache": True}, evaluate={"protocols": []}),
    training("two processes", "SCE under torchrun; a rank, the launcher or all of them killed", "sce", ranks=2,
             method={"shuffle_keys": False}),
    Kind("sweep", "sweep", "nine runs by two workers; the driver or a worker killed", program("sweep"), same.runs,
         SWEPT, crew=SWEEP, prepare=digits),
    Kind("two drivers", "sweep", "the same by two drivers on one folder at once", program("sweep"), same.runs,
         SWEPT, crew={**SWEEP, "size": 2}, prepare=digits),
    Kind("cache", "cache", "600 PNG files decoded into the image cache", program("cache"), same.caches, BUILT,
         prepare=lambda inputs: photographs(inputs / "many", 600)),
    Kind("two builders", "cache", "the same by two processes at once", program("cache"), same.caches, BUILT,
         crew={"size": 2}, prepare=lambda inputs: photographs(inputs / "many", 600)),
)  # fmt: skip
