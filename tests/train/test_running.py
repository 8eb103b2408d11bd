"""The whole job: trained, evaluated, exported; stopped, killed and continued; on several processes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import kontrast
from kontrast import methods
from kontrast.evaluate import evaluate
from kontrast.pipeline import run_recipe
from kontrast.registry import FAMILIES
from kontrast.runs import Run
from kontrast.runs.run import WRITTEN
from kontrast.train import Session, Training, checkpoint, load, make_job, resolve
from kontrast.train.evaluation import subject_of
from kontrast.train.loop import batches, prepare_views
from kontrast.train.machine import pick_device
from kontrast.train.running import verify_finished_run
from tests.processes import run_on_ranks
from tests.train.small import ADAPTED, ALL, comparable, recipe, same_runs


@pytest.mark.parametrize("method", ALL)
def test_every_method_runs_and_leaves_its_folder(tmp_path: Path, method: str) -> None:
    run = run_recipe(recipe(method, tmp_path, **{"train.epochs": 2}))
    files = {str(p.relative_to(run.path)) for p in run.path.rglob("*") if p.is_file()}
    assert files == {
        ".lock",
        "recipe.yaml",
        "run.json",
        "metrics.jsonl",
        "checkpoints/last.pt",
        "encoder.safetensors",
        "model.json",
        "result.json",
        "analysis.npz",
        "analysis.json",
    }
    assert run.status == "done"
    assert run.recipe == resolve(recipe(method, tmp_path, **{"train.epochs": 2}))
    lines = run.metrics()
    assert [line["step"] for line in lines if "loss" in line] == [4, 8, 12]
    assert sum("monitor/uniformity" in line for line in lines) == 2
    for line in lines:
        assert "loss" not in line or line["bound"] - 1e-5 <= line["loss"]
    found, raw = run.result["results"]
    assert raw["name"] == "raw pixels: knn20"  # by default, for they cost milliseconds here
    assert found["name"] == "knn20"
    assert found["test_rows"] == 100
    assert 0.1 < found["value"] <= 1.0  # chance is 0.1
    assert load(run)(torch.zeros(2, 1, 8, 8)).shape == (2, 16)


def test_the_same_recipe_again_is_already_done(tmp_path: Path) -> None:
    run = run_recipe(recipe(out=tmp_path))
    before = {p: p.stat().st_mtime_ns for p in run.path.rglob("*")}
    assert run_recipe(recipe(out=tmp_path)).path == run.path
    assert {p: p.stat().st_mtime_ns for p in run.path.rglob("*")} == before
    assert run_recipe(recipe(out=tmp_path, seed=1)).path != run.path


@pytest.mark.parametrize(
    ("method", "changes"),
    [("instance", {}), ("sce", {}), ("ce", {}), ("moco", ADAPTED), ("simclr", {**ADAPTED, "optim": "adamw"})],
    ids=["instance", "sce", "ce", "moco adapted", "simclr adapted"],
)
def test_a_signal_saves_and_the_same_recipe_goes_on_to_the_bit(
    tmp_path: Path, method: str, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "optim" in changes:
        changes = {**changes, "optim.lr": 0.001}
    whole = run_recipe(recipe(method, tmp_path / "whole", **changes))
    stopped = recipe(method, tmp_path / "stopped", **changes)
    from kontrast.train import loop

    real = loop.backward
    for steps in (5, 7):  # then from 5 to 12, then to the end
        calls = 0

        def counted(*arguments: object, steps: int = steps, **options: object) -> torch.Tensor:
            nonlocal calls
            calls += 1
            if calls == steps:
                os.kill(os.getpid(), signal.SIGTERM)
            return real(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(loop, "backward", counted)
        with pytest.raises(kontrast.train.Stopped, match="SIGTERM"):
            run_recipe(stopped)
        assert Run.of(resolve(stopped)).status == "interrupted"
    monkeypatch.setattr(loop, "backward", real)
    same_runs(run_recipe(stopped).path, whole.path)


def command(path: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "kontrast", "train", str(path), "--out", str(out)]


def kill_until_done(path: Path, out: Path, folder: Path, kills: int, draw: random.Random) -> None:
    """Starts the run, kills it at random moments ``kills`` times, and lets it end."""
    for _ in range(kills):
        before = folder.joinpath("metrics.jsonl").stat().st_size if folder.joinpath("metrics.jsonl").exists() else 0
        process = subprocess.Popen(command(path, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        metrics = folder / "metrics.jsonl"
        while time.monotonic() < deadline and process.poll() is None:
            if metrics.exists() and metrics.stat().st_size != before:
                break  # it trains
            time.sleep(0.005)
        time.sleep(draw.random() * 0.3)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(command(path, out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def killed(tmp_path: Path, method: str, kills: int, **changes: object) -> None:
    made = recipe(method, tmp_path, **{"train.epochs": 40, "run.checkpoint_every": 3, "run.log_every": 2, **changes})
    path = tmp_path / "recipe.yaml"
    path.write_text(made.to_yaml())
    whole = run_recipe(made.override({"run.out": str(tmp_path / "whole")}))
    folder = tmp_path / "killed" / whole.path.name
    kill_until_done(path, tmp_path / "killed", folder, kills, random.Random(method))
    same_runs(folder, whole.path)
    assert not list(folder.rglob("*.part"))


@pytest.mark.slow  # tests/torture/test_kills.py has it shorter
def test_killed_at_random_moments_it_ends_the_same(tmp_path: Path) -> None:
    killed(tmp_path, "sce", 3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["instance", "supcon", "ce"])
def test_killed_more_often(tmp_path: Path, method: str) -> None:
    killed(tmp_path, method, 6, **({"train.micro_batch": 10} if method == "supcon" else {}))


# ------------------------------------------------------------------------------------------------ several processes

KINDS = {
    "instance": {},
    "sce": {"method.symmetric": True, "method.shuffle_keys": False},
    "moco": {"method.shuffle_keys": False},
    "ressl": {"method.key_parts": 4, "method.shuffle_keys": True},  # shuffled over all, four parts of the whole batch
    "tcl": {"method.k1": 5.0},
    "simclr": {**ADAPTED, "train.head_first": 0.5, "train.average": 0.5},
}


def two(method: str, folder: str) -> None:
    run_recipe(recipe(method, Path(folder) / "two", **KINDS[method], **{"train.epochs": None, "train.steps": 8}))


def on_a_rank(rank: int, world: int) -> None:
    for method in KINDS:
        two(method, os.environ["KONTRAST_TEST_FOLDER"])


def test_two_processes_are_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same parameters, bank and queue after 8 steps on the same global batches, to float32's rounding in sums."""
    monkeypatch.setenv("KONTRAST_TEST_FOLDER", str(tmp_path))
    run_on_ranks(on_a_rank, 2, tmp_path)
    for method, changes in KINDS.items():
        one = run_recipe(recipe(method, tmp_path / "one", **changes, **{"train.epochs": None, "train.steps": 8}))
        other = tmp_path / "two" / one.path.name
        saved = [kontrast.train.checkpoint.load(Run(p).last_checkpoint) for p in (one.path, other)]
        states = [
            {**state["method"], **{f"average of {k}": v for k, v in (state["average"] or {}).items()}}
            for state in saved
        ]
        for name, tensor in states[0].items():
            where = f"{method} {name}"
            torch.testing.assert_close(
                states[1][name], tensor, rtol=2e-4, atol=2e-5, msg=lambda m, where=where: f"{where}: {m}"
            )
        losses = [[line["loss"] for line in Run(p).metrics() if "loss" in line] for p in (one.path, other)]
        torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-5, atol=1e-5)


