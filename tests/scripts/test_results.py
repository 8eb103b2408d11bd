"""scripts/results with real processes: a repository with a plan and a tag, its clone, runs in the background.

Most tests have a stand-in for kontrast (standin.py), the long one has kontrast itself; nothing is installed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STANDIN = Path(__file__).with_name("standin.py")
PATIENCE = 900.0  # seconds: until something has happened on a machine with other work


def entry(experiment: str, **fields: Any) -> str:
    """A table of the plan."""
    values = {"experiment": experiment, "preset": "smoke", "seeds": 1, **fields}
    return "[[entry]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def tuning(recipe: str, **fields: Any) -> str:
    """A table of the plan that tunes a recipe."""
    values = {"name": f"tune-{recipe}", "tune": recipe, **fields}
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value is not None]
    return "[[entry]]\n" + "".join(lines)


class Repository:
    """A repository that has the scripts, a plan and a tag; its results lie beside it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.results = folder / "work", folder / "work-results"
        shutil.copytree(ROOT / "scripts", self.root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
        (self.root / ".gitignore").write_text("__pycache__/\n")
        self.git("init", "--quiet")

    def use_standin(self) -> None:
        shutil.copy(STANDIN, self.root / "scripts" / "designs.py")
        (self.root / "src" / "kontrast").mkdir(parents=True)
        (self.root / "src" / "kontrast" / "__init__.py").touch()
        shutil.copy(STANDIN, self.root / "src" / "kontrast" / "__main__.py")

    def use_kontrast(self) -> None:
        (self.root / "src").symlink_to(ROOT / "src")

    def tag(self, name: str, *plan: str) -> None:
        path = self.root / "docs" / "experiments" / "plan.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(plan), encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", name)
        self.git("tag", name)

    def git(self, *words: str) -> str:
        name = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        told = subprocess.run(["git", *name, *words], cwd=self.root, capture_output=True, text=True, check=True)
        return told.stdout.strip()

    def ask(self, *words: str, status: int = 0) -> str:
        """What the script says, on both streams."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KONTRAST_")}
        environment["KONTRAST_RESULTS_PYTHON"] = sys.executable
        command = [sys.executable, str(self.root / "scripts" / "results"), *words]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert told.returncode == status, told.stdout + told.stderr
        return told.stdout + told.stderr

    @property
    def log(self) -> str:
        return (self.results / "log.txt").read_text(encoding="utf-8")

    @property
    def pid(self) -> int:
        return int((self.results / "running.pid").read_text())

    def wait(self, reached: Callable[[], object]) -> None:
        until = time.monotonic() + PATIENCE
        while not reached():
            assert time.monotonic() < until, self.log
            time.sleep(0.05)

    def states(self, status: str) -> list[dict[str, Any]]:
        """run.json of the run folders with this status."""
        read = [json.loads(path.read_text(encoding="utf-8")) for path in self.results.glob("runs/*/run.json")]
        return [state for state in read if state["status"] == status]


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path)
    made.use_standin()
    yield made
    made.ask("pause")


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Repository]:
    made = Repository(tmp_path)
    made.use_kontrast()
    yield made
    made.ask("pause")


def test_start_pause_and_go_on(here: Repository) -> None:
    here.tag("results-1", entry("quick"), entry("failing"), entry("long"))
    assert "has no clone yet" in here.ask("status", status=2)
    assert "does not run" in here.ask("pause")

    assert "started" in here.ask("start")
    assert os.getsid(here.pid) == here.pid, "it has a session of its own: the end of a shell does not end it"
    assert "runs already" in here.ask("start")
    here.wait(lambda: here.states("training"))
    assert os.getpriority(os.PRIO_PROCESS, here.pid) >= min(19, os.nice(0) + 10)
    told = here.ask("pause")
    assert f"paused (pid {here.pid})" in told
    (before,) = here.states("interrupted")
    assert f"long: interrupted at step {before['step']}" in told
    assert "quick: done" in here.log
    assert "failing: ended with status 1" in here.log, "a failure does not stop the rest"
    assert "long: paused" in here.log
    assert "does not run" in here.ask("pause")

    here.ask("start")
    here.wait(lambda: here.states("training") and here.states("training")[0]["step"] > before["step"])
    assert "quick: 0 to do" in here.log


def test_a_killed_process_leaves_nothing_running_twice(here: Repository) -> None:
    here.tag("results-1", entry("long"), entry("quick"))
    here.ask("start")
    here.wait(lambda: here.states("training"))
    os.kill(here.pid, signal.SIGKILL)  # alone: its command goes on, and holds the lock
    assert "runs already" in here.ask("start")
    assert "paused" in here.ask("pause")
    assert here.states("interrupted")
    assert "started" in here.ask("start")


def test_a_pid_of_another_program_is_left_alone(here: Repository) -> None:
    """After a restart of the machine the file is there, and its number may be anybody's."""
    here.tag("results-1", entry("quick"))
    here.results.mkdir()
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        (here.results / "running.pid").write_text(str(other.pid))
        assert "does not run" in here.ask("pause")
        assert "started" in here.ask("start")
        here.wait(lambda: "the plan is through" in here.log)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_status_counts_cells_hours_and_what_is_left(here: Repository) -> None:
    pilots = here.root / "docs" / "experiments" / "pilots"
    pilots.mkdir(parents=True)
    (pilots / "long.json").write_text('{"cells": [{"core_seconds": 7200}]}')
    here.tag("results-1", entry("quick"), entry("long"), entry("other"))
    here.ask("start")
    here.wait(lambda: here.states("training"))
    told = here.ask("status")
    assert f"runs (pid {here.pid})" in told
    assert f"commit {here.git('rev-parse', 'HEAD')[:8]} is results-1" in told
    lines = {line.split()[0]: line.split()[1:] for line in told.splitlines() if line.strip()}
    assert lines["quick"] == ["1/1", "0", "1.0", "0.0"]
    assert lines["long"] == ["0/1", "0", "0.0", "2.0"], "as its pilot"
    assert lines["other"] == ["0/1", "0", "0.0", "?"], "nobody measured what a cell costs"
    assert lines["all"] == ["1.0", "2.0"]
    assert "1 entries have no measured cost yet" in told
    assert "long: begins" in told, "the end of the log"


