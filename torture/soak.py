"""A run of hours with monitors, checkpoints and TensorBoard: are memory, open files and speed flat?

    python torture/soak.py                      two hours and a quarter, and docs/reliability/soak.md anew
    python torture/soak.py --hours 0.1 --beside 2 --out /tmp/soak --no-page
    python torture/soak.py --hours 0            the last part alone, on what --out holds of before

SCE (momentum encoder, queue) trains in a process of its own on the bundled images, written out as a folder of PNG files
of several sizes, so that two data workers decode them when they are read; every monitor once an epoch, a checkpoint at
the end of each epoch of 15 seconds or more, TensorBoard beside metrics.jsonl; it would take weeks to its end. From
outside the process and its workers are looked at every half minute:

    memory     what they have allocated, in MB: anonymous and shared memory, a page shared by several counted once;
               not the libraries' pages, whose share falls whenever another program maps them
    files      their open file descriptors
    speed      steps in a second of the process's own CPU time; also relative to a fixed piece of work done at the same
               minute

The first tenth is left out: libraries are still loaded then. A quantity is flat if Theil and Sen's slope (the median of
the slopes of all pairs of samples), over the whole of the time, comes to less than 2 % of the median. Then the run
is asked to stop by SIGINT, has to end as interrupted with a whole checkpoint, and to leave no temporary file.

Speed is not judged by its slope: neighbours on the machine take caches and memory from a training run, and not as much
from the fixed piece of work. Instead the run goes on for a quarter of an hour, with the log and the checkpoint of all
its hours, and beside it a fresh one of the same recipe: what slows one slows the other. It has kept its speed if its
steps in a CPU second are those of the fresh one within 2 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy.stats import theilslopes

from kontrast.data import load
from kontrast.train import checkpoint
from kontrast.train.folder import RunFolder

EVERY = 30.0  # seconds between samples
FLAT = 0.02  # of the median
WARMING = 0.1  # of the time
PAGE = Path(__file__).parents[1] / "docs" / "reliability" / "soak.md"
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


# -------------------------------------------------------------------------------------------- what is looked at


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


def cpu_seconds(pid: int) -> float:
    """Of all its threads since it began."""
    fields = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def yardstick() -> float:
    """CPU seconds that a fixed piece of work takes now: products and sums like an encoder's, on one thread."""
    draw = torch.Generator().manual_seed(0)
    x, w = torch.randn(64, 16, 28, 28, generator=draw), torch.randn(16, 16, 3, 3, generator=draw)
    began = time.process_time()
    for _ in range(20):
        torch.relu_(torch.nn.functional.conv2d(x, w, padding=1)).sum()
    return time.process_time() - began


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
        "cpu": cpu_seconds(pid),
        "yardstick": yardstick(),
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


@contextmanager
def training(folder: Path, out: str) -> Iterator[subprocess.Popen[bytes]]:
    """The run, in a process that is asked to stop at the end; its folder lies in ``out``."""
    places = (f"data.name={as_files(folder / 'images')}", f"run.out={folder / out}")
    with (folder / f"{out}.txt").open("w") as log:
        command = [sys.executable, "-m", "kontrast", "train", RECIPE, *SETTINGS, *places]
        child = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield child
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(timeout=300)


def pauses(seconds: float, every: float, *children: subprocess.Popen[bytes]) -> Iterator[None]:
    """Comes back every so often for so long; an error if one of the processes ends."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(max(0.0, min(every, ends - time.monotonic())))
        for child in children:
            if child.poll() is not None:
                raise SystemExit(f"a run ended by itself with status {child.returncode}; see the .txt beside it")
        yield


def soak(folder: Path, hours: float, every: float) -> list[dict[str, float]]:
    """Trains for so long and gives the samples; they are in samples.jsonl as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = []
    with (folder / "samples.jsonl").open("w") as record, training(folder, "runs") as child:
        for _ in pauses(3600 * hours, every, child):
            for metrics in (folder / "runs").glob("*/metrics.jsonl"):
                samples.append(sample(child.pid, metrics))
                print(json.dumps(samples[-1]), file=record, flush=True)
    return samples


