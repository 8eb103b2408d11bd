"""The rows that measures compare: checked, detached and normalised; their classes; their similarities by blocks.

Similarities are computed in one buffer that every block reuses: never are all N² of them held.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import integer_labels, number, rows, same_shape, unmasked
from kontrast.sphere import directions, sized

P = ParamSpec("P")
R = TypeVar("R")

FEW = 30  # below this a mean's standard error is itself not known to a fifth
SIDE = 2048  # of a square block of similarities: 16 MB in float32
STRIP = 48 * 2**20  # bytes of a strip of whole rows
HIDDEN = -1e30  # stands for −∞ where 0·(−∞) would be NaN


class TooFewSamples(UserWarning):
    """The warning of a measure that was computed on so few samples that it says little.

    >>> issubclass(TooFewSamples, UserWarning)
    True
    """


def measure(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a measure: compute it without gradients, and in full precision under autocast."""
    without_gradient: Callable[P, R] = torch.no_grad()(full_precision(function))
    return without_gradient


def as_rows(name: str, x: Any, *, normalize: bool, like: Tensor | None = None, any_size: bool = False) -> Tensor:
    """Check a tensor or array ``[N, D]``: finite, in computing precision; ``normalize`` makes its rows unit rows.

    ``any_size``: the measure accepts rows of any size, because it rescales them all with `sized`.
    """
    if isinstance(x, np.ndarray):
        unmasked(name, x)
        if x.dtype.kind != "f":
            raise ValueError(f"{name} must hold floating point numbers, got an array of {x.dtype}")
        native = np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("=") if x.itemsize <= 8 else np.float64)
        x = torch.from_numpy(native if native.flags.writeable else native.copy())  # torch warns of read-only memory
    x = rows(name, x, like=like).detach()
    if len(x) == 0:
        raise ValueError(f"{name} has shape {list(x.shape)}: there is nothing to measure; expected at least one row")
    finite = x.isfinite().all(1)
    if not bool(finite.all()):
        bad = int((~finite).sum())
        first = int((~finite).nonzero()[0])
        raise ValueError(
            f"{name} holds NaN or infinity in {bad} of {len(x)} rows (first: row {first}): leave them out, or see "
            f"why the encoder makes them"
        )
    if not (normalize or any_size) and float(x.abs().max()) > 1e100:
        raise ValueError(f"{name} holds numbers up to {float(x.abs().max()):.0e}, whose squares overflow: scale them")
    return directions(x) if normalize else x


def parts(x: Tensor, height: int = 8192) -> Iterator[tuple[slice, Tensor]]:
    """Iterate over the rows a part at a time in float64: all at once they would take twice the features' memory."""
    for start in range(0, len(x), height):
        r = slice(start, min(start + height, len(x)))
        yield r, x[r].double()


@dataclass(frozen=True)
class Classes:
    """Labels as 0 … K−1 in the order of their values, with the values."""

    index: Tensor  # [N]
    values: list[int]  # what each class is called
    counts: Tensor  # [K]

    def __len__(self) -> int:
        return len(self.values)

    def sums(self, x: Tensor) -> Tensor:
        """Sum the rows of each class, ``[K, D]``, in float64: classes can be large."""
        sums = torch.zeros(len(self), x.shape[1], dtype=torch.float64, device=x.device)
        for r, part in parts(x):
            sums.index_add_(0, self.index[r], part)
        return sums

    def means(self, x: Tensor) -> Tensor:
        """The class means, ``[K, D]``, float64."""
        return self.sums(x) / self.counts[:, None]


def check_classes(labels: Any, x: Tensor, *, least: int = 1) -> Classes:
    """Check the labels of rows; there must be at least ``least`` classes."""
    values, index, counts = torch.unique(
        integer_labels("labels", labels, len(x), x.device), return_inverse=True, return_counts=True
    )
    if len(values) < least:
        raise ValueError(f"labels hold {len(values)} class ({values.tolist()}); this measure compares at least {least}")
    return Classes(index, values.tolist(), counts)


def check_weights(weights: Any, x: Tensor, classes: Classes) -> Tensor:
    """A classifier's weights ``[K, D]``, a row for each class, in float64; rescaled where squares would overflow."""
    w = as_rows("weights", weights, normalize=False, like=x, any_size=True)
    if len(w) != len(classes):
        raise ValueError(
            f"weights has shape {list(w.shape)}, one row a class, but labels hold {len(classes)} classes: "
            f"pass features of every class, or the rows of those present"
        )
    return sized(w)[0].double()


def one_or_many(
    name: str, value: Any, *, above: float | None = None, least: float | None = None
) -> tuple[list[float], bool]:
    """Check a number or several (sequence, array, tensor); returns a list of floats, and whether it was one number."""
    if isinstance(value, Tensor | np.ndarray):
        value = value.tolist()
    is_single = not isinstance(value, Sequence) or isinstance(value, str)
    values = [value] if is_single else list(value)
    if not values:
        raise ValueError(f"{name} is empty: give a number, or several")
    return [number(name, x, above=above, least=least) for x in values], is_single


