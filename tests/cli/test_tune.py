"""``kontrast tune`` as a user runs it: what it tries and why, a table, a record, and the same again after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from kontrast.cli.tune import tune
from kontrast.experiments import tune as tuning
from kontrast.experiments.tune.trials import Check, Outcome
from kontrast.recipe import Recipe
from tests.cli.asking import written

runner = CliRunner()
app = typer.Typer()
app.command()(tune)
START = "import typer; from kontrast.cli.tune import tune; typer.run(tune)"
QUICK = {"train.epochs": 2, "run.monitor_every": 0}


def test_it_says_what_it_tried_and_why_and_how_to_train(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "tcl", **QUICK)
    done = runner.invoke(app, [str(path), "train.epochs=1"])
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.glob("runs/tune-*/tune.json")
    record = json.loads(file.read_text())
    for phase in record["phases"]:
        assert f"{phase['name']}: {phase['why']}" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    trials = [trial for phase in record["phases"] for trial in phase["trials"]]
    assert [row[:2] for row in rows] == [[f"{v:g}" for v in trial["setting"].values()] for trial in trials]
    assert all(f"{100 * t['score']['mean']:.2f}" in row for t, row in zip(trials, rows, strict=True))
    (chosen,) = [row for row in rows if row[-1] == "chosen"]
    assert chosen[:2] == [f"{value:g}" for value in record["chosen"].values()]
    assert "any k1 below 5000 beats SupCon: not resolved: one seed has no interval" in done.stdout
    assert f"stopped: {record['stopped']}" in done.stdout
    assert f"train with it: kontrast train {path} train.epochs=1 method.k1=" in done.stdout
    assert "the test rows were not used" in done.stdout
    again = runner.invoke(app, [str(path), "train.epochs=1"])
    assert again.stdout == done.stdout
    as_json = runner.invoke(app, [str(path), "train.epochs=1", "--json"])
    assert json.loads(as_json.stdout) == record


def test_intervals_over_seeds_and_differences_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def trial(made: Recipe, check: Check) -> Outcome:
        tau = made.method.options["temperature"]
        if tau == 1.0:
            return Outcome("stopped early", tmp_path, note="hopeless")
        return Outcome("done", tmp_path, 0.5 + made.seed / 100 - abs(tau - 0.1) * (1 + made.seed / 100), by="made up")

    monkeypatch.setattr(tuning, "run_trial", trial)
    path, _ = written(tmp_path, "supcon")
    done = runner.invoke(app, [str(path), "--for", "temperature", "--seeds", "3"])
    assert done.exit_code == 0, done.output
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()[:1].isdigit()}
    assert "51.00 ± 2.48" in rows["0.1"], "4.303/√3 times a standard deviation of one point"
    assert "chosen" in rows["0.1"]
    assert "below" in rows["0.05"]
    assert "stopped early" in rows["1"]
    assert "not measured" in rows["1"]
    assert "Student's 95 % interval over seeds" in done.stdout
    assert "chosen by its mean alone" not in done.stdout, "it is the first"
    path, _ = written(tmp_path, "tcl")
    monkeypatch.setattr(
        tuning,
        "run_trial",
        lambda made, check: Outcome("done", tmp_path, made.method.options["k1"] / 1e5 * (made.seed + 1)),
    )
    assert "chosen by its mean alone" in runner.invoke(app, [str(path), "--seeds", "2"]).stdout


def test_dry_run_plans_the_first_phase_and_writes_nothing(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "tcl")
    done = runner.invoke(app, [str(path), "--dry-run", "--seeds", "2", "--out", str(tmp_path / "elsewhere")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:-2]] == [
        f"k1={k1}, k2=1 seed={seed}" for k1 in (0, 4000, 5000) for seed in (0, 1)
    ]
    assert "scored on 20% of the training rows, held out" in done.stdout
    assert lines[-1].startswith(f"# {tmp_path / 'elsewhere'}/tune-tcl-digits-")
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "runs").exists()


def test_ranges_are_searched_and_the_best_is_a_command(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "supcon", **{**QUICK, "train.epochs": 1})
    words = [str(path), "optim.lr=log:0.01..1", "train.batch_size=int:20..40:20", "--trials", "3", "--seed", "1"]
    plan = runner.invoke(app, [*words, "--dry-run"])
    assert plan.exit_code == 0, plan.output
    first = "tpe: 3 settings from optim.lr=log:0.01..1, train.batch_size=int:20..40:20, seed 1"
    assert plan.stdout.startswith(first)
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    (file,) = tmp_path.glob("runs/tune-*/tune.json")
    record = json.loads(file.read_text())
    chosen = record["chosen"]
    command = f"kontrast train {path} optim.lr={chosen['optim.lr']:g} train.batch_size={chosen['train.batch_size']}"
    assert f"train with it: {command}" in done.stdout
    assert "stopped: 3 settings were tried" in done.stdout
    assert runner.invoke(app, words).stdout == done.stdout


def test_a_wrong_range_is_an_error_before_torch_is_loaded(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "supcon")
    answer = runner.invoke(app, [str(path), "optim.lr=1..0.1"])
    assert isinstance(answer.exception, ValueError)
    assert "optim.lr=1..0.1: must be low..high with the lower number first" in str(answer.exception)
    assert "loading" not in answer.stderr


def test_mistakes_are_errors_that_say_what_to_do(tmp_path: Path) -> None:
    path, _ = written(tmp_path, "ce")
    answer = runner.invoke(app, [str(path)])
    assert isinstance(answer.exception, ValueError)
    assert "method=ce: must have a temperature" in str(answer.exception)


def test_nothing_with_a_score_is_status_1(tmp_path: Path) -> None:
    """A rate at which the weights are infinite after a step, at every temperature."""
    path, _ = written(tmp_path, "supcon", **{"optim.lr": 1e30, "schedule": "constant"})
    answer = runner.invoke(app, [str(path)])
    assert answer.exit_code == 1, answer.output
    assert "no setting has a score" in answer.stdout
    assert "failed, seed 0: NonFiniteLoss" in answer.stderr


@pytest.mark.slow  # for what it is made of, tests/experiments/engines/test_local.py
@pytest.mark.parametrize("words", [[], ["optim.lr=log:0.01..1", "method.k2=1,1.2", "--trials", "5", "--seed", "3"]])
def test_killed_and_run_again_it_comes_to_the_same(tmp_path: Path, words: list[str]) -> None:
    """SIGKILL in the middle of a trial, no time to save; then the same command, beside one that ran through."""
    path, _ = written(tmp_path, "tcl-self", **{**QUICK, "train.epochs": 6})
    out = tmp_path / "runs" / "trials"
    call = [sys.executable, "-c", START, str(path), *words]
    started = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while started.poll() is None and len(list(out.glob("*/metrics.jsonl"))) < 2:
        time.sleep(0.005)
    started.send_signal(signal.SIGKILL)
    started.wait(timeout=60)
    assert not [f for f in out.parent.glob("tune-*/tune.json") if json.loads(f.read_text())["status"] == "done"]
    done = runner.invoke(app, [str(path), *words, "--json"])
    straight = runner.invoke(app, [str(path), *words, "--json", "--out", str(tmp_path / "straight")])
    assert (done.exit_code, straight.exit_code) == (0, 0), done.output + straight.output
    one, other = (json.loads(answer.stdout) for answer in (done, straight))
    for record in (one, other):
        record.pop("command")
        for phase in record["phases"]:
            for trial in phase["trials"]:
                trial.pop("folders")
    assert one == other


def test_help_names_every_option() -> None:
    done = runner.invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    for option in (
        "--out",
        "--for",
        "--trials",
        "--sampler",
        "--pruner",
        "--seed",
        "--seeds",
        "--by",
        "--dry-run",
        "--json",
    ):
        assert option in done.stdout
