"""Rows that judge have not chosen: where nothing is better almost nothing ships, and shared rows would show it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from kontrast.adaptation.comparison import compare
from kontrast.adaptation.rows import CHOOSING, PARTS, choose, cross_fit, parts_of, share_held_out

Judged = tuple[Tensor, Tensor]
Scheme = Callable[[Tensor, Tensor, Tensor], Judged]
PATIENCE = 3


def disjoint(right: Tensor, frozen: Tensor, part: Tensor) -> Judged:
    """Ours: the parts before a part choose for it."""
    return cross_fit(right, frozen, part, choose(right, part, PATIENCE))


def shared(right: Tensor, frozen: Tensor, part: Tensor) -> Judged:
    """The rows that chose the epoch judge it."""
    return frozen, right[int(right.double().mean(1).argmax())]


def in_both_directions(right: Tensor, frozen: Tensor, part: Tensor) -> Judged:
    """Usual cross-fitting: all other parts choose for a part."""
    chosen = [int(right[:, part != k].double().mean(1).argmax()) for k in range(PARTS)]
    judged = [(frozen[part == k], right[chosen[k]][part == k]) for k in range(PARTS)]
    before, after = (torch.cat(side) for side in zip(*judged, strict=True))
    return before, after


def shipped(scheme: Scheme, *, gain: float, cases: int, epochs: int = 12, rows: int = 600) -> float:
    """The share of simulated adaptations that ship, each epoch with its own noise and the same gain."""
    count = 0
    for seed in range(cases):
        draw = torch.Generator().manual_seed(seed)
        frozen = torch.rand(rows, generator=draw) < 0.5
        # A tenth of the rows change in each epoch, wrong ones to right and right ones to wrong alike, but for the gain.
        chance = torch.where(frozen, 0.1 - gain, 0.1 + gain)
        right = frozen ^ (torch.rand(epochs, rows, generator=draw) < chance)
        count += compare(*scheme(right, frozen, parts_of(rows, seed)), seed=seed).is_better
    return count / cases


def test_nothing_better_ships_in_2_5_percent_of_cases_at_most() -> None:
    # 600 cases at a true 2.5 % give more than 4.5 % once in a thousand times.
    assert shipped(disjoint, gain=0.0, cases=600) <= 0.045


def test_with_shared_rows_the_winners_curse_shows() -> None:
    assert shipped(shared, gain=0.0, cases=200) > 0.1


def test_cross_fitting_in_both_directions_ships_too_often() -> None:
    assert shipped(in_both_directions, gain=0.0, cases=600) > 0.05


def test_a_better_encoder_ships_and_a_worse_one_never() -> None:
    assert shipped(disjoint, gain=0.06, cases=50) > 0.9
    assert shipped(disjoint, gain=-0.05, cases=50) == 0.0


def test_a_collapsed_encoder_never_ships() -> None:
    draw = torch.Generator().manual_seed(0)
    frozen = torch.rand(300, generator=draw) < 0.4
    labels = torch.randint(10, (300,), generator=draw)
    right = (labels == 3).repeat(8, 1)  # one point for every image: one class for all
    assert not compare(*disjoint(right, frozen, parts_of(300, 0))).is_better


def test_the_rows_of_a_part_do_not_choose_its_epoch() -> None:
    for seed in range(40):
        draw = torch.Generator().manual_seed(seed)
        right = torch.rand(15, 60, generator=draw) < 0.6
        part = parts_of(60, seed)
        before = choose(right, part, PATIENCE).chosen
        for k in range(CHOOSING, PARTS):
            other = right.clone()
            other[:, part >= k] = torch.rand(15, int((part >= k).sum()), generator=draw) < 0.6
            assert choose(other, part, PATIENCE).chosen[k] == before[k]


def test_the_training_goes_on_until_every_part_has_chosen() -> None:
    right = torch.zeros(6, 60, dtype=torch.bool)
    part = parts_of(60, 0)
    right[0] = True
    right[1:, part >= 5] = True  # the first parts see a worse encoder from epoch 1 on
    right[2, part == 0] = True
    assert [choose(right[:n], part, 2).over for n in (1, 2, 3, 4)] == [False, False, True, True]
    rising = torch.zeros(4, 60, dtype=torch.bool)
    for epoch in range(4):
        rising[epoch, part < 2] = torch.arange(20) < 5 * (epoch + 1)  # better every time for the first parts
        rising[epoch, part >= 2] = epoch == 0
    found = choose(rising, part, 1)
    assert (found.best, found.over) == (0, False), "all rows together have chosen, the first parts have not"
    assert found.chosen[2] == 3


def test_parts_are_as_large_as_possible_and_drawn() -> None:
    assert parts_of(20, 0).bincount(minlength=PARTS).tolist() == [4, 3, 3, 4, 3, 3]
    assert not torch.equal(parts_of(100, 0), parts_of(100, 1))
    assert torch.equal(parts_of(100, 1), parts_of(100, 1))


def test_tiny_parts_are_no_error() -> None:
    right = torch.ones(2, 3, dtype=torch.bool)
    before, after = disjoint(right, ~right[0], parts_of(3, 0))
    assert len(before) == len(after) <= 3
    empty = torch.zeros(0, 12, dtype=torch.bool)
    assert choose(empty, parts_of(12, 0), 2).best is None
    before, after = cross_fit(empty, torch.ones(12).bool(), parts_of(12, 0), choose(empty, parts_of(12, 0), 2))
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    ("rows", "test_rows", "share"), [(300, 0, 0.33), (10_000, 10_000, 0.2), (10**6, 0, 0.05), (40_000, 2000, 0.12)]
)
def test_the_share_held_out(rows: int, test_rows: int, share: float) -> None:
    assert share_held_out(rows, test_rows) == share
