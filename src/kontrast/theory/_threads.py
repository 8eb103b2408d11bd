"""Many small steps in one thread: on a busy machine threads that wait for each other take ten times as long."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """torch in one thread within (``when`` that is wanted), in as many as before afterwards; a decorator too.

    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if when:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
