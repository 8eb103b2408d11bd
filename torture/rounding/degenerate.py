"""Inputs that break losses: rows that are equal, opposite, zero, huge or tiny, and labels all equal or all different.

The same row may stand everywhere (`ONE_ROW`), so that every similarity is 1 or −1; in "opposed views" the positive of
each anchor is its opposite, where a loss is largest.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import torch
from tests.losses.cases import EMBEDDINGS, Case, D
from torch import Tensor

Inputs = dict[str, Tensor]
Rows = Callable[[Tensor, torch.dtype], Tensor]

HUGE = {torch.float16: 1e4, torch.bfloat16: 1e25, torch.float32: 1e25, torch.float64: 1e200}  # squares overflow
TINY = {torch.float16: 1e-4, torch.bfloat16: 1e-15, torch.float32: 1e-15, torch.float64: 1e-100}


def _column(x: Tensor, numbers: Tensor) -> Tensor:
    """One number a row, shaped to multiply x."""
    return numbers.to(x.dtype).view(-1, *[1] * (x.ndim - 1))


ROWS: dict[str, Rows] = {
    "ordinary": lambda x, dtype: x,
    "equal": lambda x, dtype: x,  # of one row, see inputs_of
    "opposite": lambda x, dtype: x * _column(x, 1.0 - 2.0 * (torch.arange(len(x)) % 2)),
    "opposed views": lambda x, dtype: x * torch.tensor([1.0, -1.0, 1.0])[: x.shape[1], None] if x.ndim == 3 else x,
    "duplicated": lambda x, dtype: x[torch.arange(len(x)) // 2],
    "zero": lambda x, dtype: torch.zeros_like(x),
    "one zero row": lambda x, dtype: x * _column(x, torch.arange(len(x)) != 2),
    "huge": lambda x, dtype: x * HUGE[dtype],
    "tiny": lambda x, dtype: x * TINY[dtype],
}
LABELS: dict[str, Callable[[Tensor], Tensor]] = {
    "one class": torch.zeros_like,
    "one row a class": lambda labels: torch.arange(len(labels)),
}
INPUTS = (*ROWS, *LABELS)
ONE_ROW = ("equal", "opposite")  # every tensor of the call holds the same row: positives, negatives and queue alike
TIES = (*ONE_ROW, "duplicated", "zero")


def inputs_of(case: Case, kind: str, dtype: torch.dtype, *, known: Container[str], scale: float) -> Inputs | None:
    """The inputs of a case, made degenerate, its rows times ``scale``; ``known`` are the loss's options.

    None where there are none such: labels of a loss that takes none, more classes than it knows, rows that the dtype
    does not hold.
    """
    inputs = case.inputs(seed=21)
    labelled = [k for k in inputs if k in ("labels", "ref_labels")]
    if kind in LABELS and (not labelled or (kind == "one row a class" and "num_classes" in known)):
        return None
    rows = [k for k in inputs if k in EMBEDDINGS]
    first = inputs[rows[0]]
    for number, name in enumerate(rows):
        x = inputs[name]
        if kind in ONE_ROW:
            x = first.reshape(-1, D)[:1].expand_as(x)
        if kind == "opposed views" and number == 1 and x.shape == first.shape:
            x = -first
        if kind == "opposed views" and x.ndim == 3:
            x = x[:, :1].expand_as(x)
        inputs[name] = (ROWS.get(kind, ROWS["ordinary"])(x, dtype) * scale).to(dtype)
    if not all(bool(inputs[k].isfinite().all()) for k in rows):
        return None
    return inputs | {k: LABELS[kind](inputs[k]) for k in labelled if kind in LABELS}
