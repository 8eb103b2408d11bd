"""Freed memory is kept, and used again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kontrast.train.memory import keep_freed_memory

FAULTS = """
import resource, sys
import torch
if sys.argv[1] == "keep":
    from kontrast.train.memory import keep_freed_memory
    assert keep_freed_memory()
torch.set_num_threads(1)
for _ in range(3):
    torch.ones(16_000_000).sum()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(16_000_000).sum()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="the allocator is not glibc's")
def test_a_block_of_64_mb_is_not_faulted_in_again() -> None:
    """Ten times 64 MB are 156,250 pages of 4 KB (or 320 of 2 MB): by default faulted in each time, kept never."""
    assert faults("keep") * 20 < faults("default")
