r"""The k nearest keys of every query by cosine, exact, in little memory.

    (1)  s_ij = ⟨q_i, c_j⟩/(‖q_i‖‖c_j‖);   for each i the k largest s_ij, equal ones in the order of j

Blocks of queries × keys are multiplied one after the other, and the k best so far are kept. Most of a block is skipped
while it is still in cache: its columns are compared in groups, and only a group whose maximum exceeds the k-th best so
far is searched. (The first block has no k-th best; there the k-th largest maximum of the groups serves, since k groups
reach it.) Each remaining value is packed into one integer, the value's bits above and the key's number below, such
that larger integers are larger values and, at equal values, smaller numbers; one ``topk`` then sorts by both.

A zero row has cosine 0 with everything.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kontrast.checks import unmasked
from kontrast.sphere import directions

QUERIES, KEYS = 512, 4096  # of a block: 8 MB, which stays in cache between product and search
WIDEST = 2**26  # numbers in a block of keys, which is normalised: of rows beyond 16,384 numbers fewer are taken
LOWEST = -(2**63)
LOW = 0xFFFFFFFF


@torch.no_grad()
def nearest(query: Any, keys: Any, k: int) -> tuple[Tensor, Tensor]:
    """Find the k nearest keys of every query (1).

    Args:
        query: ``[M, D]``, a tensor or an array.
        keys: ``[N, D]``.
        k: 1 to N.

    Returns:
        Cosines, float32 ``[M, k]``, descending, and the indices of the keys, int64 ``[M, k]``.

    Raises:
        ValueError: Another shape or type, or another ``k``.

    >>> keys = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [4.0, 0.0]])
    >>> nearest(torch.tensor([[5.0, 0.0]]), keys, 3)
    (tensor([[1.0000, 1.0000, 0.7071]]), tensor([[0, 3, 2]]))
    """
    query, keys = _tensor("query", query), _tensor("keys", keys)
    if query.ndim != 2 or keys.ndim != 2 or query.shape[1] != keys.shape[1]:
        raise ValueError(f"query is {list(query.shape)} and keys {list(keys.shape)}; expected [M, D] and [N, D]")
    if not 1 <= k <= len(keys):
        raise ValueError(f"k={k}: must be 1 to {len(keys)}, the number of keys")
    q = directions(query, torch.float32)
    best = torch.full((len(q), k), LOWEST, dtype=torch.int64, device=q.device)
    fits = 1 << max(6, (WIDEST // max(1, keys.shape[1])).bit_length() - 1)
    width = min(KEYS, fits, 1 << (len(keys) - 1).bit_length())
    buffer = q.new_empty(min(QUERIES, len(q)), width)
    for start in range(0, len(keys), width):
        part = directions(keys[start : start + width], torch.float32)
        for first in range(0, len(q), QUERIES):
            rows = slice(first, min(first + QUERIES, len(q)))
            block = buffer[: rows.stop - rows.start]
            torch.mm(q[rows], part.T, out=block[:, : len(part)])
            block[:, len(part) :] = -torch.inf
            best[rows] = _merge(best[rows], block, start)
    best = best.sort(1, descending=True).values
    return _unpack_value(best), unpack_index(best)


def nearest_others(features: Any, k: int) -> tuple[Tensor, Tensor]:
    """Find the k nearest other rows of every row (1); a row is not its own neighbour, its copies are.

    Args:
        features: ``[N, D]``, a tensor or an array.
        k: 1 to N − 1.

    Returns:
        Cosines, float32 ``[N, k]``, descending, and the rows, int64 ``[N, k]``.

    Raises:
        ValueError: Another shape or type, or another ``k``.

    >>> nearest_others(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), 1)[1].T
    tensor([[1, 0, 0]])
    """
    if not 1 <= k < len(features):
        raise ValueError(f"k={k}: must be 1 to {len(features) - 1}, the number of other rows")
    similarity, rows = nearest(features, features, k + 1)
    own = rows == torch.arange(len(rows), device=rows.device)[:, None]
    own[:, -1] |= ~own.any(1)  # a row with more than k equals may not be among its own nearest
    return similarity[~own].view(-1, k), rows[~own].view(-1, k)


def votes(query: Tensor, keys: Tensor, labels: Tensor, num_classes: int, *, k: int, temperature: float) -> Tensor:
    """Let the k nearest keys vote for their labels, with weights exp(s/τ).

    Args:
        query: ``[M, D]``.
        keys: ``[N, D]``.
        labels: int64 ``[N]``, of the keys.
        num_classes: K.
        k: The number of keys that vote.
        temperature: τ.

    Returns:
        The sum of the weights for each class, up to one factor for each query: float64 ``[M, K]``.

    >>> votes(torch.tensor([[1.0, 0.0]]), torch.eye(2), torch.tensor([1, 0]), 3, k=1, temperature=0.1)
    tensor([[0., 1., 0.]], dtype=torch.float64)
    """
    similarity, index = nearest(query, keys, k)
    s = similarity.double()
    weights = ((s - s[:, :1]) / temperature).exp_()  # the nearest counts 1: nothing overflows
    scores = torch.zeros(len(query), num_classes, dtype=torch.float64, device=query.device)
    return scores.scatter_add_(1, labels[index], weights)


def _tensor(name: str, value: Any) -> Tensor:
    """Convert an array or a list to a tensor on the CPU; tensors stay where they are."""
    if isinstance(value, Tensor):
        return value
    unmasked(name, value)
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} is {type(value).__name__} of {array.dtype}; expected a tensor or array of numbers")
    native = np.ascontiguousarray(array, dtype=np.float64 if array.dtype.itemsize > 4 else np.float32)
    return torch.from_numpy(native if native.flags.writeable else native.copy())  # torch warns of read-only memory


def _merge(best: Tensor, block: Tensor, start: int) -> Tensor:
    """Merge the k best so far ``[n, k]`` with a block ``[n, width]`` whose first column is key ``start``."""
    n, k = best.shape
    width = block.shape[1]
    group = _group(width, k)
    grouped = block.view(n, group, width // group)  # a group's members lie width/group apart: quick to take maxima of
    maxima = grouped.amax(1)
    if start >= k:
        least = _unpack_value(best.amin(1, keepdim=True))
        row, column = (maxima > least).nonzero().unbind(1)
    else:
        enough = maxima.shape[1] >= k
        least = maxima.topk(k, dim=1).values[:, -1:] if enough else torch.full_like(maxima[:, :1], -torch.inf)
        row, column = (maxima >= least).nonzero().unbind(1)
    values = grouped[row, :, column]  # [P, group]
    floor = least[row]
    inside = values > floor if start >= k else (values >= floor) & (values > -torch.inf)  # −∞ fills the block up
    place, member = inside.nonzero().unbind(1)
    if not len(place):
        return best
    candidates = pack(values[place, member], start + member * (width // group) + column[place])
    row = row[place]
    counts = torch.bincount(row, minlength=n)
    before = (counts.cumsum(0) - counts)[row]  # nonzero() goes row by row
    table = torch.full((n, int(counts.max())), LOWEST, dtype=torch.int64, device=best.device)
    table[row, torch.arange(len(row), device=best.device) - before] = candidates
    return torch.cat([best, table], 1).topk(k, dim=1, sorted=False).values


def _group(width: int, k: int) -> int:
    """How many columns a group has, a power of two as the width is. Larger ones give fewer maxima to compare and more
    values to look through behind each; about √(width/k) takes the least time."""
    return min(64, 1 << round(math.log2(max(1.0, (width / k) ** 0.5))))


def pack(value: Tensor, index: Tensor) -> Tensor:
    """Pack float32 values and their indices into integers of the same order; at equal values smaller indices win.

    >>> unpack_index(pack(torch.tensor([0.5, -1.0, 0.5]), torch.arange(3)).sort(descending=True).values)
    tensor([0, 2, 1])
    """
    bits = (value + 0.0).view(torch.int32)  # −0 becomes 0
    sortable = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # below 0 larger bits are smaller values
    return (sortable.to(torch.int64) << 32) | (LOW - index)


def unpack_index(packed: Tensor) -> Tensor:
    """Read the indices from packed integers."""
    return LOW - (packed & LOW)


def _unpack_value(packed: Tensor) -> Tensor:
    """Read the values from packed integers."""
    sortable = (packed >> 32).to(torch.int32)
    return (sortable ^ ((sortable >> 31) & 0x7FFFFFFF)).view(torch.float32)
