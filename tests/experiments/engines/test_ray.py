"""Cells on a real local Ray cluster: a killed worker, a failing cell, a folder that nobody sees, a stop."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.experiments.engines import ray as engine_ray
from kontrast.experiments.engines.ray import Ray
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from tests.experiments.engines.tasks import ROOT, Heard, broken, pid_of, square, task, training, wait_for
from tests.train.small import same_runs

LONG = {"train.epochs": 40}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of this machine with two CPUs, whatever it has; engines use the connection that is there."""
    ray = pytest.importorskip("ray", reason="the extra ray is not installed: pip install kontrast[ray]")
    engine_ray.import_ray()
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=engine_ray.STORE,
    )
    yield ray
    ray.shutdown()


def test_a_sweep_with_a_killed_worker_is_complete(tmp_path: Path, cluster: Any) -> None:
    """Four cells, one killed in the middle of its training: all done, and that one as if undisturbed."""
    killed, other = training(tmp_path / "out", **LONG), training(tmp_path / "out", seed=1)
    value, bad = task(square, tmp_path / "out", x=3.0), task(broken, tmp_path / "out")
    cells, heard = [killed, other, value, bad], Heard()

    def kill() -> None:
        wait_for(Run(killed.path).last_checkpoint.exists)
        os.kill(pid_of(killed), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    Ray().run(cells, heard)
    thread.join()
    assert [cell.state.status for cell in cells] == ["done", "done", "done", "failed"]
    assert heard.of(killed) == ["begins", "again", "begins", "done"]
    assert heard.of(other) == heard.of(value) == ["begins", "done"]
    assert heard.of(bad) == ["begins", "failed"]
    assert bad.state.error == "ArithmeticError: no such number"
    assert "no such number" in (bad.path / "log.txt").read_text()
    assert json.loads((value.path / "result.json").read_text()) == {"value": 9.0}
    assert not list((tmp_path / "out").glob(".seen-*"))
    whole = run_recipe(training(tmp_path / "whole", **LONG).does)  # type: ignore[arg-type]
    same_runs(killed.path, whole.path)

    again = Heard()
    Ray().run(cells[:3], again)
    assert [event.what for event in again] == ["already done"] * 3


def test_a_stop_saves_first(tmp_path: Path, cluster: Any) -> None:
    """Ray cancels a task by what Ctrl-C does, and the training loop finishes its step and writes a checkpoint."""
    cell = training(tmp_path, **{"train.epochs": 4000, "run.checkpoint_every": 10**6})

    def stop() -> None:
        wait_for(lambda: (cell.path / "metrics.jsonl").exists() and (cell.path / "metrics.jsonl").stat().st_size)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(SystemExit) as ended:
        Ray().run([cell, training(tmp_path, seed=1)], Heard())
    thread.join()
    assert ended.value.code == 143
    assert cell.state.status == "interrupted"
    assert Run(cell.path).last_checkpoint.exists()
    with Run(cell.path).lock():  # nobody is at it any more
        pass


def test_a_folder_that_the_nodes_do_not_see_is_an_error(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on nodes without a common disk: what the driver lays there is not found."""
    monkeypatch.setattr(engine_ray, "_mark", lambda cells: nullcontext(".seen-by-nobody"))
    cell = task(square, tmp_path, x=1.0)
    with pytest.raises(ValueError, match=r"the node \S+ does not see .*, where the run folders lie; choose an --out"):
        Ray().run([cell], Heard())
    assert not cell.path.exists()


def test_relative_paths_are_the_drivers(tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the output folder and of the data: the latter's name is in the hash and stays as it was written."""
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 255, (64, 8, 8), dtype=np.uint8), np.arange(64) % 2
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    monkeypatch.chdir(tmp_path)
    mine = {"data.name": "mine.npz", "data.limit": None, "data.test_limit": None}
    cell, heard = training(Path("relative"), **mine), Heard()
    Ray().run([cell], heard)
    assert heard.of(cell) == ["begins", "done"], heard
    assert (tmp_path / "relative" / cell.path.name / "result.json").exists()


@pytest.mark.slow
def test_a_cluster_of_its_own(tmp_path: Path) -> None:
    """Started for the time being and taken down; in a process of its own, for this one may be connected to another."""
    code = f"""
from kontrast.experiments.engines.ray import Ray, import_ray
from tests.experiments.engines.tasks import Heard, square, task
from contextlib import nullcontext
from pathlib import Path
heard = Heard()
Ray().run([task(square, Path({str(tmp_path)!r}), x=2.0)], heard)
print([event.what for event in heard], import_ray().is_initialized())
try:
    Ray(cpus=10000).run([task(square, Path({str(tmp_path)!r}), x=3.0)], heard)
except ValueError as error:
    print(error)
"""
    pytest.importorskip("ray", reason="the extra ray is not installed: pip install kontrast[ray]")
    environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    ask = [sys.executable, "-c", code]
    done = subprocess.run(ask, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "['begins', 'done'] False"
    assert second.startswith("a cell needs 10000 CPUs and 0 GPUs, and this machine has")


def test_without_ray_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install kontrast\[ray\]"):
        Ray().run([task(square, tmp_path, x=1.0)], Heard())
    with pytest.raises(ValueError, match="gpus=-1: must be 0 or more"):
        Ray(gpus=-1)
