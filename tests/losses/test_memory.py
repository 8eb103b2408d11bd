"""Memory is a fixed budget plus c·N·D: peak bytes and bytes kept for backward, each size in a fresh process."""

from __future__ import annotations

import subprocess
import sys

import pytest

BUDGET = 160e6
DIM = 64

# Counts the bytes autograd holds on to between the passes, and the rise of the process's peak over one step.
CHILD = """
import re, sys, torch
from pathlib import Path
from kontrast import losses
torch.set_num_threads(2)
name, n, dim = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def peak(): return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
def now(): return 1024 * int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def call(n):
    generator = torch.Generator().manual_seed(0)
    rows = lambda m: torch.randn(m, dim, generator=generator)
    x = rows(n).requires_grad_()
    labels = torch.arange(n) % 10
    both = losses.InfoNCELoss(negatives_in_batch=True)
    step = {
        "supcon": lambda: losses.SupConLoss()(x, labels),
        "supcon none": lambda: losses.SupConLoss(reduction="none")(x, labels).sum(),
        "supcon cold": lambda: losses.SupConLoss(0.005)(x, labels),
        "supcon in": lambda: losses.SupConLoss(form="in")(x, labels),
        "tcl": lambda: losses.TCLLoss()(x, labels),
        "nt_xent": lambda: losses.NTXentLoss()(x[: n // 2], x[n // 2 :]),
        "info_nce": lambda y=rows(n).requires_grad_(): losses.InfoNCELoss()(x, y),
        "info_nce both": lambda y=rows(n).requires_grad_(), h=rows(n): both(x, y, h),
        "hard": lambda y=rows(n): losses.HardContrastiveLoss(hard_negatives=64)(x, y),
        "sce": lambda y=rows(n): losses.SCELoss()(x, y),
        "ressl": lambda y=rows(n): losses.ReSSLLoss()(x, y),
    }[name]
    return step

call(64)().backward()
step = call(n)
kept = {}
def pack(t):
    storage = t.untyped_storage()
    kept[storage.data_ptr()] = storage.nbytes()
    return t
before = now()
Path("/proc/self/clear_refs").write_text("5")
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    loss = step()
held = sum(kept.values())
loss.backward()
print(peak() - before, held)
"""


def measure(name: str, n: int) -> tuple[int, int]:
    command = [sys.executable, "-c", CHILD, name, str(n), str(DIM)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, held = map(int, done.stdout.split())
    return peak, held


def check(name: str, n: int) -> None:
    rows = 4 * n * DIM
    peak, held = measure(name, n)
    assert held <= 12 * rows, f"{name} keeps {held / rows:.1f} × N·D for backward at N = {n}"
    assert peak <= BUDGET + 20 * rows, f"{name} peaks at {peak / 1e6:.0f} MB at N = {n}"
    assert held >= rows, "nothing was kept, so nothing was counted"


EVERY = [
    "supcon",
    "supcon none",
    "supcon cold",
    "supcon in",
    "tcl",
    "nt_xent",
    "info_nce",
    "info_nce both",
    "hard",
    "sce",
    "ressl",
]
FEW = ["supcon", "tcl", "info_nce", "sce"]  # of each shape of its memory one


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    "name", [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in EVERY]
)
def test_budget_at_4096(name: str) -> None:
    check(name, 4096)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.slow
def test_budget_where_blocks_are_no_longer_kept() -> None:
    check("supcon", 12288)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("n", [2048, 8192, 16384, 32768])
def test_budget_from_2048_to_32768(name: str, n: int) -> None:
    check(name, n)
