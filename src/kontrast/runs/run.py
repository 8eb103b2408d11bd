"""The run folder: the files of a run by what they are, its status, its lock, and one reader for everything in it.

    <out>/<recipe>-<hash8>/
        recipe.yaml              resolved: everything that decides the run
        run.json                 status, versions, seed, machine, command; when done, the digests of the files below
        metrics.jsonl            one record per line
        checkpoints/last.pt      everything that is needed to resume (best.pt with early stopping)
        checkpoints/previous.pt  the checkpoint before it, until the run is done: used if last.pt is damaged
        encoder.safetensors      the weights, and model.json: how to rebuild the encoder
        result.json              every number with its protocol
        selection.npz            of `kontrast adapt`: which held-out rows each epoch has right
        analysis.npz, .json      features, predictions, neighbours, thumbnails, views, geometry: what a report draws
        doctor.json              the doctor's findings
        report.html              the page

Nothing here imports torch, or a stage: what needs one is in `kontrast.runs.actions`.
"""

from __future__ import annotations

import fcntl
import functools
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from kontrast import files
from kontrast.files import RUN_AGAIN, expanded, read_json, read_npz, whole_file, write_atomically, write_json
from kontrast.recipe import Recipe
from kontrast.runs.actions import Actions
from kontrast.runs.arrays import FORMS, Arrays, read_arrays
from kontrast.runs.folder import File
from kontrast.runs.reading import describe_damage, fit, read_json_file, read_metrics_file, validate
from kontrast.runs.schemas import (
    FORMAT,
    Analysis,
    Examination,
    Finding,
    Geometry,
    MetricsLine,
    ModelCard,
    Result,
    State,
    TaskCall,
    Verdict,
)

WRITTEN = (
    "recipe.yaml", "metrics.jsonl", "encoder.safetensors", "model.json", "result.json", "analysis.npz", "analysis.json"
)  # fmt: skip
"""The files that a finished run leaves; run.json has their digests."""
OF_ADAPTATION = "selection.npz"
"""One more, of `kontrast adapt` with labels."""
REMOVE_STATE = "remove it, and the run resumes"


class Busy(ValueError):
    """Another process is working in the run folder."""


@dataclass(frozen=True)
class Contents:
    """Everything that a run folder holds, read by `Run.read`; what does not exist is empty.

    Attributes:
        run: The run.
        recipe: The recipe; None if recipe.yaml is too damaged to make one (tolerant reading only).
        recipe_values: recipe.yaml as plain values.
        recipe_text: recipe.yaml as text.
        findings: The doctor's findings; None if the run was not examined.
        messages: What tolerant reading left out, one line for each problem.
    """

    run: Run
    recipe: Recipe | None = None
    recipe_values: Mapping[str, Any] = field(default_factory=dict)
    recipe_text: str = ""
    state: State = field(default_factory=State)
    metrics: Sequence[MetricsLine] = ()
    result: Result = field(default_factory=Result)
    analysis: Analysis = field(default_factory=Analysis)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    card: ModelCard | None = None
    findings: Sequence[Finding] | None = None
    messages: Sequence[str] = ()

    @property
    def geometry(self) -> Geometry:
        """The geometry of analysis.json, else that of result.json, else an empty one."""
        return self.analysis.geometry or self.result.geometry or Geometry()


