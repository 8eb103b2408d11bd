"""Train for hours with monitors, checkpoints and TensorBoard: do memory and the number of open files stay the same?

    python torture/soak.py                      two hours, and docs/reliability/soak.md anew
    python torture/soak.py --hours 0.1 --out /tmp/soak --no-page

SCE (momentum encoder, queue) trains in a process of its own on the bundled images, written as a folder of PNG files of
several sizes, so that two data workers decode them when they are read. Every monitor runs once an epoch, a checkpoint
is written at the end of each epoch of 15 seconds or more, and TensorBoard runs beside metrics.jsonl. Every half minute
the process and its workers are measured from outside:

    memory     allocated by them, in MB: anonymous and shared memory, a page shared by several counted once; without
               the pages of libraries, whose share falls whenever another program maps them
    files      their open file descriptors

The first tenth is left out, because libraries are still being loaded. A quantity is flat if Theil and Sen's slope (the
median of the slopes of all pairs of samples), over the whole time, is less than 2 % of the median. Then the run is
stopped by SIGINT: it must end as interrupted with a whole checkpoint, and leave no temporary file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.stats import theilslopes

from kontrast.data import load
from kontrast.runs import Run
from kontrast.train import checkpoint
from page import FOLDER, setting

FLAT = 0.02  # of the median
WARMING = 0.1  # of the time
RECIPE = "sce-fashion-mini"
SETTINGS = (
    "encoder.width=8",
    "augment.views=[weak, strong]",
    "augment.size=28",
    "train.epochs=1000000",
    "run.workers=2",
    "run.threads=1",
    "run.log_every=1",
    "run.loggers=[tensorboard]",
    "run.progress=false",
)


# -------------------------------------------------------------------------------------------- what is measured


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for parent in found:
        for task in _tasks(parent):
            found += map(int, _text(Path(f"/proc/{parent}/task/{task}/children")).split())
    return found


def megabytes(pid: int) -> float:
    """Its share of anonymous and shared memory: a page that n processes have counts 1/n."""
    lines = _text(Path(f"/proc/{pid}/smaps_rollup")).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:"))) / 1024


def open_files(pid: int) -> int:
    """How many descriptors it has."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except FileNotFoundError:
        return 0


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def sample(pid: int, metrics: Path) -> dict[str, float]:
    """One look at everything."""
    alive = family(pid)
    lines = _text(metrics).splitlines()
    return {
        "time": time.time(),
        "memory": sum(map(megabytes, alive)),
        "files": sum(map(open_files, alive)),
        "processes": len(alive),
        "step": json.loads(lines[-1])["step"] if lines and lines[-1].endswith("}") else 0,
        "lines": len(lines),
    }


# -------------------------------------------------------------------------------------------- the run


def as_files(folder: Path) -> Path:
    """The bundled images as ``<split>/<class>/<row>.png``, enlarged to sides of 28 … 40 pixels."""
    data = load("fashion-mini")
    for name, split in (("train", data.train), ("test", data.test)):
        assert split is not None
        assert split.labels is not None
        for row, label in enumerate(split.labels.tolist()):
            path = folder / name / f"class-{label}" / f"{row}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                image = Image.fromarray(split.inputs.read(torch.tensor([row]))[0, 0].numpy())
                image.resize((28 + row % 13, 28 + row % 7)).save(path)
    return folder


