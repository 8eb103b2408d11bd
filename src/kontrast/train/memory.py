"""Memory: what to do where it does not suffice, and freed memory kept by the process, on a CPU with glibc.

A step allocates and frees the same activations again and again. By default glibc hands large blocks back to the system
at once and gets them anew, every page zeroed and faulted in. Kept, the process holds on to the most it ever needed. How
much that saves depends on what else runs: single steps of the small encoder in a fresh process took 143 ms instead of
156 to 188 (512 views, two threads), whole epochs in `benchmarks/training.py` 3 % less.
"""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # of <malloc.h>
LARGE, PAD = 2**30, 2**26
FULL = re.compile("out of memory|not enough memory|allocate memory|storage size calculation overflowed", re.IGNORECASE)


def out_of_memory(error: BaseException) -> bool:
    """Whether it says so, in Python's words or in one of torch's.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("CUDA out of memory.")), out_of_memory(KeyError("x"))
    (True, True, False)
    """
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(FULL.search(str(error))))


@contextmanager
def suffices(what: str, cure: str) -> Iterator[None]:
    """Within it, too little memory is a `ValueError` that says for what, and what to do.

    >>> with suffices("the queue", "take a smaller one (method.queue)"):
    ...     raise MemoryError
    Traceback (most recent call last):
        ...
    ValueError: there is not enough memory for the queue; take a smaller one (method.queue)
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        raise ValueError(f"there is not enough memory for {what}; {cure}") from error


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
