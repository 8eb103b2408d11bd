"""A queue of past keys: first in, first out, of any length, for batches of any size.

Row j of a batch goes to slot (pointer + j) mod length, and the pointer moves on by the size of the batch. Of a batch
longer than the queue the last rows remain, as if it had come row by row. The slots are random unit vectors at first.

A step reads the queue before it writes to it (sce, MoCo: the batch's own keys are not among its negatives). The
losses keep what they were given until backward, so write after backward, or read a copy with `Queue.read`.

Deviates: the published queues need a length that is a multiple of the batch; this one does not. With several
processes the keys of all ranks are gathered and every rank writes them in the same order, so the queues stay identical.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import distributed
from kontrast.checks import size
from kontrast.sphere import unit_rows


class Queue(nn.Module):
    """A queue of keys: ``rows [length, dim]`` go into a loss as ``negatives`` or ``queue``.

    ``rows`` and ``pointer`` are saved in state_dict.

    Args:
        length: How many keys it holds.
        dim: The length of a key.
        normalize: Whether keys are normalised when they are written.
        gather_distributed: Whether the keys of all ranks are written.
        generator: It draws the first rows; one with seed 0 if left out, the same on every rank.

    Raises:
        ValueError: ``length`` or ``dim`` is below 1.

    >>> queue = Queue(3, 2)
    >>> queue.enqueue(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
    >>> queue.enqueue(torch.tensor([[3.0, 4.0], [-1.0, 0.0]]))
    >>> queue.rows, queue.pointer
    (tensor([[-1.0000,  0.0000],
            [ 0.0000,  1.0000],
            [ 0.6000,  0.8000]]), tensor(1))
    """

    rows: Tensor
    pointer: Tensor

    def __init__(
        self,
        length: int,
        dim: int,
        *,
        normalize: bool = True,
        gather_distributed: bool = True,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        generator = generator or torch.Generator().manual_seed(0)
        length = size("length", length)
        dim = size("dim", dim)
        rows = torch.randn(length, dim, generator=generator)
        self.normalize, self.gather_distributed = normalize, gather_distributed
        self.register_buffer("rows", F.normalize(rows, dim=1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.rows)

    def read(self) -> Tensor:
        """A copy of the rows ``[length, dim]``, safe to keep while the queue moves on."""
        return self.rows.clone()

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Write keys in place of the oldest rows. Every rank must call it.

        Args:
            keys: ``[N, dim]``, any N.

        Raises:
            ValueError: The keys have another shape.
        """
        if keys.ndim != 2 or keys.shape[1] != self.rows.shape[1]:
            raise ValueError(f"keys has shape {list(keys.shape)}: must be [N, {self.rows.shape[1]}]")
        keys = keys.detach().to(self.rows.dtype)
        keys = unit_rows(keys) if self.normalize else keys
        if self.gather_distributed:
            keys = distributed.gather(keys, distributed.row_counts(keys))
        length, late = len(self), max(len(keys) - len(self), 0)
        slots = (self.pointer + torch.arange(late, len(keys), device=keys.device)) % length
        self.rows[slots] = keys[late:]
        self.pointer.copy_((self.pointer + len(keys)) % length)

    def extra_repr(self) -> str:
        return f"length={len(self)}, dim={self.rows.shape[1]}"