class Run(Actions):
    """A run, by its folder.

    What it holds: `recipe`, `status`, `result`, `value`, `metrics`, `analysis`, `card`, `findings`, `read`.

    What one does with it (`kontrast.runs.actions`): `encoder` loads the trained encoder, `embed` gives the features of
    images, `report` writes the page, `charts` has its charts as Altair objects, `compare` sets it against other runs,
    `export` writes it for other tools. A run displays itself: in Jupyter as HTML, by ``print`` in plain text.

    Args:
        path: The folder; it need not exist yet.

    >>> run = Run("runs/no-such-run")
    >>> run, run.status is None
    (Run('runs/no-such-run', not begun), True)
    """

    recipe_file = File("recipe.yaml")
    state_file = File("run.json")
    metrics_file = File("metrics.jsonl")
    last_checkpoint = File("checkpoints/last.pt")
    previous_checkpoint = File("checkpoints/previous.pt")
    best_checkpoint = File("checkpoints/best.pt")  # the weights that were best in validation
    weights_file = File("encoder.safetensors")
    card_file = File("model.json")
    result_file = File("result.json")
    analysis_file = File("analysis.json")
    arrays_file = File("analysis.npz")
    selection_file = File(OF_ADAPTATION)  # which held-out rows each epoch of an adaptation has right
    features_file = File("features.npz")  # features of all rows, stored by later evaluations
    findings_file = File("doctor.json")
    report_file = File("report.html")
    task_file = File("task.json")  # what a task of an experiment calls, in place of a recipe
    points_file = File("points.npz")  # of a task that moves free points on a sphere, which knows the arrays' names
    log_file = File("log.txt")  # what an engine's worker printed

    @staticmethod
    def of(recipe: Recipe) -> Run:
        """The run of a resolved recipe: ``<run.out>/<name>-<hash>``."""
        return Run(expanded(recipe.run.out) / recipe.folder)

    # ------------------------------------------------------------------------------------------------ the public part

    @property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        return Recipe.read(self.recipe_file)

    @property
    def status(self) -> str | None:
        """training, evaluating, done, interrupted or failed; None before the start."""
        return self.state.status

    @property
    def result(self) -> dict[str, Any]:
        """result.json as plain values; `read_result` gives it typed.

        Raises:
            ValueError: There is no result yet, or the file is damaged.
        """
        if not self.has_result:
            raise ValueError(f"{self.path} has no result yet (status: {self.status}); run its recipe to the end")
        return read_json(self.result_file, RUN_AGAIN)

    def value(self, protocol: str) -> float:
        """The accuracy by a protocol.

        Args:
            protocol: The protocol's name, such as ``"knn20"``.

        Returns:
            The accuracy, from 0 to 1.

        Raises:
            ValueError: There is no result yet, or none by this protocol.
        """
        results = self.read_result().results
        for result in results:
            if result.name == protocol and result.value is not None:
                return float(result.value)
        names = ", ".join(result.name for result in results)
        raise ValueError(f"this run was not evaluated by {protocol!r}; it has {names or 'none'}")

    @property
    def verdict(self) -> Verdict | None:
        """What `kontrast adapt` decided; None for other runs, and before the end."""
        return self.read_result().verdict if self.has_result else None

    def metrics(self) -> list[MetricsLine]:
        """The lines of metrics.jsonl; none if there is no such file."""
        return read_metrics_file(self.metrics_file)

    # ---------------------------------------------------------------------------------------------------- what there is

    @property
    def has_recipe(self) -> bool:
        """Whether the folder is a training run's."""
        return self.recipe_file.exists()

    @property
    def has_result(self) -> bool:
        return self.result_file.exists()

    @property
    def has_checkpoint(self) -> bool:
        """Whether the run can be resumed."""
        return self.last_checkpoint.exists() or self.previous_checkpoint.exists()

    @property
    def has_current_report(self) -> bool:
        """Whether the page shows a result and is younger than every file that a later step writes."""
        if not self.report_file.exists() or not self.has_result:
            return False
        report_time = self.report_file.stat().st_mtime_ns
        sources = (self.state_file, self.result_file, self.findings_file)
        return all(report_time > file.stat().st_mtime_ns for file in sources if file.exists())

    # ---------------------------------------------------------------------------------------------------------- reading

    @property
    def state(self) -> State:
        """run.json; empty if the run has not started."""
        return read_json_file(self.state_file, State, hint=REMOVE_STATE) or State()

    def read_result(self) -> Result:
        """result.json, validated; `result` gives the plain values."""
        return validate(Result, self.result, self.result_file)

    @property
    def analysis(self) -> Analysis:
        """analysis.json; empty if it does not exist."""
        return read_json_file(self.analysis_file, Analysis) or Analysis()

    def arrays(self, names: Iterable[str] | None = None) -> Arrays:
        """The arrays of analysis.npz with these names, or all; none if the file does not exist."""
        return read_arrays(self.arrays_file, names=names)

    @property
    def card(self) -> ModelCard:
        """model.json.

        Raises:
            ValueError: The folder has no exported encoder, or model.json is damaged.
        """
        for file in (self.card_file, self.weights_file):
            if not file.exists():
                raise ValueError(f"{self.path} has no {file.name}; expected the folder of a finished run")
        card = read_json_file(self.card_file, ModelCard)
        assert card is not None
        return card

    @property
    def findings(self) -> list[Finding] | None:
        """The doctor's findings; None if the run was not examined."""
        examination = read_json_file(self.findings_file, Examination)
        return None if examination is None else examination.findings

    def read(self, *, strict: bool = True, arrays: Iterable[str] = FORMS) -> Contents:
        """Read everything in the folder.

        Args:
            strict: Raise an error for a damaged file. If False, keep what fits and describe the rest in
                ``Contents.messages``: for reports, which must show a damaged run too.
            arrays: The arrays of analysis.npz to read.

        Raises:
            ValueError: The folder is not a run's, or (strict) a file is damaged; the message names file and field.
        """
        self.check_is_run()
        messages: list[str] | None = None if strict else []
        text, values, recipe = self._read_recipe(messages)
        state = read_json_file(self.state_file, State, messages, hint=RUN_AGAIN) or State()
        if messages is not None and state.status == "done":
            digests = {name: digest for name, digest in state.files.items() if (self.path / name).is_file()}
            names = files.changed(self.path, digests)
            messages += [f"{name} is not what the run wrote; {RUN_AGAIN}" for name in names]
        examination = read_json_file(self.findings_file, Examination, messages)
        return Contents(
            run=self,
            recipe=recipe,
            recipe_values=values,
            recipe_text=text,
            state=state,
            metrics=read_metrics_file(self.metrics_file, messages),
            result=read_json_file(self.result_file, Result, messages) or Result(),
            analysis=read_json_file(self.analysis_file, Analysis, messages) or Analysis(),
            arrays=read_arrays(self.arrays_file, messages, arrays),
            card=read_json_file(self.card_file, ModelCard, messages),
            findings=None if examination is None else examination.findings,
            messages=messages or [],
        )

    def check_is_run(self) -> None:
        """Raise a ValueError if the folder does not exist, or is not that of a training run."""
        if not self.path.is_dir():
            raise ValueError(f"there is no folder {self.path}; expected the folder of a run")
        if not self.has_recipe:
            kind = "a task's folder, which trains no encoder" if self.task_file.exists() else "not a run's folder"
            raise ValueError(f"{self.path} is {kind}: it has no recipe.yaml. Use a folder that `kontrast train` wrote")

    def _read_recipe(self, messages: list[str] | None) -> tuple[str, Mapping[str, Any], Recipe | None]:
        if messages is None:
            recipe = Recipe.read(self.recipe_file)
            return recipe.to_yaml(), recipe.model_dump(mode="json"), recipe
        from kontrast.recipe import MOST_BYTES, check_plain, from_yaml

        text = ""
        try:
            with files.open_regular(self.recipe_file) as file:
                text = file.read(MOST_BYTES).decode("utf-8-sig", errors="replace")
            values = from_yaml(text)
            check_plain(values)
        except (ValueError, OSError) as error:
            messages.append(describe_damage(self.recipe_file, error))
            return text, {}, None
        return text, values, fit(Recipe, {"name": self.path.name, **values}, self.recipe_file.name, messages)

    # ---------------------------------------------------------------------------------------------------------- writing

    def begin(self, recipe: Recipe) -> list[Path]:
        """Create the folder and write the recipe, unless they exist.

        Args:
            recipe: The resolved recipe.

        Returns:
            The folders that were created, inner ones first: `discard` takes them if the run is refused before its
            first step.

        Raises:
            ValueError: The folder cannot be created.
        """
        created = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"the run folder {self.path} cannot be created: {error.strerror}; choose another --out"
            ) from error
        if not self.recipe_file.exists():
            try:
                write_atomically(self.recipe_file, recipe.to_yaml().encode())
            except BaseException:
                self.discard(created)
                raise
        return created

    def discard(self, created: Sequence[Path]) -> None:
        """Remove the folders that `begin` created, unless a run has left something in them."""
        if self.path not in created or self.state_file.exists():
            return
        for file in (self.recipe_file, self.path / ".lock"):
            file.unlink(missing_ok=True)
        if self.metrics_file.exists() and not self.metrics_file.stat().st_size:
            self.metrics_file.unlink()
        for folder in created:
            try:
                folder.rmdir()
            except OSError:  # something else is in it by now
                return

    def restore_recipe(self, recipe: Recipe) -> None:
        """Write recipe.yaml again if it is damaged or another recipe's."""
        try:
            same = self.recipe.hash == recipe.hash
        except (OSError, ValueError):
            same = False
        if not same:
            print(f"{self.recipe_file} is not this run's; it is written again", file=sys.stderr)
            write_atomically(self.recipe_file, recipe.to_yaml().encode())

    def note(self, status: str, **fields: Any) -> None:
        """Write the status and further fields of `State` into run.json; the other fields stay.

        With several processes only the first one calls this.
        """
        try:
            before = read_json(self.state_file, REMOVE_STATE)
        except FileNotFoundError:
            before = {}
        now = {"status": status, "updated": timestamp(), **fields, "format": FORMAT}
        validate(State, {**before, **now}, self.state_file, hint=REMOVE_STATE)
        write_json(self.state_file, {**before, **now})

    def write_task(self, call: str, options: Mapping[str, Any]) -> None:
        """Write task.json.

        Args:
            call: The function that the experiment calls.
            options: Its arguments.
        """
        write_json(self.task_file, TaskCall(call=call, options=dict(options)).model_dump())

    def task_files(self) -> list[str]:
        """The files that a task wrote, by name: all but run.json and the engine's log."""
        names = {file.name for file in self.path.glob("[!.]*")}
        return sorted(names - {self.state_file.name, self.log_file.name})

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write result.json."""
        write_json(self.result_file, result)

    def write_analysis(self, record: Mapping[str, Any], arrays: Arrays) -> None:
        """Write analysis.npz and analysis.json.

        Args:
            record: The content of analysis.json.
            arrays: The arrays of analysis.npz, by name.
        """
        import numpy as np

        with whole_file(self.arrays_file) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
        write_json(self.analysis_file, record)

    def write_selection(self, arrays: Arrays) -> None:
        """Write selection.npz, which `kontrast.adaptation` knows the arrays of."""
        import numpy as np

        with whole_file(self.selection_file) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    def read_selection(self) -> Arrays:
        """The arrays of selection.npz; none if there is no such file.

        Raises:
            ValueError: The file is damaged.
        """
        return read_npz(self.selection_file, RUN_AGAIN) if self.selection_file.exists() else {}

    def write_encoder(self, weights: bytes, card: Mapping[str, Any]) -> None:
        """Write encoder.safetensors and model.json.

        Args:
            weights: The content of encoder.safetensors.
            card: The content of model.json.
        """
        write_atomically(self.weights_file, weights)
        write_json(self.card_file, card)

    def write_findings(self, examination: Mapping[str, Any]) -> Path:
        """Write doctor.json; returns the file."""
        write_json(self.findings_file, examination)
        return self.findings_file

    # --------------------------------------------------------------------------------------------- digests, hash, lock

    def digests(self, names: Iterable[str] = (*WRITTEN, OF_ADAPTATION)) -> dict[str, str]:
        """SHA-256 of each of these files that exists, by name."""
        return {name: files.digest(self.path / name) for name in names if (self.path / name).is_file()}

    def changed_files(self) -> list[str]:
        """Files of a finished run that are gone, or are no longer what it wrote."""
        state = self.state
        lacks_result = state.status == "done" and "result.json" not in state.files and not self.has_result
        return files.changed(self.path, state.files) + ["result.json"] * lacks_result

    def check(self, recipe: Recipe) -> None:
        """Raise a ValueError if the folder holds another recipe's run, or its data file has changed since."""
        state = self.state
        is_done = state.status == "done"
        if (state.hash or recipe.hash) != recipe.hash or (is_done and state.hash is None):
            raise ValueError(
                f"{self.path} holds the run of another recipe (run.json has the hash {state.hash}, expected is "
                f"{recipe.hash}). Remove the folder, or choose another --out"
            )
        if is_done or self.has_checkpoint:
            self.check_data(recipe)

    def check_data(self, recipe: Recipe) -> None:
        """Raise a ValueError if the data file is no longer what the run learned from; a missing file is not checked."""
        then, now = self.state.data_file, data_digest(recipe)
        if then is not None and now is not None and then != now:
            raise ValueError(
                f"{self.path} was made with other data: {recipe.data.name} has changed since. Remove the folder or "
                "choose another --out, to run it on the present data; or put the file back"
            )

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out of the folder.

        With several processes of one run only the first one calls this.

        Raises:
            Busy: Another process is working in the folder.
            ValueError: The folder cannot be written to, or holds links, pipes or devices.
        """
        self._check_entries()
        try:
            lock_file = (self.path / ".lock").open("a")
        except OSError as error:
            raise ValueError(
                f"the run folder {self.path} cannot be written to: {error.strerror}; check its permissions, or choose "
                "another --out"
            ) from error
        with lock_file as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Busy(
                    f"another process is working in {self.path}; wait for it, or stop it, and call again"
                ) from None
            _LOCKS.add(file)
            try:
                yield
            finally:
                _LOCKS.discard(file)

    def _check_entries(self) -> None:
        with os.scandir(self.path) as entries:
            strange = next((e for e in entries if e.is_symlink() or not (e.is_file() or e.is_dir())), None)
        if strange is not None:
            kind = "a link" if strange.is_symlink() else "not a file"
            raise ValueError(
                f"{strange.path} is {kind}, and a run writes only inside its folder; remove it, or put a copy of what "
                "it points to in its place"
            )


_LOCKS: set[TextIO] = set()  # held by this process


def _release_locks() -> None:
    """Release inherited locks in a forked process (a data worker), which may live longer than this one."""
    for file in _LOCKS:
        file.close()  # the child's copy: the lock stays until the last copy is closed
    _LOCKS.clear()


os.register_at_fork(after_in_child=_release_locks)


def timestamp() -> str:
    """The time now, as run.json has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def data_digest(recipe: Recipe) -> str | None:
    """Digest of the recipe's data file; None for named sets, folders and data from Python.

    Folders are not read whole; the digest of data from Python is in the recipe itself.
    """
    return None if recipe.data.digest is not None else file_digest(recipe.data.name)


def file_digest(data: str) -> str | None:
    """The first 16 digits of SHA-256 of a data file; None if there is no such file."""
    path = expanded(data)
    if not path.is_file():
        return None
    stat = path.stat()
    return _digest(path.resolve(), stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _digest(path: Path, size: int, modified: int) -> str:
    return files.digest(path)[:16]


def commit() -> str | None:
    """The commit of the checkout that this package lies in, with a + if files were changed; None outside of one."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str | None:
        try:
            process = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return process.stdout.strip()

    # Installed into an environment inside somebody else's checkout, this file is not tracked by it.
    head = git("rev-parse", "--short", "HEAD") if git("ls-files", "--error-unmatch", Path(__file__).name) else None
    return None if head is None else head + ("+" if git("status", "--porcelain", "-uno") else "")