def test_collect_puts_finished_cells_into_the_ledger_and_nothing_else(here: Repository) -> None:
    here.tag("results-1", entry("quick"), entry("long"))
    here.ask("start")
    here.wait(lambda: here.states("training"))
    for _ in range(2):
        assert "quick: added" in here.ask("collect")
        changed = here.git("status", "--porcelain", "--untracked-files=all")
        assert changed == "?? docs/results/ledger/quick-smoke.jsonl"


def test_collect_keeps_the_records_of_searches(here: Repository) -> None:
    search = {"preset": None, "seeds": 3, "settings": ["train.epochs=2"]}
    here.tag("results-1", tuning("mine", **search), tuning("endless"), tuning("later"), entry("long"))
    here.ask("start")
    here.wait(lambda: here.states("training"))
    shutil.rmtree(here.results / "runs" / "tune-later")
    told = here.ask("collect")
    assert "tune-mine: 1 settings tried, done" in told
    assert "tune-endless: 1 settings tried, running" in told, "what was tried is kept, ended or not"
    kept = here.root / "docs" / "results" / "tune"
    assert sorted(file.name for file in kept.iterdir()) == ["tune-endless.json", "tune-mine.json"]
    record = json.loads((kept / "tune-mine.json").read_text(encoding="utf-8"))
    assert record["chosen"] == {"k1": 4000.0}
    command = "kontrast tune mine train.epochs=2 --seeds 3 --out runs"
    assert record["made"] == {"command": command, "commit": here.git("rev-parse", "HEAD")}
    (here.results / "runs" / "tune-mine" / "tune.json").write_text("{")
    assert "tune-mine: " in here.ask("collect", status=2)
    assert json.loads((kept / "tune-mine.json").read_text(encoding="utf-8")) == record, "the one there stays"


def test_a_plan_that_cannot_run_is_told_before_anything_runs(here: Repository) -> None:
    here.tag("results-1", entry("quick"), entry("unknown"))
    assert "unknown: unknown!" in here.ask("start", status=2)
    assert not (here.results / "log.txt").exists()
    here.tag("results-2", entry("quick", data="x.npz"))
    assert "KONTRAST_DATA: is not set" in here.ask("start", status=2)
    here.tag("results-10", "[[entry]]\n")
    assert "is NOT" in here.ask("status")
    assert "entry 1: must have either" in here.ask("start", status=2), "the highest tag is taken: 10 is above 2"
    assert "no commit 'results-11'" in here.ask("start", "--tag", "results-11", status=2)
    assert not (here.results / "log.txt").exists()


def test_a_clone_with_changes_is_refused(here: Repository) -> None:
    here.tag("results-1", "[[entry]]\n")
    here.ask("start", status=2)
    (here.results / "clone" / ".gitignore").write_text("")
    assert "has changes of its own" in here.ask("start", status=2)


def test_without_a_tag(here: Repository) -> None:
    here.tag("other", entry("quick"))
    assert "no tag results-*" in here.ask("start", status=2)


@pytest.mark.slow
def test_with_kontrast_itself(real: Repository) -> None:
    """A finished task, a run that is stopped and goes on, and the task in the ledger."""
    quick = entry("graf-label-configurations", settings=["labels=3-3-3"])
    long = entry("tcl-table-1", settings=["method=tcl", "train.epochs=30000", "run.checkpoint_every=20"])
    real.tag("results-1", quick, long)
    real.ask("start", "--nice", "0")
    real.wait(lambda: list(real.results.glob("runs/*/checkpoints/last.pt")))
    assert "interrupted at step" in real.ask("pause")
    (before,) = real.states("interrupted")
    lines = {line.split()[0]: line.split()[1:] for line in real.ask("status").splitlines() if "/1 " in line}
    assert lines["graf-label-configurations"][:2] == ["1/1", "0"]
    assert lines["tcl-table-1"][:2] == ["0/1", "0"]
    real.ask("start", "--nice", "0")
    real.wait(lambda: real.states("training"))
    real.ask("pause")
    (after,) = real.states("interrupted")
    assert after["step"] >= before["step"]
    assert "graf-label-configurations: 1 runs, 0 to do" in real.log
    assert "1 cells added" in real.ask("collect")
    assert "1 were there already" in real.ask("collect")
    changed = real.git("status", "--porcelain", "--untracked-files=all")
    assert changed == "?? docs/results/ledger/graf-label-configurations-smoke.jsonl"
    # Another machine, which has the repository and nothing else: what the ledger has is not run again.
    shutil.rmtree(real.results)
    real.ask("start", "--nice", "0")
    real.wait(lambda: real.states("training"))
    real.ask("pause")
    assert "graf-label-configurations: 1 runs, 0 to do" in real.log
    assert not list(real.results.glob("runs/task-*/run.json"))
    lines = {line.split()[0]: line.split()[1:] for line in real.ask("status").splitlines() if "/1 " in line}
    assert lines["graf-label-configurations"][:2] == ["1/1", "0"]