def beside(folder: Path, minutes: float, every: float) -> list[list[dict[str, float]]]:
    """The run goes on, and a fresh one beside it: samples of both at the same times, from when both train."""
    shutil.rmtree(folder / "fresh", ignore_errors=True)
    pairs: list[list[dict[str, float]]] = []
    with training(folder, "runs") as old, training(folder, "fresh") as fresh:
        (began,) = (folder / "runs").glob("*/metrics.jsonl")
        lines = len(_text(began).splitlines())
        for _ in pauses(60 * minutes, every, old, fresh):
            logs = [next((folder / out).glob("*/metrics.jsonl"), None) for out in ("runs", "fresh")]
            if None not in logs and len(_text(began).splitlines()) > lines and _text(logs[1]):  # type: ignore[arg-type]
                pairs.append([sample(p.pid, log) for p, log in zip((old, fresh), logs, strict=True) if log is not None])
    (folder / "beside.json").write_text(json.dumps(pairs))
    return pairs


def ending(folder: Path) -> dict[str, Any]:
    """How the run stands after it was asked to stop."""
    (run,) = (folder / "runs").iterdir()
    (events,) = run.rglob("events.out.tfevents.*")
    return {
        "status": json.loads((run / "run.json").read_text())["status"],
        "checkpoint": checkpoint.load(RunFolder(run).last)["step"],
        "left over": sorted(str(path.relative_to(run)) for path in run.rglob("*") if "tmp" in path.name),
        "tensorboard": events.stat().st_size / 2**20,
        "metrics": (run / "metrics.jsonl").stat().st_size / 2**20,
    }


# -------------------------------------------------------------------------------------------- the judgement


def settled(samples: list[dict[str, float]]) -> list[dict[str, float]]:
    """Without the first tenth of the time."""
    first, last = samples[0]["time"], samples[-1]["time"]
    return [seen for seen in samples if seen["time"] >= first + WARMING * (last - first)]


def speeds(samples: list[dict[str, float]], *, relative: bool = True) -> Iterator[tuple[float, float]]:
    """Times, and steps in a CPU second between two samples, by default times the yardstick's seconds."""
    for before, after in pairwise(samples):
        if after["cpu"] > before["cpu"]:
            rate = (after["step"] - before["step"]) / (after["cpu"] - before["cpu"])
            yield after["time"], rate * (after["yardstick"] if relative else 1.0)


@dataclass(frozen=True)
class Row:
    """One quantity, and whether it is flat; ``counts`` is whether it has to be."""

    name: str
    times: list[float]
    values: list[float]
    digits: int
    counts: bool = True

    @property
    def drift(self) -> float:
        """Over the whole of the time, as a fraction of the median."""
        return drift(self.times, self.values)

    @property
    def passes(self) -> bool:
        """Flat, or not asked."""
        return not self.counts or abs(self.drift) < FLAT

    def __str__(self) -> str:
        middle, least, most = (f"{f(self.values):,.{self.digits}f}" for f in (np.median, min, max))
        verdict = ("yes" if self.passes else "**no**") if self.counts else "not judged"
        return f"| {self.name} | {middle} | {least} … {most} | {100 * self.drift:+.2f} % | {verdict} |"


def drift(times: list[float], values: list[float]) -> float:
    """Theil and Sen's slope over the whole of the time, as a fraction of the median.

    >>> round(drift([0.0, 1.0, 2.0, 3.0], [100.0, 101.0, 102.0, 103.0]), 4)
    0.0296
    """
    return float(theilslopes(values, times).slope * (times[-1] - times[0]) / np.median(values))


def judged(samples: list[dict[str, float]]) -> list[Row]:
    """Memory, files and speed; then the speed as it was, which holds the neighbours' load too."""
    kept = settled(samples)
    times = [seen["time"] for seen in kept]
    when, relative = map(list, zip(*speeds(kept), strict=True))
    _, plain = map(list, zip(*speeds(kept, relative=False), strict=True))
    return [
        Row("memory, MB", times, [seen["memory"] for seen in kept], digits=1),
        Row("open files", times, [seen["files"] for seen in kept], digits=0),
        Row("steps in a CPU second × the yardstick's seconds", when, relative, digits=4, counts=False),
        Row("steps in a CPU second", when, plain, digits=2, counts=False),
    ]


