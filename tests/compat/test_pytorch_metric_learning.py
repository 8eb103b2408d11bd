"""Held to the installed pytorch-metric-learning, value and gradient."""

from __future__ import annotations

import copy
import itertools
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.compat import pytorch_metric_learning as compat
from kontrast.losses import Loss as OwnLoss
from tests.processes import run_on_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what its own imports deprecate
    pytest.importorskip("pytorch_metric_learning")
    from pytorch_metric_learning import distances, losses, miners, reducers, regularizers

NAMES = ["SupConLoss", "NTXentLoss"]
both_losses = pytest.mark.parametrize("name", NAMES)

LABELS = {
    "several of each": [0, 1, 0, 2, 1, 0, 2, 1, 0, 2],  # nobody has just one positive: SupCon's fast path
    "two of each": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4],  # nobody has more than one: NT-Xent's fast path
    "mixed, some alone": [0, 1, 0, 2, 1, 0, 3, 4, 5, 5],
    "one class": [7] * 10,
    "all alone": list(range(10)),
    "fractions": [0.5, 0.5, 1.5, 1.5, 1.5, 0.5, 9, 9, 2, 3],
}


def rows(size: int, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(size, 5, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def outcome(loss: Any, embeddings: Tensor, *args: Any, ref_emb: Tensor | None = None, **call: Any) -> list[Tensor]:
    """The value, and the gradients for the embeddings and the reference rows."""
    embeddings = embeddings.clone().requires_grad_()
    if ref_emb is not None:
        ref_emb = call["ref_emb"] = ref_emb.clone().requires_grad_()
    value = loss(embeddings, *args, **call)
    value.backward()
    gradients = [embeddings.grad]
    if ref_emb is not None:
        gradients.append(torch.zeros_like(ref_emb) if ref_emb.grad is None else ref_emb.grad)
    return [value.detach(), *gradients]


def check(name: str, *args: Any, temperature: float = 0.2, **call: Any) -> Tensor:
    mine = outcome(getattr(compat, name)(temperature), *args, **call)
    theirs = outcome(getattr(losses, name)(temperature), *args, **call)
    tight = {"rtol": 1e-9, "atol": 1e-12} if args[0].dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(mine, theirs, **tight)
    return theirs[0]


@both_losses
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
@pytest.mark.parametrize("temperature", [0.05, 0.2, 2.0])
def test_labels(name: str, labels: list[float], temperature: float) -> None:
    value = check(name, rows(10), torch.tensor(labels), temperature=temperature)
    assert (value == 0) == (len(set(labels)) in (1, 10))


@both_losses
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_float32(name: str, labels: list[float]) -> None:
    check(name, rows(10, dtype=torch.float32), torch.tensor(labels))


@both_losses
def test_default_temperature(name: str) -> None:
    x, labels = rows(10), torch.tensor(LABELS["mixed, some alone"])
    assert getattr(compat, name)().temperature == getattr(losses, name)().temperature
    torch.testing.assert_close(getattr(compat, name)()(x, labels), getattr(losses, name)()(x, labels))


@both_losses
def test_small_blocks(name: str) -> None:
    x, labels = rows(10), torch.tensor(LABELS["mixed, some alone"])
    everyone = miners.BatchEasyHardMiner()(x, labels)
    loss = getattr(compat, name)(0.2)
    loss.tile = 3
    theirs = getattr(losses, name)(0.2)
    for call in ((labels,), (labels, everyone)):
        torch.testing.assert_close(outcome(loss, x, *call), outcome(theirs, x, *call), rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------------------------------ a reference set


@both_losses
@pytest.mark.parametrize("ref_labels", [[0, 1, 2, 2, 7], [0, 1, 2, 3, 4], [0, 0, 1, 1, 8], [9, 9, 9, 9, 9]])
def test_reference_rows(name: str, ref_labels: list[int]) -> None:
    labels = torch.tensor([0, 1, 2, 0])
    check(name, rows(4), labels, ref_emb=rows(5, seed=1), ref_labels=torch.tensor(ref_labels))


@both_losses
def test_positional_order(name: str) -> None:
    x, y, labels, theirs = rows(4), rows(5, seed=1), torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2, 7])
    call = (x, labels, None, y, theirs)
    torch.testing.assert_close(getattr(compat, name)()(*call), getattr(losses, name)()(*call))


@both_losses
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]])
def test_reference_rows_with_the_same_labels_leave_out_the_diagonal(name: str, labels: list[int]) -> None:
    same = torch.tensor(labels)
    x, y = rows(6), rows(6, seed=1)
    without = check(name, x, same, ref_emb=y)
    torch.testing.assert_close(check(name, x, same, ref_emb=y, ref_labels=same), without)
    assert not torch.isclose(check(name, x, same, ref_emb=y, ref_labels=same.clone()), without)


