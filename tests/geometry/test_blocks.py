"""Blocks and strips cover every pair once and hold what the whole matrix holds."""

from __future__ import annotations

import pytest
import torch

from kontrast.geometry import _rows
from kontrast.geometry._rows import HIDDEN, largest, square_blocks, strips
from tests.geometry.samples import EXACT, rows


@pytest.mark.parametrize("n", [1, 4, 5, 7, 12, 13])
@pytest.mark.parametrize("side", [1, 4, 5, 100])
def test_square_blocks_give_the_upper_triangle_once(n: int, side: int) -> None:
    x = rows(n, 3)
    seen = torch.zeros(n, n, dtype=torch.float64)
    times = torch.zeros(n, n, dtype=torch.int64)
    for r, c, block in square_blocks(x, side):
        assert block.shape == (r.stop - r.start, c.stop - c.start)
        assert r.start <= c.start
        seen[r, c] = block
        times[r, c] += 1
        if r != c:
            seen[c, r] = block.T
            times[c, r] += 1
        block.fill_(torch.nan)  # the caller may use it up
    assert bool((times == 1).all())
    torch.testing.assert_close(seen, x @ x.T, **EXACT)


def test_square_blocks_have_the_modules_side_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rows, "SIDE", 3)
    assert [(r.start, c.start) for r, c, _ in square_blocks(rows(7, 2))] == [
        (0, 0),
        (0, 3),
        (0, 6),
        (3, 3),
        (3, 6),
        (6, 6),
    ]


@pytest.mark.parametrize("n", [1, 15, 16, 33, 50])
@pytest.mark.parametrize("hidden", [False, True])
def test_strips_give_every_row_once(monkeypatch: pytest.MonkeyPatch, n: int, hidden: bool) -> None:
    monkeypatch.setattr(_rows, "STRIP", 1)
    q, c = rows(n, 3, seed=1), rows(21, 3, seed=2)
    own = torch.arange(n) % 21 if hidden else None
    expected = q @ c.T
    if own is not None:
        expected[torch.arange(n), own] = HIDDEN
    covered = []
    for r, s in strips(q, c, own):
        torch.testing.assert_close(s, expected[r], **EXACT)
        assert s.shape[0] <= 16, "the strip's height does not follow the budget"
        covered += range(r.start, r.stop)
        s.fill_(torch.nan)
    assert covered == list(range(n))


def test_a_strip_fills_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 rows of 10 float64 are 3,200 bytes; and float32 takes twice as many rows."""
    monkeypatch.setattr(_rows, "STRIP", 3200)
    heights = [next(strips(x, x[:10]))[1].shape[0] for x in (rows(100, 2), rows(100, 2).float())]
    assert heights == [40, 80]


@pytest.mark.parametrize("columns", [7, 64, 767, 768, 769, 800, 1000])
@pytest.mark.parametrize("k", [1, 3])
def test_largest_is_topk(columns: int, k: int) -> None:
    """From 256·k columns on it looks into groups; a rest that fills no group counts too."""
    s = rows(40, columns, seed=columns)
    torch.testing.assert_close(largest(s, k), s.topk(k, dim=1).values, rtol=0, atol=0)


def test_largest_of_small_groups_and_ties() -> None:
    """Few different values, so that every group's maximum is shared by many."""
    s = torch.randint(0, 4, (50, 101), generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(largest(s, 5, group=4), s.topk(5, dim=1).values, rtol=0, atol=0)


def test_largest_when_they_all_stand_in_one_group_or_in_the_rest() -> None:
    s = torch.zeros(2, 67, dtype=torch.float64)
    s[0, 8:12] = torch.tensor([3.0, 5.0, 4.0, 1.0], dtype=torch.float64)  # one group of four
    s[1, 64:] = torch.tensor([7.0, 9.0, 8.0], dtype=torch.float64)  # after the last whole group
    assert largest(s, 3, group=4).tolist() == [[5.0, 4.0, 3.0], [9.0, 8.0, 7.0]]


def test_largest_leaves_its_input_as_it_is() -> None:
    s = rows(4, 600)
    before = s.clone()
    largest(s, 2)
    assert torch.equal(s, before)
