"""Whatever the installed neighbours are asked, `kontrast.compat` answers the same: thousands of random calls.

The neighbours' own test-suites are in neither their wheels nor their source distributions, so they cannot be run
against what is installed. This asks instead what they check, in every mix of options: labels of all kinds, miners,
reference rows, distances, reducers, regularizers, temperatures, precisions; batches that are empty, of one row, of one
class, or without positives. Values and gradients are compared; where the neighbour raises, so must this.

Temperatures and lengths keep each loss above 1e-8: closer to 0, which of them count as 0 in a mean is a matter of
rounding. What deviates by intent is in the docstrings of the modules and left out here (zero rows, underflow in
NT-Xent).
"""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.compat import lightly as compat_lightly
from kontrast.compat import pytorch_metric_learning as compat

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what their own imports deprecate
    pytest.importorskip("pytorch_metric_learning")
    from pytorch_metric_learning import distances, losses, miners, reducers, regularizers

pytestmark = pytest.mark.slow
CALLS = 1500

DISTANCES: list[Callable[[], Any]] = [
    lambda: None,
    distances.CosineSimilarity,
    lambda: distances.CosineSimilarity(p=3),
    lambda: distances.CosineSimilarity(power=3),
    distances.DotProductSimilarity,
    lambda: distances.DotProductSimilarity(normalize_embeddings=False),
    lambda: distances.DotProductSimilarity(p=1),
    distances.LpDistance,
    lambda: distances.LpDistance(p=1),
    lambda: distances.LpDistance(power=2),
    lambda: distances.LpDistance(power=2, normalize_embeddings=False),
    distances.SNRDistance,
]
REDUCERS: list[Callable[[], Any]] = [
    lambda: None,
    reducers.AvgNonZeroReducer,
    reducers.MeanReducer,
    reducers.SumReducer,
    lambda: reducers.ThresholdReducer(low=0.37),
    lambda: reducers.ThresholdReducer(high=2.21),
    lambda: reducers.ThresholdReducer(low=0.37, high=2.21),
    lambda: reducers.ClassWeightedReducer(torch.linspace(0.5, 2.0, 20)),
    reducers.PerAnchorReducer,
    lambda: reducers.PerAnchorReducer(reducers.SumReducer()),
    lambda: reducers.MultipleReducers({"loss": reducers.SumReducer()}),
    reducers.DoNothingReducer,
]
REGULARIZERS: list[Callable[[], Any]] = [
    lambda: None,
    lambda: None,
    regularizers.LpRegularizer,
    regularizers.ZeroMeanRegularizer,
    regularizers.CenterInvariantRegularizer,
    regularizers.RegularFaceRegularizer,
]
MINERS: list[Any] = [
    miners.MultiSimilarityMiner(0.3),
    miners.BatchHardMiner(),
    miners.BatchEasyHardMiner(),
    miners.TripletMarginMiner(0.4, type_of_triplets="all"),
    miners.TripletMarginMiner(0.4, type_of_triplets="semihard"),
    miners.PairMarginMiner(0.1, 0.9),
    miners.AngularMiner(),
]


def labels_of(size: int, kind: str, choose: random.Random) -> Tensor:
    values = {
        "few classes": lambda: [choose.randrange(3) for _ in range(size)],
        "many classes": lambda: [choose.randrange(max(1, size)) for _ in range(size)],
        "pairs": lambda: [i // 2 for i in range(size)],
        "one class": lambda: [4] * size,
        "all alone": lambda: list(range(size)),
        "one pair": lambda: [min(i, size - 2) if size > 1 else 0 for i in range(size)],
    }[kind]()
    return torch.tensor(values, dtype=choose.choice([torch.int64, torch.int32]))


KINDS = ("few classes", "many classes", "pairs", "one class", "all alone", "one pair")


def answer(module: Any, name: str, case: dict[str, Any]) -> list[Tensor] | str:
    """The value and every gradient, or that it raised."""
    leaves = [case["embeddings"].clone().requires_grad_()]
    call = {"labels": case["labels"], "indices_tuple": case["indices"]}
    if case["ref_emb"] is not None:
        leaves.append(case["ref_emb"].clone().requires_grad_())
        call |= {"ref_emb": leaves[1], "ref_labels": case["ref_labels"]}
    temperature = case["temperature"]
    if case["learned"]:
        temperature = torch.nn.Parameter(torch.tensor(temperature, dtype=torch.float64))
        leaves.append(temperature)
    try:
        loss = getattr(module, name)(temperature, **copy.deepcopy(case["options"]))
        value = loss(leaves[0], **call)
    except (ValueError, AssertionError, RuntimeError, IndexError, NotImplementedError) as error:
        return f"raised {type(error).__name__}"
    if isinstance(value, dict):  # DoNothingReducer
        value = sum(torch.as_tensor(part["losses"]).sum() for part in value.values())
    if not value.requires_grad:
        return [value]
    grads = torch.autograd.grad(value, leaves, allow_unused=True)
    return [value.detach(), *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, grads, strict=True))]


