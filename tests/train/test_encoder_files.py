"""The encoder without kontrast."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save

from kontrast.pipeline import run_recipe
from kontrast.train import load
from kontrast.train.encoder_files import read_weights
from tests.train.exports.made import made
from tests.train.small import recipe

SHORT = {
    "train.epochs": None,
    "train.steps": 2,
    "train.batch_size": 16,
    "data.limit": 40,
    "data.test_limit": 20,
    "evaluate.protocols": [],
}


ENCODERS = {
    "mlp": ("mlp", {"encoder.hidden": 8}),
    "small": ("small-resnet", {"encoder.width": 4, "encoder.depth": 2}),
    "large stem": ("small-resnet", {"encoder.width": 4, "encoder.stem": "large", "data.channels": 3}),
    "signed": ("small-resnet", {"encoder.width": 4, "encoder.signed": True}),
    "timm": ("timm/resnet10t", {}),
}
ALONE = """
import sys
sys.modules["kontrast"] = None
import os, json, torch
for folder in sys.argv[1:]:
    os.chdir(folder)
    sys.modules.pop("small_resnet", None)
    sys.path[0] = folder
    card = json.load(open("model.json"))
    names = {}
    exec(card["load"], names)
    x = torch.load("x.pt")
    flat = x.flatten(1) if card["encoder"]["name"] == "mlp" else x
    torch.save(names["model"].double().eval()(flat).detach(), "h.pt")
"""


def test_the_lines_of_the_card_load_the_weights_in_plain_torch(tmp_path: Path) -> None:
    """Run in a process that cannot import kontrast; the features are the trained encoder's own."""
    pytest.importorskip("timm")
    runs = {}
    for name, (encoder, changes) in ENCODERS.items():
        runs[name] = run_recipe(recipe("supcon", tmp_path / name, encoder=encoder, **SHORT).override(changes)).path
        card = json.loads((runs[name] / "model.json").read_text())
        if "class" in card:
            (runs[name] / "small_resnet.py").write_text(card["class"])
        draw = torch.Generator().manual_seed(0)
        torch.save(torch.randn(3, *card["input"]["shape"], generator=draw, dtype=torch.float64), runs[name] / "x.pt")
    call = [sys.executable, "-c", ALONE, *map(str, runs.values())]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for run in runs.values():
        mine = load(run).double()  # so that the layout of memory makes no difference in rounding
        assert not mine.training
        expected = mine(torch.load(run / "x.pt"))
        torch.testing.assert_close(torch.load(run / "h.pt"), expected, rtol=1e-9, atol=1e-9)
        assert json.loads((run / "model.json").read_text())["feature_dim"] == mine.feature_dim == expected.shape[1]


def test_the_lines_of_a_transformer_make_it_for_its_size(tmp_path: Path) -> None:
    pytest.importorskip("timm")
    run = made(tmp_path / "run", "timm/vit_tiny_patch16_224", (3, 32, 32), depth=1)
    lines = json.loads((run / "model.json").read_text())["load"]
    assert "img_size=(32, 32), depth=1" in lines
    found: dict[str, torch.nn.Module] = {}
    with contextlib.chdir(run), torch.random.fork_rng(devices=[]):
        exec(lines, found)
    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():  # one layout of memory, and the same sums
        torch.testing.assert_close(found["model"](x), load(run)(x))


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no model\.json; expected the folder of a finished run"):
        load(tmp_path)


@pytest.mark.parametrize("harm", ["flipped", "cut", "cut without a digest"])
def test_damaged_weights_are_named(tmp_path: Path, harm: str) -> None:
    content = save({"weight": torch.ones(3)})
    path = tmp_path / "encoder.safetensors"
    was = None if "without" in harm else hashlib.sha256(content).hexdigest()
    path.write_bytes(content)
    assert torch.equal(read_weights(path, was)["weight"], torch.ones(3))
    path.write_bytes(content[:-1] if "cut" in harm else content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ValueError, match=r"encoder\.safetensors is damaged .*; run its recipe again"):
        read_weights(path, was)


VALUES = (None, True, 5, -1, 0, 2**63, 10**400, 0.5, 1e300, "x", [], [1], [None], [0, 28, 28], {}, {"name": 5}, [[1]])


def test_a_card_of_other_types_is_damaged(tmp_path: Path) -> None:
    run = run_recipe(recipe("supcon", tmp_path, encoder="mlp", **SHORT).override({"encoder.hidden": 8})).path
    whole = json.loads((run / "model.json").read_text())
    ways = [(), ("encoder",), ("input",), *(("encoder", key) for key in (*whole["encoder"], "strange", "seed"))]
    ways += [("input", key) for key in whole["input"]]
    told = 0
    for way, value in itertools.product(ways, VALUES):
        harmed = copy.deepcopy(whole)
        inside: Any = harmed
        for key in way[:-1]:
            inside = inside[key]
        if way:
            inside[way[-1]] = value
        (run / "model.json").write_text(json.dumps(harmed if way else value))
        with contextlib.suppress(ValueError):
            load(run)
            continue
        told += 1
    assert told > len(ways) * len(VALUES) // 2
    for value in ("x", 5, None, {"kind": "image"}, {**whole["input"], "shape": [1, "x", 28]}):
        (run / "model.json").write_text(json.dumps({**whole, "input": value}))
        with pytest.raises(ValueError, match=r"model\.json is damaged \(.*\); run its recipe again"):
            load(run)