@both_losses
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1]])
def test_embeddings_as_their_own_reference(name: str, labels: list[int]) -> None:
    """With labels of their own, the rows themselves are among their positives."""
    mine, theirs = getattr(compat, name)(0.2), getattr(losses, name)(0.2)
    label = torch.tensor(labels)
    for ref_labels in (label, label.clone()):
        results = []
        for loss in (mine, theirs):
            x = rows(6).requires_grad_()
            value = loss(x, label, ref_emb=x, ref_labels=ref_labels)
            value.backward()
            results.append([value.detach(), x.grad])
        torch.testing.assert_close(*results, rtol=1e-9, atol=1e-12)


# ----------------------------------------------------------------------------------------------- what is zero


def test_losses_that_vanish_are_left_out_of_supcons_mean() -> None:
    """Rows of ±e underflow against each other in float32, so their loss is exactly 0 and only the others count."""
    x = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [-1, 0], [0.6, 0.8], [-0.6, 0.8]])
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    value = check("SupConLoss", x, labels, temperature=0.004)
    each = -(x @ x.T / 0.004).fill_diagonal_(-torch.inf).log_softmax(1)[range(6), [1, 0, 3, 2, 5, 4]]
    assert each.gt(0).tolist() == [False, False, False, False, True, True]
    torch.testing.assert_close(value, each[4:].mean())


def test_what_rounds_to_zero_is_left_out_too() -> None:
    """Anchor 0: log(1 + e^{−14}) = 8e-7 vanishes beside logits 50 below the largest, which is the anchor itself."""
    x = torch.tensor([[1.0, 0], [-0.5, 0.75**0.5], [-0.92, (1 - 0.92**2) ** 0.5]])
    value = check("SupConLoss", x, torch.tensor([0, 0, 1]), temperature=0.03)
    torch.testing.assert_close(value, (x[1] @ (x[2] - x[0])) / 0.03)  # anchor 1 alone


@both_losses
def test_one_pair_of_each_kind_is_zero(name: str) -> None:
    one = check(name, rows(1), torch.tensor([0]), ref_emb=rows(2, seed=1), ref_labels=torch.tensor([0, 1]))
    two = check(name, rows(1), torch.tensor([0]), ref_emb=rows(3, seed=1), ref_labels=torch.tensor([0, 1, 1]))
    assert one == 0
    assert two > 0
    assert check(name, rows(3), None, tuple(torch.tensor([i]) for i in (0, 1, 2))) == 0


@both_losses
def test_empty_batch_is_zero(name: str) -> None:
    assert check(name, rows(0), torch.zeros(0, dtype=torch.int64)) == 0


# ------------------------------------------------------------------------------------------------- miners


def index(*lists: list[int]) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(each, dtype=torch.int64) for each in lists)


