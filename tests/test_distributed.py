"""Several real processes compute what one computes on the concatenated batch."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kontrast import distributed
from kontrast.losses import InfoNCELoss, SupConLoss, sce_terms
from tests.losses.cases import CASES, EMBEDDINGS, FIXED, PLAIN, Case, D
from tests.processes import run_on_ranks

SIZES = {1: [[11]], 2: [[7, 4], [3, 8]], 3: [[5, 2, 4], [0, 8, 3]]}
THROUGH_THE_NETWORK = ("query", "key", "view1", "view2", "embeddings", "online")


class Model(nn.Module):
    """A network and a loss: what learns is inside, so that DDP averages its gradients."""

    def __init__(self, case: Case, reduction: str, gather: bool, learn_temperature: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(D, 9), nn.Tanh(), nn.Linear(9, D)).double()
        options: dict[str, Any] = {"reduction": reduction, "gather_distributed": gather, "tile": 4}
        if learn_temperature and "temperature" in case.parameters():
            options["temperature"] = nn.Parameter(torch.tensor(0.2, dtype=torch.float64))
        self.loss = case.make(**options).double()

    def forward(self, **inputs: Tensor) -> Tensor:
        value = self.loss(**{k: self.net(v) if k in THROUGH_THE_NETWORK else v for k, v in inputs.items()})
        if self.loss.reduction == "none":  # a weight for each value, the same as in one process
            value = value * inputs[next(iter(inputs))].detach().flatten(1).sum(1).view(-1, *[1] * (value.ndim - 1))
        return value


def part(inputs: dict[str, Tensor], sizes: list[int], rank: int) -> dict[str, Tensor]:
    """A rank's rows; the columns of a mask are everybody's."""
    start = sum(sizes[:rank])
    return {k: v if k in FIXED else v[start : start + sizes[rank]] for k, v in inputs.items()}


class Models(nn.Module):
    """One model for each reduction, with a fixed and a learned temperature; DDP takes long to wrap one."""

    def __init__(self, case: Case, gather: bool) -> None:
        super().__init__()
        kinds = [(r, learn) for r in ("mean", "sum", "none") for learn in (False, True)]
        self.models = nn.ModuleDict({f"{r} learn={learn}": Model(case, r, gather, learn) for r, learn in kinds})

    def forward(self, **inputs: Tensor) -> dict[str, Tensor]:
        return {name: model(**inputs) for name, model in self.models.items()}


def run(models: nn.Module, inputs: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[Tensor]]:
    values = models(**inputs)
    torch.stack([value.sum() for value in values.values()]).sum().backward()
    return {name: value.detach() for name, value in values.items()}, [p.grad for p in models.parameters()]


@functools.cache
def alone(case: str) -> tuple[dict[str, Tensor], list[Tensor]]:
    """Values and gradients of one process with all rows."""
    (found,) = (c for c in CASES if str(c) == case)
    return run(Models(found, gather=False), found.inputs(seed=21))


def compare(case: Case, sizes: list[int], rank: int) -> None:
    expected, gradients = alone(str(case))
    mine = DistributedDataParallel(Models(case, gather=True))
    values, got = run(mine, part(case.inputs(seed=21), sizes, rank))
    where = f"{case} rank {rank} of {sizes}"
    for name, value in values.items():
        one = part({"values": expected[name]}, sizes, rank)["values"] if name.startswith("none") else expected[name]
        torch.testing.assert_close(value, one, msg=lambda m, n=name: f"{where}: {n}: value: {m}")
    for (name, _), a, b in zip(mine.named_parameters(), got, gradients, strict=True):
        torch.testing.assert_close(a, b, msg=lambda m, n=name: f"{where}: {n}: {m}")


def other_checks(sizes: list[int], rank: int) -> None:
    start = sum(sizes[:rank])
    mine = slice(start, start + sizes[rank])
    rows = torch.randn(11, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.randn(11, D, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(11) % 3

    # the parts of SCE
    local = [t.requires_grad_() for t in (rows[mine].clone(), rows.clone())]
    here, alone = (
        sce_terms(x, t, gather_distributed=g)
        for x, t, g in zip(local, (target[mine], target), (True, False), strict=True)
    )
    for a, b in zip(here, alone, strict=True):
        torch.testing.assert_close(a, b[mine])
        for x in local:
            x.grad = None
        a.sum().backward(retain_graph=True)
        b.sum().backward(retain_graph=True)
        torch.testing.assert_close(local[0].grad / len(sizes), local[1].grad[mine])

    # hard negatives of each rank's own, gathered by hand, beside the keys of every rank
    own = torch.randn(11, D, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    loss = InfoNCELoss(negatives_in_batch=True)
    here, everyone = own[mine].clone().requires_grad_(), own.clone().requires_grad_()
    gathered = distributed.gather(here, distributed.row_counts(here))
    value = loss(rows[mine], target[mine], negatives=gathered)
    alone = InfoNCELoss(negatives_in_batch=True, gather_distributed=False)(rows, target, negatives=everyone)
    torch.testing.assert_close(value, alone)
    value.backward()
    alone.backward()
    torch.testing.assert_close(here.grad / len(sizes), everyone.grad[mine])

    # gathering has to be refusable: then a rank knows only its own rows
    if sizes[rank]:
        apart = SupConLoss(gather_distributed=False, reduction="none")(rows[mine], labels[mine])
        assert apart.shape == (sizes[rank],)

    # beside reference rows no rank knows the others' labels: one rank alone may have an anchor without a positive
    lonely, ref, ref_labels = labels.clone(), target[:6], labels[:6]
    lonely[10] = 7
    value = SupConLoss()(rows[mine], lonely[mine], ref_emb=ref, ref_labels=ref_labels)
    alone = SupConLoss(gather_distributed=False)(rows, lonely, ref_emb=ref, ref_labels=ref_labels)
    torch.testing.assert_close(value, alone)

    # an error that concerns one rank's anchors is raised on every rank
    lonely = torch.arange(11) + torch.arange(11) // 10  # nobody has a positive
    with pytest.raises(ValueError, match="11 of 11 anchors have no positive"):
        SupConLoss(no_positive="error")(rows[mine], lonely[mine])
    value = SupConLoss()(rows[mine].clone().requires_grad_(), lonely[mine])
    assert value == 0
    if len(sizes) > 1:
        with pytest.raises(ValueError, match="the ranks hold rows of different shapes or types"):
            distributed.row_counts(torch.zeros(2, 3 + rank))
        with pytest.raises(ValueError, match=r"rank 0 .* of 32 bits, rank 1 .* of 64 bits"):
            distributed.row_counts(torch.zeros(2, 3, dtype=torch.float64 if rank else torch.float32))
        with pytest.raises(ValueError, match="the ranks hold rows of different shapes or types"):
            distributed.row_counts(torch.zeros(2, 3, 4) if rank else torch.zeros(2, 3))
    with pytest.raises(ValueError, match="embeddings is empty"):
        SupConLoss()(rows[:0], labels[:0])
    if len(sizes) > 1 and sizes[rank]:
        square = torch.ones(sizes[rank], sizes[rank], dtype=torch.bool)
        with pytest.raises(ValueError, match=rf"positives must be a bool tensor of shape \[{sizes[rank]}, 11\]"):
            SupConLoss()(rows[mine], positives=square)
    elif len(sizes) > 1:
        SupConLoss()(rows[mine], positives=torch.ones(0, 11, dtype=torch.bool))


def refused_second_derivatives(sizes: list[int], rank: int) -> None:
    """Over several processes a second derivative raises, on each rank; of a rank's own rows it is there."""
    for case in PLAIN:
        mine = part(case.inputs(seed=22), sizes, rank)
        name = case.differentiable(mine)[0]
        for reduction in ("mean", "none"):
            for gather in (True, False):
                loss = case.make(reduction=reduction, gather_distributed=gather).double()
                x = mine[name].clone().requires_grad_()
                value = loss(**mine | {name: x}).sum()
                torch.autograd.grad(value, x, retain_graph=True)
                if gather:
                    with pytest.raises(RuntimeError, match=f"by {len(sizes)} processes, .* in one process, or pass"):
                        torch.autograd.grad(value, x, create_graph=True)
                else:
                    (gradient,) = torch.autograd.grad(value, x, create_graph=True)
                    assert torch.autograd.grad(gradient.square().sum(), x)[0].isfinite().all()