def soak(folder: Path, hours: float, every: float) -> list[dict[str, float]]:
    """Train for so long, stop by SIGINT, and return the samples; samples.jsonl has them as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    places = (f"data.name={as_files(folder / 'images')}", f"run.out={folder / 'runs'}")
    command = [sys.executable, "-m", "kontrast", "train", RECIPE, *SETTINGS, *places]
    samples = []
    end = time.monotonic() + 3600 * hours
    with (folder / "samples.jsonl").open("w") as record, (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while time.monotonic() < end:
                time.sleep(max(0.0, min(every, end - time.monotonic())))
                if child.poll() is not None:
                    raise SystemExit(f"the run ended by itself with status {child.returncode}; see {log.name}")
                for metrics in (folder / "runs").glob("*/metrics.jsonl"):
                    samples.append(sample(child.pid, metrics))
                    print(json.dumps(samples[-1]), file=record, flush=True)
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(timeout=300)
    return samples


def ending(folder: Path) -> dict[str, Any]:
    """How the run stands after it was asked to stop."""
    (run,) = (folder / "runs").iterdir()
    (events,) = run.rglob("events.out.tfevents.*")
    return {
        "status": json.loads((run / "run.json").read_text())["status"],
        "checkpoint": checkpoint.load(Run(run).last_checkpoint)["step"],
        "left over": sorted(str(path.relative_to(run)) for path in run.rglob("*") if "tmp" in path.name),
        "tensorboard": events.stat().st_size / 2**20,
        "metrics": (run / "metrics.jsonl").stat().st_size / 2**20,
    }


# -------------------------------------------------------------------------------------------- the judgement


@dataclass(frozen=True)
class Row:
    """One quantity over time."""

    name: str
    times: list[float]
    values: list[float]
    digits: int

    @property
    def is_flat(self) -> bool:
        """Whether the drift over the whole time is below `FLAT`."""
        return abs(drift(self.times, self.values)) < FLAT

    def __str__(self) -> str:
        middle, least, most = (f"{f(self.values):,.{self.digits}f}" for f in (np.median, min, max))
        change, verdict = 100 * drift(self.times, self.values), "yes" if self.is_flat else "**no**"
        return f"| {self.name} | {middle} | {least} … {most} | {change:+.2f} % | {verdict} |"


def drift(times: list[float], values: list[float]) -> float:
    """Theil and Sen's slope over the whole of the time, as a fraction of the median.

    >>> round(drift([0.0, 1.0, 2.0, 3.0], [100.0, 101.0, 102.0, 103.0]), 4)
    0.0296
    """
    return float(theilslopes(values, times).slope * (times[-1] - times[0]) / np.median(values))


def judge(samples: list[dict[str, float]]) -> list[Row]:
    """Memory and open files, without the first tenth of the time."""
    first, last = samples[0]["time"], samples[-1]["time"]
    kept = [one for one in samples if one["time"] >= first + WARMING * (last - first)]
    times = [one["time"] for one in kept]
    return [
        Row("memory, MB", times, [one["memory"] for one in kept], digits=1),
        Row("open files", times, [one["files"] for one in kept], digits=0),
    ]


def page(samples: list[dict[str, float]], end: dict[str, Any]) -> str:
    """docs/reliability/soak.md."""
    hours = (samples[-1]["time"] - samples[0]["time"]) / 3600
    assert __doc__ is not None
    return "\n".join(
        [
            "# Soak",
            "",
            f"Written by `python torture/soak.py`: {hours:.2f} hours, {len(samples)} samples, {samples[-1]['step']:,} "
            f"steps, `{RECIPE}` with {', '.join(f'`{s}`' for s in SETTINGS)}. {setting()}",
            "",
            __doc__.split("\n\n", 2)[2].strip(),
            "",
            "| what | median | extent | drift over the time | flat |",
            "|---|---:|---:|---:|---|",
            *map(str, judge(samples)),
            "",
            f"Ended as `{end['status']}` at step {end['checkpoint']:,}, which the checkpoint has; temporary files "
            f"left: {', '.join(end['left over']) or 'none'}. metrics.jsonl had {samples[-1]['lines']:,} lines and "
            f"{end['metrics']:.1f} MB, TensorBoard's file {end['tensorboard']:.1f} MB.",
            "",
        ]
    )


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds between samples")
    parser.add_argument("--out", type=Path, default=Path("runs/soak"))
    parser.add_argument("--page", action=argparse.BooleanOptionalAction, default=True)
    arguments = parser.parse_args()
    samples = soak(arguments.out, arguments.hours, arguments.every)
    text = page(samples, ending(arguments.out))
    print(text)
    if arguments.page:
        (FOLDER / "soak.md").write_text(text, encoding="utf-8")
    growing = [row.name for row in judge(samples) if not row.is_flat]
    if growing:
        raise SystemExit(f"not flat: {', '.join(growing)}")


if __name__ == "__main__":
    main()
