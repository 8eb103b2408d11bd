"""torchvision's ResNets take the weights, by the lines of the card, and give the run's features."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
import torch

import kontrast
from kontrast.train.exports import export_run
from tests.train.exports.made import made


@pytest.mark.parametrize(("shape", "stem"), [((3, 32, 32), "large"), ((1, 32, 32), "large"), ((1, 16, 16), "small")])
def test_the_lines_load_it(tmp_path: Path, shape: tuple[int, ...], stem: str) -> None:
    run = made(tmp_path / "run", "resnet18", shape, stem=stem)
    before = torch.random.get_rng_state()
    folder = export_run(run, "torchvision", tmp_path / "out")
    assert torch.equal(before, torch.random.get_rng_state())
    card = json.loads((folder / "model.json").read_text())
    assert card["load"] in (folder / "README.md").read_text()
    found: dict[str, torch.nn.Module] = {}
    with contextlib.chdir(folder), torch.random.fork_rng(devices=[]):
        exec(card["load"], found)
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.no_grad():  # in double, so that the layout of memory makes no difference in rounding
        torch.testing.assert_close(found["model"].double()(x), kontrast.load(run).double()(x), rtol=1e-9, atol=1e-9)


def test_others_are_told_where_they_can_go(tmp_path: Path) -> None:
    run = made(tmp_path / "run", "mlp", (5,))
    with pytest.raises(ValueError, match=r"mlp cannot be exported to torchvision: .*\. Targets that work: onnx, safet"):
        export_run(run, "torchvision")
