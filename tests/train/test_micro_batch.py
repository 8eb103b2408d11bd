"""train.micro_batch=auto: worked out, told, written down, found again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import kontrast
from kontrast import distributed
from kontrast.evaluate.activations import peak_bytes
from kontrast.experiments import plan
from kontrast.experiments.tune import Tuning
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast.train import Run, make_job, micro_batch, resolve
from kontrast.train.gradients import backward
from kontrast.train.job import Job
from kontrast.train.micro_batch import Need, choose_size, images_at_once, measure, warn_if_too_large
from tests.processes import run_on_ranks
from tests.train.small import recipe

CPU = torch.device("cpu")
AUTO = {"train.micro_batch": "auto"}


def job(method: str = "supcon", **changes: Any) -> Job:
    return make_job(resolve(recipe(method, **changes)), CPU)


def free(monkeypatch: pytest.MonkeyPatch, bytes_: int | None) -> None:
    monkeypatch.setattr(micro_batch, "free_memory", lambda device: bytes_)


def half_of(made: Job, images: int) -> int:
    """Free memory of which half holds so many images at once, and not twice as many."""
    need = measure(made)
    return 2 * (need.of(made.recipe.train.batch_size, images) + need.activations // 2)


def test_measuring_leaves_no_trace() -> None:
    made = job("moco", **{"encoder": {"name": "mlp", "hidden": 32, "features": 16}})
    made.method.eval()
    before = {name: value.clone() for name, value in made.method.state_dict().items()}
    torch.manual_seed(3)
    state = torch.get_rng_state()
    measure(made)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in made.method.state_dict().items())
    assert all(parameter.grad is None for parameter in made.method.parameters())
    assert not any(module.training for module in made.method.modules())


@pytest.mark.parametrize("method", ["supcon", "sce"])
def test_what_is_measured_on_three_images_holds_for_a_batch(method: str) -> None:
    made = job(method, **{"encoder": {"name": "small-resnet", "width": 8}, "train.batch_size": 64})
    made.method.train()
    need, seen = measure(made), made.augment(made.loader().batch(0, 0))
    step = peak_bytes(lambda: backward(made.method, seen))
    # Beside the activations a step has the loss and the gradients, which here are as small.
    assert 0.6 * step < 64 * need.activations < 1.4 * step
    pieces = peak_bytes(lambda: backward(made.method, seen, pieces=4))
    assert pieces < 0.5 * step


def test_undivided_where_half_of_the_free_memory_holds_it_else_a_power_of_two() -> None:
    need = Need(state=1000, views=10, activations=100)
    whole = need.of(48, 48)
    assert images_at_once(need, 48, whole, fewest=2) == 48
    assert images_at_once(need, 48, whole - 1, fewest=2) == 32
    assert [images_at_once(need, 48, need.of(48, m), fewest=2) for m in (31, 16, 15, 3)] == [16, 16, 8, 2]
    assert images_at_once(need, 48, 0, fewest=2) == 2, "nothing fits: the least that works"
    assert images_at_once(need, 48, 0, fewest=16) == 16
    assert images_at_once(need, 3, 0, fewest=2) == 3
    for fewest in (2, 5, 16):
        for images in range(1, 70):
            m = images_at_once(need, images, 0, fewest=fewest)
            smallest = images // -(-images // m)
            assert m <= images
            assert smallest >= min(images, fewest)


def test_batch_norm_in_parts_needs_more_at_once() -> None:
    assert job("supcon").method.fewest_at_once == 2
    made = job("sce", **{"method.key_parts": 8})
    assert made.method.fewest_at_once == 16
    seen = made.augment(made.loader().batch(0, 0))
    backward(made.method, seen, pieces=2)  # 16 each
    with pytest.raises(ValueError, match="parts=8: must leave at least 2 values per channel"):
        backward(made.method, seen, pieces=3)


def test_it_is_told_and_written_into_the_recipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = job(**AUTO, **{"run.progress": True})
    with pytest.raises(ValueError, match="must be a number here"):
        made.micro_batches()
    free(monkeypatch, half_of(made, 8))
    parts = choose_size(made)
    assert parts.recipe.train.micro_batch == 8
    assert parts.micro_batches() == 4
    assert parts.recipe.hash == resolve(recipe("supcon", **{"train.micro_batch": 8})).hash
    line = capsys.readouterr().err.strip()
    assert "\n" not in line
    assert re.search(
        r"train.micro_batch=auto: 8 of 32 images at once; the batch needs about \S+ MB, \S+ MB is free", line
    )
    free(monkeypatch, 2**40)
    assert choose_size(made).recipe.hash == resolve(recipe("supcon")).hash, "undivided is what it is without"
    assert "the whole batch of 32 images at once" in capsys.readouterr().err
    free(monkeypatch, None)  # the system does not say
    assert choose_size(made).recipe.train.micro_batch is None


def test_the_same_command_finds_the_run_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = recipe("supcon", tmp_path, **AUTO)
    free(monkeypatch, half_of(job(), 8))
    real, steps = kontrast.train.loop.backward, []

    def failing(*arguments: Any, **options: Any) -> torch.Tensor:
        steps.append(options["pieces"])
        if len(steps) == 8:
            raise RuntimeError("the power is cut")
        return real(*arguments, **options)

    monkeypatch.setattr(kontrast.train.loop, "backward", failing)
    with pytest.raises(RuntimeError, match="power"):
        run_recipe(asked.override({"run.checkpoint_every": 2}))
    monkeypatch.setattr(kontrast.train.loop, "backward", real)
    (folder,) = tmp_path.iterdir()
    assert Run(folder).recipe.train.micro_batch == 8
    assert set(steps) == {4}
    free(monkeypatch, 2**40)  # now all of the batch would fit
    run = run_recipe(asked)
    assert run.path == folder
    assert run.status == "done"
    assert [line["step"] for line in run.metrics() if "loss" in line] == [4, 8, 12, 16, 18]
    before = run.path.joinpath("result.json").stat().st_mtime_ns
    assert run_recipe(asked).path == folder
    assert run.path.joinpath("result.json").stat().st_mtime_ns == before, "already done"
    assert run_recipe(recipe("supcon", tmp_path, **{"train.micro_batch": 8})).path == folder, "the same by its number"


def test_a_run_that_did_not_ask_for_it_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole batch failed for want of memory: auto must not take it up again."""
    whole = run_recipe(recipe("supcon", tmp_path, **{"train.epochs": 1}))
    free(monkeypatch, half_of(job(), 16))
    parts = run_recipe(recipe("supcon", tmp_path, **AUTO, **{"train.epochs": 1}))
    assert parts.path != whole.path
    assert parts.recipe.train.micro_batch == 16
    other = recipe("supcon", tmp_path, **AUTO, **{"train.epochs": 1}, seed=1)
    free(monkeypatch, 2**40)
    assert run_recipe(other).recipe.train.micro_batch is None, "another seed is another run"
    free(monkeypatch, half_of(job(), 16))
    assert run_recipe(other).recipe.train.micro_batch is None, "undivided is remembered too"


