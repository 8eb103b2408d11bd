"""Adaptation controls in a run: which parameters move, from which step on, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import kontrast
from kontrast import models
from kontrast.pipeline import run_recipe
from kontrast.recipes.wording import wording
from kontrast.train import checkpoint, loop, make_job, resolve
from kontrast.train.loop import Training
from tests.models.encoders.test_timm import needs_timm
from tests.train.small import ADAPTED, recipe
from tests.train.test_loop import training

SMALL = {"encoder": {"name": "small-resnet", "width": 4}}


def values(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def changed(before: dict[str, Tensor], after: dict[str, Tensor]) -> set[str]:
    return {name for name, value in before.items() if not torch.equal(value, after[name])}


def record_steps(monkeypatch: pytest.MonkeyPatch, made: Training) -> list[dict[str, Tensor]]:
    """The encoder's parameters and buffers before each step."""
    seen: list[dict[str, Tensor]] = []
    real = loop.backward

    def backward(*arguments: Any, **options: Any) -> Tensor:
        seen.append(values(made.job.method.encoder))
        return real(*arguments, **options)

    monkeypatch.setattr(loop, "backward", backward)
    return seen


# ------------------------------------------------------------------------------------------------ freeze


@pytest.mark.parametrize("method", ["supcon", "moco"])
def test_frozen_stages_stay_to_the_bit_and_all_others_move(tmp_path: Path, method: str) -> None:
    """With a decay, which would move them without any gradient; statistics of batch norm too."""
    made = training(tmp_path, method, **SMALL, **{"train.freeze": 2, "optim.weight_decay": 0.1})
    encoder = made.job.method.encoder
    before = values(made.job.method)
    made.run()
    moved = changed(before, values(made.job.method))
    frozen = ("encoder.stem.", "encoder.blocks.0.", "encoder.blocks.1.")
    assert not [name for name in moved if any(part in name for part in frozen)]
    learned = [name for name in before if ".blocks.2." in name or ".head." in name]
    assert learned
    assert moved >= set(learned)
    state = checkpoint.load(made.folder.last_checkpoint)["optimiser"]
    assert len(state["state"]) == sum(p.requires_grad for p in made.job.method.parameters())
    assert all(p.grad is None for stage in models.stages_of(encoder)[:2] for p in stage)  # type: ignore[arg-type]


@pytest.mark.parametrize("pieces", [None, 8])
def test_all_frozen_is_the_head_alone(tmp_path: Path, pieces: int | None) -> None:
    changes = {"train.freeze": "all", "head": "none", "train.micro_batch": pieces}
    made = training(tmp_path, "ce", **SMALL, **changes)  # what learns is the loss's own classifier
    before = values(made.job.method)
    made.run()
    assert changed(before, values(made.job.method)) == {"loss.weight"}
    lines = [line for line in made.folder.metrics() if "loss" in line]
    assert lines[-1]["loss"] < lines[0]["loss"]


