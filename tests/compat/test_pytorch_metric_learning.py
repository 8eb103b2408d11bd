"""Held to the installed pytorch-metric-learning, value and gradient."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.compat import pytorch_metric_learning as compat

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
def test_half_precision_is_computed_in_float32(name: str) -> None:
    x, labels = rows(10).half(), torch.tensor(LABELS["mixed, some alone"])
    loss = getattr(compat, name)()
    torch.testing.assert_close(loss(x, labels), loss(x.float(), labels))


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

    @pytest.mark.parametrize(
        "option",
        [
            {"distance": distances.LpDistance()},
            {"reducer": reducers.MeanReducer()},
            {"embedding_regularizer": regularizers.LpRegularizer()},
            {"collect_stats": True},
        ],
        ids=lambda option: next(iter(option)),
    )
    def test_options_that_are_not_taken(self, name: str, option: dict[str, Any]) -> None:
        with pytest.raises(
            ValueError, match=rf"{next(iter(option))} \(\w+\) is not supported here.*kontrast.losses.{name}"
        ):
            getattr(compat, name)(**option)
        getattr(compat, name)(**dict.fromkeys(option))  # None is what is left out


def test_supcon_refuses_a_pair_that_is_positive_and_negative() -> None:
    with pytest.raises(ValueError, match="both as positive and as negative"):
        compat.SupConLoss()(rows(4), None, index([0, 0], [1, 2], [0, 0], [1, 3]))