LISTS = {
    "triplets": index([0, 0, 2, 4], [1, 2, 0, 5], [3, 3, 4, 0]),
    "pairs": index([0, 0, 2, 4], [1, 2, 0, 5], [0, 2, 4, 4, 1], [3, 3, 0, 1, 2]),
    "pairs more than once": index([0, 0, 0, 4, 4], [1, 1, 2, 5, 5], [0, 0, 4, 4, 4], [3, 3, 0, 0, 1]),
    "positives without negatives": index([0, 1, 4], [1, 2, 5], [0, 0], [3, 4]),
    "negatives without positives": index([0, 1], [1, 0], [0, 1, 2, 3], [3, 4, 5, 4]),
    "itself": index([0, 1], [0, 1], [0, 0, 1], [3, 1, 2]),
    "no positives": index([], [], [0, 1, 2], [3, 4, 5]),
    "no negatives": index([0, 1, 2], [1, 0, 3], [], []),
    "nothing": index([], [], []),
}


@both_losses
@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS.keys())
@pytest.mark.parametrize("labelled", [True, False])
def test_indices(name: str, lists: tuple[Tensor, ...], labelled: bool) -> None:
    labels = torch.tensor([0, 0, 0, 1, 2, 2]) if labelled else None
    check(name, rows(6), labels, lists)


@both_losses
@pytest.mark.parametrize("lists", LISTS.values(), ids=LISTS.keys())
def test_indices_into_reference_rows(name: str, lists: tuple[Tensor, ...]) -> None:
    check(name, rows(5), None, lists, ref_emb=rows(7, seed=1))


def test_ntxent_takes_a_pair_that_is_positive_and_negative() -> None:
    assert check("NTXentLoss", rows(4), None, index([0, 0], [1, 2], [0, 0], [1, 3])) > 0


@both_losses
@pytest.mark.parametrize(
    "miner", [miners.MultiSimilarityMiner(0.5), miners.TripletMarginMiner(0.2), miners.BatchHardMiner()], ids=str
)
def test_miners(name: str, miner: Any) -> None:
    x, labels = rows(10), torch.tensor(LABELS["mixed, some alone"])
    assert check(name, x, labels, miner(x, labels)) > 0


@both_losses
@pytest.mark.parametrize("symmetric", [True, False])
def test_inside_their_self_supervised_wrapper(name: str, symmetric: bool) -> None:
    x, y = rows(6), rows(6, seed=1)
    mine = losses.SelfSupervisedLoss(getattr(compat, name)(0.2), symmetric=symmetric)
    theirs = losses.SelfSupervisedLoss(getattr(losses, name)(0.2), symmetric=symmetric)
    torch.testing.assert_close(outcome(mine, x, ref_emb=y), outcome(theirs, x, ref_emb=y), rtol=1e-9, atol=1e-12)


@both_losses
def test_inside_their_cross_batch_memory(name: str) -> None:
    labels = torch.tensor([0, 1, 0, 1])
    mine = losses.CrossBatchMemory(getattr(compat, name)(0.2), 5, memory_size=12)
    theirs = losses.CrossBatchMemory(getattr(losses, name)(0.2), 5, memory_size=12)
    for step in range(4):
        x = rows(4, seed=step)
        torch.testing.assert_close(outcome(mine, x, labels), outcome(theirs, x, labels), rtol=1e-9, atol=1e-12)


# -------------------------------------------------------------------------------------------- what is our own


@both_losses
def test_gradient_reaches_a_learned_temperature(name: str) -> None:
    x, labels = rows(10), torch.tensor(LABELS["mixed, some alone"])
    slopes = []
    for module in (compat, losses):
        tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
        getattr(module, name)(tau)(x, labels).backward()
        slopes.append(tau.grad)
    torch.testing.assert_close(*slopes)


def test_ntxent_is_exact_where_their_probability_underflows() -> None:
    x = torch.tensor([[1.0, 0], [-1, 0], [1, 0], [0, 1.0]], requires_grad=True)
    value = compat.NTXentLoss(0.01)(x, torch.tensor([0, 0, 1, 2]))
    value.backward()
    # Anchor 0: the positive at −1, a negative at 1 and one at 0; anchor 1: the positive and a negative at −1, 0.
    assert float(value.detach()) == pytest.approx((200 + 100) / 2)
    assert losses.NTXentLoss(0.01)(x, torch.tensor([0, 0, 1, 2])) < 100  # −log of float32's smallest is 87
    assert bool(x.grad.isfinite().all())


