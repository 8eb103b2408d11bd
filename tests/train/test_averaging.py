"""The moving average of the weights: a literal loop, and who sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from kontrast import models
from kontrast.pipeline import run_recipe
from kontrast.train import checkpoint
from kontrast.train.averaging import warn_if_too_slow
from kontrast.train.watching import Validation
from tests.train.small import recipe
from tests.train.test_loop import training

M = 0.8
SMALL = {"encoder": {"name": "small-resnet", "width": 4}, "train.average": M}


@pytest.mark.parametrize("method", ["supcon", "sce"])
def test_the_average_is_that_of_a_literal_loop(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and statistics of encoder and head; to the rounding of 18 sums of numbers of size 1 (18 · 6e-8)."""
    made = training(tmp_path, method, **SMALL)
    expected = {name: value.clone() for name, value in made.job.method.online.state_dict().items()}
    real = made.state.average.update  # type: ignore[union-attr]

    def update() -> None:
        real()
        for name, value in made.job.method.online.state_dict().items():
            mean = M * expected[name] + (1 - M) * value if value.is_floating_point() else value.clone()
            expected[name] = mean

    monkeypatch.setattr(made.state.average, "update", update)
    made.run()
    saved = checkpoint.load(made.folder.last_checkpoint)["average"]
    assert saved.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(saved[name], value, rtol=1e-5, atol=2e-6, msg=lambda m, name=name: f"{name}: {m}")
    online = made.job.method.online.state_dict()
    assert not any(torch.equal(saved[name], online[name]) for name in saved if name.endswith("weight"))


def test_what_learns_does_not_notice(tmp_path: Path) -> None:
    """The same steps with and without an average, validated in each epoch."""
    short = {**SMALL, "data.validation": 0.2}
    ends = []
    for momentum in (M, None):
        made = training(tmp_path / str(momentum), **{**short, "train.average": momentum})
        made.run()
        ends.append(made.job.method.state_dict())
    for name, value in ends[0].items():
        assert torch.equal(value, ends[1][name]), name


def test_validation_and_export_are_of_the_average(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Tensor]] = []
    real = Validation.__call__

    def validated(self: Validation) -> float:
        seen.append({name: value.clone() for name, value in self.job.method.encoder.state_dict().items()})
        return real(self)

    monkeypatch.setattr(Validation, "__call__", validated)
    run = run_recipe(recipe(out=tmp_path, **SMALL, **{"data.validation": 0.2}))
    average = checkpoint.load(run.last_checkpoint)["average"]
    exported = load_file(run.weights_file)
    assert len(exported) == len(seen[-1])
    for name, value in seen[-1].items():
        assert torch.equal(average[f"encoder.{name}"], value), name
        assert torch.equal(exported[name], value), name
    assert run.result["weights"] == "average of momentum 0.8, step 15"


def test_early_stopping_keeps_the_average_that_was_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.1, 0.5, 0.3, 0.2])
    averages: list[dict[str, Tensor]] = []

    def validated(self: Validation) -> float:
        averages.append({name: value.clone() for name, value in self.job.method.encoder.state_dict().items()})
        return next(scores)

    monkeypatch.setattr(Validation, "__call__", validated)
    stopping = {"data.validation": 0.2, "train.patience": 2, "train.epochs": 8}
    run = run_recipe(recipe(out=tmp_path, **SMALL, **stopping))
    assert len(averages) == 4
    assert run.result["weights"] == "average of momentum 0.8, best validation, step 10"
    exported = load_file(run.weights_file)
    for name, value in averages[1].items():
        assert torch.equal(exported[name], value), name


def test_the_monitors_look_at_what_learns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = training(tmp_path, **SMALL)
    online: list[bool] = []
    assert made.watch is not None
    real = made.watch.__call__

    def watched() -> dict[str, float]:
        pair: Any = made.state.average.pair  # type: ignore[union-attr]
        online.append(pair.online is made.job.method.online and not torch.equal(*first_weights(pair)))
        return real()

    monkeypatch.setattr(made, "watch", watched)
    made.run()
    assert online == [True, True, True]


def first_weights(pair: models.MomentumPair) -> tuple[Tensor, Tensor]:
    return next(iter(pair.online.parameters())), next(iter(pair.target.parameters()))


def test_an_average_that_stays_at_the_start_is_told(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match=r"train.average=0.999: after the 18 steps .* 98% of the average .* Use 0.7743"
    ):
        warn_if_too_slow(0.999, 18)
    with pytest.warns(UserWarning, match=r"train.average=0.99: after the 6 steps"):
        run_recipe(recipe(out=tmp_path, **{"train.epochs": 1, "train.average": 0.99}))