def test_a_finished_run_of_the_whole_batch_is_remembered_as_autos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_recipe(recipe("supcon", tmp_path, **{"train.epochs": 1}))
    asked = recipe("supcon", tmp_path, **AUTO, **{"train.epochs": 1})
    free(monkeypatch, 2**40)
    assert run_recipe(asked).path == whole.path
    free(monkeypatch, half_of(job(), 16))
    assert run_recipe(asked).path == whole.path


def test_a_batch_that_will_not_fit_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    made = job()
    need = measure(made).of(32, 32)
    free(monkeypatch, need + 1)
    warn_if_too_large(made)
    free(monkeypatch, need - 1)
    with pytest.warns(UserWarning, match=r"32 images needs about .* free: say train.micro_batch=auto") as seen:
        warn_if_too_large(made)
    assert len(seen) == 1
    free(monkeypatch, 1000)
    with pytest.warns(UserWarning, match=r"take a smaller train.micro_batch than 8, or auto"):
        warn_if_too_large(job(**{"train.micro_batch": 8}))


def test_a_run_far_from_any_limit_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro_batch, "measure", lambda job: pytest.fail("measured"))
    free(monkeypatch, 2**35)
    warn_if_too_large(job())


def ranks_agree(rank: int, world: int) -> None:
    made = job(**AUTO, **{"train.batch_size": 64})
    assert measure(made).activations > 0, "batch norm across the ranks, which all measure"
    assert distributed.processes_here() == world
    need = Need(state=0, views=0, activations=1000)
    micro_batch.measure = lambda job: need  # type: ignore[assignment]
    enough = 2 * world * need.of(32, 8)
    micro_batch.free_memory = lambda device: enough if rank else 2 * enough  # type: ignore[assignment]
    assert choose_size(made).recipe.train.micro_batch == 8, "the least of the ranks, which share the machine's memory"
    assert choose_size(made).micro_batches() == 4


def test_ranks_take_one_value(tmp_path: Path) -> None:
    run_on_ranks(ranks_agree, 2, tmp_path)


def test_searches_and_experiments_want_a_number() -> None:
    asked = recipe("tcl", **AUTO)
    with pytest.raises(ValueError, match=r"train.micro_batch=auto: a search needs a number"):
        Tuning.of(asked)
    with pytest.raises(ValueError, match=r"train.micro_batch=auto: an experiment needs a number"):
        plan._resolve(asked, 0, {}, "runs")


@pytest.mark.parametrize("value", [0, -1, 1.5, "some", True])
def test_other_words_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"train\.micro_batch=.*: must be a whole number of at least 1, or auto"):
        Recipe.of({"method": "supcon", "train": {"epochs": 1, "micro_batch": value}})


def test_a_folder_name_with_signs_means_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, half_of(job(), 8))
    asked = recipe("supcon", tmp_path, **AUTO, **{"train.epochs": 1}, name="a[b]*c")
    made = run_recipe(asked)
    free(monkeypatch, 2**40)
    assert run_recipe(asked).path == made.path
    assert made.state.micro_batch["value"] == 8
