r"""What a run or a file of features has learned: the course of the loss, where it stands, entropy, neighbours.

The course of a loss, from the lines of its log, each a mean over some steps. With e = loss − bound (what can still be
gained), e_1 the first line, e* the least mean of three lines or a tenth of all, ē the mean of the last tenth:

    (1)  risen   = (ē − e*)/(e_1 − e*)                                how much of the fall was lost again
    (2)  gained  = (e_1 − ē)/e_1                                      how much of what could be gained
    (3)  falling = (mean of the last fifth but one − of the last fifth)/(e_1 − e*)

A line's bound is of one batch, the loss a mean over several, and the bound changes with the classes of a batch and with
a classifier's weights: so one bound, the median, is subtracted from all lines. Only the entropy of a target (ReSSL,
SCE) is subtracted line by line: there the loss follows it.

Only lines after the last jump of chance count: a jump means that the loss changed (a warm-up on another loss). With a
queue, only lines after three times the age of its oldest key count: random keys, and keys of the first weights, are
easier to tell apart. If the fall is less than a twentieth of e_1, it may be chance, and (1) and (3) are 0.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor

from kontrast import losses
from kontrast.doctor.rule import Missing, Record, percent, quantity
from kontrast.doctor.rules._setup import queue_of
from kontrast.evaluate import neighbours
from kontrast.geometry import TooFewSamples, penalty_entropy

FEWEST_LINES = 5  # for a course
LEAST_FALL = 0.05  # of what could be gained
QUEUE_AGES = 3  # ages of the oldest key before the course counts
ANCHORS, FEWEST_ROWS = 1000, 20  # for the entropy
GATHERED = -0.04  # uniformity: a spread of 0.01
NEIGHBOURS, FEWEST_NEIGHBOURS, MOST_ROWS = 20, 8, 5000
PAIRED_ROWS, CLUSTERED = 500, 0.7  # rows whose cosines are compared; Sarle's coefficient, see `label_noise`


@contextmanager
def ignore_few_rows() -> Iterator[None]:
    """Ignore `TooFewSamples` warnings: the rule says in its evidence how many rows there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewSamples)
        yield


# ------------------------------------------------------------------------------------------------------------ the loss


@dataclass(frozen=True)
class Course:
    """(1) to (3), and the loss at the start and at the end."""

    first: float
    last: float
    risen: float
    gained: float
    falling: float

    def describe(self) -> str:
        return f"loss {self.first:.4g} → {self.last:.4g}"


