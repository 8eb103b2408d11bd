"""The number of rows that go through a network at once, from the bytes of activation measured on one row.

    (1)  b = most bytes of tensors that are alive at once while one row goes through, without gradient
    (2)  rows = clamp(budget / b, 1, 512)

A row of 28 × 28 pixels in a small network needs some 80 KB, one of 224 × 224 in EfficientNet-Lite0 13 MB. The number
follows from network, row and kind of device alone, not from the memory that happens to be free: the same run has the
same chunks, so it repeats to the bit.

The budget of a CPU is small because larger chunks do not pay there, they leave the caches. EfficientNet-Lite0 took 1.13
s for 64 images of 224 pixels in chunks of 4, 1.49 s in chunks of 16 and 2.95 s in one (one thread); the small ResNet
took 0.28 s for 4,096 images of 28 pixels in chunks of 256 or 512 and 0.54 s in one.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MOST_ROWS = 512
CPU_BUDGET, DEVICE_BUDGET = 2**26, 2**30  # bytes of activations; a GPU needs more rows to be busy
PREPARED = 4  # copies of a row beside its activations: as it was read, as floats, normalised, in the network's layout
UNKNOWN = 32  # rows, where one row alone cannot go through

_bytes_of_rows: weakref.WeakKeyDictionary[nn.Module, dict[Any, int]] = weakref.WeakKeyDictionary()


def peak_bytes(call: Callable[[], object]) -> int:
    """Measure the largest total of bytes, on any device, of the tensors that a call creates and holds at once.

    What exists before (weights, inputs) does not count; work space inside a kernel is not seen. The backward pass is
    seen where the call runs it.

    Args:
        call: Runs what is to be measured.

    Returns:
        The bytes.

    >>> x = torch.zeros(256)
    >>> peak_bytes(lambda: ((x + 1) + 1) + 1)  # 1 KB each, and never more than two
    2048
    """
    live = _Live()
    with live, _eager():
        call()
    return live.peak


def rows_at_once(network: nn.Module, row: Tensor, *, most: int = MOST_ROWS) -> int:
    """The number of rows (2) for ``network(row)``, where ``row [1, …]`` lies on the network's device.

    The network must be in eval mode, since it is called once. The measurement is kept as long as the network lives.

    Args:
        network: In eval mode.
        row: One row ``[1, …]``.
        most: The most rows.

    Returns:
        The number of rows, 1 to ``most``.

    >>> rows_at_once(nn.Flatten(), torch.zeros(1, 3, 8, 8)), rows_at_once(nn.Flatten(), torch.zeros(1, 3, 1024, 1024))
    (512, 1)
    """
    budget = CPU_BUDGET if row.device.type == "cpu" else DEVICE_BUDGET
    bytes_of = _bytes_of_rows.setdefault(network, {})
    key = row.shape, row.dtype, str(row.device), sum(p.numel() for p in network.parameters())
    if key not in bytes_of:
        try:
            with torch.no_grad():
                bytes_of[key] = peak_bytes(lambda: network(row))
        except Exception:  # the call on real rows will raise the error
            return min(most, UNKNOWN)
    return max(1, min(most, budget // max(1, bytes_of[key] + PREPARED * row.nbytes)))


@torch.no_grad()
def in_chunks(network: nn.Module, rows: Tensor, *, device: torch.device, batch_size: int | None = None) -> Tensor:
    """``network(rows)`` without gradient, a chunk at a time; the network is in eval mode on the device.

    Args:
        network: Called on ``[n, …]``; its rows must not depend on each other (eval mode).
        rows: ``[N, …]``, at least one, on any device.
        device: The network's; each chunk is moved there.
        batch_size: Rows at once; None measures (`rows_at_once`).

    Returns:
        What the network gives, joined, on its device.

    >>> in_chunks(nn.Linear(2, 3), torch.zeros(5, 2), device=torch.device("cpu"), batch_size=2).shape
    torch.Size([5, 3])
    """
    chunk = batch_size or rows_at_once(network, rows[:1].to(device))
    return torch.cat([network(part.to(device)) for part in torch.split(rows, chunk)])


@contextmanager
def _eager() -> Iterator[None]:
    """Run compiled modules uncompiled: the tensors inside a compiled one cannot be observed."""
    stance = getattr(torch.compiler, "set_stance", None)  # torch 2.6
    if stance is None or "torch._dynamo" not in sys.modules:  # it would be loaded, for seconds, and nothing is compiled
        yield
        return
    with stance("force_eager"):
        yield


class _Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the storages that operations create, until each is freed."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch loads its compiler at the first operation

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self.storages: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in tree_leaves((args, kwargs)):
            self._count(value, new=False)  # a view of what was there before is not new
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            self._count(value, new=True)
        self.peak = max(self.peak, self.now)
        return out

    def _count(self, value: Any, *, new: bool) -> None:
        if not isinstance(value, Tensor) or value.layout != torch.strided:
            return
        storage = value.untyped_storage()
        key = storage._cdata
        if key in self.storages:
            return
        size = storage.nbytes() if new else 0
        self.storages.add(key)
        self.now += size
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self.storages.discard(key)
        self.now -= size
