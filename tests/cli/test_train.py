"""``kontrast train`` as a user runs it: a run folder, the same command again, mistakes, signals."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kontrast import recipes
from kontrast.cli import app, main
from kontrast.cli._completion import complete_recipe
from kontrast.cli._console import options
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import micro_batch, resolve, running
from tests.cli.asking import START, ask, one_paragraph, process, written
from tests.data.pictures import classes

runner = CliRunner()


def test_it_trains_and_the_same_again_is_already_done(tmp_path: Path) -> None:
    path, made = written(tmp_path)
    done = runner.invoke(app, ["train", str(path)])
    assert done.exit_code == 0, done.output
    run = Run.of(resolve(made))
    assert run.status == "done"
    assert f"{100 * run.value('knn20'):.2f} %" in done.stdout
    assert "kNN, k = 20" in done.stdout
    assert f"run folder: {run.path}" in done.stdout
    files = {p: p.stat().st_mtime_ns for p in run.path.rglob("*")}
    again = runner.invoke(app, ["train", str(path)])
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert f"already done: {run.path}" in again.stderr
    assert {p: p.stat().st_mtime_ns for p in run.path.rglob("*")} == files
    as_json = runner.invoke(app, ["train", str(path), "--json"])
    assert json.loads(as_json.stdout) == run.result


def test_a_finished_run_whose_files_changed_is_not_believed(tmp_path: Path) -> None:
    path, made = written(tmp_path)
    done = runner.invoke(app, ["train", str(path)])
    folder = Run.of(resolve(made))
    was = folder.result_file.read_text()
    folder.result_file.write_text(was.replace('"value": 0.', '"value": 0.9'))
    folder.weights_file.write_bytes(b"garbage")
    assert folder.result_file.read_text() != was
    again = runner.invoke(app, ["train", str(path)])
    assert (again.exit_code, again.stdout) == (0, done.stdout)
    assert "encoder.safetensors, result.json of" in again.stderr
    assert "already done" not in again.stderr
    assert folder.result_file.read_text() == was
    other = Run.of(resolve(made.override(["seed=1"])))
    folder.path.rename(other.path)
    mistaken = runner.invoke(app, ["train", str(path), "seed=1"])
    assert mistaken.exit_code != 0
    assert "holds the run of another recipe" in str(mistaken.exception)


def test_another_setting_is_another_folder_and_out_is_where(tmp_path: Path) -> None:
    path, made = written(tmp_path)
    done = runner.invoke(app, ["train", str(path), "optim.lr=0.01", "--out", str(tmp_path / "1e3"), "--json"])
    assert done.exit_code == 0, done.output
    (folder,) = (tmp_path / "1e3").iterdir()
    assert folder.name == resolve(made.override(["optim.lr=0.01"])).folder != resolve(made).folder
    assert json.loads(done.stdout)["hash"] == Run(folder).recipe.hash


@pytest.mark.parametrize("out", ["2024", "1e3", "[x]", "no"])
def test_a_folder_is_called_what_one_calls_it(tmp_path: Path, out: str) -> None:
    """YAML would make numbers, lists and truth values of these."""
    path, _ = written(tmp_path)
    done = runner.invoke(app, ["train", str(path), "--dry-run", "--out", out])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith(f"# {out}/supcon-digits-")


def test_dry_run_prints_yaml_that_train_takes_back(tmp_path: Path) -> None:
    ask_for = ["sce-fashion-mini", "optim.lr=0.05", "train.epochs=3"]
    done = runner.invoke(app, ["train", *ask_for, "--dry-run", "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "runs").exists(), "it stops there"
    path = tmp_path / "again.yaml"
    path.write_text(done.stdout)
    again = runner.invoke(app, ["train", str(path), "--dry-run"])
    assert again.stdout == done.stdout
    expected = resolve(recipes.find("sce-fashion-mini").override(ask_for[1:]))
    assert Recipe.read(path).hash == expected.hash
    assert done.stdout.splitlines()[-1].endswith(expected.folder)


def test_a_run_folder_goes_on_where_it_lies(tmp_path: Path) -> None:
    path, made = written(tmp_path)
    assert runner.invoke(app, ["train", str(path)]).exit_code == 0
    moved = tmp_path / "elsewhere" / resolve(made).folder
    moved.parent.mkdir()
    Run.of(resolve(made)).path.rename(moved)
    done = runner.invoke(app, ["train", str(moved)])
    assert f"already done: {moved}" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train.epoch=5"], "train has no key 'epoch'; did you mean 'epochs'?"),
        (["optm.lr=1"], "the recipe has no key 'optm'; did you mean 'optim'?"),
        (["method.temprature=1"], "method 'supcon' has no option 'temprature'; did you mean 'temperature'?"),
        (["method=spucon"], "no method 'spucon'; did you mean 'supcon'?"),
        (["encoder=resnet19"], "no encoder 'resnet19'; did you mean 'resnet18'?"),
        (["data=nowhere"], "'nowhere' is neither a set nor a path that exists"),
        (["train.batch_size=999"], "train.batch_size=999: must be at most the number of training rows (200)"),
        (["evaluate.protocols=[knn21]"], "no protocol 'knn21'"),
        (["run.device=gpu"], "run.device='gpu'"),
        (["epochs"], "'epochs' is not a setting; expected key=value"),
        (["method.temperature=0"], "temperature=0: must be a finite number above 0"),
        (["data={dir}/rows.npy", "augment=vector-noise"], "labels"),
        (["encoder.pretrained={dir}/none.pt"], "none.pt"),
        (["encoder.pretrained={dir}/rows.npy"], "rows.npy"),
        (["encoder.hidden=2000000000"], "memory"),
        (["train.sampler=class-balanced", "train.batch_size=33"], "class-balanced"),
    ],
)
def test_mistakes_are_a_paragraph_and_status_2_and_leave_no_folder(
    tmp_path: Path,
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, _ = written(tmp_path)
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(200, 5)).astype(np.float32))
    answer = ask(monkeypatch, capsys, "train", path, *(word.format(dir=tmp_path) for word in words))
    assert answer.status == 2, answer.err
    assert says in answer.err
    assert one_paragraph(answer.err)
    assert answer.out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.npy", "small.yaml"], "not even runs/"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("spucon-fashion-mini", "did you mean 'supcon-fashion-mini'? `kontrast list recipes` has them all"),
        ("missing.yaml", "there is no file missing.yaml; expected a recipe in YAML"),
        (".", "has no recipe.yaml; expected the folder of a run, or images to train on. "),
        ("supcon", "supcon is a method, and there must be data to train it on: kontrast train supcon data=photos/"),
    ],
)
def test_recipes_that_are_not_there(
    tmp_path: Path, source: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ask(monkeypatch, capsys, "train", source)
    assert (answer.status, one_paragraph(answer.err)) == (2, True)
    assert says in answer.err


def test_unknown_options_are_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(monkeypatch, capsys, "train", "supcon-fashion-mini", "--dry-rum")
    assert answer.status == 2
    assert "--dry-run" in answer.err
    assert "Traceback" not in answer.err


def test_debug_shows_where_it_came_from(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(options, "debug", False)
    monkeypatch.setattr("sys.argv", ["kontrast", "--debug", "train", "nowhere"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setitem(options, "debug", False)
    monkeypatch.setattr("sys.argv", ["kontrast", "train", "nowhere"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("KONTRAST_DEBUG", "1")
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "Traceback" in capsys.readouterr().err


def test_a_loss_that_is_no_number_is_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = written(tmp_path, "ce", **{"optim.lr": 1e30, "schedule": "constant"})
    answer = ask(monkeypatch, capsys, "train", path)
    assert answer.status == 1
    assert re.search(r"failed: the loss is (nan|inf) at step \d+ \(learning rate 1e\+30\)\. Likely", answer.err)
    assert one_paragraph(answer.err)
    folder = Run.of(resolve(made))
    assert folder.status == "failed"
    assert "the loss is" in (folder.path / "report.html").read_text(encoding="utf-8"), "the page says why"
    assert "report.html" in answer.out


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        *(pytest.param(s, 128 + s, marks=pytest.mark.slow) for s in (signal.SIGTERM, signal.SIGUSR2, signal.SIGINT)),
        (signal.SIGUSR1, 138),
    ],
)
def test_signals_save_first_and_the_same_command_goes_on(tmp_path: Path, asked: signal.Signals, status: int) -> None:
    path, made = written(tmp_path, **{"train.epochs": 60, "run.monitor_every": 0})
    folder = Run.of(resolve(made))
    call = [sys.executable, "-c", START, "train", str(path)]
    started = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while started.poll() is None and not (folder.metrics_file.exists() and folder.metrics_file.stat().st_size):
        time.sleep(0.005)
    started.send_signal(asked)
    _, err = started.communicate(timeout=60)
    assert started.returncode == status, err
    told = re.search(rf"stopped by {asked.name} after step (\d+); the same command continues there", err)
    assert told, err
    assert one_paragraph(err)
    assert folder.status == "interrupted"
    assert folder.state.step == int(told[1]) < 360
    again = runner.invoke(app, ["train", str(path)])
    assert again.exit_code == 0, again.output
    assert f"resumes at step {told[1]}: {folder.path}" in again.stderr
    steps = [line["step"] for line in Run(folder.path).metrics()]
    assert steps == sorted(set(steps))
    assert steps[-1] == 360


def test_ctrl_c_outside_the_loop_is_told_and_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While data are loaded or features evaluated, there is nothing to save."""

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running.Session, "finish", interrupted)
    path, made = written(tmp_path)
    answer = ask(monkeypatch, capsys, "train", path)
    assert answer.status == 130
    assert answer.err.strip() == "stopped; the same command continues"
    assert Run.of(resolve(made)).status == "interrupted"