@both_losses
def test_a_zero_row_gets_no_gradient(name: str) -> None:
    x = rows(10)
    x[3] = 0
    value, gradient = outcome(getattr(compat, name)(), x, torch.tensor(LABELS["mixed, some alone"]))
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert not gradient[3].any()


@both_losses
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_computed_in_float32_and_rounded(name: str, dtype: torch.dtype) -> None:
    """The dtypes of value and gradient are theirs, their value is as near as half precision computes it.

    At a temperature of 1: theirs adds 6e-5 to a probability in float16.
    """
    x, loss = rows(10).to(dtype), getattr(compat, name)(1.0)
    for labels in LABELS.values():
        value, gradient = outcome(loss, x, torch.tensor(labels))
        theirs = outcome(getattr(losses, name)(1.0), x, torch.tensor(labels))
        assert (value.dtype, gradient.dtype) == (dtype, dtype) == tuple(t.dtype for t in theirs)
        torch.testing.assert_close(value, loss(x.float(), torch.tensor(labels)).to(dtype), rtol=0, atol=0)
        torch.testing.assert_close(value, theirs[0], rtol=0.05, atol=0.05)


# ------------------------------------------------------------------------------------- distances and reducers

BY_ENGINE = {
    "cosine": distances.CosineSimilarity(),
    "dot product": distances.DotProductSimilarity(normalize_embeddings=False),
    "dot product, 1-norm": distances.DotProductSimilarity(p=1),
    "squared": distances.LpDistance(power=2),
    "squared, not normalised": distances.LpDistance(power=2, normalize_embeddings=False),
}
BY_THEM = {
    "Euclidean": distances.LpDistance(),
    "1-norm": distances.LpDistance(p=1),
    "signal to noise": distances.SNRDistance(),
    "squared cosine": distances.CosineSimilarity(power=2),
}
REDUCERS = {
    "mean": reducers.MeanReducer(),
    "sum": reducers.SumReducer(),
    "above 0": reducers.AvgNonZeroReducer(),
    "threshold": reducers.ThresholdReducer(low=0.3, high=4.0),
    "class weights": reducers.ClassWeightedReducer(torch.linspace(0.5, 2.0, 8)),
    "per anchor": reducers.PerAnchorReducer(),
    "by name": reducers.MultipleReducers({"loss": reducers.SumReducer()}),
}
PENALTY = {"embedding_regularizer": regularizers.LpRegularizer(), "embedding_reg_weight": 0.3}


def check_option(name: str, *call: Any, **options: Any) -> Any:
    """One option in both, each with a part of its own; the loss that was made."""
    found = []
    for module in (losses, compat):
        loss = getattr(module, name)(0.3, **{k: copy.deepcopy(v) for k, v in options.items()})
        found.append(outcome(loss, *call))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12)
    return loss


@both_losses
@pytest.mark.parametrize("distance", [*BY_ENGINE, *BY_THEM])
def test_distance(name: str, distance: str) -> None:
    made = (BY_ENGINE | BY_THEM)[distance]
    for labels in LABELS.values():
        check_option(name, rows(10), torch.tensor(labels), distance=made)
    check_option(name, rows(6), None, LISTS["pairs more than once"], distance=made)


@both_losses
@pytest.mark.parametrize("reducer", REDUCERS)
def test_reducer(name: str, reducer: str) -> None:
    for labels in LABELS.values():
        numbers = torch.tensor(labels).long().clamp(max=7)  # weights are for 8 classes
        check_option(name, rows(10), numbers, reducer=REDUCERS[reducer])
        check_option(name, rows(10), numbers, reducer=REDUCERS[reducer], distance=BY_ENGINE["squared"], **PENALTY)
    check_option(name, rows(6), torch.arange(6), LISTS["pairs more than once"], reducer=REDUCERS[reducer])