# ------------------------------------------------------------------------------------------------ head first


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_the_encoder_is_unchanged_to_the_bit_until_its_step(
    tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = training(tmp_path, method, **SMALL, **{"train.head_first": 1.5, "optim.weight_decay": 0.1})
    head = values(made.job.method.online.head)
    seen = record_steps(monkeypatch, made)
    made.run()
    assert [len(changed(seen[0], after)) > 0 for after in seen] == [False] * 10 + [True] * 8  # before steps 1 … 18
    names = [name for name, _ in made.job.method.encoder.named_parameters()]
    assert changed(seen[0], seen[10]) >= set(names), "then all of it learns"
    assert changed(head, values(made.job.method.online.head)) == set(head)
    assert all(part.training for part in made.job.method.modules())
    if method == "moco":
        target = made.job.method.pair.target.encoder  # type: ignore[union-attr]
        assert not any(p.requires_grad for p in target.parameters())  # type: ignore[union-attr]


def test_the_encoder_of_a_resting_run_gives_what_evaluation_gives(tmp_path: Path) -> None:
    """In eval mode: batch norm by its running statistics."""
    made = training(tmp_path, **SMALL, **{"train.head_first": 2})
    loader = made.job.loader()
    batch = next(iter(loader.epoch(0)))
    made._step(lambda: made.job.augment(batch))
    encoder, images = made.job.method.encoder, torch.rand(4, 1, 8, 8)
    h = encoder(images)
    assert not h.requires_grad
    assert torch.equal(h, encoder.eval()(images))


def test_validations_before_the_encoder_learns_are_no_reason_to_stop(tmp_path: Path) -> None:
    """Accuracy by the encoder cannot change in those epochs; ``patience`` counts from there on."""
    changes = {"train.head_first": 2, "train.patience": 1, "data.validation": 0.2, "train.epochs": 4}
    made = training(tmp_path, **SMALL, **changes)
    made.run()
    scores = [line["validation"] for line in made.folder.metrics() if "validation" in line]
    assert len(scores) >= 3
    assert scores[0] == scores[1]


# ------------------------------------------------------------------------------------------------ clipping


def test_the_gradient_that_is_applied_has_at_most_that_norm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its direction: plain SGD moves by the clipped gradient. The log has the norm before."""
    most = 0.05
    changes = {"train.clip": most, "optim.momentum": 0.0, "run.log_every": 1, "schedule": "constant"}
    made = training(tmp_path, **SMALL, **changes)
    before: list[Tensor] = []
    applied: list[tuple[float, float]] = []
    real = made.state.precision.step

    def step(optimiser: torch.optim.Optimizer) -> None:
        flat = torch.cat([p.detach().flatten() for p in made.job.method.parameters()])
        gradient = torch.cat([p.grad.flatten() for p in made.job.method.parameters() if p.grad is not None])
        real(optimiser)
        after = torch.cat([p.detach().flatten() for p in made.job.method.parameters()])
        before.append(gradient)
        applied.append((float(gradient.norm()), float((after - flat).norm())))

    monkeypatch.setattr(made.state.precision, "step", step)
    made.run()
    norms = [line["gradient_norm"] for line in made.folder.metrics() if "loss" in line]
    assert len(norms) == 18
    assert min(norms) > most, "else nothing was clipped"
    for gradient, distance in applied:  # torch divides by norm + 1e-6; float32 rounds 18 × 1e3 sums at 1e-6
        assert gradient == pytest.approx(most, rel=1e-4)
        assert distance == pytest.approx(0.05 * most, rel=1e-3)


def test_without_clipping_no_norm_is_logged(tmp_path: Path) -> None:
    made = training(tmp_path, **{"train.epochs": 1})
    made.run()
    assert not any("gradient_norm" in line for line in made.folder.metrics())


# ------------------------------------------------------------------------------------------------ all together


def test_micro_batches_with_every_control(tmp_path: Path) -> None:
    """Only the first stages have batch norm that does not see its batch; so the encoder is wholly frozen."""
    changes = {"train.freeze": "all", "train.clip": 0.5, "train.average": 0.5, "optim.head_lr": 0.1}
    plain, cached = (
        training(tmp_path / str(pieces), **SMALL, **changes, **{"train.micro_batch": pieces}) for pieces in (None, 8)
    )
    plain.run()
    cached.run()
    for (name, p), q in zip(plain.job.method.named_parameters(), cached.job.method.parameters(), strict=True):
        torch.testing.assert_close(q, p, rtol=1e-3, atol=1e-4, msg=lambda m, name=name: f"{name}: {m}")


def test_controls_that_are_off_leave_the_hash(tmp_path: Path) -> None:
    plain = resolve(recipe(out=tmp_path))
    off = {"train.checkpoint_activations": False, "train.freeze": None, "optim.layer_decay": None}
    assert resolve(recipe(out=tmp_path, **off)).hash == plain.hash
    on = {
        "train.freeze": "all",
        "train.head_first": 1,
        "train.clip": 1.0,
        "train.average": 0.9,
        "train.checkpoint_activations": True,
        "optim.layer_decay": 0.7,
        "optim.head_lr": 0.1,
    }
    hashes = {resolve(recipe(out=tmp_path, **{key: value})).hash for key, value in on.items()}
    assert len(hashes | {plain.hash}) == len(on) + 1


def test_a_methods_section_has_the_controls(tmp_path: Path) -> None:
    lines = wording(resolve(recipe(out=tmp_path, **ADAPTED)))
    assert (
        "first stage of the encoder frozen, the head alone in the first 1.5 epochs, gradient norm at most 0.5"
        in (lines["training"])
    )
    assert "moving average of the weights with momentum 0.8" in lines["training"]
    assert "× 0.5 a stage of the encoder from the top, 0.1 for the head" in lines["optimiser"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.freeze": 0}, r"train.freeze=0: must be a whole number of at least 1, or all"),
        ({"train.freeze": "some"}, r"train.freeze='some': must be a whole number of at least 1, or all"),
        ({"train.freeze": 3, **SMALL}, r"train.freeze=3: must be from 1 to 2, or all: the encoder small-resnet has 3"),
        ({"train.freeze": "all", "head": "none"}, r"train.freeze=all: must leave something to learn.*Use a head that"),
        ({"train.head_first": 1, "head": "none"}, r"train.head_first=1.0: must leave something to learn"),
        ({"train.head_first": 3}, r"train.head_first=3.0: must be less than the whole run of 3 epochs"),
        ({"train.freeze": "all", "train.head_first": 1}, r"train.head_first=1: must be left out with train.freeze=all"),
        (
            {"train.freeze": "all", "train.patience": 2, "data.validation": 0.2},
            r"train.patience=2: must be left out with train.freeze=all, as validation measures the encoder",
        ),
        ({"train.clip": 0}, r"train.clip=0: must be greater than 0"),
        ({"train.average": 1.0}, r"train.average=1.0: must be less than 1"),
        ({"train.checkpoint_activations": True}, r"must be left out for the encoder mlp, which has no blocks"),
        ({"train.checkpoint_activations": True, "run.compile": True}, r"must be used without run.compile=true"),
        ({"optim.layer_decay": 2}, r"optim.layer_decay=2: must be a finite number above 0 and of at most 1"),
        ({"optim.head_lr": "fast"}, r"optim.head_lr='fast': must be a finite number above 0"),
    ],
)
def test_what_cannot_be_says_what_to_do(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_job(resolve(recipe(out=tmp_path, **changes)), torch.device("cpu"))


@needs_timm
@pytest.mark.slow
def test_a_network_of_timm_is_adapted_by_the_main_job(tmp_path: Path) -> None:
    """EfficientNet-Lite0 with every control: three of seven stages stay, each later convolution moves."""
    changes = {
        **ADAPTED,
        "encoder": {"name": "timm/tf_efficientnet_lite0"},
        "data.size": 32,
        "data.limit": 64,
        "train.epochs": None,
        "train.steps": 3,
        "train.freeze": 3,
        "train.head_first": 0.5,
        "train.average": 0.4,
    }
    made = resolve(recipe("supcon", tmp_path, **changes))
    start = values(make_job(made, torch.device("cpu")).method.encoder)
    run = run_recipe(made)
    moved = changed(start, values(kontrast.load(run)))
    frozen = ("net.conv_stem", "net.bn1", "net.blocks.0", "net.blocks.1", "net.blocks.2")
    assert not [name for name in moved if name.startswith(frozen)]
    later = {name for name, value in start.items() if value.ndim > 1 and not name.startswith(frozen)}
    assert len(later) > 30
    assert later <= moved
    assert run.result["weights"] == "average of momentum 0.4, step 3"
