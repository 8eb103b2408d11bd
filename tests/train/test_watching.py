"""Monitors and validation look at fixed rows, and leave no trace."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kontrast.evaluate import activations
from kontrast.train import watching
from kontrast.train.job import Job, make_job
from kontrast.train.resolving import resolve
from kontrast.train.watching import HELD, FixedViews, Validation, Watch, features, fixed_views
from tests.train.small import recipe


def job(method: str = "tcl", **changes: object) -> Job:
    return make_job(resolve(recipe(method, **changes)), torch.device("cpu"))


def test_what_runs_depends_on_labels_views_and_the_loss() -> None:
    assert Watch(job("tcl"), None).names == [
        "effective-rank",
        "entropy",
        "gradient-response",
        "knn",
        "similarity",
        "tolerance",
        "uniformity",
    ]
    assert "gradient-response" not in Watch(job("simclr"), None).names
    assert Watch(job("simclr", **{"data.labelled": False}), None).names == [
        "effective-rank",
        "entropy",
        "similarity",
        "uniformity",
    ]
    assert Watch(job("instance"), ["uniformity"]).names == ["uniformity"]


def test_a_monitor_that_cannot_run_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="gradient-response: must be a monitor that can run on this method"):
        Watch(job("simclr"), ["gradient-response"])


def test_the_same_network_gives_the_same_values_and_is_left_as_it_was() -> None:
    made = job()
    made.method.train()
    before = {name: value.clone() for name, value in made.method.state_dict().items()}
    watch = Watch(made, None)
    assert watch() == watch()
    assert all(torch.equal(before[name], value) for name, value in made.method.state_dict().items())
    assert all(module.training for module in made.method.modules())


def test_held_out_rows_are_the_validations_if_there_are_some_else_the_tests() -> None:
    made = job(**{"data.validation": 0.2})
    assert len(Watch(made, None).split) == 40
    assert len(Watch(job(), None).split) == min(HELD, 100)


def test_views_are_fixed_and_enough() -> None:
    made = job("instance")
    assert torch.equal(fixed_views(made, made.train), fixed_views(made, made.train))
    assert fixed_views(made, made.train).shape == (200, 1, 1, 8, 8)
    two = fixed_views(made, made.train, least=2)
    assert two.shape == (200, 2, 1, 8, 8)
    assert not torch.equal(two[:, 0], two[:, 1])


def test_views_are_made_in_chunks_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = job("simclr", **{"encoder": {"name": "small-resnet", "width": 4}})
    made.method.eval()
    views, whole = FixedViews(made, made.train), fixed_views(made, made.train)
    parts = torch.cat([views.of(slice(i, i + 7)) for i in range(0, 200, 7)])
    assert torch.allclose(parts, whole, atol=1e-6)  # what an operation gives for some rows, to rounding
    seen: list[int] = []
    made.method.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    with torch.no_grad():
        expected = made.method.online(whole.flatten(0, 1)).view(200, 2, -1)
    monkeypatch.setattr(activations, "CPU_BUDGET", 100_000)
    seen.clear()
    assert torch.allclose(views.embed(), expected, atol=1e-5)  # convolutions of other sizes round differently
    assert max(seen) < 100
    assert torch.allclose(views.embed(slice(-1, None)), expected[:, 1:], atol=1e-5)
    asked = job("simclr", **{"encoder": {"name": "small-resnet", "width": 4}, "evaluate.batch_size": 10})
    asked.method.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    seen.clear()
    Watch(asked, None)()
    assert set(seen) <= {10, 100 % 10 or 10}, "evaluate.batch_size is taken by monitors too"


def test_crops_of_files_are_kept_or_read_again_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    for i in range(12):
        folder = tmp_path / "ab"[i % 2]
        folder.mkdir(exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (20 + i, 24, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    changes = {"data": {"name": str(tmp_path)}, "augment": ["weak", "weak"], "augment.size": 16, "train.batch_size": 4}
    made = job("simclr", **changes, encoder="small-resnet")
    kept = FixedViews(made, made.train, least=4)
    assert kept.inputs is not None
    monkeypatch.setattr(watching, "KEPT", 0)
    again = FixedViews(made, made.train, least=4)
    assert again.inputs is None
    assert torch.equal(kept.of(slice(3, 9)), again.of(slice(3, 9)))
    assert kept.of(slice(0, 12)).shape == (12, 4, 3, 16, 16)


def test_validation_is_knn_of_the_held_out_part() -> None:
    made = job(**{"data.validation": 0.2})
    value = Validation(made)()
    held, reference = features(made, made.validation), features(made, made.train)
    unit = torch.nn.functional.normalize
    near, rows = (unit(held, dim=1) @ unit(reference, dim=1).T).topk(20)
    votes = torch.zeros(40, 10).scatter_add_(1, made.train.labels[rows], (near / 0.07).exp())
    assert abs(value - float((votes.argmax(1) == made.validation.labels).float().mean())) < 1e-6
