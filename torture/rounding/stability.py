"""100,000 steps of each loss that takes a queue, on inputs that change their kind at every step: is all of it finite?

    python torture/stability.py --steps 1000      a short form, printed; `numerics` records the long one

A linear map and a slow copy of it (momentum 0.99) stand for the encoders. A step draws a kind of input (ordinary,
equal, opposite, zero, duplicated, huge, tiny, rows of the queue itself), a temperature (1e-3 … 100, log-uniform) and a
dtype of the embeddings (float32, float16, bfloat16), computes loss and gradient with the queue as negatives, moves the
map against the gradient (SGD), and puts the slow copy's keys into the queue. Zero keys stay zero there; all others must
have length 1.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.losses import FAMILY
from kontrast.models import Queue
from measure import markdown

STEPS = 100_000
LOSSES = ("info_nce", "hard_contrastive", "ressl", "sce")
KINDS = ("ordinary", "equal", "opposite", "zero", "duplicated", "huge", "tiny", "of the queue")
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
N, D, LENGTH = 16, 8, 61  # the queue's length is no multiple of the batch
RATE, MOMENTUM = 1e-3, 0.99


@dataclass
class Record:
    """What was seen over the steps of one loss."""

    loss: str
    steps: int = 0
    not_finite: int = 0
    largest_value: float = 0.0
    largest_gradient: float = 0.0  # of the map
    shortest: float = math.inf  # rows of the queue, of those that are not zero
    longest: float = 0.0
    weights: float = 0.0  # the map's norm at the end


def batch(kind: str, queue: Tensor, draw: torch.Generator) -> Tensor:
    """Inputs of a kind, ``[N, D]``."""
    x = torch.randn(N, D, generator=draw)
    if kind == "equal":
        return x[:1].repeat(N, 1)
    if kind == "opposite":
        return torch.cat([x[: N // 2], -x[: N // 2]])
    if kind == "zero":
        return torch.zeros_like(x)
    if kind == "duplicated":
        return x[torch.arange(N) // 2]
    if kind == "of the queue":
        return queue[:N].clone()
    return x * {"ordinary": 1.0, "huge": 1e25, "tiny": 1e-15}[kind]


def run(key: str, steps: int, *, seed: int = 0) -> Record:
    """One loss for so many steps.

    >>> record = run("info_nce", 20)
    >>> record.steps, record.not_finite
    (20, 0)
    """
    draw = torch.Generator().manual_seed(seed)
    weight = torch.eye(D) + 0.1 * torch.randn(D, D, generator=draw)
    slow = weight.clone()
    queue = Queue(LENGTH, D)
    seen = Record(key)
    cls = FAMILY[key]
    options = {"hard_negatives": 5} if key == "hard_contrastive" else {}
    for _ in range(steps):
        kind = KINDS[int(torch.randint(len(KINDS), (), generator=draw))]
        dtype = DTYPES[int(torch.randint(len(DTYPES), (), generator=draw))]
        tau = float(10 ** (torch.rand((), generator=draw, dtype=torch.float64) * 5 - 3))
        x = batch(kind, queue.rows, draw)
        w = weight.clone().requires_grad_()
        online, keys = x @ w.T, x @ slow.T
        if kind not in ("huge", "tiny"):  # these are beyond half precision
            online, keys = online.to(dtype), keys.to(dtype)
        value = cls(temperature=tau, **options)(online, keys, queue.read())
        (gradient,) = torch.autograd.grad(value, w)
        queue.enqueue(keys)
        weight -= RATE * gradient
        slow.lerp_(weight, 1 - MOMENTUM)
        lengths = torch.linalg.vector_norm(queue.rows, dim=1)
        there = torch.cat([lengths[lengths > 0], torch.ones(1)])  # zero batches in a row may fill all of the queue
        shortest, longest = (float(end) for end in there.aminmax())
        told = (float(value.detach().abs()), float(gradient.norm()), float(weight.norm()), float(lengths.sum()))
        seen.steps += 1
        seen.not_finite += not all(map(math.isfinite, told))
        seen.largest_value, seen.largest_gradient = (
            max(seen.largest_value, told[0]),
            max(seen.largest_gradient, told[1]),
        )
        seen.shortest, seen.longest = min(seen.shortest, shortest), max(seen.longest, longest)
    seen.weights = float(weight.norm())
    if int(queue.pointer) != steps * N % LENGTH:
        raise AssertionError(f"the queue's pointer is {int(queue.pointer)} after {steps} batches of {N}")
    return seen


def sections(records: Iterable[Record]) -> list[str]:
    """What the page says of the long runs."""
    rows = []
    for seen in records:
        cells = (f"{seen.largest_value:.4g}", f"{seen.largest_gradient:.3g}", f"{seen.weights:.3g}")
        lengths = f"{seen.shortest:.6f} … {seen.longest:.6f}"
        rows.append((f"`{seen.loss}`", f"{seen.steps:,}", str(seen.not_finite), *cells, lengths))
    head = (
        "loss",
        "steps",
        "not finite",
        "largest value",
        "largest gradient",
        "‖W‖ at the end",
        "lengths in the queue",
    )
    return ["## Long run", (__doc__ or "").split("\n\n", 2)[2].strip(), markdown(head, rows)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(*sections(run(key, chosen.steps) for key in LOSSES), sep="\n\n")