def draw(choose: random.Random, seed: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    dtype = choose.choice([torch.float64] * 4 + [torch.float32])

    def rows(size: int) -> Tensor:
        x = 0.4 * torch.randn(size, 6, generator=generator, dtype=torch.float64)
        if size > 3 and choose.random() < 0.2:
            x[1] = x[0]  # a row twice
        return x.to(dtype)

    size = choose.choice([0, 1, 2, 3, 5, 8, 12, 16])
    case: dict[str, Any] = {
        "embeddings": rows(size),
        "labels": labels_of(size, choose.choice(KINDS), choose),
        "indices": None,
        "ref_emb": None,
        "ref_labels": None,
        "temperature": choose.choice([0.3, 1.0, 3.0]),
        "learned": choose.random() < 0.3,
        "options": {
            "distance": choose.choice(DISTANCES)(),
            "reducer": choose.choice(REDUCERS)(),
            "embedding_regularizer": choose.choice(REGULARIZERS)() if size > 1 else None,
            "embedding_reg_weight": choose.choice([1, 0.2]),
            "collect_stats": choose.choice([None, True, False]),
        },
    }
    if choose.random() < 0.3:
        number = choose.choice([1, size, 7])
        case |= {"ref_emb": rows(number), "ref_labels": labels_of(number, choose.choice(KINDS), choose)}
        if number == size and choose.random() < 0.3:
            case["ref_labels"] = case["labels"]  # the same tensor: the diagonal is left out
    if size > 1 and choose.random() < 0.4:
        case["indices"] = mined(case, choose, generator)
        if choose.random() < 0.3:
            case["labels"] = (
                None if not isinstance(case["options"]["reducer"], reducers.ClassWeightedReducer) else (case["labels"])
            )
    return case


def mined(case: dict[str, Any], choose: random.Random, generator: torch.Generator) -> tuple[Tensor, ...]:
    """A miner's pairs or triplets, or random ones, some more than once."""
    width = len(case["embeddings"] if case["ref_emb"] is None else case["ref_emb"])
    if choose.random() < 0.7 and case["ref_emb"] is None:
        found: tuple[Tensor, ...] = choose.choice(MINERS)(case["embeddings"].double(), case["labels"])
        return found
    count = choose.choice([0, 1, 4, 9])

    def index(size: int) -> Tensor:
        return torch.randint(0, size, (count,), generator=generator)

    size = len(case["embeddings"])
    return tuple(index(n) for n in choose.choice([(size, width, width), (size, width, size, width)]))


@pytest.mark.parametrize("name", ["SupConLoss", "NTXentLoss"])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")  # theirs, of empty means and the like
def test_pytorch_metric_learning(name: str) -> None:
    choose = random.Random(0)
    compared = worst = 0.0
    for number in range(CALLS):
        case = draw(choose, number)
        mine, theirs = (answer(module, name, case) for module in (compat, losses))
        if isinstance(theirs, str):
            assert isinstance(mine, str), (number, case, theirs)
            continue
        assert not isinstance(mine, str), (number, case, mine)
        if any(bool(t.isnan().any()) for t in theirs):  # say, a mean of no values
            assert torch.equal(torch.isnan(mine[0]), torch.isnan(theirs[0])), (number, case)
            continue
        wide = case["embeddings"].dtype == torch.float64
        tolerance = {"rtol": 1e-11, "atol": 1e-12} if wide else {"rtol": 2e-4, "atol": 2e-5}
        torch.testing.assert_close(mine, theirs, **tolerance, msg=lambda m, n=number, c=case: f"call {n}: {m}\n{c}")
        compared += 1
        if wide:
            worst = max(worst, float((mine[0] - theirs[0]).abs() / theirs[0].abs().clamp(min=1)))
    assert compared > 0.6 * CALLS, "most calls should have an answer"
    assert worst < 1e-13


@pytest.mark.parametrize("name", ["SupConLoss", "NTXentLoss"])
@pytest.mark.parametrize("masked", [False, True])
def test_their_memory_with_miners(name: str, masked: bool) -> None:
    """CrossBatchMemory over several steps, the queue filled and overwritten, with a miner and with a mask."""
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        steps = [torch.randn(8, 6, generator=generator, dtype=torch.float64) for _ in range(6)]
        labels = [torch.randint(0, 3, (8,), generator=generator) for _ in range(6)]
        found = []
        for module in (compat, losses):
            loss = losses.CrossBatchMemory(
                getattr(module, name)(0.3), 6, memory_size=20, miner=miners.MultiSimilarityMiner(0.3)
            )
            values = []
            for x, y in zip(steps, labels, strict=True):
                mask = torch.arange(8) >= 4 if masked else None
                leaf = x.clone().requires_grad_()
                value = loss(leaf, y, enqueue_mask=mask)
                values += [value.detach(), *torch.autograd.grad(value, leaf)]
            found.append(values)
        torch.testing.assert_close(*found, rtol=1e-11, atol=1e-12)


def test_lightly() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pytest.importorskip("lightly.loss").NTXentLoss
    choose = random.Random(0)
    for number in range(CALLS):
        generator = torch.Generator().manual_seed(number)
        dtype = choose.choice([torch.float64, torch.float64, torch.float32])
        size, dim = choose.choice([1, 2, 3, 8, 17]), choose.choice([1, 2, 7])
        out0, out1 = (torch.randn(size, dim, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
        if choose.random() < 0.2:
            out1 = out0.clone()
        options = {
            "temperature": choose.choice([0.05, 0.2, 0.5, 1.0, 10.0]),
            "memory_bank_size": choose.choice([0, (0, dim), [0, dim]]),
            "gather_distributed": choose.random() < 0.3,
        }
        wants = choose.choice([(True, True), (True, False), (False, True)])
        found = []
        for cls in (compat_lightly.NTXentLoss, theirs):
            views = [x.clone().requires_grad_(want) for x, want in zip((out0, out1), wants, strict=True)]
            value = cls(**options)(*views)
            found.append([value.detach(), *torch.autograd.grad(value, [v for v in views if v.requires_grad])])
        tolerance = {"rtol": 1e-11, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 2e-4, "atol": 2e-5}
        torch.testing.assert_close(*found, **tolerance, msg=lambda m, n=number, o=options: f"call {n}, {o}: {m}")
