"""Optimisers that do not load torch's compiler step as torch's own do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kontrast import eager

KINDS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
    "AdamW": {"lr": 0.1},
    "LBFGS": {"lr": 0.5, "line_search_fn": "strong_wolfe"},
}
LOADED, NOT_LOADED = {"torch._dynamo": object()}, dict[str, object]()


def trained(kind: Any, options: dict[str, Any]) -> list[float]:
    """A few steps on a bowl, through a saved state."""
    x = torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    optimiser, path = kind([x], **options), []

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        value = (x.square() * torch.tensor([1.0, 4.0])).sum()
        value.backward()
        return value.detach()

    for _ in range(3):
        path.append(float(optimiser.step(closure)))
        again = kind([x], **options)
        again.load_state_dict(optimiser.state_dict())
        optimiser = again
    return [*path, *x.tolist()]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("modules", [LOADED, NOT_LOADED], ids=["loaded", "not loaded"])
def test_steps_are_torchs_own(name: str, modules: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = getattr(torch.optim, name)
    expected = trained(theirs, KINDS[name])
    ours = eager.eager(type(name, (theirs,), {}))
    monkeypatch.setattr(eager, "sys", SimpleNamespace(modules=modules))
    assert trained(ours, KINDS[name]) == expected
    assert expected[2] < expected[0]


@pytest.mark.parametrize("modules", [LOADED, NOT_LOADED], ids=["loaded", "not loaded"])
def test_hooks_of_a_step_run_once(modules: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where torch has hooked the ancestor's step already, as it does when that has an instance."""
    x = torch.nn.Parameter(torch.ones(2))
    x.grad = torch.ones(2)
    torch.optim.SGD([x], lr=0.1)
    monkeypatch.setattr(eager, "sys", SimpleNamespace(modules=modules))
    optimiser, calls = eager.eager(type("SGD", (torch.optim.SGD,), {}))([x], lr=0.1), []
    optimiser.register_step_pre_hook(lambda *_: calls.append("before"))
    optimiser.register_step_post_hook(lambda *_: calls.append("after"))
    optimiser.step()
    assert calls == ["before", "after"]


WHOLE_RUN = """
import sys
from kontrast.pipeline import run_recipe
from kontrast.recipe import Recipe
from kontrast import optim, recipes
import torch
for name in optim.OPTIMIZERS.names():
    module = torch.nn.Linear(2, 2)
    module(torch.ones(1, 2)).sum().backward()
    optim.optimizer(name, module, lr=0.1).step()
small = {"train.epochs": None, "train.steps": 2, "train.batch_size": 16, "data.limit": 64, "data.test_limit": 30}
run = run_recipe(recipes.recipe("supcon-fashion-mini", **small, **{"run.out": sys.argv[1], "run.progress": False}))
print("torch._dynamo" in sys.modules, *(result["name"] for result in run.result["results"]))
"""


def test_a_run_does_not_load_the_compiler(tmp_path: Path) -> None:
    """Training, a linear probe, which is fitted by L-BFGS, and the measuring of an encoder's memory."""
    done = subprocess.run([sys.executable, "-c", WHOLE_RUN, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded, *protocols = done.stdout.split()
    assert loaded == "False"
    assert {"knn20", "probe"} <= set(protocols)
