"""scripts/compare_trees: what it takes for equal, and that it sees the last bit of a changed tree."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "compare_trees"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("compare_trees", str(SCRIPT))
    spec = importlib.util.spec_from_loader("compare_trees", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_equal_values_do_not_differ(script: ModuleType) -> None:
    value = {"loss": torch.arange(3.0), "nan": float("nan"), "time": 1.0}
    later = {"loss": torch.arange(3.0), "nan": float("nan"), "time": 2.0}
    assert list(script.differences(script.flatten(value, "x"), script.flatten(later, "x"))) == []


def test_the_last_bit_of_a_tensor_differs(script: ModuleType) -> None:
    one = torch.ones(4, dtype=torch.float64)
    other = one.clone()
    other[2] = torch.nextafter(other[2], torch.tensor(2.0, dtype=torch.float64))
    (line,) = script.differences(script.flatten({"w": one}, "x"), script.flatten({"w": other}, "x"))
    assert line.startswith("x/w: float64[4] ")


def test_a_value_that_only_one_tree_has_is_listed(script: ModuleType) -> None:
    found = list(script.differences({"a": 1, "b": 2}, {"b": 2, "c": 3}))
    assert found == ["a: only in the tagged tree", "c: only in the working tree"]


def test_records_are_matched_by_their_names(script: ModuleType) -> None:
    before = script.flatten([{"name": "one", "value": 1}], "x")
    after = script.flatten([{"name": "zero", "value": 0}, {"name": "one", "value": 1}], "x")
    assert all("x/zero/" in line for line in script.differences(before, after))


def test_what_is_meant_to_differ_does_not_count(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "MEANT", {"losses/*": "another order of the sum"})
    assert script.report(["losses/a: 1 became 2", "runs/b: 1 became 2"]) == 1
    assert "meant: another order of the sum" in capsys.readouterr().out


@pytest.mark.slow
def test_a_changed_tree_is_seen(tmp_path: Path) -> None:
    """The working tree against a copy of itself in which one loss is another."""
    copy = tmp_path / "copy"
    for name in ("src", "scripts", "tests/experiments/ledger"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for words in (["init", "--quiet"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=copy, check=True)
    loss = copy / "src" / "kontrast" / "losses" / "simplex_cross_entropy.py"
    command = [sys.executable, str(copy / "scripts" / "compare_trees"), "--tag", "HEAD", "--only", "losses"]
    same = subprocess.run(command, capture_output=True, text=True)
    assert same.returncode == 0, same.stdout + same.stderr
    text = loss.read_text()
    assert "radius=self.radius" in text
    loss.write_text(text.replace("radius=self.radius", "radius=1.001 * self.radius"))
    changed = subprocess.run(command, capture_output=True, text=True)
    assert changed.returncode == 1
    lines = [line for line in changed.stdout.splitlines() if " became " in line]
    assert lines
    assert all(line.startswith("losses/SimplexCrossEntropyLoss") for line in lines)
