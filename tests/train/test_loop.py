"""The loop: its batches, its log, its intervals."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kontrast.data import Batch
from kontrast.pipeline import run_recipe
from kontrast.runs import MetricsLog, Run
from kontrast.train import loop
from kontrast.train.job import make_job
from kontrast.train.loop import Training, _Clock, batches, second_thread_helps, seconds_to_train, views_ahead
from kontrast.train.resolving import resolve
from tests.train.small import equal, recipe, same_runs


def training(tmp_path: Path, method: str = "supcon", **changes: object) -> Training:
    made = resolve(recipe(method, tmp_path, **changes))
    folder = Run.of(made)
    folder.begin(made)
    return Training(make_job(made, torch.device("cpu")), folder)


def test_batches_go_on_from_any_step(tmp_path: Path) -> None:
    loader = training(tmp_path).job.loader()
    whole = [batch.indices.tolist() for batch in batches(loader, 0, 15)]
    assert len(whole) == 15
    for start in (1, 6, 11):
        assert [batch.indices.tolist() for batch in batches(loader, start, 15)] == whole[start:]


def test_the_loss_of_the_log_is_the_mean_since_the_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    real = loop.backward

    def kept(*arguments: object, **options: object) -> torch.Tensor:
        loss = real(*arguments, **options)  # type: ignore[arg-type]
        seen.append(float(loss))
        return loss

    monkeypatch.setattr(loop, "backward", kept)
    made = training(tmp_path, **{"run.log_every": 5})
    made.run()
    lines = [line for line in made.folder.metrics() if "loss" in line]
    assert [line["step"] for line in lines] == [5, 10, 15, 18]
    for line, (start, stop) in zip(lines, ((0, 5), (5, 10), (10, 15), (15, 18)), strict=True):
        assert line["loss"] == pytest.approx(sum(seen[start:stop]) / (stop - start), abs=1e-12)
        assert line["bound"] < line["loss"] < line["chance"] + 1


def test_the_learning_rate_follows_the_schedule(tmp_path: Path) -> None:
    made = training(tmp_path, **{"run.log_every": 1, "schedule": "power", "schedule.exponent": 2.0})
    made.run()
    lines = [line for line in made.folder.metrics() if "loss" in line]
    for line in lines:
        assert line["lr"] == pytest.approx(0.05 * ((18 - (line["step"] - 1)) / 18) ** 2)


def test_checkpoints_and_monitors_at_their_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kontrast.train import checkpoint

    saved: list[int] = []
    real = checkpoint.save
    monkeypatch.setattr(checkpoint, "save", lambda p, state, **o: (saved.append(state["step"]), real(p, state, **o)))
    made = training(tmp_path, **{"run.checkpoint_every": 7, "run.monitor_every": 4, "run.monitors": ["uniformity"]})
    made.run()
    assert saved == [7, 14, 18]
    lines = [line for line in made.folder.metrics() if "monitor/uniformity" in line]
    assert [line["step"] for line in lines] == [4, 8, 12, 16, 18]
    assert not [key for line in lines for key in line if key.startswith("monitor/tolerance")]
    never = training(tmp_path / "never", **{"run.monitor_every": 0})
    never.run()
    assert not [line for line in never.folder.metrics() if "monitor/uniformity" in line]


def test_monitors_change_nothing(tmp_path: Path) -> None:
    one, other = (
        training(tmp_path / "a", "sce", **{"run.monitor_every": 1}),
        training(tmp_path / "b", "sce", **{"run.monitor_every": 0}),
    )
    one.run()
    other.run()
    equal(one.job.method.state_dict(), other.job.method.state_dict(), "method")


def test_micro_batches_with_every_part_of_the_loop(tmp_path: Path) -> None:
    """The same run with and without them, where batch norm does not tell them apart; sums are in another order."""
    changes = {"encoder.batch_norm": False}
    plain = training(tmp_path / "a", **changes)
    cached = training(tmp_path / "b", **changes, **{"train.micro_batch": 8})
    plain.run()
    cached.run()
    for (name, p), q in zip(plain.job.method.named_parameters(), cached.job.method.parameters(), strict=True):
        torch.testing.assert_close(q, p, rtol=1e-3, atol=1e-4, msg=lambda m, name=name: f"{name}: {m}")


def test_bfloat16_trains(tmp_path: Path) -> None:
    made = training(tmp_path, **{"train.precision": "bfloat16"})
    made.run()
    lines = [line for line in made.folder.metrics() if "loss" in line]
    assert lines[-1]["loss"] < lines[-1]["chance"]


def test_a_finished_training_does_nothing(tmp_path: Path) -> None:
    made = training(tmp_path)
    made.run()
    assert made.is_finished
    before = made.folder.metrics_file.stat().st_mtime_ns
    again = training(tmp_path)
    assert again.is_finished
    again.run()
    assert made.folder.metrics_file.stat().st_mtime_ns == before


def test_the_log_says_how_much_of_the_time_went_into_waiting_for_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("kontrast.train.loop.time.monotonic", lambda: now)
    loader = training(tmp_path).job.loader()

    def slow() -> Iterator[Batch]:
        nonlocal now
        for batch in batches(loader, 0, 4):
            now += 3.0
            yield batch

    clock, told = _Clock(10), []
    for _ in clock.waiting(slow()):
        now += 1.0  # the step itself
        clock.tick()
        told.append(clock.read())
    assert told == [{"images_per_second": 2.5, "waiting": 0.75}] * 4


def test_waiting_is_a_share_in_every_line_of_the_log(tmp_path: Path) -> None:
    made = training(tmp_path)
    made.run()
    shares = [line["waiting"] for line in made.folder.metrics() if "loss" in line]
    assert shares
    assert all(0 <= share <= 1 for share in shares)


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one_and_ends_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = recipe("moco", tmp_path, **{"run.checkpoint_every": 5})
    whole = run_recipe(made)
    assert not (whole.path / "checkpoints" / "previous.pt").exists()  # done: one is enough
    other = Run.of(resolve(made.override({"run.out": str(tmp_path / "other")})))
    asked = make_job(resolve(made), torch.device("cpu"))
    other.begin(asked.recipe)
    with pytest.raises(KeyboardInterrupt):
        _Halted(asked, other).run()
    content = bytearray(other.last_checkpoint.read_bytes())
    content[len(content) // 2] ^= 1
    other.last_checkpoint.write_bytes(content)
    capsys.readouterr()
    run = run_recipe(made.override({"run.out": str(tmp_path / "other")}))
    assert "resumes from previous.pt, step 5" in capsys.readouterr().err
    same_runs(whole.path, run.path)
    assert os.listdir(run.path / "checkpoints") == ["last.pt"]


class _Halted(Training):
    """Stops after the checkpoint of step 10."""

    def save(self, metrics: MetricsLog | None) -> None:
        super().save(metrics)
        if self.state.step == 10:
            raise KeyboardInterrupt


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_a_run_is_the_same_with_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"run.threads": 2, "train.epochs": 1}
    used: list[str] = []
    real = loop.views_ahead
    monkeypatch.setattr(loop, "views_ahead", lambda *given: used.append("ahead") or real(*given))
    one = run_recipe(recipe("simclr", tmp_path / "ahead", **short)).path
    assert used == ["ahead"]
    monkeypatch.setattr(loop, "second_thread_helps", lambda job: False)
    other = run_recipe(recipe("simclr", tmp_path / "at-once", **short)).path
    assert used == ["ahead"]
    same_runs(one, other)


@pytest.mark.usefixtures("two_threads")
def test_the_next_views_are_made_during_the_step() -> None:
    made: list[int] = []
    seen = []
    for views in views_ahead(range(4), lambda batch: made.append(batch) or batch):  # type: ignore[arg-type, return-value]
        seen.append(views())
        until = time.monotonic() + 20
        while len(made) < min(4, len(seen) + 1):  # without anybody asking for them
            assert time.monotonic() < until, "the second thread does not go on by itself"
            time.sleep(0.001)
    assert seen == made == [0, 1, 2, 3]


@pytest.mark.usefixtures("two_threads")
def test_it_computes_with_one_thread_and_leaves_the_others_theirs() -> None:
    def augmented(batch: int) -> tuple[str, int]:
        return threading.current_thread().name, torch.get_num_threads()

    inside = [views() for views in views_ahead(range(2), augmented)]  # type: ignore[arg-type]
    assert inside == [("views_0", 1)] * 2
    assert torch.get_num_threads() == 2
    fresh: list[int] = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [2]


def test_an_error_is_raised_at_its_own_step() -> None:
    def augmented(batch: int) -> int:
        if batch == 2:
            raise ValueError("batch 2 cannot be augmented")
        return batch

    found = views_ahead(range(4), augmented)  # type: ignore[arg-type]
    assert [next(found)() for _ in range(2)] == [0, 1]
    with pytest.raises(ValueError, match="batch 2"):
        next(found)()
    found.close()  # type: ignore[attr-defined]


def test_a_loop_that_ends_early_ends_the_thread() -> None:
    found = views_ahead(range(100), lambda batch: batch)  # type: ignore[arg-type, return-value]
    next(found)()
    found.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("views")]


@pytest.mark.usefixtures("two_threads")
def test_where_it_pays(tmp_path: Path) -> None:
    job = make_job(resolve(recipe("simclr", tmp_path)), torch.device("cpu"))
    assert second_thread_helps(job)
    assert not second_thread_helps(dataclasses.replace(job, size=224))
    torch.set_num_threads(1)
    assert not second_thread_helps(job)


def test_grows_with_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves a second a step: 18 steps are 18 seconds, whatever the machine."""
    now = [0.0]
    step = Training._step

    def slow(self: Training, batch: object) -> torch.Tensor:
        now[0] += 7.0 if self.state.step == 0 else 1.0  # the first step is not like the others
        return step(self, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(Training, "_step", slow)
    monkeypatch.setattr(loop.time, "monotonic", lambda: now[0])
    assert seconds_to_train(resolve(recipe("supcon", tmp_path))) == pytest.approx(18.0)
    one = resolve(recipe("supcon", tmp_path, **{"train.epochs": None, "train.steps": 1}))
    assert seconds_to_train(one) == pytest.approx(7.0)
    assert list(tmp_path.iterdir()) == []
