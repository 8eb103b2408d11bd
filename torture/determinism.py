"""Same seed, same machine: is a run the same to the bit, whatever decodes its images?

    python torture/determinism.py       runs each setting in a fresh process, and writes the table of
                                        docs/reliability/determinism.md anew

A folder of 72 images of several sizes is learned from for two epochs, with views cropped as they are decoded, by a
supervised loss, by two views, and with momentum encoder and queue. Each setting is compared with the first (two threads
with workers are compared with two threads without): encoder's weights, optimiser, queue and counters of the checkpoint,
every line of metrics.jsonl but the clock's, and result.json.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from tests.data.pictures import write  # noqa: E402
from tests.train.small import same_runs  # noqa: E402

from measure import markdown, setting  # noqa: E402

PAGE = ROOT / "docs" / "reliability" / "determinism.md"
BEGIN, END = "<!-- written by python torture/determinism.py -->\n", "<!-- end of what is written -->\n"
METHODS = ("supcon", "simclr", "sce")
FIRST = ("run.workers=0", "run.threads=1")
SETTINGS: dict[str, tuple[str, ...]] = {
    "again": FIRST,
    "1 worker": ("run.workers=1", "run.threads=1"),
    "2 workers": ("run.workers=2", "run.threads=1"),
    "4 workers": ("run.workers=4", "run.threads=1"),
    "another checkpoint interval": (*FIRST, "run.checkpoint_every=1"),
    "2 threads": ("run.workers=0", "run.threads=2"),
    "2 threads, 4 workers, with 2 threads": ("run.workers=4", "run.threads=2"),
}
AGAINST = {"2 threads, 4 workers, with 2 threads": "2 threads"}  # the others with the first run
TOLD = ("2 threads",)  # what may differ; the rest must not


def pictures(folder: Path) -> Path:
    """48 images to learn from and 24 for testing, in 3 classes and many sizes."""
    for i in range(72):
        part = "train" if i < 48 else "test"
        write(folder / part / f"class{i % 3}" / f"{i}.png", (18 + i % 7, 24 - i % 5), seed=i % 3 * 1000 + i)
    return folder


def recipe(method: str, data: Path) -> tuple[str, ...]:
    """A run of seconds."""
    return (
        f"{method}-fashion-mini",
        f"data={data}",
        "augment.size=16",
        "encoder.width=4",
        "train.epochs=2",
        "train.batch_size=16",
        "evaluate.protocols=[knn20]",
        "run.progress=false",
        "run.log_every=1",
        *(("method.queue=40",) if method == "sce" else ()),
        "augment.views=[weak, weak]",  # the recipes' own crops want images of one size
    )


def run(out: Path, words: tuple[str, ...]) -> Path:
    """Its folder, made by a process of its own."""
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}  # threads are the recipe's
    command = [sys.executable, "-m", "kontrast", "train", *words, f"run.out={out}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with status {done.returncode}:\n{done.stderr[-2000:]}")
    (folder,) = (path for path in out.iterdir() if (path / "run.json").exists())
    return folder


def difference(one: Path, other: Path) -> str:
    """Where two runs first differ; nothing if nowhere."""
    try:
        same_runs(one, other)
    except AssertionError as found:
        return str(found).splitlines()[0] if str(found) else "metrics or result"
    return ""


def table(settings: dict[str, tuple[str, ...]], methods: tuple[str, ...] = METHODS) -> tuple[str, list[str]]:
    """A row a setting, and the settings that differ though they must not."""
    rows: dict[str, list[str]] = {name: [name] for name in settings}
    bad = []
    with tempfile.TemporaryDirectory() as scratch:
        data = pictures(Path(scratch) / "photos")
        for method in methods:
            first = run(Path(scratch) / method / "first", recipe(method, data) + FIRST)
            made: dict[str, Path] = {}
            for number, (name, words) in enumerate(settings.items()):
                made[name] = run(Path(scratch) / method / str(number), recipe(method, data) + words)
                where = difference(made.get(AGAINST.get(name, ""), first), made[name])
                rows[name].append("differs" if where else "same")
                print(f"{method}, {name}: {rows[name][-1]} {where}", flush=True)
                if where and name not in TOLD:
                    bad.append(f"{method}, {name}: {where}")
    return markdown(("compared with no worker, 1 thread", *methods), rows.values()), bad


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    found, bad = table(SETTINGS)
    if bad:
        raise SystemExit("not the same: " + "; ".join(bad))
    said = f"{found}\n\n{setting().rpartition(',')[0]}."
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{said}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