def together(rank: int, world: int) -> None:
    for sizes in SIZES[world]:
        for case in CASES:
            compare(case, sizes, rank)
        if 0 not in sizes:
            other_checks(sizes, rank)
            if world > 1:
                refused_second_derivatives(sizes, rank)
    assert distributed.rank() == rank
    assert distributed.world_size() == world


@pytest.mark.parametrize("world", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_value_and_parameter_gradients_are_those_of_one_process(world: int, tmp_path: Path) -> None:
    run_on_ranks(together, world, tmp_path)


def averaging(rank: int, world: int) -> None:
    """Every gradient is the mean over the ranks, in messages of any size; what has none stays without."""
    shapes = [(3, 2), (5,), (), (2, 2, 2)]
    for bucket in (1, 7, 1000):
        parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
        for i, parameter in enumerate(parameters[:3]):
            parameter.grad = torch.full(parameter.shape, float(10 * i + rank))
        distributed.average_gradients(parameters, bucket)
        for i, parameter in enumerate(parameters[:3]):
            assert parameter.grad is not None
            assert torch.equal(parameter.grad, torch.full(parameter.shape, 10 * i + (world - 1) / 2))
        assert parameters[3].grad is None
    assert distributed.any_rank(rank == world - 1)
    assert not distributed.any_rank(False)
    assert distributed.of_first(0.1 + rank) == 0.1


def test_gradients_are_averaged_and_flags_shared(tmp_path: Path) -> None:
    run_on_ranks(averaging, 2, tmp_path)


def test_rank_of_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    assert distributed.launched_rank() == 0
    monkeypatch.setenv("RANK", "3")
    assert distributed.launched_rank() == 3
    assert distributed.launched() == (3, 1)


def test_what_torchrun_sets_and_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"^WORLD_SIZE is 2, but RANK, MASTER_ADDR, MASTER_PORT are not set: st"):
        distributed.launched_rank()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    with pytest.raises(ValueError, match=r"but RANK is not set: start with torchrun --nproc-per-node=2, which sets"):
        distributed.launched_rank()
    monkeypatch.setenv("RANK", "1")
    assert distributed.launched() == (1, 2)
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(ValueError, match=r"the variable RANK is 'first'; expected a whole number"):
        distributed.launched_rank()


def test_without_a_group_everything_is_the_identity() -> None:
    distributed.average_gradients([nn.Parameter(torch.zeros(2))])
    assert distributed.of_first(2.5) == 2.5
    x = torch.randn(3, 2)
    assert distributed.gather(x, distributed.row_counts(x)) is x
    assert distributed.total(x) is x
    assert distributed.own(x) is x
    assert (distributed.rank(), distributed.world_size()) == (0, 1)


def test_the_network_sees_every_kind_of_embedding() -> None:
    """So that a new loss with a new name of input is not silently left out above."""
    assert set(EMBEDDINGS) - set(FIXED) - {"target"} == set(THROUGH_THE_NETWORK)