@pytest.mark.slow  # a command of the README is as much
def test_under_torchrun(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe("supcon", tmp_path, **{"train.epochs": 1}).to_yaml())
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "kontrast"]
    ask = [*launch, "train", str(path), "--out", str(tmp_path / "out")]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "out").iterdir()
    assert Run(folder).status == "done"
    assert json.loads((folder / "run.json").read_text())["machine"]["processes"] == 2
    assert done.stdout.count("kNN") == 1  # rank 0 prints, and nobody else


def test_ranks_without_the_folder_take_rank_zeros_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on machines without a common disk: only rank 0 has a folder to go on from."""
    monkeypatch.setenv("KONTRAST_TEST_FOLDER", str(tmp_path))
    run_on_ranks(apart, 2, tmp_path)


def apart(rank: int, world: int) -> None:
    folder = Path(os.environ["KONTRAST_TEST_FOLDER"]) / f"rank-{rank}"
    short = recipe("moco", folder, **{"train.epochs": None, "train.steps": 12, "method.shuffle_keys": False})
    made = resolve(short)
    place = Run.of(made)
    place.begin(made)
    training = Training(make_job(made, torch.device("cpu")), place)
    for views in prepare_views(training.job, batches(training.job.loader(), 0, 5)):
        training._step(views)
    if rank == 0:
        place.last_checkpoint.parent.mkdir()
        checkpoint.save(place.last_checkpoint, training.state.capture(made.hash, training.data, 0))
        place.metrics_file.touch()
    again = Training(make_job(made, torch.device("cpu")), place)
    assert again.state.step == 5
    for name, tensor in training.job.method.state_dict().items():
        assert torch.equal(again.job.method.state_dict()[name], tensor), name


# ------------------------------------------------------------------------------------------------ what goes wrong


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    bad = recipe("ce", tmp_path, **{"optim.lr": 1e30, "schedule": "constant", "run.checkpoint_every": 1})
    with pytest.raises(kontrast.train.NonFiniteLoss, match=r"at step \d+ \(learning rate 1e\+30"):
        run_recipe(bad)
    folder = Run.of(resolve(bad))
    assert folder.status == "failed"
    assert "NonFiniteLoss" in str(folder.state.error)


def test_changed_data_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 255, (120, 8, 8), dtype=np.uint8), np.arange(120) % 3
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    made = recipe("supcon", tmp_path, data=str(tmp_path / "mine.npz"), **{"data.limit": None, "data.test_limit": None})
    from kontrast.train import loop

    real, calls = loop.backward, 0

    def stop(*arguments: object, **options: object) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGTERM)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "backward", stop)
    with pytest.raises(kontrast.train.Stopped):
        run_recipe(made)
    monkeypatch.undo()
    np.savez(tmp_path / "mine.npz", x_train=255 - x, y_train=y, x_test=x, y_test=y)
    with pytest.raises(ValueError, match=r"was made with other data: .*mine\.npz has changed since"):
        run_recipe(made)
    assert calls == 0


def test_changed_data_are_not_evaluated_from_old_features(tmp_path: Path) -> None:
    import numpy as np

    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 255, (120, 8, 8), dtype=np.uint8), np.arange(120) % 3
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    run = run_recipe(
        recipe("supcon", tmp_path, data=str(tmp_path / "mine.npz"), **{"data.limit": None, "data.test_limit": None})
    )
    evaluate(subject_of(run), "knn20")
    np.savez(tmp_path / "mine.npz", x_train=x, y_train=y, x_test=255 - x, y_test=y)
    with pytest.raises(ValueError, match=r"was made with other data: .*mine\.npz has changed since"):
        subject_of(run)


def test_two_processes_in_one_folder_is_an_error(tmp_path: Path) -> None:
    made = resolve(recipe(out=tmp_path))
    folder = Run.of(made)
    folder.begin(made)
    with folder.lock(), pytest.raises(ValueError, match="another process is working"):
        run_recipe(made)


def test_without_labels_there_is_a_run_and_no_accuracy(tmp_path: Path) -> None:
    run = run_recipe(recipe("simclr", tmp_path, **{"data.labelled": False}))
    assert run.result["results"] == []
    assert "no labels" in run.result["note"]
    with pytest.raises(ValueError, match="method 'supcon' needs labels"):
        run_recipe(recipe("supcon", tmp_path, **{"data.labelled": False}))


def test_validation_and_early_stopping(tmp_path: Path) -> None:
    """With a rate of next to nothing the second validation is no better than the first."""
    changes = {"data.validation": 0.2, "train.patience": 1, "train.epochs": 9, "optim.lr": 1e-12}
    run = run_recipe(recipe("supcon", tmp_path, **changes))
    steps = [line["step"] for line in run.metrics() if "validation" in line]
    assert len(steps) == 2
    assert steps[1] < 9 * 5
    assert "best validation, step" in run.result["weights"]
    assert (run.path / "checkpoints" / "best.pt").exists()


def test_validation_without_labels(tmp_path: Path) -> None:
    run = run_recipe(recipe("simclr", tmp_path, **{"data.labelled": False, "data.validation": 0.2}))
    values = [line["validation"] for line in run.metrics() if "validation" in line]
    assert len(values) == 3
    assert all(-10 < value < 0 for value in values)


def test_from_python_by_name_and_by_mapping(tmp_path: Path) -> None:
    run = kontrast.run(
        "supcon-fashion-mini",
        data={"limit": 200, "test_limit": 100},
        train={"epochs": 1, "batch_size": 50},
        evaluate={"protocols": ["knn20"]},
        run={"out": str(tmp_path), "progress": False},
    )
    assert run.value("knn20") > 0.1
    assert kontrast.load(run)(torch.zeros(1, 1, 28, 28)).shape == (1, 64)
    with pytest.raises(ValueError, match="was not evaluated by 'probe'; it has knn20"):
        run.value("probe")


def test_the_encoder_is_there_even_if_the_evaluation_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kontrast.train import evaluation

    def broken(*_: object, **__: object) -> None:
        raise ValueError("no evaluation today")

    monkeypatch.setattr(evaluation, "evaluate", broken)
    made = recipe("supcon", tmp_path)
    with pytest.raises(ValueError, match="no evaluation today"):
        run_recipe(made)
    assert load(Run.of(resolve(made)).path)(torch.zeros(1, 1, 8, 8)).shape == (1, 16)
    monkeypatch.undo()
    assert run_recipe(made).status == "done"


def test_devices() -> None:
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"run\.device='gpu'"):
        pick_device("gpu")


def test_tensorboard_beside_the_metrics(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run = run_recipe(recipe("supcon", tmp_path, **{"run.loggers": ["tensorboard"]}))
    assert list(run.path.rglob("events.out.tfevents.*"))
    assert load_file(run.path / "encoder.safetensors")


# ------------------------------------------------------------------------------------- files of a finished run change

COMPARED = ("result.json", "model.json", "analysis.json", "encoder.safetensors", "metrics.jsonl")


def flip(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_files_that_changed_or_are_gone_are_made_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_recipe(recipe("simclr", tmp_path))
    folder = run
    assert sorted(folder.state.files) == sorted(WRITTEN)
    assert verify_finished_run(folder)
    was = {name: (run.path / name).read_bytes() for name in COMPARED}
    for name in ("result.json", "encoder.safetensors", "analysis.npz", "metrics.jsonl", "recipe.yaml"):
        flip(run.path / name)
    folder.card_file.unlink()
    assert set(folder.changed_files()) == set(WRITTEN) - {"analysis.json"}
    capsys.readouterr()
    run_recipe(recipe("simclr", tmp_path))
    told = capsys.readouterr().err
    assert "result.json" in told
    assert "made again from the last checkpoint" in told
    assert "lines are restored from the checkpoint" in told
    assert not folder.changed_files()
    assert {name: (run.path / name).read_bytes() for name in COMPARED} == was
    assert run.recipe.name == "simclr-digits", "it can be read again"
    assert capsys.readouterr().err == ""
    run_recipe(recipe("simclr", tmp_path))
    assert capsys.readouterr().err == "", "once is enough"


def test_without_a_checkpoint_it_says_so(tmp_path: Path) -> None:
    folder = Run(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    folder.note("done", files=folder.digests())
    assert verify_finished_run(folder)
    (tmp_path / "result.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r"result\.json of .* is not what the run wrote, and there is no checkpoint"):
        verify_finished_run(folder)


def test_among_several_processes_it_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Run(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    folder.note("done", files=folder.digests())
    (tmp_path / "result.json").unlink()
    folder.last_checkpoint.parent.mkdir()
    folder.last_checkpoint.touch()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="run the recipe in one process"):
        verify_finished_run(folder)


def test_runs_of_before_there_were_digests_are_as_they_were(tmp_path: Path) -> None:
    run = run_recipe(recipe(out=tmp_path))
    state = json.loads((run.path / "run.json").read_text())
    del state["files"]
    (run.path / "run.json").write_text(json.dumps(state))
    flip(run.path / "analysis.npz")
    assert verify_finished_run(run)
    assert comparable(run.path / "metrics.jsonl")


def test_done_without_a_result_is_not_believed(tmp_path: Path) -> None:
    run = run_recipe(recipe("simclr", tmp_path))
    state = json.loads(run.state_file.read_text())
    (run.path / "run.json").write_text(json.dumps({key: state[key] for key in ("status", "hash")}))
    was = (run.path / "result.json").read_bytes()
    (run.path / "result.json").unlink()
    assert not verify_finished_run(run)
    run_recipe(recipe("simclr", tmp_path))
    assert (run.path / "result.json").read_bytes() == was


def test_another_runs_folder_under_this_ones_name(tmp_path: Path) -> None:
    mine, other = resolve(recipe("simclr", tmp_path)), resolve(recipe("simclr", tmp_path, seed=1))
    run_recipe(other)
    Run.of(other).path.rename(Run.of(mine).path)
    with pytest.raises(ValueError, match="holds the run of another recipe"):
        run_recipe(mine)


def test_the_best_of_another_run_is_not_taken(tmp_path: Path) -> None:
    changes = {"data.validation": 0.2, "train.patience": 3}
    one, other = (recipe("supcon", tmp_path, seed=seed, **changes) for seed in (0, 1))
    first, second = run_recipe(one), run_recipe(other)
    first.best_checkpoint.write_bytes(second.best_checkpoint.read_bytes())
    first.note("evaluating")
    with pytest.raises(ValueError, match=r"best\.pt is damaged \(it is of another recipe"):
        run_recipe(one)


def test_a_checkpoint_of_another_run_is_named_and_the_one_before_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {"run.checkpoint_every": 4}
    whole = run_recipe(recipe("moco", tmp_path / "whole", **every))
    broken = recipe("moco", tmp_path / "broken", **every)
    place = Run.of(resolve(broken))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checkpoint, "keep_only", lambda last, previous: None)
        run_recipe(broken)
    stranger = run_recipe(recipe("simclr", tmp_path / "stranger"))
    place.last_checkpoint.write_bytes(stranger.last_checkpoint.read_bytes())
    place.note("training")
    capsys.readouterr()
    run_recipe(broken)
    told = capsys.readouterr().err
    assert "last.pt cannot be resumed from (it is of another recipe" in told
    assert "resumes from previous.pt" in told
    same_runs(place.path, whole.path)


def test_a_method_whose_file_changed_since_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder does not depend on code, so the result of the old code would stand without a word."""
    source = FAMILIES["method"].file("simclr").read_text(encoding="utf-8")
    trial = tmp_path / "trial.py"
    trial.write_text(source.replace("class SimCLR", "class Trial"), encoding="utf-8")
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    made = resolve(recipe("trial", **{"run.out": str(tmp_path / "runs")}))
    folder = run_recipe(made)
    assert list(folder.state.sources) == ["method trial"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Session(made).has_work
    trial.write_text(trial.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.warns(
        UserWarning, match="method trial has changed since this run began; give another --out, or remove"
    ):
        assert not Session(made).has_work
    monkeypatch.setattr(kontrast, "__version__", "9.9")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # another version is another matter, and run.json says which
        Session(made)
    folder.note("done", sources={})  # as runs of before have it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Session(made)
    sys.modules.pop("kontrast.methods.trial")