def kept_speed(pairs: list[list[dict[str, float]]]) -> tuple[float, float]:
    """Steps in a CPU second of the old run by those of the fresh one, over all of the time; and its standard error.

    The error is that of the median of eight parts of the time, from their scatter.
    """

    if len(pairs) < 9 or min(last["step"] - first["step"] for first, last in zip(pairs[0], pairs[-1], strict=True)) < 9:
        raise SystemExit(f"{len(pairs)} looks at both runs are too few to compare them; choose a longer --beside")

    def ratio(first: int, last: int) -> float:
        (old, cpu_old), (fresh, cpu_fresh) = (
            (pairs[last][i]["step"] - pairs[first][i]["step"], pairs[last][i]["cpu"] - pairs[first][i]["cpu"])
            for i in (0, 1)
        )
        return old * cpu_fresh / (fresh * cpu_old) if fresh * cpu_old else math.nan

    cuts = np.linspace(0, len(pairs) - 1, 9).round().astype(int)
    parts = [ratio(first, last) for first, last in pairwise(cuts)]
    return ratio(0, len(pairs) - 1), float(np.nanstd(parts, ddof=1) / np.sqrt(len(parts)))


def page(samples: list[dict[str, float]], end: dict[str, Any], pairs: list[list[dict[str, float]]]) -> str:
    """docs/reliability/soak.md."""
    speed, error = kept_speed(pairs)
    verdict = "kept" if abs(speed - 1) < FLAT else "**not kept**"
    minutes = (pairs[-1][0]["time"] - pairs[0][0]["time"]) / 60
    hours = (samples[-1]["time"] - samples[0]["time"]) / 3600
    versions = f"torch {torch.__version__.partition('+')[0]}, Python {sys.version.split()[0]}"
    left = ", ".join(end["left over"]) or "none"
    assert __doc__ is not None
    return "\n".join(
        [
            "# Soak",
            "",
            f"Written by `python torture/soak.py`: {hours:.2f} hours, {len(samples)} samples, {samples[-1]['step']:,} "
            f"steps, `{RECIPE}` with {', '.join(f'`{setting}`' for setting in SETTINGS)}; {versions}.",
            "",
            __doc__.split("\n\n", 2)[2].strip(),
            "",
            "| what | median | extent | drift over the time | flat |",
            "|---|---:|---:|---:|---|",
            *map(str, judged(samples)),
            "",
            f"Gone on from step {pairs[0][0]['step']:,.0f} for {minutes:.0f} minutes beside a fresh run: "
            f"{speed:.3f} ± {error:.3f} of its steps in a CPU second, {verdict}.",
            "",
            f"Ended as `{end['status']}` at step {end['checkpoint']:,}, which the checkpoint has; temporary files "
            f"left: {left}. metrics.jsonl had {samples[-1]['lines']:,} lines and {end['metrics']:.1f} MB, "
            f"TensorBoard's file {end['tensorboard']:.1f} MB.",
            "",
        ]
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--beside", type=float, default=15.0, help="minutes beside a fresh run")
    parser.add_argument("--every", type=float, default=EVERY, help="seconds between samples")
    parser.add_argument("--out", type=Path, default=Path("runs/soak"))
    parser.add_argument("--page", action=argparse.BooleanOptionalAction, default=True)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.hours:
        samples = soak(chosen.out, chosen.hours, chosen.every)
    else:
        samples = [json.loads(line) for line in (chosen.out / "samples.jsonl").read_text().splitlines()]
    end = ending(chosen.out)
    pairs = beside(chosen.out, chosen.beside, chosen.every)
    text = page(samples, end, pairs)
    print(text)
    if chosen.page:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    moving = [row.name for row in judged(samples) if not row.passes]
    if abs(kept_speed(pairs)[0] - 1) >= FLAT:
        moving.append("speed")
    if moving:
        raise SystemExit(f"not flat: {', '.join(moving)}")


if __name__ == "__main__":
    main()