def course_of(record: Record) -> Course:
    """The course of a run's loss.

    Raises:
        Missing: The log has too few lines.
    """
    lines = [line for line in record.metrics if line.get("loss") is not None]
    if not lines:
        raise Missing("metrics.jsonl has no loss")
    chance = lines[-1].get("chance")
    if chance is not None:
        jumps = [i for i, line in enumerate(lines) if abs((line.get("chance") or 0.0) - chance) > 0.1 * abs(chance)]
        lines = lines[jumps[-1] + 1 :] if jumps else lines
    queue = queue_of(record)
    if queue is not None:
        lines = [line for line in lines if (line.get("step") or 0) > QUEUE_AGES * queue.age]
    if len(lines) < FEWEST_LINES:
        raise Missing(
            f"{quantity(len(lines), 'line')} with a loss to look at in metrics.jsonl; {FEWEST_LINES} or more make a "
            "course"
        )
    values = [float(line["loss"] or 0.0) for line in lines]
    limits = [float(line.get("bound") or 0.0) for line in lines]
    if "target_temperature" not in record.options:
        limits = [median(limits)] * len(limits)
    excess = [value - limit for value, limit in zip(values, limits, strict=True)]
    tenth, fifth = max(1, len(lines) // 10), max(1, len(lines) // 5)
    e1, least, end = excess[0], _least(excess, max(3, tenth)), _mean(excess[-tenth:])
    fall = e1 - least if e1 - least > LEAST_FALL * abs(e1) else math.inf
    return Course(
        first=values[0],
        last=_mean(values[-tenth:]),
        risen=(end - least) / fall,
        gained=(e1 - end) / max(abs(e1), 1e-12),
        falling=(_mean(excess[-2 * fifth : -fifth]) - _mean(excess[-fifth:])) / fall,
    )


def _least(values: Sequence[float], window: int) -> float:
    """The least mean of ``window`` values in a row."""
    return min(_mean(values[i : i + window]) for i in range(len(values) - window + 1))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def standing_of(record: Record) -> tuple[float, str]:
    """Where the loss stands at the end, between its start (0) and its bound (1), and the numbers as a sentence.

    The loss is the mean over the last tenth of the log. The start is what costs no learning: chance (all similarities
    0), or a collapse (all embeddings equal) where that costs less, as with TCL. For a log without the collapsed value,
    that of TCL is computed from the recipe's loss and a batch with the classes' shares.
    """
    keys = ("loss", "chance", "bound")
    lines = [line for line in record.metrics if all(line.get(key) is not None for key in keys)]
    if not lines:
        raise Missing("metrics.jsonl has no loss with its chance and bound")
    tail = lines[-max(1, len(lines) // 10) :]
    loss, chance, bound = (sum(float(line[key] or 0.0) for line in tail) / len(tail) for key in keys)
    logged = [value for line in tail if (value := line.get("collapsed")) is not None]
    collapsed = sum(logged) / len(logged) if logged else chance + _below_chance(record)
    start = min(chance, collapsed)
    name = "chance" if start == chance else "collapse"
    if start - bound <= 1e-3 * abs(start):
        raise Missing(f"the loss has no room: {name} {start:.4g} and bound {bound:.4g} are the same")
    share = (start - loss) / (start - bound)
    return share, f"loss {loss:.4g}, {percent(share)} of the way from {name} {start:.4g} to its bound {bound:.4g}"


def _below_chance(record: Record) -> float:
    """Collapsed − chance of a TCL loss; 0 for other losses, where it is about that, and for unknown classes."""
    if record.resolved is None or "k1" not in record.options:
        return 0.0
    options, batch = record.options, record.recipe.train.batch_size
    loss = losses.TCLLoss(options["temperature"], options["k1"], options["k2"])
    views = len(record.recipe.augment.views)
    if not record.method.needs_labels:
        limits = loss.limits(losses.Batch(num_pairs=batch, num_views=views))
    else:
        try:
            sizes = record.class_sizes
        except Missing:
            return 0.0
        rows = [label for label, size in enumerate(sizes) for _ in range(max(1, round(batch * size / sum(sizes))))]
        limits = loss.limits(losses.Batch(labels=rows, num_views=views))
    return limits.collapsed - limits.chance


# --------------------------------------------------------------------------------------------------------- the entropy


def is_gathered(record: Record) -> bool:
    """Whether all embeddings of a run are so near one point that no temperature tells them apart."""
    return record.patient == "run" and record.last("monitor/uniformity") > GATHERED


def effective_negatives(record: Record, tau: float) -> tuple[float, int, str]:
    """How many negatives share the penalty (e^H), of how many, and a sentence about uniformity and tolerance.

    A run's entropy H is that of its last monitor; that of features is measured.
    """
    if record.patient == "features":
        x = record.features
        if len(x) < FEWEST_ROWS:
            raise Missing(f"{len(x)} rows are too few; {FEWEST_ROWS} or more would do")
        rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:ANCHORS]
        each = penalty_entropy(x[rows], x[rows], x, rows, temperature=tau)
        return math.exp(float(each.double().mean())), len(x) - 1, ""
    h, share = record.last("monitor/entropy"), record.last("monitor/entropy_share")
    sentence = ""
    try:
        sentence = f"; uniformity {record.last('monitor/uniformity'):.2f}"
        sentence += f", tolerance {record.last('monitor/tolerance'):.2f}"
    except Missing:
        pass  # without labels there is no tolerance
    if share <= 0:
        raise Missing("the entropy's share of its most, in metrics.jsonl, is not above 0")
    return math.exp(h), round(math.exp(h / share)), sentence


# ------------------------------------------------------------------------------------------------------ the neighbours


def neighbour_votes(features: Tensor, labels: Tensor, k: int | None = None) -> Tensor:
    """Leave-one-out kNN, all votes equal: the share of the k nearest other rows with each label, float ``[N, K]``.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> neighbour_votes(x, torch.tensor([0, 0, 1, 1]), k=1).argmax(1)
    tensor([0, 0, 1, 1])
    """
    return label_shares(nearest_others(features, int(labels.max()) + 1, k), labels)


def nearest_others(features: Tensor, classes: int, k: int | None = None) -> Tensor:
    """The k nearest other rows of each row, ``[N, k]``; k is 20, in small classes a quarter of one, at least 8."""
    n = len(features)
    k = min(max(FEWEST_NEIGHBOURS, min(NEIGHBOURS, n // (4 * classes))) if k is None else k, n - 1)
    return neighbours.nearest_others(features, k)[1]


def label_shares(rows: Tensor, labels: Tensor) -> Tensor:
    """The share of the rows ``[N, k]`` with each label, ``[N, K]``."""
    return torch.nn.functional.one_hot(labels[rows], int(labels.max()) + 1).float().mean(1)


def is_clustered(features: Tensor) -> bool:
    """Whether cosines have two peaks (near in a cluster, far from the others) rather than one.

    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.randn(600, 32, generator=draw)
    >>> is_clustered(x), is_clustered(x + 9 * torch.eye(32)[torch.arange(600) % 4])
    (False, True)
    """
    rows = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:PAIRED_ROWS]
    x = features[rows].double()
    u = torch.nn.functional.normalize(x - x.mean(0), dim=1)
    s = (u @ u.T)[~torch.eye(len(u), dtype=torch.bool)]
    z = (s - s.mean()) / s.std().clamp_min(1e-12)
    return float((z.pow(3).mean() ** 2 + 1) / z.pow(4).mean().clamp_min(1e-12)) > CLUSTERED


def draw_rows(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """At most `MOST_ROWS` rows, drawn by a fixed seed: shares of rows need no more."""
    if len(features) <= MOST_ROWS:
        return features, labels
    rows = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))[:MOST_ROWS]
    return features[rows], labels[rows]
