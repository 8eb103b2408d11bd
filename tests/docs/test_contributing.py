"""The files of docs/contributing.md: each can be imported; the loss passes the contract of every loss."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from kontrast import losses
from tests.docs.commands import ROOT
from tests.docs.loading import DOCS
from tests.losses import test_contract as contract
from tests.losses.cases import Case, forms

PAGE = (DOCS / "contributing.md").read_text(encoding="utf-8")
FILE = re.compile(r"<!-- file: src/kontrast/losses/(\w+)\.py -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILES = dict(re.findall(r"<!-- file: src/(\S+)\.py -->\n```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
CONTRACT = """
import sys
import kontrast.losses
kontrast.losses.__path__.append(sys.argv[1])
import pytest
sys.exit(pytest.main([*sys.argv[2:], "-q", "-p", "no:cacheprovider", "tests/losses/test_contract.py"]))
"""


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the page's file in it, as if it lay among the losses."""
    ((name, text),) = FILE.findall(PAGE)
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(losses, "__path__", [*losses.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"kontrast.losses.{name}", raising=False)
    yield tmp_path
    sys.modules.pop(f"kontrast.losses.{name}", None)


def test_the_file_alone_makes_it_known(added: Path) -> None:
    loss = losses.FAMILY["decoupled"](temperature=0.5, reduction="none")
    draw = torch.Generator().manual_seed(0)
    query, key = (F.normalize(torch.randn(5, 3, generator=draw, dtype=torch.float64), dim=1) for _ in range(2))
    literal = [
        -query[i] @ key[i] / 0.5 + torch.log(sum(torch.exp(query[i] @ key[j] / 0.5) for j in range(5) if j != i))
        for i in range(5)
    ]
    torch.testing.assert_close(loss(query, key), torch.stack(literal))  # float64: the default tolerance of 1e-7


def test_it_is_formatted_and_without_a_finding(added: Path) -> None:
    for words in (["format", "--check"], ["check"]):
        call = [sys.executable, "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml"), str(added)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FILES)
def test_each_file_of_the_page_is_imported_and_without_a_finding(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the module that it would be."""
    package, _, name = path.replace("/", ".").rpartition(".")
    (tmp_path / f"{name}.py").write_text(FILES[path], encoding="utf-8")
    folders = importlib.import_module(package).__path__
    monkeypatch.setattr(sys.modules[package], "__path__", [*folders, str(tmp_path)])
    module = importlib.import_module(f"{package}.{name}")
    monkeypatch.delitem(sys.modules, f"{package}.{name}")
    if "EXPERIMENTS" not in vars(module):
        assert len([c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]) == 1
    for words in (["format", "--check"], ["check"]):
        call = [sys.executable, "-m", "ruff", *words, "--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_heart_of_the_contract_of_every_loss_holds_for_it(added: Path) -> None:
    for case in (Case("decoupled", form) for form in forms("decoupled")):
        contract.test_tiled_is_reference_per_anchor_and_gradient(case)
        contract.test_tiled_is_reference_at_other_temperatures_and_norms(case)
        contract.test_mean_and_sum_reduce_the_values(case)
        contract.test_low_precision_inputs_are_computed_in_float32(case)


@pytest.mark.slow
def test_the_contract_of_every_loss_holds_for_it(added: Path) -> None:
    call = [sys.executable, "-c", CONTRACT, str(added), "-k", "decoupled"]
    done = subprocess.run(
        call, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "120"}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10
