"""The passes over blocks against the same in plain torch; the losses on top are in tests/losses."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast import engine

EXACT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}


def rows(n: int, dim: int = 5, seed: int = 0) -> Tensor:
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.div(x.norm(dim=1, keepdim=True)).requires_grad_()


def derivatives(value: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(value, inputs)


@pytest.mark.parametrize(("size", "expected"), [(2, [(0, 2), (2, 4), (4, 5)]), (5, [(0, 5)]), (9, [(0, 5)])])
def test_spans(size: int, expected: list[tuple[int, int]]) -> None:
    assert [(s.start, s.stop) for s in engine.spans(5, size)] == expected


def test_range_of_sums() -> None:
    assert engine.in_range(60.0 - math.log(100), 100, torch.float32)
    assert not engine.in_range(60.1 - math.log(100), 100, torch.float32)
    assert engine.in_range(60.1, 1, torch.float64)


def test_largest_logit_is_a_bound() -> None:
    x, c = rows(7).detach() * 3, rows(9, seed=1).detach() * 2
    assert (x @ c.T).abs().max() <= engine.largest_logit(x, c) <= 6 + 1e-12
    assert engine.largest_logit(x[:0], c) == 0.0


@pytest.mark.parametrize("tile", [0, -1, 2.5, True, "large"])
def test_tiles_that_are_refused(tile: Any) -> None:
    with pytest.raises(ValueError, match=r"tile=.*: must be"):
        engine.check_tile(tile)


@pytest.mark.parametrize("tile", ["auto", 1, 3, 100])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("slot", [True, False])
def test_log_normaliser(tile: engine.Tile, bounded: bool, slot: bool) -> None:
    x, c, more = rows(7), rows(9, seed=1), rows(4, seed=2)
    positive = torch.linspace(-1, 1, 7, dtype=torch.float64).requires_grad_()
    weight = torch.linspace(0.5, 2, 7, dtype=torch.float64)
    value = engine.log_normaliser(
        x,
        c,
        positive,
        more=more,
        hide=engine.hide_diagonal(1),
        slot=slot,
        scale=3.0,
        bounded=bounded,
        weight=weight,
        tile=tile,
    )
    logits = 3 * x @ torch.cat([c, more]).T
    logits = logits.masked_fill(torch.eye(7, 13).roll(1, 1).bool(), -torch.inf)
    logits = torch.cat([logits, positive[:, None]], dim=1) if slot else logits
    dense = weight @ (logits.logsumexp(1) - positive)
    torch.testing.assert_close(value, dense, **EXACT)
    inputs = (x, c, positive, more)
    torch.testing.assert_close(derivatives(value, *inputs), derivatives(dense, *inputs), **EXACT)


@pytest.mark.parametrize("tile", ["auto", 1, 3, 100])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_softmax_square(tile: engine.Tile, weighted: bool, keep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not keep:
        monkeypatch.setattr(engine, "KEEP_BYTES", 0)
    z, positive = rows(8), torch.linspace(-1, 1, 8, dtype=torch.float64).requires_grad_()
    weight = torch.linspace(0.5, 2, 8, dtype=torch.float64)
    value = engine.softmax_square(z, positive, scale=4.0, weight=weight if weighted else None, tile=tile)
    dense = (4 * z @ z.T).fill_diagonal_(-torch.inf).logsumexp(1) - positive
    if weighted:
        dense = weight @ dense
    torch.testing.assert_close(value, dense, **EXACT)
    factor = torch.ones_like(dense) if weighted else weight
    ours, theirs = (derivatives((v * factor).sum(), z, positive) for v in (value, dense))
    torch.testing.assert_close(ours, theirs, **EXACT)


def test_what_an_index_hides() -> None:
    logits = torch.zeros(3, 4)
    engine.hide_both(engine.hide_index(torch.tensor([0, 5, 3])), engine.hide_diagonal(1))(
        logits, slice(0, 3), slice(0, 4)
    )
    hidden = (logits == -torch.inf).nonzero().tolist()
    assert hidden == [[0, 0], [0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_masked_sum_is_a_product(dtype: torch.dtype) -> None:
    mask, c = (torch.rand(6, 9) < 0.4).to(dtype), rows(9)
    torch.testing.assert_close(engine.masked_sum(mask, c), mask.double() @ c, **EXACT)
    assert torch.autograd.gradcheck(lambda c: engine.masked_sum(mask, c), [c])
    assert torch.equal(engine.row_sums(mask, torch.int64), mask.sum(1).long())


@pytest.mark.parametrize(("n", "number"), [(1, 1), (383, 1), (600, 4), (4097, 15)])
def test_blocks_of_a_square_hold_each_pair_once(n: int, number: int) -> None:
    """With (j, i) where (i, j) is; within the rows of a block both are there."""
    times = torch.zeros(n, n, dtype=torch.uint8)
    blocks = engine.square_blocks(n, torch.device("cpu"), "auto")
    for r, c in blocks:
        times[r, c] += 1
        beyond = engine.mirrored(r, c)
        times[beyond, r] += 1
    assert (times == 1).all()
    assert len(blocks) == number


def test_slots_are_of_their_sizes_and_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SLAB_BYTES", 4 * 10)
    sizes = [3, 7, 4, 12, 1, 9]
    buffers = engine.slots(sizes, like=torch.empty(0))
    for k, buffer in enumerate(buffers):
        buffer.fill_(k)
    assert [b.tolist() for b in buffers] == [[k] * size for k, size in enumerate(sizes)]
    assert len({b.untyped_storage().data_ptr() for b in buffers}) == 4  # 3 + 7, 4, 12, 1 + 9
