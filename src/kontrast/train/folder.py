"""The run folder: where a run's files are, and what state it is in.

<out>/<recipe>-<hash8>/
    recipe.yaml             resolved: everything that decided the run
    run.json                status, versions, seed, machine, command; what was loaded of a pretrained start; when done,
                            the digests of the files below
    metrics.jsonl           a line a record
    checkpoints/last.pt     everything that is needed to go on (best.pt with early stopping)
    checkpoints/previous.pt the one before it, until the run is done: gone on from if last.pt is found damaged
    encoder.safetensors     the weights, and model.json: how to rebuild it
    result.json             every number with its protocol; "start": the kNN of a pretrained start, and the difference
    analysis.npz, .json     features, predictions, neighbours, thumbnails, views, geometry: what a report draws
"""

from __future__ import annotations

import fcntl
import functools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch

import kontrast
from kontrast import distributed, files
from kontrast.files import expanded, read_json, write_atomically, write_json
from kontrast.recipe import Recipe
from kontrast.registry import quoted

LEFT = (
    "recipe.yaml", "metrics.jsonl", "encoder.safetensors", "model.json", "result.json", "analysis.npz", "analysis.json"
)  # fmt: skip
"""What a finished run leaves, and run.json has the digests of."""
KINDS = {
    "status": str, "hash": str, "error": str, "started": str, "finished": str, "data_file": str, "step": int,
    "seconds": int | float, "machine": dict, "versions": dict, "files": dict, "command": list, "pretrained": dict,
    "micro_batch": dict,
}  # fmt: skip
"""Of what run.json says, where it says it."""


class Busy(ValueError):
    """Another process is working in the run folder."""