# ------------------------------------------------------------------------------------------------ data without a recipe

QUICK = ("train.epochs=1", "encoder.width=2", "evaluate.protocols=[knn20]", "run.threads=1")


@pytest.mark.filterwarnings("always:.*images are few")
def test_a_folder_is_trained_on_and_the_same_again_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, runs = classes(tmp_path / "photos", per_class=10, size=(20, 20)), tmp_path / "runs"
    dry = ask(monkeypatch, capsys, "train", folder, *QUICK, "--out", runs, "--dry-run")
    assert dry.status == 0, dry.err
    assert not runs.exists()
    assert "#   method=supcon " in dry.out
    assert "# warning: 20 images are few" in dry.out
    recipe = tmp_path / "chosen.yaml"
    recipe.write_text(dry.out)
    hashed = Recipe.read(recipe).hash
    done = ask(monkeypatch, capsys, "train", folder, *QUICK, "--out", runs)
    assert done.status == 0, done.err
    (run,) = map(Run, runs.iterdir())
    assert run.path.name == f"supcon-photos-{hashed}"
    assert f"run folder: {run.path}" in done.out
    assert "method=supcon  " in done.err
    assert "warning: 20 images are few" in done.err
    assert run.state.origin["minutes"] == 10
    page = (run.path / "report.html").read_text(encoding="utf-8")
    assert "2 classes of 10 images" in page, "the page says why"
    again = ask(monkeypatch, capsys, "train", f"data={folder}", *QUICK, "--out", runs)
    assert f"already done: {run.path}" in again.err
    repeated = shlex.split(next(line for line in dry.out.splitlines() if "kontrast train" in line).partition(": ")[2])
    assert f"already done: {run.path}" in ask(monkeypatch, capsys, *repeated[1:]).err
    json_out = ask(monkeypatch, capsys, "train", folder, *QUICK, "--out", runs, "--json")
    assert json.loads(json_out.out) == run.result


