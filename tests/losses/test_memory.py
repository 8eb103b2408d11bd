"""Memory is a fixed budget plus c·N·D: peak bytes and bytes kept for backward, each size in a fresh process."""

from __future__ import annotations

import subprocess
import sys

import pytest

BUDGET = 160e6
DIM = 64

# Counts the bytes autograd holds on to between the passes, and the rise of the process's peak over one step; each loss
# in a fork of its own, so that the libraries are imported once.
CHILD = """
import os, re, sys, torch
from pathlib import Path
from kontrast import losses
n, dim, names = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

def peak(): return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
def now(): return 1024 * int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def call(name, n):
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

def measure(name):
    torch.set_num_threads(2)
    call(name, 64)().backward()
    step, kept = call(name, n), {}

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
    print(peak() - before, held, flush=True)

for name in names:
    child = os.fork()
    if child == 0:
        measure(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} failed")
"""


def check(names: list[str], n: int) -> None:
    command = [sys.executable, "-c", CHILD, str(n), str(DIM), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = 4 * n * DIM
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        peak, held = map(int, line.split())
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


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")


@linux
def test_budget_at_4096() -> None:
    check(FEW, 4096)


@linux
@pytest.mark.slow
def test_budget_where_blocks_are_no_longer_kept() -> None:
    check(["supcon"], 12288)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("n", [2048, 4096, 8192, 16384, 32768])
def test_budget_from_2048_to_32768(n: int) -> None:
    check(EVERY, n)