@dataclass(frozen=True)
class RunFolder:
    """A run's folder by path; the files are found by what they are."""

    path: Path

    @staticmethod
    def of(recipe: Recipe) -> RunFolder:
        """Where a resolved recipe's run lies."""
        return RunFolder(expanded(recipe.run.out) / recipe.folder)

    @property
    def recipe_file(self) -> Path:
        """The resolved recipe."""
        return self.path / "recipe.yaml"

    @property
    def metrics(self) -> Path:
        """The log."""
        return self.path / "metrics.jsonl"

    @property
    def last(self) -> Path:
        """The newest checkpoint."""
        return self.path / "checkpoints" / "last.pt"

    @property
    def previous(self) -> Path:
        """The checkpoint before the newest."""
        return self.path / "checkpoints" / "previous.pt"

    @property
    def best(self) -> Path:
        """The weights that were best in validation."""
        return self.path / "checkpoints" / "best.pt"

    @property
    def encoder(self) -> Path:
        """The weights."""
        return self.path / "encoder.safetensors"

    @property
    def model(self) -> Path:
        """How to rebuild the encoder."""
        return self.path / "model.json"

    @property
    def result(self) -> Path:
        """Every number."""
        return self.path / "result.json"

    def begin(self, recipe: Recipe) -> list[Path]:
        """Makes the folder and writes the recipe, unless they are there; the folders that were made, inner ones first.

        `discard` takes the list, should the run be refused before its first step.
        """
        made = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"the run folder {self.path} cannot be made: {error.strerror}; choose another --out"
            ) from error
        if not self.recipe_file.exists():
            try:
                write_atomically(self.recipe_file, recipe.to_yaml().encode())
            except BaseException:
                self.discard(made)
                raise
        return made

    def discard(self, made: Sequence[Path]) -> None:
        """Removes the folders that `begin` made, as long as they hold nothing that a run left."""
        if self.path not in made or (self.path / "run.json").exists():
            return
        for file in (self.recipe_file, self.path / ".lock"):
            file.unlink(missing_ok=True)
        if self.metrics.exists() and not self.metrics.stat().st_size:
            self.metrics.unlink()
        for folder in made:
            try:
                folder.rmdir()
            except OSError:  # something else is in it by now
                return

    def keep_recipe(self, recipe: Recipe) -> None:
        """Writes the recipe anew where recipe.yaml is damaged or another's."""
        try:
            same = Recipe.read(self.recipe_file).hash == recipe.hash
        except (OSError, ValueError):
            same = False
        if not same:
            print(f"{self.recipe_file} is not this run's; it is written anew", file=sys.stderr)
            write_atomically(self.recipe_file, recipe.to_yaml().encode())

    def read(self) -> dict[str, Any]:
        """run.json, empty if there is none yet."""
        cure = "remove it, and the run goes on"
        try:
            found = read_json(self.path / "run.json", cure)
        except FileNotFoundError:
            return {}
        for key, kind in KINDS.items():
            if not isinstance(found.get(key), kind | None):
                seen = f"{key} is {quoted(found[key])}"
                raise ValueError(f"{self.path / 'run.json'} is damaged ({seen}); {cure}")
        return found

    @property
    def status(self) -> str | None:
        """training, evaluating, done, interrupted or failed; None before the beginning."""
        return self.read().get("status")

    def note(self, status: str, **more: Any) -> None:
        """Writes the status, and what else there is to tell, into run.json; on rank 0 only."""
        if distributed.rank() == 0:
            now = {"status": status, "updated": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **more}
            write_json(self.path / "run.json", {**self.read(), **now})

    def digests(self, names: Iterable[str] = LEFT) -> dict[str, str]:
        """Of what a finished run leaves, by name: SHA-256 of each file."""
        return {name: files.digest(self.path / name) for name in names if (self.path / name).is_file()}

    def changed(self) -> list[str]:
        """Which files of a finished run are gone, or are no longer what it wrote."""
        state = self.read()
        known = state.get("files") or {}
        lacks = state.get("status") == "done" and "result.json" not in known and not self.result.exists()
        return files.changed(self.path, known) + ["result.json"] * lacks

    def check(self, recipe: Recipe) -> None:
        """An error if the folder holds another recipe's run, or its data have changed since."""
        state = self.read()
        if state.get("hash", recipe.hash) != recipe.hash or (state.get("status") == "done" and "hash" not in state):
            raise ValueError(
                f"{self.path} holds the run of another recipe (run.json has the hash {state.get('hash')}, expected is "
                f"{recipe.hash}). Remove the folder, or choose another --out"
            )
        if state.get("status") == "done" or self.last.exists() or self.previous.exists():
            self.check_data(recipe)

    def check_data(self, recipe: Recipe) -> None:
        """An error if the file that the run learned from is no longer what it was; one that is gone is not read."""
        then, now = self.read().get("data_file"), data_digest(recipe)
        if then is not None and now is not None and then != now:
            raise ValueError(
                f"{self.path} was made with other data: {recipe.data.name} has changed since. Remove the folder or "
                "choose another --out, to run it on what is there now; or put the file back"
            )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else works in this folder meanwhile; if somebody does, `Busy`."""
        if distributed.rank() != 0:
            yield
            return
        self._check_own()
        try:
            lock = (self.path / ".lock").open("a")
        except OSError as error:
            raise ValueError(
                f"the run folder {self.path} cannot be written to: {error.strerror}; see to its permissions, or choose "
                "another --out"
            ) from error
        with lock as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"another process is working in {self.path}; wait for it, or stop it, and call again"
                ) from None
            _HELD.add(file)
            try:
                yield
            finally:
                _HELD.discard(file)

    def _check_own(self) -> None:
        """An error if something in the folder is elsewhere, where a run must not write, or is a pipe or a device."""
        with os.scandir(self.path) as entries:
            strange = next((e for e in entries if e.is_symlink() or not (e.is_file() or e.is_dir())), None)
        if strange is not None:
            kind = "a link" if strange.is_symlink() else "no file"
            raise ValueError(
                f"{strange.path} is {kind}, and a run writes only inside its folder; remove it, or put a copy of what "
                "it points to in its place"
            )


_HELD: set[TextIO] = set()  # the locks of this process


def _let_go() -> None:
    """In a forked process (one that loads data): else it would keep the folder locked when this one was killed."""
    for file in _HELD:
        file.close()  # its own copy: the lock stays until the last one is closed
    _HELD.clear()


os.register_at_fork(after_in_child=_let_go)


def data_digest(recipe: Recipe) -> str | None:
    """Of the content of the recipe's data file.

    None for sets by name and folders of images, which are not read whole, and for data from Python, whose digest is in
    the recipe itself.
    """
    return None if recipe.data.digest is not None else digest(recipe.data.name)


def digest(data: str) -> str | None:
    """Of a data file's content; None where there is no file of that name."""
    path = expanded(data)
    if not path.is_file():
        return None
    stat = path.stat()
    return _digest(path.resolve(), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, size: int, changed: int) -> str:
    return files.digest(path)[:16]


def machine(device: torch.device) -> dict[str, Any]:
    """What a run ran on, and with which versions."""
    return {
        "versions": {
            "kontrast": kontrast.__version__,
            "commit": commit(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "machine": {
            "folder": os.getcwd(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": str(device),
            "processes": distributed.world_size(),
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def commit() -> str | None:
    """The commit of the checkout that this package lies in, if it lies in one; with a + if something was changed."""
    here = Path(__file__).resolve().parent

    def ask(*words: str) -> str | None:
        try:
            asked = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return asked.stdout.strip()

    # Installed into an environment that lies inside somebody's own checkout, this file is not one of theirs.
    found = ask("rev-parse", "--short", "HEAD") if ask("ls-files", "--error-unmatch", Path(__file__).name) else None
    return None if found is None else found + ("+" if ask("status", "--porcelain", "-uno") else "")