@both_losses
def test_regularizer(name: str) -> None:
    for labels in LABELS.values():
        check_option(name, rows(10), torch.tensor(labels), **PENALTY)


@both_losses
def test_every_value_where_nothing_is_reduced(name: str) -> None:
    call = (rows(10), torch.tensor(LABELS["mixed, some alone"]))
    mine, theirs = (getattr(m, name)(0.3, reducer=reducers.DoNothingReducer())(*call) for m in (compat, losses))
    assert mine.keys() == theirs.keys() == {"loss"}
    assert mine["loss"].pop("reduction_type") == theirs["loss"].pop("reduction_type")
    torch.testing.assert_close(mine["loss"], theirs["loss"], rtol=1e-9, atol=1e-12)


@both_losses
def test_statistics(name: str) -> None:
    """What their record keepers read off a distance and a reducer."""
    call = (rows(10), torch.tensor(LABELS["mixed, some alone"]))
    seen = []
    for module in (compat, losses):
        loss = getattr(module, name)(
            distance=distances.CosineSimilarity(collect_stats=True),
            reducer=reducers.ThresholdReducer(low=0, collect_stats=True),
            collect_stats=True,
        )
        loss(*call)
        parts = (loss, loss.distance, loss.reducer)
        seen.append(
            [
                {n: getattr(p, n) for k in ("_record_these", "_record_these_stats") for n in getattr(p, k, [])}
                for p in parts
            ]
        )
    assert seen[0] == seen[1]
    assert seen[0][2]["num_past_filter"] > 0


