"""Several real processes do what one does on the concatenated batch: norms, queue, bank, shuffled keys."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kontrast import distributed, models
from tests.processes import run_on_ranks

SIZES = {1: [[11]], 2: [[7, 4], [3, 8]], 3: [[5, 2, 4], [0, 8, 3]]}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def network(momentum: float | None, affine: bool) -> nn.Module:
    torch.manual_seed(3)
    options = {"momentum": momentum, "affine": affine}
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4, **options),
        nn.ReLU(),
        nn.Conv2d(4, 3, 1),
        nn.BatchNorm2d(3, **options),
        nn.Flatten(),
        nn.Linear(27, 5),
        nn.BatchNorm1d(5, **options),
    ).double()


def own(x: Tensor, sizes: list[int], rank: int) -> Tensor:
    start = sum(sizes[:rank])
    return x[start : start + sizes[rank]]


def check_norm(sizes: list[int], rank: int, momentum: float | None, affine: bool, channels_last: bool) -> None:
    """Two steps of SGD: outputs, input gradients, parameters and statistics, and eval mode at the end.

    In float64 the ranks' partial sums differ from one sum at 1e-15; assert_close's 1e-7 leaves room for two steps.
    """
    alone = network(momentum, affine)
    together = DistributedDataParallel(models.sync_batch_norm(copy.deepcopy(alone)))
    both = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (alone, together)]
    for step in range(2):
        x = (drawn(11, 2, 3, 3, seed=step) * (1 + step) + 1).requires_grad_()
        mine = own(x.detach(), sizes, rank).clone().requires_grad_()
        given = mine.contiguous(memory_format=torch.channels_last) if channels_last else mine
        weights = drawn(11, 5, seed=step + 10)
        out, part = alone(x), together(given)
        torch.testing.assert_close(part, own(out, sizes, rank))
        for optimiser in both:
            optimiser.zero_grad()
        (out.pow(2) * weights).sum().backward()
        distributed.own(part.pow(2) * own(weights, sizes, rank)).sum().backward()
        torch.testing.assert_close(mine.grad / len(sizes), own(x.grad, sizes, rank))  # × W until DDP averages
        for optimiser in both:
            optimiser.step()
    for (name, a), b in zip(alone.state_dict().items(), together.module.state_dict().values(), strict=True):
        torch.testing.assert_close(b, a, msg=lambda m, n=name: f"{n}: {m}")
    torch.testing.assert_close(together.module.eval()(x), alone.eval()(x))


def check_precision(sizes: list[int], rank: int) -> None:
    """float32 values about 1,000 with deviation 1: the mean of squares would lose the variance (1e6 · 6e-8 = 0.06).

    Values carry 1000 · 6e-8 = 6e-5 of rounding, so do results of size 1; ten times that is allowed.
    """
    x = drawn(11, 3).float() + 1000
    norm = models.sync_batch_norm(nn.BatchNorm1d(3))
    expected = nn.BatchNorm1d(3).double()(x.double())
    got = norm(own(x, sizes, rank))
    torch.testing.assert_close(got.double(), own(expected, sizes, rank), rtol=0, atol=6e-4)
    half = norm(own(drawn(11, 3).bfloat16(), sizes, rank))
    assert half.dtype == torch.bfloat16


def check_too_few(sizes: list[int], rank: int) -> None:
    norm = models.sync_batch_norm(nn.BatchNorm1d(3))
    with pytest.raises(ValueError, match=r"more than (one|1) value"):
        norm(torch.zeros(1 if rank == 0 else 0, 3))


def check_memory(sizes: list[int], rank: int) -> None:
    """The queue and the bank of each rank hold one process's rows to the last bit: gathering keeps their order."""
    queue, alone = models.Queue(13, 4), models.Queue(13, 4, gather_distributed=False)
    bank = models.MemoryBank(8, dim=4)
    single = models.MemoryBank(8, dim=4, gather_distributed=False)
    for step in range(3):
        keys, indices = drawn(11, 4, seed=step).float(), (torch.arange(11) * 3 + step) % 8  # duplicates across ranks
        queue.enqueue(own(keys, sizes, rank))
        alone.enqueue(keys)
        bank.update(own(indices, sizes, rank), own(keys, sizes, rank))
        single.update(indices, keys)
    assert torch.equal(queue.rows, alone.rows)
    assert torch.equal(queue.pointer, alone.pointer)
    assert torch.equal(bank.rows, single.rows)


def check_shuffle(sizes: list[int], rank: int) -> None:
    images = drawn(11, 2, 3, 3)
    mine = own(images, sizes, rank)
    shuffled, order = models.shuffle_keys(mine, seed=5)
    assert len(shuffled) == sizes[rank]
    everyone = distributed.gather(shuffled, distributed.row_counts(shuffled))
    assert torch.equal(everyone, images[order.permutation])
    torch.testing.assert_close(models.unshuffle(shuffled.sum((2, 3)), order), mine.sum((2, 3)))
    if len(sizes) > 1:
        moved = [not torch.equal(a, b) for a, b in zip(everyone, images, strict=True)]
        assert sum(moved) > 5
    # a momentum pair whose norms see all ranks, shuffled, gives each rank the keys one process gives its rows
    pair = models.MomentumPair(models.sync_batch_norm(network(0.1, True)))
    expected = network(0.1, True)(images)
    torch.testing.assert_close(models.unshuffle(pair.keys(shuffled), order), own(expected, sizes, rank))


def check_frozen(sizes: list[int], rank: int) -> None:
    """An encoder whose batch norm keeps its statistics, converted: what one process computes on the whole batch."""
    x = drawn(sum(sizes), 5, seed=7)
    one, many = (models.encoder("mlp", in_features=5, hidden=8, features=4, seed=0).double() for _ in range(2))
    for made in (one, many):
        made.layers[1].running_mean.fill_(0.3)
        made.norm = "frozen"
    models.sync_batch_norm(many).train()
    one.train()
    before = {name: buffer.clone() for name, buffer in many.named_buffers()}
    h = many(own(x, sizes, rank))
    torch.testing.assert_close(h, own(one(x), sizes, rank))
    h.sum().backward()
    assert isinstance(many.layers[1], models.SyncBatchNorm)
    for name, buffer in many.named_buffers():
        assert torch.equal(buffer, before[name]), name


def check_second_order(world: int) -> None:
    """Refused over several ranks, not silently wrong: the incoming gradient of this sum is a constant."""
    norm = models.sync_batch_norm(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))).double()
    x = drawn(4, 3).requires_grad_()
    value = norm(x).sum()
    if world == 1:
        (gradient,) = torch.autograd.grad(value, x, create_graph=True)
        torch.autograd.grad(gradient.square().sum(), x)
        return
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(value, x, create_graph=True)


def together(rank: int, world: int) -> None:
    for sizes in SIZES[world]:
        for momentum, affine, channels_last in ((0.1, True, False), (None, True, True), (0.1, False, False)):
            check_norm(sizes, rank, momentum, affine, channels_last)
        check_precision(sizes, rank)
        check_memory(sizes, rank)
        check_shuffle(sizes, rank)
        check_frozen(sizes, rank)
    check_too_few(sizes, rank)
    check_second_order(world)


@pytest.mark.parametrize("world", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_several_processes_are_as_one(world: int, tmp_path: Path) -> None:
    run_on_ranks(together, world, tmp_path)
