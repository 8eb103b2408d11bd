"""Every recipe of a paper runs: two steps, evaluation and analysis, on data of its set's shape (see `tiny`).

`make test` runs one of each kind, `make test-all` all of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from kontrast import optim, recipes
from kontrast.pipeline import run_recipe
from kontrast.recipes import graf, sce, tcl, wang_liu
from kontrast.train.job import make_job
from tests.recipes.tiny import tiny

NAMES = [name for book in (wang_liu, tcl, sce, graf) for name in book.RECIPES]
ENCODERS = sorted({(r.encoder.name, r.encoder.options["stem"], n) for n, r in ((n, recipes.find(n)) for n in NAMES)})
FIRST = {(encoder, stem): name for encoder, stem, name in reversed(ENCODERS)}  # a recipe for each encoder


def _one_of_each() -> list[Any]:
    """All names; beyond the first recipe of a paper with the same method, optimiser and protocols they are slow."""
    seen, found = set[tuple[Any, ...]](), []
    for book in (wang_liu, tcl, sce, graf):
        for name in book.RECIPES:
            made = recipes.find(name)
            protocols = tuple(protocol.name for protocol in made.evaluate.protocols)
            kind = (book, made.method.name, made.optim.name, made.schedule.name, made.train.sampler, protocols)
            found.append(pytest.param(name, marks=[pytest.mark.slow] if kind in seen else []))
            seen.add(kind)
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("name", _one_of_each())
def test_two_steps(name: str, data: Path, tmp_path: Path) -> None:
    short = tiny(recipes.find(name), data, tmp_path)
    run = run_recipe(short)
    assert run.status == "done"
    lines = [line for line in run.metrics() if "loss" in line]
    last = run.result.get("fitted_at") or 2  # a run that waits for its labels to be fitted ends with that
    assert [line["step"] for line in lines] == list(range(1, last + 1))
    assert all(math.isfinite(line["loss"]) for line in lines)
    told = [found["name"] for found in run.result["results"]]
    assert told == [protocol.name for protocol in recipes.find(name).evaluate.protocols]


@pytest.mark.parametrize(
    ("encoder", "stem"),
    [
        pytest.param(
            *which, marks=[] if which in (("resnet18", "small"), ("resnet50", "large")) else [pytest.mark.slow]
        )
        for which in FIRST
    ],
)
def test_two_steps_of_its_own_encoder(encoder: str, stem: str, data: Path, tmp_path: Path) -> None:
    """The networks at their full width, without what a run writes: four images of the smallest size."""
    recipe = tiny(recipes.find(FIRST[encoder, stem]), data, tmp_path, encoder=True).override(["train.batch_size=4"])
    job = make_job(recipe, torch.device("cpu"))
    assert job.method.encoder.feature_dim == (512 if encoder in ("resnet18", "resnet34") else 2048)
    first = next(job.method.encoder.parameters())
    assert tuple(first.shape[-2:]) == ((3, 3) if stem == "small" else (7, 7))
    before = first.detach().clone()
    optimiser = optim.optimizer(recipe.optim.name, job.method, **recipe.optim.options)
    for step, batch in enumerate(job.loader().epoch(0)):
        if step == 2:
            break
        optimiser.zero_grad()
        loss = job.method.step(job.augment(batch))["loss"]
        assert torch.isfinite(loss)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        job.method.after_step()
    assert not torch.equal(first, before)
