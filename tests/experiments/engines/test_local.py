"""Cells in processes: reported, killed, shared with another driver, stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from kontrast import openmp
from kontrast.experiments.cell import Cell
from kontrast.experiments.engines import Course, Event, engine
from kontrast.experiments.engines.local import GRACE, Local, _Worker, cores, default_jobs
from kontrast.pipeline import run_recipe
from kontrast.runs import Run
from tests.experiments.engines.tasks import (
    Heard,
    alive,
    broken,
    counted,
    dies,
    driver,
    square,
    task,
    threads,
    training,
    wait_for,
    workers_of,
)
from tests.train.small import same_runs


def test_every_cell_once_and_a_failed_one_stops_nothing(tmp_path: Path) -> None:
    """A recipe, a task, one that raises, a recipe that no run can be made of, one whose process always dies."""
    good, value = training(tmp_path), task(square, tmp_path, x=3.0)
    bad, impossible = task(broken, tmp_path), training(tmp_path, **{"data.name": "no-such-set"})
    hopeless, unlucky = task(dies, tmp_path, times=99), task(dies, tmp_path, times=1)
    device = training(tmp_path, seed=5, **{"run.device": "abacus"})
    cells = [bad, hopeless, impossible, device, good, value, unlucky]
    (tmp_path / "file").write_text("in the way")
    nowhere = training(tmp_path / "file")
    (damaged := task(square, tmp_path, x=4.0)).path.mkdir()
    (damaged.path / "run.json").write_text("{")
    heard = Heard()
    assert Local().retries == 2
    Local(jobs=2, retries=1).run([nowhere, damaged, *cells], heard)

    assert [cell.state.status for cell in cells] == [*["failed"] * 4, *["done"] * 3]
    assert heard.of(good) == heard.of(value) == ["begins", "done"]
    assert heard.of(bad) == heard.of(impossible) == heard.of(device) == ["begins", "failed"]
    assert heard.of(nowhere) == heard.of(damaged) == ["begins", "failed"]  # no run.json to write into
    assert heard.of(unlucky) == ["begins", "again", "begins", "done"]
    assert heard.of(hopeless) == ["begins", "again", "begins", "failed"]
    assert bad.state.error == "ArithmeticError: no such number"
    assert "no such number" in (bad.path / "log.txt").read_text().splitlines()[-1]  # where it came from is above it
    assert "no-such-set" in impossible.state.error
    assert "abacus" in device.state.error  # an error from before the run had begun
    assert hopeless.state.error == "its process died with signal 9, 2 times"
    failures = [event.error for event in heard if event.cell is hopeless and event.what == "failed"]
    assert failures == [hopeless.state.error]
    assert json.loads((value.path / "result.json").read_text()) == {"value": 9.0}
    assert (value.path / "log.txt").read_text() == "squaring\n"
    assert not (good.path / "log.txt").exists()  # nothing was printed
    assert all(event.seconds > 0 for event in heard if event.what == "done")

    again = Heard()
    Local().run([good, value, bad], again)
    assert [again.of(cell) for cell in (good, value, bad)] == [
        ["already done"],
        ["already done"],
        ["begins", "failed"],
    ]


@pytest.mark.slow  # its representatives: test_every_cell_once (a process that dies), torture/test_kills.py
def test_a_killed_worker_is_replaced_and_the_run_ends_as_if_undisturbed(tmp_path: Path) -> None:
    cell, heard = training(tmp_path / "killed", **{"train.epochs": 40}), Heard()
    killed: list[int] = []

    def kill() -> None:
        wait_for(Run(cell.path).last_checkpoint.exists)
        killed.extend(workers_of(os.getpid()))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    Local().run([cell], heard)
    thread.join()
    assert len(killed) == 1
    assert heard.of(cell) == ["begins", "again", "begins", "done"]
    assert heard[1].error == "its process died with signal 9"
    whole = run_recipe(training(tmp_path / "whole", **{"train.epochs": 40}).does)  # type: ignore[arg-type]
    same_runs(cell.path, whole.path)


def test_two_drivers_share_the_cells(tmp_path: Path) -> None:
    """Two processes on the same set: each cell is done once, by one of them, and both end with all of them."""
    cells: list[Cell] = [*(task(counted, tmp_path, i=i) for i in range(6)), training(tmp_path)]
    drivers = [driver(cells, jobs=1), driver(cells, jobs=1)]
    said = []
    for process in drivers:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        said.append([line.rsplit(" ", 1) for line in out.splitlines()])
    for cell in cells:
        ends = [[what for what, name in one if name == cell.path.name][-1] for one in said]
        assert sorted(ends) == ["already done", "done"], (cell.name, ends)
        assert cell.done
    for cell in cells[:6]:
        assert len((cell.path / "count.txt").read_text().splitlines()) == 1
    steps = [line["step"] for line in Run(cells[6].path).metrics() if "loss" in line]
    assert steps == list(range(2, 19, 2))
    assert {what for one in said for what, _ in one} >= {"waits"}  # both began with the same cell


def test_a_cell_held_by_another_process_is_waited_for(tmp_path: Path) -> None:
    """One that is let go of without being done is done here; the others do not wait for it."""
    held, free, heard = task(square, tmp_path, x=1.0), task(square, tmp_path, x=2.0), Heard()
    held.path.mkdir()
    holding = Run(held.path).lock()
    holding.__enter__()

    def notify(what: Event) -> None:
        heard(what)
        if what.cell is free and what.what == "done":
            holding.__exit__(None, None, None)

    Local().run([held, free], notify)
    assert [(t.what, t.cell is held) for t in heard] == [
        ("begins", True),
        ("waits", True),
        ("begins", False),
        ("done", False),
        ("done", True),
    ]


def test_a_cell_given_up_that_another_process_took_is_waited_for(tmp_path: Path) -> None:
    """Its process died here once too often, and meanwhile another driver is at it: that one may yet get it done."""
    cell, heard = task(square, tmp_path, x=2.0), Heard()
    course = Course([cell], heard, retries=0)
    assert course.take() == 0
    cell.path.mkdir()
    with Run(cell.path).lock():
        course.retry(0, "died with signal 9")
        first = course.busy[0][0]
        wait_for(lambda: course.take() is None and course.busy[0][0] > first)  # looked at again, and still held
        assert not course.over
    wait_for(lambda: course.take() is None and course.over)
    assert heard.of(cell) == ["waits", "failed"]
    assert cell.state.error == "its process died with signal 9"


@pytest.mark.parametrize(
    "asked",
    [
        signal.SIGTERM,
        *(pytest.param(s, marks=pytest.mark.slow) for s in (signal.SIGUSR1, signal.SIGKILL, signal.SIGINT)),
    ],
)
def test_a_stopped_driver_leaves_checkpoints_and_no_process(tmp_path: Path, asked: signal.Signals) -> None:
    """SIGKILL too: its worker finds the connection closed."""
    cell = training(tmp_path, **{"train.epochs": 4000, "run.checkpoint_every": 10**6})
    process = driver([cell, training(tmp_path, seed=1)])
    wait_for((cell.path / "metrics.jsonl").exists)
    wait_for(lambda: (cell.path / "metrics.jsonl").stat().st_size > 0)
    (worker,) = workers_of(process.pid)
    process.send_signal(asked)
    out, err = process.communicate(timeout=60)
    assert process.returncode == (128 + asked if asked in (signal.SIGTERM, signal.SIGUSR1) else -asked), err
    if asked == signal.SIGKILL:
        wait_for(lambda: not alive(worker), 30)
    assert not alive(worker)
    assert cell.state.status == "interrupted"
    assert Run(cell.path).last_checkpoint.exists()
    assert cell.state.step > 0
    assert out == f"begins {cell.path.name}\n"  # the other was not begun
    with pytest.raises(ValueError, match="no result yet"):
        Run(cell.path).result  # noqa: B018


@pytest.mark.parametrize(
    ("jobs", "given", "policy", "spins"), [(2, None, None, str(openmp.SPINS)), (1, 3, "active", None)]
)
def test_threads_are_divided_and_wait_by_our_policy_unless_the_user_has_set_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int, given: int | None, policy: str | None, spins: str | None
) -> None:
    for name in ("OMP_NUM_THREADS", *openmp.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    if policy is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    cell = task(threads, tmp_path)
    Local(jobs=jobs, threads=given).run([cell], Heard())
    share = given or max(1, cores() // 2)
    result = json.loads((cell.path / "result.json").read_text())
    assert result == {"torch": share, "omp": str(share), "spins": spins, "policy": policy}
    assert "GOMP_SPINCOUNT" not in os.environ, "the driver may be a program that only calls an engine"


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="Linux alone shares the CPU among sessions")
def test_a_worker_stands_back_as_far_as_its_driver() -> None:
    """Its session too: there its nice value alone would count for nothing."""
    script = """
