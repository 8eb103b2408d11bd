r"""Gathering with exact gradients, and what a loss needs to know of its process group.

Each rank r holds n_r rows and computes the loss of its own anchors, L_r, against the candidates of all:

    (1)  L = Σ_r L_r(z_r, C)        C = [z_0; z_1; …; z_{W−1}]

The gradient of L with respect to z_r has the anchor part ∂L_r/∂z_r and the candidate part Σ_q ∂L_q/∂C_r, to
which every rank contributes; `gather` sums the latter over the ranks in its backward pass. DDP then
*averages* the parameter gradients of the ranks, so `total` hands W·∂L to its input and the average is

    (2)  (1/W) Σ_r W (∂L/∂z_r)(∂z_r/∂θ) = ∂L/∂θ

which is the gradient of one process on the concatenated batch, whatever the sizes n_r. Without a process
group every function here is the identity.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from kontrast.registry import quoted

LAUNCHED = ("RANK", "MASTER_ADDR", "MASTER_PORT")  # what torch asks for beside WORLD_SIZE


def active() -> bool:
    """Whether a process group exists in this process.

    >>> active()
    False
    """
    return dist.is_available() and dist.is_initialized()


def rank() -> int:
    """This process's place in the group, 0 without one."""
    return dist.get_rank() if active() else 0


def launched_rank() -> int:
    """The rank that the launcher (torchrun) gave this process, group or not; 0 without one."""
    return rank() if active() else launched()[0]


def launched() -> tuple[int, int]:
    """Rank and number of processes as the launcher's variables say; without any, 0 and 1.

    >>> launched()
    (0, 1)
    """
    rank, size = (_variable(name, default) for name, default in (("RANK", 0), ("WORLD_SIZE", 1)))
    missing = [name for name in LAUNCHED if not os.environ.get(name)]
    if size > 1 and missing:
        raise ValueError(
            f"WORLD_SIZE is {size}, but {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: start "
            f"with torchrun --nproc-per-node={size}, which sets them, or unset WORLD_SIZE for one process"
        )
    return rank, size


def _variable(name: str, default: int) -> int:
    given = os.environ.get(name) or str(default)
    if not given.isdecimal():
        raise ValueError(f"the variable {name} is {quoted(given)}; expected a whole number, as torchrun sets it")
    return int(given)


def world_size() -> int:
    """How many processes the group has, 1 without one."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def row_counts(local: Tensor) -> list[int]:
    """How many rows each rank holds; checks that the ranks agree on everything but the rows."""
    if not active():
        return [len(local)]
    # Of one length whatever the rank holds, so that ranks that disagree all learn of it here.
    header = [local.element_size(), local.ndim, *local.shape, *[0] * (4 - local.ndim)]
    mine = torch.tensor(header, device=local.device)
    headers = [torch.empty_like(mine) for _ in range(world_size())]
    dist.all_gather(headers, mine)
    seen = [(size, shape[:ndim]) for size, ndim, *shape in (h.tolist() for h in headers)]
    if len({(size, *shape[1:]) for size, shape in seen}) > 1:
        forms = ", ".join(f"rank {r} {shape} of {8 * size} bits" for r, (size, shape) in enumerate(seen))
        raise ValueError(f"the ranks hold rows of different shapes or types: {forms}")
    return [shape[0] for _, shape in seen]


def gather(local: Tensor, counts: list[int]) -> Tensor:
    """The rows of every rank, in rank order; the gradient that comes back is summed over the ranks.

    ``counts`` is what `row_counts` returned, so that several tensors of one batch ask for it once.
    """
    return _Gather.apply(local, counts) if active() else local  # type: ignore[no-any-return]


def total(local: Tensor) -> Tensor:
    """The sum over the ranks of a scalar, on every rank; its gradient is right after DDP's averaging (2)."""
    return _Total.apply(local) if active() else local  # type: ignore[no-any-return]


