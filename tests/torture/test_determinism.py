"""Runs on image files, the same to the bit whatever decodes them; and that a difference is seen."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import determinism
from kontrast import recipes
from kontrast.data import load as load_data
from kontrast.data.dataset import Memory
from kontrast.pipeline import run_recipe
from kontrast.train import Run


def run(out: Path, method: str, data: Path, *words: str) -> Run:
    name, *settings = (*determinism.recipe(method, data), *determinism.FIRST, *words, f"run.out={out}")
    return run_recipe(recipes.recipe(name).override(settings))


def test_workers_change_no_bit_of_a_run(tmp_path: Path) -> None:
    """With queue and momentum encoder, in one process after another run, whose draws must not matter either."""
    data = determinism.pictures(tmp_path / "photos")
    assert not isinstance(load_data(data).train.inputs, Memory), "these would never go through a worker"
    alone = run(tmp_path / "alone", "sce", data)
    torch.rand(3)
    helped = run(tmp_path / "helped", "sce", data, "run.workers=2")
    assert helped.path.name == alone.path.name
    assert determinism.difference(alone.path, helped.path) == ""


def test_a_difference_is_seen_and_named(tmp_path: Path) -> None:
    data = determinism.pictures(tmp_path / "photos")
    one = run(tmp_path / "one", "supcon", data, "train.epochs=1")
    changed = shutil.copytree(one.path, tmp_path / "changed")
    weights = load_file(changed / "encoder.safetensors")
    name = next(name for name, tensor in weights.items() if tensor.is_floating_point())
    weights[name].view(-1)[0].mul_(1 + 2e-7)  # one bit
    save_file(weights, changed / "encoder.safetensors")
    assert determinism.difference(one.path, changed).startswith(name)
    other = run(tmp_path / "other", "supcon", data, "train.epochs=1", "seed=1")
    assert determinism.difference(one.path, other.path)


@pytest.mark.slow
@pytest.mark.parametrize("method", determinism.METHODS)
def test_workers_and_fresh_processes_change_no_bit(method: str) -> None:
    settings = {name: determinism.SETTINGS[name] for name in ("again", "1 worker", "4 workers")}
    _, bad = determinism.table(settings, (method,))
    assert bad == []


def test_every_row_of_the_page_but_those_of_threads_says_same() -> None:
    written = determinism.PAGE.read_text(encoding="utf-8").partition(determinism.BEGIN)[2].partition(determinism.END)[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in written.splitlines() if line.startswith("|")]
    said = {name: cells for name, *cells in rows[2:]}
    assert list(said) == list(determinism.SETTINGS), "run python torture/determinism.py"
    for name, cells in said.items():
        assert len(cells) == len(determinism.METHODS)
        assert set(cells) <= ({"same", "differs"} if name in determinism.TOLD else {"same"})
