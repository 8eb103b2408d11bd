"""Cells as tasks of a Ray cluster: one that runs already, or one started here for the time being.

Every task declares the CPUs and GPUs it needs, and Ray finds a node that has them free. What a cell writes goes to its
run folder as ever, so the folder must lie on a path that all nodes share (one that supports file locks): each task
looks for a file that the driver has just laid there, and if it does not see it the driver stops with an error. Relative
paths are those of the driver's working directory.

A task is a generator: it yields when it begins, which in a cluster may be long after it was handed in, and what came of
it. Deaths are counted here and not by Ray's ``max_retries``, which would try again without telling anybody.
"""

from __future__ import annotations

import os
import platform
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Course, Event, Outcome, attempt
from kontrast.openmp import set_wait_policy

TICK = 0.2  # seconds between two looks at whether somebody asked to stop
GRACE = 60.0  # seconds to finish a step and save
PATIENCE = 5.0  # seconds until a file that was written is seen by every node
STORE = 100 * 2**20  # bytes of the local cluster's object store: outcomes are a few words


@dataclass(frozen=True)
class Ray:
    """Each cell is a task with ``cpus`` and ``gpus``; a task whose process dies is tried again ``retries`` times.

    ``address`` is a running cluster's (``host:6379``, ``ray://host:10001``, ``auto``), else the variable RAY_ADDRESS;
    without either a cluster is started on this machine and taken down at the end. With ``gpus=0`` a cell sees no GPU;
    else ``run.device=auto`` is the one that Ray gave it.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    retries: int = 3

    def __post_init__(self) -> None:
        for name in ("cpus", "gpus", "retries"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)}: must be 0 or more.")

    def run(self, cells: Sequence[Cell], notify: Callable[[Event], None]) -> None:
        """Run every cell once; ``notify`` is called in this process as things happen."""
        from kontrast.train.stopping import listening

        ray = import_ray()
        course = Course(cells, notify, self.retries)
        if course.over:
            return
        with self._cluster(ray), _mark(course.cells) as mark, listening() as signals:
            task = ray.remote(
                num_cpus=self.cpus, num_gpus=self.gpus, max_retries=0, max_calls=0, num_returns="streaming"
            )(_task)
            how = (mark, os.getcwd(), max(1, int(self.cpus)), self.gpus == 0)
            running: dict[Any, int] = {}
            try:
                while not course.over and signals.signum is None:
                    while (i := course.take()) is not None:  # all at once: a cluster that grows must see what waits
                        running[task.remote(course.cells[i].absolute(), *how)] = i
                    if not running:
                        time.sleep(TICK)
                        continue
                    for one in ray.wait(list(running), timeout=TICK)[0]:
                        _receive(ray, course, running, one)
            finally:
                _stop(ray, list(running))
        if signals.signum == signal.SIGINT:
            raise KeyboardInterrupt
        if signals.signum is not None:
            raise SystemExit(128 + signals.signum)

    @contextmanager
    def _cluster(self, ray: Any) -> Iterator[None]:
        """Connected to the cluster, and no longer than needed; a connection that was there before is used and stays."""
        if ray.is_initialized():
            yield
            return
        address = self.address or os.environ.get("RAY_ADDRESS") or "local"
        here = address == "local"
        options = {"include_dashboard": False, "object_store_memory": STORE} if here else {}
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error", **options)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise ValueError(
                f"no Ray cluster lets us in at {address!r} ({error}); start one with `ray start --head`, set "
                "RAY_AUTH_MODE=token if it wants a token, or leave the address out for a cluster on this machine"
            ) from error
        try:
            has = ray.cluster_resources()
            if here and (has.get("CPU", 0) < self.cpus or has.get("GPU", 0) < self.gpus):
                raise ValueError(
                    f"a cell needs {self.cpus:g} CPUs and {self.gpus:g} GPUs, and this machine has "
                    f"{has.get('CPU', 0):g} and {has.get('GPU', 0):g}; ask for fewer, or give a cluster's address"
                )
            yield
        finally:
            ray.shutdown()


def import_ray() -> Any:
    """Ray, which sends no usage statistics; an error that says what to install, if it is not there."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError("engine ray needs the package ray: pip install kontrast[ray]") from error
    return ray


# ------------------------------------------------------------------------------------------------ on the nodes


def _task(cell: Cell, mark: str, home: str, threads: int, hide_gpus: bool) -> Iterator[Outcome]:
    set_wait_policy()
    if hide_gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # whether Ray hides GPUs that were not asked for depends on its version
    if not _sees(cell.path.parent / mark):
        yield Outcome("unseen", error=platform.node())
        return
    if os.path.isdir(home):  # data may be named by a relative path, which is part of the run's hash
        os.chdir(home)
    yield Outcome("begins")
    yield attempt(cell, threads)


def _sees(file: Path) -> bool:
    """Whether a file is there; a network's file system may take a while."""
    until = time.monotonic() + PATIENCE
    while not file.exists():
        if time.monotonic() > until:
            return False
        time.sleep(0.2)
    return True


# ------------------------------------------------------------------------------------------------ in the driver


@contextmanager
def _mark(cells: Sequence[Cell]) -> Iterator[str]:
    """The name of an empty file that lies beside the run folders meanwhile."""
    name = f".seen-{uuid.uuid4().hex[:12]}"
    marks = {cell.path.absolute().parent / name for cell in cells}
    try:
        for mark in marks:
            try:
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()
            except OSError as error:
                raise ValueError(f"{mark.parent} cannot be written: {error.strerror}; choose another --out") from error
        yield name
    finally:
        for mark in marks:
            mark.unlink(missing_ok=True)


def _receive(ray: Any, course: Course, running: dict[Any, int], task: Any) -> None:
    """Read the next message of a task: it begins, it ends with an outcome, or its process died."""
    i = running[task]
    try:
        outcome: Outcome = ray.get(next(task))
    except (StopIteration, ray.exceptions.RayError) as error:
        del running[task]
        if isinstance(error, ray.exceptions.RayTaskError):  # before the cell: kontrast is not there, or another version
            message = f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
            course.cells[i].fail(message)
            course.finish(i, Outcome("failed", error=message))
        else:
            course.retry(i, f"died ({type(error).__name__})")
        return
    if outcome.what == "begins":
        course.begin(i)
        return
    del running[task]
    if outcome.what == "unseen":
        raise ValueError(
            f"the node {outcome.error} does not see {course.cells[i].absolute().path.parent}, where the run folders "
            "lie; choose an --out on a path that all nodes share"
        )
    course.finish(i, outcome)


def _stop(ray: Any, tasks: Sequence[Any]) -> None:
    """Cancel every task: those at a cell save first, in the time they have."""
    for task in tasks:
        ray.cancel(task)
    until = time.monotonic() + GRACE
    for task in tasks:
        try:
            while time.monotonic() < until:
                if ray.wait([task], timeout=TICK)[0]:
                    ray.get(next(task))
            ray.cancel(task, force=True)
        except (StopIteration, ray.exceptions.RayError):  # it has ended
            continue