def own(values: Tensor) -> Tensor:
    """This rank's values as they are; their gradient is right after DDP's averaging (2)."""
    return _Own.apply(values) if active() else values  # type: ignore[no-any-return]


def average_gradients(parameters: Iterable[nn.Parameter], bucket: int = 2**24) -> None:
    """The mean over the ranks of every gradient there is, in messages of about ``bucket`` numbers.

    What DDP does, without its hooks: it works after any number of backward passes. The ranks must hold gradients for
    the same parameters.
    """
    average([parameter.grad for parameter in parameters if parameter.grad is not None], bucket)


@torch.no_grad()
def average(tensors: Iterable[Tensor], bucket: int = 2**24) -> None:
    """The mean over the ranks of each tensor, in its place; the ranks must hold the same shapes in the same order."""
    if not active():
        return
    kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault((tensor.dtype, tensor.device), []).append(tensor)
    for alike in kinds.values():
        for some in _buckets(alike, bucket):
            flat = torch.cat([tensor.reshape(-1) for tensor in some])
            dist.all_reduce(flat)
            flat /= world_size()
            start = 0
            for tensor in some:
                tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
                start += tensor.numel()


def any_rank(flag: bool) -> bool:
    """Whether it is true on some rank; every rank must ask.

    >>> any_rank(False), any_rank(True)
    (False, True)
    """
    if not active():
        return flag
    seen = torch.tensor([int(flag)], device="cpu" if dist.get_backend() == "gloo" else "cuda")
    dist.all_reduce(seen)
    return bool(seen.item())


def of_first(value: float) -> float:
    """Rank 0's value, on every rank; the others' own does not matter."""
    if not active():
        return value
    seen = torch.tensor([value if rank() == 0 else 0.0], dtype=torch.float64)
    seen = seen if dist.get_backend() == "gloo" else seen.to("cuda")
    dist.broadcast(seen, 0)
    return float(seen.item())


def least(value: int) -> int:
    """The smallest value of all ranks, on every rank.

    >>> least(7)
    7
    """
    if not active():
        return value
    seen = torch.tensor([value], device="cpu" if dist.get_backend() == "gloo" else "cuda")
    dist.all_reduce(seen, dist.ReduceOp.MIN)
    return int(seen.item())


def processes_here() -> int:
    """How many processes of the group run on this machine and share its memory; all of them, if nobody says.

    >>> processes_here()
    1
    """
    return max(1, _variable("LOCAL_WORLD_SIZE", world_size())) if active() else 1


def share(values: Any) -> Any:
    """Rank 0's object, on every rank; the others' own does not matter."""
    if not active():
        return values
    held = [values if rank() == 0 else None]
    dist.broadcast_object_list(held, 0)
    return held[0]


def wait_for_all(days: float = 7.0) -> None:
    """Returns when every rank has come here, however long one of them takes."""
    if active():
        patient: Any = dist.new_group(backend="gloo", timeout=timedelta(days=days))
        dist.barrier(patient)


def _buckets(tensors: list[Tensor], size: int) -> Iterator[list[Tensor]]:
    some: list[Tensor] = []
    for tensor in tensors:
        some.append(tensor)
        if sum(t.numel() for t in some) >= size:
            yield some
            some = []
    if some:
        yield some


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, counts: list[int]) -> Tensor:
        ctx.counts = counts
        longest = max(counts)
        padded = local.new_zeros((longest, *local.shape[1:]))
        padded[: len(local)] = local
        parts = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(parts, padded)
        return torch.cat([part[:n] for part, n in zip(parts, counts, strict=True)])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        grad = grad.contiguous().clone()
        dist.all_reduce(grad)
        start = sum(ctx.counts[: rank()])
        return grad[start : start + ctx.counts[rank()]], None


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor) -> Tensor:
        whole = local.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * world_size()


class _Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return values.view_as(values)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * world_size()
