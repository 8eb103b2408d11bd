"""Views made ahead of the step: the same run, errors where they belong, and no trace in the number of threads."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kontrast.train import views_ahead
from kontrast.train.job import make_job
from kontrast.train.resolving import resolve
from kontrast.train.running import run_recipe
from tests.train.small import recipe, same_runs


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_run_is_the_same_with_and_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    real = views_ahead.ahead
    monkeypatch.setattr(views_ahead, "ahead", lambda *given: used.append("ahead") or real(*given))
    one = run_recipe(recipe("simclr", tmp_path / "ahead", **{"run.threads": 2})).path
    assert used == ["ahead"]
    monkeypatch.setattr(views_ahead, "pays", lambda job: False)
    other = run_recipe(recipe("simclr", tmp_path / "at-once", **{"run.threads": 2})).path
    assert used == ["ahead"]
    same_runs(one, other)


def test_the_next_views_are_made_during_the_step() -> None:
    made: list[int] = []
    seen = []
    for views in views_ahead.ahead(range(4), lambda batch: made.append(batch) or batch):  # type: ignore[arg-type, return-value]
        seen.append(views())
        until = time.monotonic() + 20
        while len(made) < min(4, len(seen) + 1):  # without anybody asking for them
            assert time.monotonic() < until, "the second thread does not go on by itself"
            time.sleep(0.001)
    assert seen == made == [0, 1, 2, 3]


def test_it_computes_with_one_thread_and_leaves_the_others_theirs() -> None:
    def augmented(batch: int) -> tuple[str, int]:
        return threading.current_thread().name, torch.get_num_threads()

    inside = [views() for views in views_ahead.ahead(range(2), augmented)]  # type: ignore[arg-type]
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

    found = views_ahead.ahead(range(4), augmented)  # type: ignore[arg-type]
    assert [next(found)() for _ in range(2)] == [0, 1]
    with pytest.raises(ValueError, match="batch 2"):
        next(found)()
    found.close()  # type: ignore[attr-defined]


def test_a_loop_that_ends_early_ends_the_thread() -> None:
    found = views_ahead.ahead(range(100), lambda batch: batch)  # type: ignore[arg-type, return-value]
    next(found)()
    found.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("views")]


def test_where_it_pays(tmp_path: Path) -> None:
    job = make_job(resolve(recipe("simclr", tmp_path)), torch.device("cpu"))
    assert views_ahead.pays(job)
    assert not views_ahead.pays(dataclasses.replace(job, size=224))
    torch.set_num_threads(1)
    assert not views_ahead.pays(job)