@both_losses
@pytest.mark.parametrize("reducer", [None, *REDUCERS])
@pytest.mark.parametrize("distance", BY_ENGINE)
def test_the_engine_computes_what_it_can(
    name: str, distance: str, reducer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without asking the distance for its matrix."""
    made = copy.deepcopy(BY_ENGINE[distance])
    monkeypatch.setattr(type(made), "compute_mat", None)
    loss = getattr(compat, name)(0.3, distance=made, reducer=copy.deepcopy(REDUCERS.get(reducer or "")))
    assert loss(rows(10), torch.tensor(LABELS["mixed, some alone"])).isfinite()
    monkeypatch.setattr(distances.LpDistance, "compute_mat", None)
    with pytest.raises(TypeError, match="not callable"):
        getattr(compat, name)(distance=distances.LpDistance())(rows(10), torch.tensor(LABELS["one class"]) % 3)


@both_losses
def test_distance_of_a_users_own(name: str) -> None:
    class Halved(distances.CosineSimilarity):
        def compute_mat(self, query_emb: Tensor, ref_emb: Tensor) -> Tensor:
            return super().compute_mat(query_emb, ref_emb) / 2

    labels = torch.tensor(LABELS["mixed, some alone"])
    halved, twice = getattr(compat, name)(0.2, distance=Halved()), getattr(compat, name)(0.4)
    torch.testing.assert_close(outcome(halved, rows(10), labels), outcome(twice, rows(10), labels))


@both_losses
def test_distance_may_be_changed_later(name: str) -> None:
    labels = torch.tensor(LABELS["mixed, some alone"])
    mine, theirs = (getattr(m, name)(0.2) for m in (compat, losses))
    for loss in (mine, theirs):
        loss.distance = distances.LpDistance(p=1)
    torch.testing.assert_close(mine(rows(10), labels), theirs(rows(10), labels))


# ------------------------------------------------------------------------------------- one of theirs, or not


@both_losses
def test_is_one_of_their_losses(name: str) -> None:
    loss = getattr(compat, name)()
    assert isinstance(loss, getattr(losses, name))
    assert isinstance(loss, losses.BaseMetricLossFunction)
    assert isinstance(loss, OwnLoss)
    assert repr(loss).startswith(f"{name}(\n  temperature=0.")
    assert not loss.state_dict()


@both_losses
def test_several_losses_together(name: str) -> None:
    labels = torch.tensor(LABELS["mixed, some alone"])
    mine, theirs = (
        losses.MultipleLosses([getattr(m, name)(0.2), losses.TripletMarginLoss()], weights=[1, 0.5])
        for m in (compat, losses)
    )
    torch.testing.assert_close(outcome(mine, rows(10), labels), outcome(theirs, rows(10), labels))


@both_losses
@pytest.mark.parametrize("option", ["none", "distance", "reducer", "regularizer", "learned"])
def test_pickled_and_copied(name: str, option: str) -> None:
    options: dict[str, Any] = {
        "distance": {"distance": distances.LpDistance()},
        "reducer": {"reducer": reducers.ThresholdReducer(low=0.5)},
        "regularizer": PENALTY,
        "learned": {"temperature": torch.nn.Parameter(torch.tensor(0.4))},
    }.get(option, {})
    loss = getattr(compat, name)(**options)
    labels = torch.tensor(LABELS["mixed, some alone"])
    for again in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        torch.testing.assert_close(again(rows(10), labels), loss(rows(10), labels), rtol=0, atol=0)
        assert again.loss_method.__self__ is again, "the copy computes by another loss"
        assert again.distance is not loss.distance
        assert repr(again) == repr(loss)
        assert option != "learned" or again.temperature is not loss.temperature


ABSENT = """
import pickle, sys, torch
sys.modules["pytorch_metric_learning"] = None  # an import of it fails as if it were not installed
from kontrast.compat import pytorch_metric_learning as compat
x, y = torch.linspace(-1, 1, 40, dtype=torch.float64).view(10, 4).sin(), torch.tensor([0, 1, 0, 2, 1, 0, 3, 4, 5, 5])
for option in ("distance", "reducer", "embedding_regularizer", "collect_stats"):
    try:
        compat.SupConLoss(**{option: True})
    except ValueError as error:
        print(error)
for name in ("SupConLoss", "NTXentLoss"):
    with open(sys.argv[1], "rb") as file:
        there = pickle.load(file)[name]
    loss = getattr(compat, name)(0.3)
    print(*(each(x, y).item() for each in (loss, there)), loss(x.half(), y).dtype)
with open(sys.argv[2], "wb") as file:
    pickle.dump({name: getattr(compat, name)(0.3) for name in ("SupConLoss", "NTXentLoss")}, file)
"""


def test_where_it_is_not_installed(tmp_path: Path) -> None:
    """The same values; what needs it is an error that says so; pickles go both ways."""
    present, absent = tmp_path / "present.pickle", tmp_path / "absent.pickle"
    here = {name: getattr(compat, name)(0.3) for name in NAMES}
    present.write_bytes(pickle.dumps(here))
    command = [sys.executable, "-c", ABSENT, str(present), str(absent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *errors, supcon, ntxent = done.stdout.splitlines()
    assert [error.partition("=")[0] for error in errors] == [
        "distance",
        "reducer",
        "embedding_regularizer",
        "collect_stats",
    ]
    assert "=bool: needs pytorch-metric-learning, which is not installed. Install it with pip install" in errors[0]
    x, labels = torch.linspace(-1, 1, 40, dtype=torch.float64).view(10, 4).sin(), LABELS["mixed, some alone"]
    again = pickle.loads(absent.read_bytes())
    for name, line in zip(NAMES, (supcon, ntxent), strict=True):
        value = here[name](x, torch.tensor(labels)).item()
        assert line.split() == [str(value), str(value), "torch.float16"]
        assert again[name](x, torch.tensor(labels)).item() == value
        assert isinstance(again[name], losses.BaseMetricLossFunction)
        assert repr(again[name]) == repr(here[name])


# --------------------------------------------------------------------------------------- several processes


def wrapped(rank: int, world: int) -> None:
    """Value and averaged gradient inside their wrapper: theirs, and those of one process with all rows."""
    from pytorch_metric_learning.utils import distributed as theirs

    labels = torch.tensor([0, 1, 0, 2, 1, 0, 2, 1])
    mine = torch.arange(8).chunk(world)[rank]
    for name, efficient, mined in itertools.product(NAMES, (False, True), (False, True)):
        found = []
        for module in (compat, losses):
            weight = torch.eye(5, dtype=torch.float64, requires_grad=True)
            x = rows(8)[mine] @ weight
            miner = theirs.DistributedMinerWrapper(miners.BatchHardMiner(), efficient=efficient)
            pairs = miner(x.detach(), labels[mine]) if mined else None
            loss = theirs.DistributedLossWrapper(getattr(module, name)(0.2), efficient=efficient)
            value = loss(x, labels[mine], pairs)
            value.backward()
            torch.distributed.all_reduce(weight.grad)
            found.append([value.detach(), weight.grad / world])
        torch.testing.assert_close(*found, rtol=1e-9, atol=1e-12, msg=lambda m, n=name: f"{n}: {m}")
        if not efficient and not mined:
            weight = torch.eye(5, dtype=torch.float64, requires_grad=True)
            alone = getattr(compat, name)(0.2)(rows(8) @ weight, labels)
            alone.backward()
            torch.testing.assert_close(found[0], [alone.detach() * world, weight.grad], rtol=1e-9, atol=1e-12)
    memory = []
    for module in (compat, losses):
        loss = theirs.DistributedLossWrapper(losses.CrossBatchMemory(module.NTXentLoss(0.2), 5, memory_size=24))
        for step in range(3):
            value = loss(rows(8, seed=step)[mine], labels[mine])
        memory.append(value)
    torch.testing.assert_close(*memory, rtol=1e-9, atol=1e-12)


def test_inside_their_distributed_wrapper(tmp_path: Path) -> None:
    run_on_ranks(wrapped, 2, tmp_path)


@both_losses
class TestErrors:
    def test_neither_labels_nor_indices(self, name: str) -> None:
        with pytest.raises(ValueError, match="labels and indices_tuple cannot both be None"):
            getattr(compat, name)()(rows(3))

    @pytest.mark.parametrize("labels", [torch.arange(4), torch.zeros(3, 1)])
    def test_shape_of_labels(self, name: str, labels: Tensor) -> None:
        with pytest.raises(ValueError, match=r"labels must be a tensor of shape \[3\]"):
            getattr(compat, name)()(rows(3), labels)

    def test_reference_without_labels(self, name: str) -> None:
        with pytest.raises(ValueError, match=r"pass ref_labels \[5\]"):
            getattr(compat, name)()(rows(3), torch.arange(3), ref_emb=rows(5))

    def test_width_of_reference(self, name: str) -> None:
        with pytest.raises(ValueError, match="the last sizes must agree"):
            getattr(compat, name)()(rows(3), torch.arange(3), ref_emb=rows(3)[:, :4], ref_labels=torch.arange(3))

    @pytest.mark.parametrize(
        ("lists", "message"),
        [
            (index([0], [1]), "indices_tuple has 2 entries"),
            (index([0], [3], [1]), "indices_tuple holds 3 … 3, but there are rows 0 … 2"),
            (index([0], [1], [-1]), "indices_tuple holds -1"),
            (index([0, 1], [1], [2]), "equally long"),
            ((torch.zeros(1), *index([1], [2])), "1D integer tensors"),
        ],
    )
    def test_indices(self, name: str, lists: tuple[Tensor, ...], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            getattr(compat, name)()(rows(3), None, lists)


def test_supcon_refuses_a_pair_that_is_positive_and_negative() -> None:
    with pytest.raises(ValueError, match="both as positive and as negative"):
        compat.SupConLoss()(rows(4), None, index([0, 0], [1, 2], [0, 0], [1, 3]))
