r"""Which rows train, which choose where to stop, and which give the verdict.

Whoever picks the best of ten epochs on some rows and quotes its accuracy on the same rows quotes luck too. So rows that
give the verdict on an encoder must not have chosen it. Three kinds of rows:

    T   the encoder learns from them; they are the references of kNN and retrieval, and what the linear classifier is fitted to
    H   held out of training; after each epoch e the share a_e(·) of them that kNN has right is measured
    V   rows that no epoch is measured on: test rows with labels, and held-out rows beyond the `MOST_VALIDATED` of H.
        They are read once, at the end

    (1)  V alone gives the verdict if it has `ENOUGH` rows; all of H chooses then

Below that V is too small to show the differences that matter (200 rows: 4 points) and H is cross-fitted. It is cut at
random into six equal parts H_1 … H_6, and the part k = 3 … 6 is judged by the epoch that the parts *before* it choose:

    (2)  e(S) = first argmax_{e ≤ E(S)} a_e(S),   E(S) = the first epoch after which ``patience`` epochs brought no better a_e(S)
    (3)  e_k = e(H_1 ∪ … ∪ H_{k−1}),    e* = e(H_1 ∪ … ∪ H_6), the encoder that may ship
    (4)  verdict: d_i = right_{e_k}(i) − right_frozen(i)  for i in H_k, k = 3 … 6;    d_i = right_{e*}(i) − right_frozen(i)  for i in V

**Why it is unbiased.** Let F_k be everything that is known before H_k is looked at: the whole training (it depends on T
alone) and the parts before k. e_k is a function of F_k, and the rows of H_k are new to it, so E[d_i | F_k] is the true
gain of encoder e_k. The same holds for V after all of H. So the sum of d_i minus true gains is a martingale: its mean
is 0 and its variance the sum of the rows' own variances, as if the rows were independent, and the interval of
`kontrast.adaptation.comparison` is right. If no epoch is better than the frozen encoder, each d_i ≠ 0 is 1 or −1 with
equal chances given all the rows before it, so that ``won`` is binomial given ``won + lost`` and the exact test has its
level at any number of rows. The training must go on until the last of the E(S) in (3) (`Choices.over`): a training that
stops by all of H would let H_k decide which epochs e_k is chosen from.

Usual cross-fitting in both directions, where each part is judged by the epoch that all *other* parts choose, is
unbiased too, part by part, and costs no rows. But part 1 chooses part 2's epoch and part 2 part 1's, so that the parts
err together and the interval is too narrow: where nothing was better it shipped several times as often as it may
(docs/adapt.md has the figures, of ``python scripts/adapt.py simulation``).

The estimate is of the mean gain of e_3 … e_6 and e*, encoders of one training; e* is chosen by the same rule from more
rows. No encoder is trained again on all rows afterwards: it would be one that nobody has measured.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.data import Stream, generator
from kontrast.train.stopping import Patience
from kontrast.train.watching import MOST_VALIDATED

ENOUGH = 5000  # rows of V that give the verdict alone
PARTS, CHOOSING = 6, 2  # parts of H, and how many of the first only choose
LARGEST, LEAST = 1 / 3, 0.05  # shares of the labelled training rows that may be held out


def share_held_out(rows: int, test_rows: int) -> float:
    """The share of the training rows that is held out: what (1) needs beside the test rows, at most a third.

    Args:
        rows: How many training rows there are.
        test_rows: How many test rows have labels.

    Returns:
        ``data.validation`` of the recipe, of two digits.

    >>> share_held_out(600, 200), share_held_out(20_000, 0), share_held_out(60_000, 10_000)
    (0.33, 0.33, 0.05)
    """
    wanted = MOST_VALIDATED + max(0, ENOUGH - test_rows)
    return max(LEAST, int(100 * min(LARGEST, wanted / rows)) / 100)


def parts_of(rows: int, seed: int) -> Tensor:
    """Which of the six parts of (3) each row of H is in, 0 … 5, int64 ``[rows]``, drawn with the run's seed.

    >>> parts_of(12, seed=0).bincount()
    tensor([2, 2, 2, 2, 2, 2])
    """
    part = torch.empty(rows, dtype=torch.int64)
    part[torch.randperm(rows, generator=generator(seed, Stream.HELD_OUT, 3))] = torch.arange(rows) * PARTS // rows
    return part


@dataclass(frozen=True, eq=False)
class Choices:
    """The epochs that (3) chooses.

    Attributes:
        chosen: Which epoch each judged part has, by the part's number 2 … 5: e_3 … e_6.
        best: e*; None before the first epoch.
        over: Whether every E(S) is reached: the training may stop.
    """

    chosen: dict[int, int]
    best: int | None
    over: bool


def choose(right: Tensor, part: Tensor, patience: int) -> Choices:
    """Choose the epochs of (3).

    Args:
        right: Whether each epoch is right on each row of H, bool ``[epochs, rows]``.
        part: Of each row (`parts_of`).
        patience: Epochs without a better one after which a training stops.

    Returns:
        The choices.

    >>> right = torch.tensor([[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]]).bool()
    >>> choose(right, torch.arange(6), patience=2)
    Choices(chosen={2: 1, 3: 1, 4: 1, 5: 1}, best=2, over=False)
    """
    if not len(right):
        return Choices({}, None, False)
    places = {k: _roll_back(right[:, part < k], patience) for k in range(CHOOSING, PARTS + 1)}
    over = all(is_over for _, is_over in places.values())
    best, _ = places.pop(PARTS)
    return Choices({k: place for k, (place, _) in places.items()}, best, over)


def _roll_back(right: Tensor, patience: int) -> tuple[int, bool]:
    """(2): the epoch that a training which these rows stop is rolled back to, and whether it has stopped."""
    state = Patience(patience)
    scores: Sequence[float] = right.double().mean(1).nan_to_num(0.0).tolist()  # fewer rows than parts: a part is empty
    for place, score in enumerate(scores):
        if state.over:
            break
        state.better(score, place)
    return state.best_step, state.over


def cross_fit(right: Tensor, frozen: Tensor, part: Tensor, choices: Choices) -> tuple[Tensor, Tensor]:
    """The first line of (4): which rows of H_3 … H_6 are right by the frozen encoder, and by the epoch of their part.

    Args:
        right: As for `choose`, by the measure that is judged (which need not be the one that chose).
        frozen: Whether the frozen encoder is right, bool ``[rows]``.
        part: Of each row.
        choices: The epochs.

    Returns:
        Two bool tensors ``[judged rows]``.

    >>> right = torch.tensor([[0, 0, 1, 1, 1, 0], [1, 1, 0, 1, 1, 1]]).bool()
    >>> part = torch.arange(6)
    >>> cross_fit(right, torch.zeros(6).bool(), part, choose(right, part, patience=2))[1]
    tensor([False,  True,  True,  True])
    """
    rows = (part >= CHOOSING).nonzero()[:, 0]
    if not choices.chosen:
        return frozen[rows], frozen[rows]
    epoch = torch.tensor([choices.chosen[int(k)] for k in part[rows]], dtype=torch.int64)
    return frozen[rows], right[epoch, rows]