def test_a_method_by_its_name_and_weights_by_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = classes(tmp_path / "photos", per_class=10, size=(20, 20))
    dry = ask(monkeypatch, capsys, "train", "simclr", f"data={folder}", *QUICK, "optim.lr=0.3", "--dry-run")
    assert dry.status == 0, dry.err
    path = tmp_path / "chosen.yaml"
    path.write_text(dry.out)
    recipe = Recipe.read(path)
    assert (recipe.method.name, recipe.optim.options["lr"], recipe.train.epochs) == ("simclr", 0.3, 1)
    bare = ask(monkeypatch, capsys, "train", folder, *QUICK, "--weights", tmp_path / "none.pt", "--dry-run")
    assert bare.status == 2
    assert "must stand beside the encoder that the weights are of" in bare.err
    start = ["encoder=small-resnet", "--weights", tmp_path / "none.pt"]
    absent = ask(monkeypatch, capsys, "train", folder, *QUICK, *start)
    assert (absent.status, one_paragraph(absent.err)) == (2, True), absent.err
    assert "none.pt" in absent.err
    wrong = ask(monkeypatch, capsys, "train", "supcon-fashion-mini", "--minutes", "5")
    assert "--minutes: must be left out for 'supcon-fashion-mini'" in wrong.err


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError("a defect")])
def test_what_fails_while_the_data_are_loaded_leaves_no_folder(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("kontrast.train.job.load_data", failing)
    path, made = written(tmp_path)
    (tmp_path / "runs").mkdir()
    done = runner.invoke(app, ["train", str(path)])
    assert done.exit_code != 0
    assert list((tmp_path / "runs").iterdir()) == [], "a folder that was there stays"
    assert Run.of(resolve(made)).status is None


def test_a_folder_that_was_there_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, made = written(tmp_path)
    folder = Run.of(resolve(made))
    folder.begin(resolve(made))
    folder.note("interrupted", hash=folder.path.name[-8:], step=3, error=None)
    (folder.path / "metrics.jsonl").write_text('{"step": 3}\n')
    (folder.path / ".lock").touch()
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.path.iterdir()}

    def refuses(*arguments: object) -> None:
        raise ValueError("the data are gone")

    monkeypatch.setattr(running, "make_job", refuses)
    assert runner.invoke(app, ["train", str(path)]).exit_code == 1
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in folder.path.iterdir()} == before


def test_a_logger_that_is_not_installed_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    path, _ = written(tmp_path)
    done = runner.invoke(app, ["train", str(path), "run.loggers=wandb"])
    assert "kontrast[wandb]" in str(done.exception)
    assert not (tmp_path / "runs").exists()