import os, time
from pathlib import Path
from kontrast.experiments.engines.local import _Worker
nice = os.nice(5)  # from whatever the tests have
worker = _Worker(1)
file = Path(f"/proc/{worker.process.pid}/autogroup")
until = time.monotonic() + 60
while not (shares := file.read_text().endswith(f"nice {nice}\\n")) and time.monotonic() < until:
    time.sleep(0.05)
print(shares)
worker.dismiss()
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "True"


def test_a_listener_that_raises_leaves_no_process(tmp_path: Path) -> None:
    found: list[int] = []

    def notify(what: Event) -> None:
        found.extend(workers_of(os.getpid()))
        raise RuntimeError("the listener's own")

    with pytest.raises(RuntimeError, match="the listener's own"):
        Local().run([task(square, tmp_path, x=1.0)], notify)
    assert len(found) == 1
    assert not alive(found[0])


def test_an_idle_worker_ends_with_its_driver(tmp_path: Path) -> None:
    """While it still starts, and while it waits for the next cell."""
    starting, waiting = _Worker(1), _Worker(1)
    starting.connection.close()
    waiting.give(0, task(square, tmp_path, x=1.0))
    outcome = waiting.receive()
    assert outcome is not None
    assert outcome.what == "done"
    waiting.connection.close()
    for worker in (starting, waiting):
        assert worker.process.wait(GRACE / 2) == 143  # else it was ended by force, after GRACE


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ValueError, match="jobs=0: must be 1 or more"):
        Local(jobs=0)
    with pytest.raises(ValueError, match="retries=-1: must be 0 or more"):
        Local(retries=-1)
    with pytest.raises(ValueError, match=r"no engine 'slurm'\. Known: local, ray"):
        engine("slurm")


@pytest.mark.parametrize(
    ("cells", "threads", "asked", "free", "device", "expected"),
    [
        (100, None, None, 2**40, "cpu", 8),
        (3, None, None, 2**40, "cpu", 3),
        (100, 4, None, 2**40, "cpu", 2),
        (100, None, "2", 2**40, "cpu", 4),
        (100, 16, None, 2**40, "cpu", 1),
        (100, None, None, 5 * 2**30, "cpu", 2),
        (100, None, None, 1, "cpu", 1),
        (100, None, None, None, "cpu", 8),
        (100, None, None, 2**40, "cuda", 1),
    ],
)
def test_jobs_by_default(
    monkeypatch: pytest.MonkeyPatch,
    cells: int,
    threads: int | None,
    asked: str | None,
    free: int | None,
    device: str,
    expected: int,
) -> None:
    """One a core on a CPU; fewer by cells, threads and memory; one on a GPU."""
    monkeypatch.setattr("kontrast.experiments.engines.local.cores", lambda: 8)
    monkeypatch.setattr("kontrast.train.memory.free_memory", lambda device: free)
    monkeypatch.setattr("kontrast.train.pick_device", lambda name: torch.device(device))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert default_jobs(cells, threads) == expected
