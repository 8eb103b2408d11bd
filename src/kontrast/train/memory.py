"""Memory: how much is free, what to do where it does not suffice, and freed memory kept by the process (glibc).

A step allocates and frees the same activations again and again. By default glibc hands large blocks back to the system
at once and gets them anew, every page zeroed and faulted in. Kept, the process holds on to the most it ever needed. How
much that saves depends on what else runs: single steps of the small encoder in a fresh process took 143 ms instead of
156 to 188 (512 views, two threads), whole epochs in `benchmarks/training.py` 3 % less.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import torch

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # of <malloc.h>
LARGE, PAD = 2**30, 2**26
FULL = re.compile("out of memory|not enough memory|allocate memory|storage size calculation overflowed", re.IGNORECASE)


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, in Python's words or in one of torch's.

    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("CUDA out of memory.")), out_of_memory(KeyError("x"))
    (True, True, False)
    """
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(FULL.search(str(error))))


@contextmanager
def explain_out_of_memory(what: str, hint: str) -> Iterator[None]:
    """Turn an out-of-memory error inside into a `ValueError` that names what needed memory, and what to do.

    >>> with explain_out_of_memory("the queue", "take a smaller one (method.queue)"):
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
        raise ValueError(f"there is not enough memory for {what}; {hint}") from error


def free_memory(device: torch.device, *, root: Path = Path("/")) -> int | None:
    """Bytes that this process can still take on a device; None where the system does not say.

    On a CPU the least of what the system has available (MemAvailable), what each control group of the process leaves
    (containers, batch systems) and what ``ulimit -v`` leaves. On a GPU what its driver has free, and what torch holds
    without using it. ``root`` is where the files of the system begin.

    >>> free = free_memory(torch.device("cpu"))
    >>> free is None or free > 0
    True
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory()) - int(torch.mps.driver_allocated_memory())
    limits = [_available(root), *_control_groups(root), _address_space()]
    return min((max(0, free) for free in limits if free is not None), default=None)


def _available(root: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        text = (root / "proc/meminfo").read_text()
        return 1024 * int(text.split("MemAvailable:")[1].split()[0])
    with suppress(OSError, ValueError):  # no Linux: half of what is built in
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _control_groups(root: Path) -> Iterator[int]:
    """What each group that the process is in leaves of its limit, in version 1 and 2; files in cache do not count."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        second = controllers == ""
        if not second and "memory" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" if second else root / "sys/fs/cgroup/memory"
        limit_file, usage_file, cache_key = (
            ("memory.max", "memory.current", "inactive_file")
            if second
            else ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        )
        place = top / path.lstrip("/")
        for group in (place, *place.parents):  # inside a container the path may not be there, the top is
            if not group.is_relative_to(top):
                break
            with suppress(OSError, ValueError):  # "max" is no limit
                stat = dict(entry.split() for entry in (group / "memory.stat").read_text().splitlines())
                usage = int((group / usage_file).read_text()) - int(stat.get(cache_key, 0))
                yield int((group / limit_file).read_text()) - usage


def _address_space() -> int | None:
    """What ``ulimit -v`` leaves; None without such a limit."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return limit - pages * resource.getpagesize()
    return None


@cache
def keep_freed_memory() -> bool:
    """Let the allocator keep freed memory, once for this process; whether it could be set.

    >>> keep_freed_memory() in (True, False)
    True
    """
    if not _has_glibc():
        return False
    mallopt = ctypes.CDLL(None).mallopt
    results = [mallopt(TRIM_THRESHOLD, LARGE), mallopt(TOP_PAD, PAD), mallopt(MMAP_THRESHOLD, LARGE)]
    return bool(all(results))


def release_freed_memory() -> bool:
    """Give freed memory that the allocator keeps back to the system; whether it could be asked to.

    Called where a run goes from one thing to another (data read, trained): 1.5 GB that a training step needed are else
    held while the run is evaluated and its report drawn, and what comes next is added to them.

    >>> release_freed_memory() in (True, False)
    True
    """
    if not _has_glibc():
        return False
    ctypes.CDLL(None).malloc_trim(0)
    return True


@cache  # libc_ver reads the interpreter's file
def _has_glibc() -> bool:
    return platform.system() == "Linux" and platform.libc_ver()[0] == "glibc"