# ------------------------------------------------------------------------------------------------ said at once


def test_a_line_at_once(tmp_path: Path) -> None:
    """Before torch is imported: where there is none, the line has been printed."""
    path, _ = written(tmp_path, **{"run.progress": True})
    code = f"import sys; sys.modules['torch'] = None; {START}"
    for words in (
        ["train", path],
        ["demo"],
        ["show", path],
        ["doctor", path],
        ["verify"],
        ["embed", tmp_path, "d", "-o", "x"],
    ):
        answer = process(*words, python=code)
        assert answer.err.startswith("loading "), words
        assert answer.out == ""
    assert process("train", path, python=code).err.startswith("loading digits …\n")
    others = process("train", path, python=code, env={"RANK": "1", "WORLD_SIZE": "2"})
    assert "loading" not in others.err
    quiet = process("train", path, "run.progress=false", python=code)
    assert "loading" not in quiet.err


@pytest.mark.parametrize(
    "words",
    [
        ["train", "supcon-fashion-mini", "optim.learning_rate=1"],
        ["train", "supcon-fashion-mini", "epochs=1"],
        ["train", "digits", "optim.learning_rate=1"],
        ["train", "supcon", "data=digitz"],
        ["train", "supcn"],
        ["train", "supcon-fashion-mini", "method=spucon"],
        ["show", "supcon-fashion-mini", "encoder=resnet81"],
        ["tune", "tcl-fashion-mini", "evaluate.protocols=[knn21]"],
        ["reproduce", "wl-table-1", "optim.wd=1"],
        ["doctor", "supcon-fashion-mini", "head.outt=3"],
        ["demo", "run.monitors=[knn3]"],
    ],
)
def test_a_wrong_word_is_told_without_torch(words: list[str], tmp_path: Path) -> None:
    code = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); {START}"
    answer = process(*words, python=f"import os; os.chdir({str(tmp_path)!r}); {code}")
    assert (answer.status, answer.out) == (2, "False\n"), answer.err
    assert "did you mean" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_help_names_every_option() -> None:
    done = runner.invoke(app, ["train", "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    for option in ("--out", "--dry-run", "--json", "optim.lr=0.2"):
        assert option in done.stdout


# ------------------------------------------------------------------------------------------------ quick, and completed

HEAVY = "print([m for m in ('torch', 'torchvision', 'sklearn', 'numpy') if m in sys.modules])"


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["--version"], ["list", "recipes"]])
def test_what_needs_no_torch_loads_none(words: list[str]) -> None:
    code = f"import atexit, sys; atexit.register(lambda: {HEAVY}); {START}"
    answer = process(*words, python=code)
    assert answer.status == 0, answer.err
    assert answer.out.splitlines()[-1] == "[]"


def test_recipe_names_are_completed() -> None:
    assert complete_recipe("tcl-f") == ["tcl-fashion-mini", "tcl-fashion-mnist", "tcl-fashion-mnist-200"]
    assert sorted(complete_recipe("")) == recipes.names()
    asked = {"COMP_WORDS": "kontrast train tcl-self-f", "COMP_CWORD": "2", "_KONTRAST_COMPLETE": "complete_bash"}
    code = f"import atexit, sys; atexit.register(lambda: {HEAVY}); {START}"
    answer = process(python=code, env=asked)
    assert answer.out.split("\n") == ["tcl-self-fashion-mini", "[]", ""], "and without torch, for tab should be quick"


def test_completion_can_be_shown_and_installed() -> None:
    helped = runner.invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout
    assert "--show-completion" in helped
    assert "--install-completion" in helped
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell is the one named, not the one around
    answer = process("--show-completion", "bash", env=named)
    assert answer.status == 0, answer.err
    assert "_KONTRAST_COMPLETE=complete_bash" in answer.out


def test_micro_batch_auto_is_worked_out_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = written(tmp_path)
    command = ["train", str(path), "train.micro_batch=auto", "run.progress=true"]
    dry = runner.invoke(app, [*command, "--dry-run"])
    assert "micro_batch: auto" in dry.stdout
    assert "# train.micro_batch is chosen when it is run" in dry.stdout
    need = micro_batch.Need(state=0, views=0, activations=2**20)
    monkeypatch.setattr(micro_batch, "measure", lambda job: need)
    monkeypatch.setattr(micro_batch, "free_memory", lambda device: 17 * 2**20)
    done = runner.invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "train.micro_batch=auto: 8 of" in done.stderr
    monkeypatch.setattr(micro_batch, "free_memory", lambda device: 2**40)
    again = runner.invoke(app, command)
    assert "already done" in again.stderr
    assert "micro_batch: 8" in runner.invoke(app, [*command, "--dry-run"]).stdout
