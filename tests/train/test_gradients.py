"""The cached gradient, its random numbers and its batch norm. (Every method: tests/methods/test_contract.py.)"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from kontrast import methods, models
from kontrast.methods import ViewBatch
from kontrast.train.gradients import Precision, backward, unchanged_buffers


class Dropping(nn.Module):
    """A network with dropout, which draws anew each time it is called."""

    feature_dim = 8

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 8)
        self.drop = nn.Dropout(0.5)
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        out = self.drop(torch.relu(self.layer(x)))
        self.seen.append(out.detach())
        return out


def batch(n: int = 12, seed: int = 4) -> ViewBatch:
    draw = torch.Generator().manual_seed(seed)
    return ViewBatch(torch.randn(n, 2, 6, generator=draw), torch.arange(n) % 3, torch.arange(n), seed)


def test_dropout_is_the_same_in_both_passes() -> None:
    network = Dropping()
    method = methods.method("supcon", network, models.head("none", in_dim=8))
    backward(method, batch(), pieces=3)
    first, second = network.seen[:3], network.seen[3:]
    assert len(second) == 3
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(first[0] == 0, first[1] == 0)


def test_draws_depend_on_the_step_and_the_rank_alone() -> None:
    def drawn(seed: int, rank: int) -> Tensor:
        network = Dropping()
        torch.manual_seed(0)
        for parameter in network.parameters():
            nn.init.constant_(parameter, 0.1)
        torch.rand(seed + 5)  # whatever was drawn before
        fixed = batch(seed=0)
        backward(
            methods.method("supcon", network, models.head("none", in_dim=8)),
            ViewBatch(fixed.views, fixed.labels, None, seed),
            rank=rank,
        )
        return network.seen[0]

    assert torch.equal(drawn(1, 0), drawn(1, 0))
    assert not torch.equal(drawn(1, 0), drawn(2, 0))
    assert not torch.equal(drawn(1, 0), drawn(1, 1))


def test_batch_norm_sees_its_micro_batch_and_its_statistics_move_once() -> None:
    """What autograd gives on the pieces one after the other, the loss on all of them."""
    made = [
        methods.method(
            "supcon", models.encoder("mlp", in_features=6, hidden=8, features=8, seed=0), models.head("none", in_dim=8)
        )
        for _ in range(2)
    ]
    seen = batch()
    z = torch.cat([made[0].embed(piece) for piece in seen.views.tensor_split(3)])
    made[0].objective(z, None, seen).backward()
    backward(made[1], seen, pieces=3)
    for (name, p), q in zip(made[0].named_parameters(), made[1].parameters(), strict=True):
        torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=2e-6, msg=lambda m, name=name: f"{name}: {m}")
    for a, b in zip(made[0].buffers(), made[1].buffers(), strict=True):
        torch.testing.assert_close(b, a)
    counted = [b for name, b in made[1].named_buffers() if name.endswith("num_batches_tracked")]
    assert [int(b) for b in counted] == [3] * len(counted)


def test_gradients_add_up() -> None:
    method = methods.method(
        "supcon",
        models.encoder("mlp", in_features=6, features=8, batch_norm=False, seed=0),
        models.head("none", in_dim=8),
    )
    backward(method, batch(), pieces=2)
    once = [p.grad.clone() for p in method.parameters()]
    backward(method, batch(), pieces=2)
    for first, both in zip(once, method.parameters(), strict=True):
        torch.testing.assert_close(both.grad, 2 * first)


def test_the_predictors_statistics_move_once_too() -> None:
    encoder = models.encoder("mlp", in_features=6, features=8, seed=0)
    options = {"queue": 20, "key_parts": 1, "symmetric": True, "predictor": "sce-predictor"}
    method = methods.method("sce", encoder, models.head("none", in_dim=8), **options)
    backward(method, batch(), pieces=2)
    counted = {int(b) for name, b in method.named_buffers() if name.endswith("num_batches_tracked")}
    assert counted == {2}


def test_unmoved() -> None:
    norm = nn.BatchNorm1d(3)
    with unchanged_buffers(norm):
        norm(torch.randn(8, 3))
        assert int(norm.num_batches_tracked) == 1
    assert int(norm.num_batches_tracked) == 0
    assert torch.equal(norm.running_mean, torch.zeros(3))


def test_wrong_batches_are_refused_before_anything_runs() -> None:
    method = methods.method("simclr", Dropping(), models.head("none", in_dim=8))
    with pytest.raises(ValueError, match=r"must have 2 views of each sample for .*, got 3"):
        backward(method, ViewBatch(torch.randn(4, 3, 6)), pieces=2)


CPU = torch.device("cpu")


def test_float32_changes_nothing() -> None:
    precision = Precision("float32", CPU)
    with precision.autocast():
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.float32
    assert precision.state_dict() == {}
    precision.load_state_dict({})


def test_bfloat16_multiplies_in_bfloat16() -> None:
    with Precision("bfloat16", CPU).autocast():
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16


def test_step_is_the_optimisers() -> None:
    weight = torch.nn.Parameter(torch.ones(1))
    optimiser = torch.optim.SGD([weight], lr=0.5)
    precision = Precision("float32", CPU)
    precision.scale((2 * weight).sum()).backward()
    precision.step(optimiser)
    assert float(weight.detach()) == 0.0


def test_errors() -> None:
    with pytest.raises(ValueError, match="float16: must run on a GPU"):
        Precision("float16", CPU)
    with pytest.raises(ValueError, match="must be float32, bfloat16 or float16"):
        Precision("half", CPU)


def test_float16_gradients_are_clipped_by_their_own_norm_not_the_scaled_one() -> None:
    """Scaled by 1,024 the gradient [3, 4] would seem to be of norm 5,120. A GPU's scaler, here on the CPU."""
    precision = Precision("float32", torch.device("cpu"))
    precision._scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    layer = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(layer.weight)
    optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
    precision.scale(layer(torch.tensor([[3.0, 4.0]])).sum()).backward()
    assert float(precision.clip(optimiser, 10.0)) == 5.0
    assert torch.equal(layer.weight.grad, torch.tensor([[3.0, 4.0]]))
    precision.step(optimiser)
    assert torch.equal(layer.weight.detach(), torch.tensor([[-3.0, -4.0]]))
    optimiser.zero_grad()
    precision.scale(layer(torch.tensor([[3.0, 4.0]])).sum()).backward()
    assert float(precision.clip(optimiser, 1.0)) == 5.0
    torch.testing.assert_close(layer.weight.grad, torch.tensor([[0.6, 0.8]]), rtol=1e-6, atol=0)


def test_a_network_that_does_not_learn_in_pieces() -> None:
    """Only the loss has something to learn: its classifier's gradient is that of the undivided batch."""
    gradients = []
    for pieces in (1, 3):
        encoder = models.encoder("mlp", in_features=6, hidden=8, features=8, seed=0)
        encoder.freeze(2)
        setting = methods.Setting(num_classes=3)
        method = methods.method("ce", encoder, models.head("none", in_dim=8), setting=setting)
        backward(method, batch(), pieces=pieces)
        gradients.append(method.loss.weight.grad)
    torch.testing.assert_close(*gradients)
