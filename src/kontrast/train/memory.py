"""Freed memory kept by the process, on a CPU with glibc.

A step allocates and frees the same activations again and again. By default glibc hands large blocks back to the system
at once and gets them anew, every page zeroed and faulted in. Kept, the process holds on to the most it ever needed. How
much that saves depends on what else runs: single steps of the small encoder in a fresh process took 143 ms instead of
156 to 188 (512 views, two threads), whole epochs in `benchmarks/training.py` 3 % less.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # of <malloc.h>
LARGE, PAD = 2**30, 2**26


@cache
def keep_freed_memory() -> bool:
    """Once for this process; whether the system's allocator could be told.

    >>> keep_freed_memory() in (True, False)
    True
    """
    if platform.system() != "Linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    told = [mallopt(TRIM_THRESHOLD, LARGE), mallopt(TOP_PAD, PAD), mallopt(MMAP_THRESHOLD, LARGE)]
    return bool(all(told))
