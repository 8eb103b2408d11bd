"""A command and a worker set how OpenMP's threads wait, an import does not, and a user's own value wins."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kontrast import openmp
from tests.cli.asking import ask

COMMAND = """
import os, runpy, sys
sys.argv = ["kontrast", "--version"]
try:
    START
except SystemExit:
    pass
assert "torch" not in sys.modules, "a command must set the policy before torch is loaded"
import torch
loaded = open("/proc/self/maps").read() if os.path.exists("/proc/self/maps") else ""
print("libgomp" if "libgomp" in loaded else "another", os.environ.get("GOMP_SPINCOUNT"))
"""
STARTS = ("from kontrast.cli import main; main()", "runpy.run_module('kontrast', run_name='__main__')")


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process whose environment says nothing of how threads wait, but for ``variables``."""
    environment = {name: value for name, value in os.environ.items() if name not in openmp.VARIABLES}
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env={**environment, **variables})
    assert done.returncode == 0, done.stderr
    return done


WITHOUT_TORCH = COMMAND.replace("import torch\n", "")


def test_a_command_sets_it_before_torch_reads_it() -> None:
    done = python(COMMAND.replace("START", STARTS[0]), OMP_DISPLAY_ENV="VERBOSE")
    runtime, spins = done.stdout.split()[-2:]
    assert spins == str(openmp.SPINS)
    if runtime == "libgomp":  # it prints what it has read
        assert f"GOMP_SPINCOUNT = '{openmp.SPINS}'" in done.stderr


def test_so_does_python_with_m() -> None:
    assert python(WITHOUT_TORCH.replace("START", STARTS[1])).stdout.split()[-1] == str(openmp.SPINS)


@pytest.mark.parametrize(
    ("name", "value", "spins"), [("OMP_WAIT_POLICY", "ACTIVE", "None"), ("GOMP_SPINCOUNT", "77", "77")]
)
def test_a_users_value_wins(name: str, value: str, spins: str) -> None:
    done = python(WITHOUT_TORCH.replace("START", STARTS[0]), **{name: value})
    assert done.stdout.split()[-1] == spins


def test_an_import_sets_nothing() -> None:
    done = python(
        "import os, kontrast.losses, kontrast.pipeline, kontrast.cli, kontrast.experiments.engines.local\n"
        "print(sorted(set(os.environ) & {'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY', 'KMP_BLOCKTIME'}))"
    )
    assert done.stdout.strip() == "[]"


def test_a_command_called_in_a_program_with_torch_sets_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in openmp.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert "torch" in sys.modules
    assert ask(monkeypatch, capsys, "--version").status == 0
    assert not set(openmp.VARIABLES) & set(os.environ)


def test_a_run_from_python_sets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kontrast
    from tests.train.small import recipe

    for name in openmp.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    kontrast.run(recipe("supcon", tmp_path, **{"train.epochs": 1}))
    assert not set(openmp.VARIABLES) & set(os.environ)
