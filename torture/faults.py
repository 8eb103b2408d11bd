"""Damage files and disks: flipped bits, files cut short or deleted, full and read-only disks.

    python torture/faults.py                     every group, and docs/reliability/faults.md anew; some ten minutes
    python torture/faults.py --cases 40 --only reading checkpoints      fewer; the page stays as it is

Each case gets one verdict:

| verdict | |
|---|---|
| reported | an error, or a line on stderr, that names the file |
| same | the damage hit bytes without meaning, and the content read is the content written |
| resumed | reported, and the same command (after a repair, if it asks for one) ends as an undisturbed run |
| missed | anything else: wrong content accepted, an error that does not name the file, a different end |

The status is 1 if a case is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kontrast.data import load as load_data
from kontrast.data.cache import CachedImages, write_cache
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast.runs import MetricsLog, Run, file_digest
from kontrast.runs.run import WRITTEN
from kontrast.train import Training, checkpoint, load, make_job, resolve
from page import setting, write_part
from storm import same

VERDICTS = ("reported", "same", "resumed", "missed")
DAMAGES = ("flipped", "cut", "deleted")
GROUPS = ("reading", "checkpoints", "refusals", "finished", "data", "disks")
HALF = 51  # of 100 steps; checkpoints are written every third
BLOCK = 4096  # bytes, of a disk


@dataclass
class Row:
    """A line of the table: a file, its damage, and the number of cases with each verdict."""

    what: str
    damage: str
    counts: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)  # a description of each missed case

    def add(self, verdict: str, description: str = "") -> None:
        """Count a case."""
        self.counts[verdict] += 1
        if verdict == "missed":
            self.missed.append(description)

    def line(self) -> str:
        """The row in Markdown."""
        cells = [self.what, self.damage, self.counts.total(), *(self.counts[verdict] for verdict in VERDICTS)]
        return "| " + " | ".join(map(str, cells)) + " |"


def damage(path: Path, how: str, draw: random.Random) -> str:
    """Damage a file at a random place, and describe it."""
    content = bytearray(path.read_bytes())
    if how == "deleted":
        path.unlink()
        return f"{path.name} deleted"
    if how == "cut":
        length = draw.randrange(len(content))
        path.write_bytes(content[:length])
        return f"{path.name} cut at {length} of {len(content)}"
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)
    return f"bit {bit} of {path.name} flipped"


# ------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class Kind:
    """A file below a folder, and how its content is read."""

    name: str
    path: str
    read: Callable[[Path], Any]


def write_files(folder: Path, run: Path) -> list[Kind]:
    """Write a file of each kind; those of ``run``, a finished run, are copied."""
    draw = torch.Generator().manual_seed(0)
    state = {"step": 3, "method": {"weight": torch.randn(60, 50, generator=draw)}, "sums": {"loss": 1.5}}
    checkpoint.save(folder / "last.pt", state)
    images = torch.randint(256, (40, 3, 12, 12), generator=draw, dtype=torch.uint8)
    write_cache(folder / "images.kimg", iter([images]), shape=(3, 12, 12), fingerprint="random")
    rows, labels = images.flatten(1).float().numpy(), np.arange(40) % 4
    np.savez(folder / "features.npz", x_train=rows, y_train=labels)
    np.savez_compressed(folder / "packed.npz", x_train=rows, y_train=labels)
    for name in (*WRITTEN, "run.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    return [
        Kind("checkpoint", "last.pt", lambda path: _digest(checkpoint.load(path))),
        Kind("encoder.safetensors", "encoder.safetensors", lambda path: _digest(load(path.parent).state_dict())),
        Kind("image cache", "images.kimg", lambda path: _digest(CachedImages(path).read(torch.arange(40)))),
        Kind(".npz of data", "features.npz", _read_data),
        Kind(".npz, compressed", "packed.npz", _read_data),
        *(Kind("each file of a finished run, by its digest", name, _read_run) for name in WRITTEN),
    ]


def reading(kinds: list[Kind], folder: Path, cases: int) -> list[Row]:
    """Flip a bit of each file so often, and cut it half as often."""
    rows: dict[tuple[str, str], Row] = {}
    for seed, kind in enumerate(kinds):
        path, draw = folder / kind.path, random.Random(seed)
        content, status, expected = path.read_bytes(), path.stat(), kind.read(path)
        for how, times in (("flipped", cases), ("cut", cases // 2)):
            label = "a bit flipped" if how == "flipped" else "cut short"
            row = rows.setdefault((kind.name, label), Row(kind.name, label))
            for _ in range(times):
                description = damage(path, how, draw)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as a failing disk does
                row.add(*_verdict(kind, path, expected, description))
                path.write_bytes(content)
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    return list(rows.values())


def _verdict(kind: Kind, path: Path, expected: Any, description: str) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = kind.read(path)
    except (ValueError, OSError) as error:
        return ("reported", "") if str(path) in str(error) else ("missed", f"{description}: {error}")
    except Exception as error:
        return "missed", f"{description}: {type(error).__name__}: {error}"
    return ("same", "") if value == expected else ("missed", f"{description}: read as other content")


def _digest(value: Any) -> str:
    """A digest of nested containers of tensors."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous()
        head = f"{flat.dtype} {list(flat.shape)}".encode()
        return hashlib.sha256(head + flat.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return hashlib.sha256(repr([(key, _digest(value[key])) for key in value]).encode()).hexdigest()
    return repr(value)


def _read_data(path: Path) -> str:
    train = load_data(path).train
    return _digest({"inputs": train.inputs.read(torch.arange(len(train))), "labels": train.labels})


def _read_run(path: Path) -> bytes:
    if path.name in Run(path.parent).changed_files():
        raise ValueError(f"{path} is not what the run wrote")
    return path.read_bytes()


# ------------------------------------------------------------------------------------------------ runs


@dataclass
class Lab:
    """Recipes, and the undisturbed run of each, run once."""

    folder: Path
    count: int = 0

    def recipe(self, method: str = "moco", **sections: Any) -> Recipe:
        """A recipe of a hundred steps."""
        queue = {"queue": 50, "key_parts": 1} if method == "moco" else {}
        values: dict[str, Any] = {
            "name": f"{method}-faults",
            "data": {"name": "digits", "limit": 200, "test_limit": 100},
            "augment": [{"name": "crop-flip", "padding": 1}] * 2,
            "encoder": {"name": "mlp", "hidden": 32, "features": 16},
            "head": {"name": "wang-liu", "out": 12},
            "method": {"name": method, **queue},
            "optim": {"name": "sgd", "lr": 0.05},
            "train": {"steps": 100, "batch_size": 32},
            "evaluate": {"protocols": ["knn20"]},
            "run": {"threads": 1, "progress": False, "log_every": 2, "checkpoint_every": 3, "monitor_every": 25},
        }
        for section, changes in sections.items():
            values[section] = {**values[section], **changes}
        return resolve(Recipe.of(values))

    def whole(self, recipe: Recipe) -> Path:
        """The output folder of the undisturbed run."""
        out = self.folder / "whole" / recipe.hash
        with quiet():
            run_recipe(placed(recipe, out))
        return out

    def new_folder(self) -> Path:
        """A folder for one case; it does not exist yet."""
        self.count += 1
        return self.folder / f"case-{self.count}"

    def half(self, recipe: Recipe) -> tuple[Recipe, Run]:
        """A run that was interrupted after a checkpoint in the middle."""
        recipe = placed(recipe, self.new_folder())
        folder = Run.of(recipe)
        folder.begin(recipe)
        with quiet(), folder.lock(), contextlib.suppress(KeyboardInterrupt):
            folder.note("training", data_file=file_digest(recipe.data.name))
            _Halted(make_job(recipe, torch.device("cpu")), folder).run()
        return recipe, folder

    def differences(self, recipe: Recipe) -> list[str]:
        """Resume the run to its end, and compare its files with those of the undisturbed run."""
        with quiet():
            run_recipe(recipe)
        found = same.runs(self.whole(recipe), Path(recipe.run.out))
        return [difference for difference in found if "recipe.yaml: run: " not in difference]  # how it was run


class _Halted(Training):
    """Training that is interrupted at `HALF`."""

    def save(self, metrics: MetricsLog | None) -> None:
        super().save(metrics)
        if self.state.step == HALF:
            raise KeyboardInterrupt


def placed(recipe: Recipe, out: Path) -> Recipe:
    """The same recipe with another output folder."""
    return recipe.override({"run.out": str(out)})


@contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Catch stderr and warnings."""
    caught = io.StringIO()
    with contextlib.redirect_stderr(caught), warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        yield caught
    caught.write("\n".join(str(record.message) for record in records))


def judge(
    row: Row, lab: Lab, recipe: Recipe, file: str, description: str, repair: Callable[[], object] | None = None
) -> None:
    """Run the recipe again: it must name the file and end the same; with ``repair``, it must refuse before that."""
    with quiet() as caught:
        try:
            run_recipe(recipe)
            is_refused = False
        except (ValueError, OSError) as error:
            is_refused = True
            caught.write(str(error))
        except Exception as error:
            row.add("missed", f"{description}: {type(error).__name__}: {error}")
            return
    if file not in caught.getvalue():
        row.add("missed", f"{description}: {file} is not named in {caught.getvalue()!r}")
    elif is_refused != (repair is not None):
        row.add("missed", f"{description}: {'refused' if is_refused else 'not refused'}: {caught.getvalue()}")
    else:
        if repair is not None:
            repair()
        differences = lab.differences(recipe)
        row.add("missed" if differences else "resumed", f"{description}: {differences}")


def checkpoints(lab: Lab, cases: int, draw: random.Random) -> list[Row]:
    """The newest checkpoint, and the log, of an interrupted run."""
    rows = []
    for file, what in (("checkpoints/last.pt", "newest checkpoint"), ("metrics.jsonl", "log, half-way")):
        row = Row(what, "flipped, cut or deleted")
        for i in range(cases):
            recipe, folder = lab.half(lab.recipe())
            judge(row, lab, recipe, Path(file).name, damage(folder.path / file, DAMAGES[i % 3], draw))
        rows.append(row)
    return rows


def refusals(lab: Lab, draw: random.Random) -> list[Row]:
    """Files that cannot be written again: the best weights, both checkpoints, run.json cut short."""
    best = Row("best.pt", "flipped, cut or deleted")
    both, state = Row("both checkpoints", "flipped"), Row("run.json", "cut")
    patient = lab.recipe("supcon", data={"validation": 0.2}, train={"patience": 50})
    for how in DAMAGES:
        recipe, folder = lab.half(patient)
        content = folder.best_checkpoint.read_bytes()
        description = damage(folder.best_checkpoint, how, draw)
        judge(
            best,
            lab,
            recipe,
            str(folder.best_checkpoint),
            description,
            partial(folder.best_checkpoint.write_bytes, content),
        )
    for _ in range(3):
        recipe, folder = lab.half(lab.recipe())
        contents = {path: path.read_bytes() for path in (folder.last_checkpoint, folder.previous_checkpoint)}
        description = " and ".join(damage(path, "flipped", draw) for path in contents)
        judge(both, lab, recipe, str(folder.last_checkpoint), description, partial(_restore, contents))
        recipe, folder = lab.half(lab.recipe())
        file = folder.path / "run.json"
        judge(state, lab, recipe, str(file), damage(file, "cut", draw), file.unlink)
    return [best, both, state]


def _restore(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        path.write_bytes(content)


def finished(lab: Lab, draw: random.Random) -> list[Row]:
    """Each file of a finished run."""
    row = Row("each file of a finished run", "flipped, cut or deleted; made anew")
    for name in WRITTEN:
        for how in DAMAGES:
            recipe = placed(lab.recipe(), lab.new_folder())
            shutil.copytree(lab.whole(recipe), recipe.run.out)
            judge(row, lab, recipe, name, damage(Run.of(recipe).path / name, how, draw))
    return [row]


def data_file(lab: Lab, draw: random.Random) -> list[Row]:
    """The data file, between two calls of a run."""
    file = lab.folder / "data.npz"
    generator = torch.Generator().manual_seed(1)
    pixels = torch.randint(256, (240, 8, 8), generator=generator, dtype=torch.uint8).numpy()
    np.savez(file, x_train=pixels[:200], y_train=np.arange(200) % 5, x_test=pixels[200:], y_test=np.arange(40) % 5)
    row = Row(".npz of data, between two calls", "flipped, cut or deleted; put back")
    content = file.read_bytes()
    for how in DAMAGES:
        recipe, _ = lab.half(lab.recipe(data={"name": str(file)}))
        judge(row, lab, recipe, str(file), damage(file, how, draw), partial(file.write_bytes, content))
        file.write_bytes(content)
    return [row]


# ------------------------------------------------------------------------------------------------ disks


def can_mount(folder: Path) -> bool:
    """Whether a file system can be mounted here: in a user namespace (``unshare``), which needs no rights."""
    call = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    return shutil.which("unshare") is not None and subprocess.run(call, capture_output=True).returncode == 0


def disks(folder: Path, cases: int) -> list[Row]:
    """Run `disks_in_namespace` in a namespace where this process may mount disks."""
    call = ["unshare", "-rm", sys.executable, __file__, "--disk", str(folder), "--cases", str(cases)]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the cases of full disks ended with status {done.returncode}: {done.stderr}")
    records = json.loads(done.stdout.splitlines()[-1])
    return [Row(**{**record, "counts": Counter(record["counts"])}) for record in records]


def disks_in_namespace(folder: Path, cases: int) -> list[Row]:
    """Run on disks that are too small, each of another size, and on one that becomes read-only."""
    lab = Lab(folder)
    recipe = lab.recipe()
    used = sum(-(-path.stat().st_size // BLOCK) * BLOCK for path in lab.whole(recipe).rglob("*"))
    full, locked = Row("run folder", "disk full; made larger"), Row("run folder", "disk read-only; then not")
    for i in range(cases):
        out = lab.new_folder()
        size = BLOCK * max(2, round(used * (i + 0.5) / cases / BLOCK))
        _mount(out, f"size={size}")
        judge(full, lab, placed(recipe, out), str(out), f"{size} bytes", partial(_mount, out, "remount,size=64m"))
    for begun in (False, True):
        out = lab.new_folder()
        _mount(out, "size=64m")
        here = placed(recipe, out)
        if begun:
            shutil.copytree(Run.of(lab.half(recipe)[0]).path, Run.of(here).path)
        _mount(out, "remount,ro")
        description = "half-way" if begun else "at the beginning"
        judge(locked, lab, here, str(out), description, partial(_mount, out, "remount,rw"))
    return [full, locked]


def _mount(folder: Path, options: str) -> None:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


# ------------------------------------------------------------------------------------------------ the command


def run_groups(folder: Path, cases: int, groups: list[str]) -> Iterator[Row]:
    """Run the groups of cases; a fifteenth of ``cases`` are runs."""
    lab, draw, few = Lab(folder), random.Random(0), max(1, cases // 15)
    if "reading" in groups:
        files = folder / "files"
        files.mkdir()
        run = next(lab.whole(lab.recipe()).glob("*/run.json")).parent
        yield from reading(write_files(files, run), files, cases)
    if "checkpoints" in groups:
        yield from checkpoints(lab, few, draw)
    for name, group in {"refusals": refusals, "finished": finished, "data": data_file}.items():
        if name in groups:
            yield from group(lab, draw)
    if "disks" in groups and can_mount(folder):
        (folder / "disks").mkdir()
        yield from disks(folder / "disks", few)


def table(rows: list[Row]) -> str:
    """A line for each file and damage, and the sums."""
    sums = Row("**all**", "")
    for row in rows:
        sums.counts.update(row.counts)
    head = ["file", "damage", "cases", *VERDICTS]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    return "\n".join([*lines, *(row.line() for row in [*rows, sums])]) + "\n"


def main() -> int:
    """Run the command line; return its status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400, help="flips of each file")
    parser.add_argument("--only", nargs="+", choices=GROUPS, help="these groups; the page stays")
    parser.add_argument("--disk", type=Path, help=argparse.SUPPRESS)  # inside the namespace of `disks`
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.disk is not None:
        print(json.dumps([vars(row) for row in disks_in_namespace(arguments.disk, arguments.cases)]))
        return 0
    rows = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for row in run_groups(Path(folder), arguments.cases, arguments.only or list(GROUPS)):
            print(row.line(), *row.missed, sep="\n", flush=True)
            rows.append(row)
    text = f"{table(rows)}\n{setting()}\n"
    print(text)
    if arguments.only is None:
        write_part("faults", "faults.py", text)
    return int(any(row.missed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