def warn_if_few(samples: int, least: int, what: str) -> None:
    """Warn that a measure rests on few samples, at the caller's line."""
    if samples < least:
        message = f"{what}: {samples}, fewer than {least}; the value says little"
        warnings.warn(message, TooFewSamples, stacklevel=_frames_inside() + 1)


def _frames_inside() -> int:
    """Count the calls between this one and the code outside this package (and outside the decorators it uses)."""
    frame, depth = sys._getframe(1), 1
    inside = ("kontrast.", "torch.", "contextlib", "functools")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame, depth = frame.f_back, depth + 1
    return depth - 1


def check_indices(name: str, index: Any, of: Tensor, rows_of: str = "features", length: int | None = None) -> Tensor:
    """Check row numbers of ``of``: exactly ``length`` of them, or at least one."""
    if length is None:
        length = len(index) if hasattr(index, "__len__") else 1
    numbers: Tensor = integer_labels(name, index, length, of.device)
    if length == 0:
        raise ValueError(f"{name} is empty: name at least one row")
    least, most = (int(end) for end in numbers.aminmax())
    if least < 0 or most >= len(of):
        raise ValueError(f"{name} holds {least} … {most}, but {rows_of} has rows 0 … {len(of) - 1}")
    return numbers


def as_tensor(x: Any) -> Tensor:
    """Convert an array, a list or a tensor to a tensor of floating point numbers."""
    tensor: Tensor = torch.as_tensor(x)
    return tensor if tensor.is_floating_point() else tensor.double()


def check_keys(
    query: Any, key: Any, negatives: Any, own_index: Any, *, normalize: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Check queries, keys and negatives.

    Returns queries, keys, candidates, and each query's own row among the candidates; None if no query is among them.
    """
    query = as_rows("query", query, normalize=normalize)
    key = as_rows("key", key, normalize=normalize, like=query)
    same_shape("query", query, "key", key)
    if negatives is None:
        if own_index is not None:
            raise ValueError("own_index names rows of negatives, but negatives is None")
        if len(key) < 2:
            raise ValueError("one query and its key alone have no negatives: pass more rows, or negatives")
        return query, key, key, torch.arange(len(query), device=query.device)
    negatives = as_rows("negatives", negatives, normalize=normalize, like=query)
    if own_index is None:
        return query, key, negatives, None
    own_rows = check_indices("own_index", own_index, negatives, "negatives", length=len(query))
    if len(negatives) < 2:
        raise ValueError("the only row of negatives is the anchor's own: nothing is left to compare with")
    return query, key, negatives, own_rows


# ----------------------------------------------------------------------------------------------- blocks of similarities


def square_blocks(x: Tensor, side: int | None = None) -> Iterator[tuple[slice, slice, Tensor]]:
    """Iterate over ``x x^T`` by blocks on and above the diagonal: rows, columns, block (which may be overwritten)."""
    side = side or SIDE
    buffer = x.new_empty(min(side, len(x)) ** 2)
    starts = range(0, len(x), side)
    for i in starts:
        for j in starts[i // side :]:
            r, c = slice(i, min(i + side, len(x))), slice(j, min(j + side, len(x)))
            shape = (r.stop - r.start, c.stop - c.start)
            block = buffer[: shape[0] * shape[1]].view(shape)
            torch.mm(x[r], x[c].T, out=block)
            yield r, c, block


def strips(query: Tensor, candidates: Tensor, own_rows: Tensor | None = None) -> Iterator[tuple[slice, Tensor]]:
    """Iterate over ``query candidates^T`` by strips of whole rows, with each query's own entry hidden.

    The caller may overwrite a strip.
    """
    height = max(16, min(1024, STRIP // (candidates.element_size() * len(candidates))))
    height = min(height, len(query))
    buffer = query.new_empty(height * len(candidates))
    for start in range(0, len(query), height):
        r = slice(start, min(start + height, len(query)))
        s = buffer[: (r.stop - r.start) * len(candidates)].view(-1, len(candidates))
        torch.mm(query[r], candidates.T, out=s)
        if own_rows is not None:
            s.scatter_(1, own_rows[r, None], HIDDEN)
        yield r, s


def largest(s: Tensor, k: int, group: int = 64) -> Tensor:
    """The k largest of each row, in descending order; equal to ``topk`` and several times as fast on long rows.

    The k largest lie in at most k groups of neighbours, and these groups have the largest maxima. So the maxima are
    compared first, and only k groups are searched.
    """
    end = s.shape[1] // group * group
    if s.shape[1] < 4 * group * k:
        return s.topk(k, dim=1).values
    grouped = s[:, :end].view(len(s), -1, group)
    groups = grouped.amax(2).topk(k, dim=1, sorted=False).indices
    inside = grouped.gather(1, groups[:, :, None].expand(-1, -1, group)).flatten(1)
    return torch.cat([inside, s[:, end:]], dim=1).topk(k, dim=1).values
