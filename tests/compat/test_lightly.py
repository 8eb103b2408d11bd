"""Held to the installed lightly, value and gradient."""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.compat.lightly import NTXentLoss


@pytest.fixture(scope="module")
def theirs() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what lightly's own imports deprecate
        return pytest.importorskip("lightly.loss").NTXentLoss


def pair(size: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, size, 6, generator=generator, dtype=dtype)
    return first, first + second


def both(loss: Any, out0: Tensor, out1: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    out0, out1 = out0.clone().requires_grad_(), out1.clone().requires_grad_()
    value = loss(out0, out1)
    value.backward()
    return value.detach(), out0.grad, out1.grad


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("temperature", [0.05, 0.5, 3.0])
def test_value_and_gradient(theirs: Any, temperature: float, size: int) -> None:
    mine = both(NTXentLoss(temperature), *pair(size))
    torch.testing.assert_close(mine, both(theirs(temperature), *pair(size)), rtol=1e-9, atol=1e-11)


def test_float32(theirs: Any) -> None:
    views = pair(9, torch.float32)
    torch.testing.assert_close(both(NTXentLoss(), *views), both(theirs(), *views), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32_and_rounded(theirs: Any, dtype: torch.dtype) -> None:
    views = pair(9, dtype)
    mine, other = both(NTXentLoss(), *views), both(theirs(), *views)
    assert [t.dtype for t in mine] == [t.dtype for t in other] == [dtype] * 3
    torch.testing.assert_close(mine[0], NTXentLoss()(*(v.float() for v in views)).to(dtype), rtol=0, atol=0)
    torch.testing.assert_close(mine, other, rtol=0.05, atol=0.02)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert NTXentLoss()(*views).dtype == theirs()(*views).dtype == torch.float32


def test_default_temperature(theirs: Any) -> None:
    assert NTXentLoss().temperature == theirs().temperature


@pytest.mark.parametrize("size", [0, (0, 6), [0, 6]])
def test_no_bank_in_every_spelling(theirs: Any, size: Any) -> None:
    mine = NTXentLoss(memory_bank_size=size)(*pair(5))
    torch.testing.assert_close(mine, theirs(memory_bank_size=size)(*pair(5)))


def test_keywords(theirs: Any) -> None:
    out0, out1 = pair(5)
    call = {"out1": out1, "out0": out0}
    options = {"temperature": 0.2, "memory_bank_size": 0, "gather_distributed": True}
    torch.testing.assert_close(NTXentLoss(**options)(**call), theirs(**options)(**call))


def test_temperature_may_change_between_steps(theirs: Any) -> None:
    mine, other = NTXentLoss(0.5), theirs(0.5)
    mine.temperature = other.temperature = 0.1
    torch.testing.assert_close(mine(*pair(5)), other(*pair(5)))


@pytest.mark.parametrize("size", [16, (16, 6), -1, (-1, 6), (0, 6, 1)])
def test_a_memory_bank_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match=r"kontrast.losses.InfoNCELoss.*negatives=bank"):
        NTXentLoss(memory_bank_size=size)


@pytest.mark.parametrize("temperature", [0.0, 1e-9, -1e-9])
def test_temperature_of_zero(theirs: Any, temperature: float) -> None:
    for loss in (NTXentLoss, theirs):
        with pytest.raises(ValueError, match="Illegal temperature"):
            loss(temperature)


def test_temperature_below_zero() -> None:
    with pytest.raises(ValueError, match=r"temperature=-0\.5: must be a finite number above 0"):
        NTXentLoss(-0.5)


def test_shapes() -> None:
    with pytest.raises(ValueError, match=r"out0 has shape \[3, 2\] and out1 \[4, 2\]"):
        NTXentLoss()(torch.ones(3, 2), torch.ones(4, 2))
    with pytest.raises(ValueError, match=r"out1 has shape \[3\]"):
        NTXentLoss()(torch.ones(3, 2), torch.ones(3))


def _on_rank(rank: int, port: int, folder: str) -> None:
    """Both losses' gathered value and gradient of this rank's half, averaged over the ranks as DDP does."""
    warnings.simplefilter("ignore")
    from lightly.loss import NTXentLoss as Theirs

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    found = []
    for loss in (NTXentLoss(gather_distributed=True), Theirs(gather_distributed=True)):
        weight = torch.eye(6, dtype=torch.float64, requires_grad=True)
        out0, out1 = (x.chunk(2)[rank] @ weight for x in pair(8))
        value = loss(out0, out1)
        value.backward()
        result = torch.cat([value.detach()[None], weight.grad.flatten()])
        torch.distributed.all_reduce(result)
        found.append(result / 2)
    torch.distributed.destroy_process_group()
    if rank == 0:
        torch.save(found, Path(folder) / "found.pt")


@pytest.mark.slow
def test_two_processes(theirs: Any, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(_on_rank, (port, str(tmp_path)), nprocs=2)
    mine, other = torch.load(tmp_path / "found.pt")
    torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-11)
    weight = torch.eye(6, dtype=torch.float64, requires_grad=True)
    alone = NTXentLoss()(*(x @ weight for x in pair(8)))
    torch.testing.assert_close(mine[0], alone.detach())
