"""What every method does, run over all of them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from kontrast import losses, methods
from kontrast.train.gradients import backward
from tests.methods.samples import N, batch, made

ALL = methods.names()


PROMISED = ("ce", "ce-fix", "ce-l2", "instance", "moco", "ressl", "sc", "sce", "simclr", "supcon", "tcl", "tcl-self")


def test_the_names_are_those_that_were_promised() -> None:
    assert set(PROMISED) <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_every_learning_parameter_gets_a_gradient_and_nothing_else_does(name: str) -> None:
    method = made(name)
    method.step(batch(name))["loss"].backward()
    for parameter_name, parameter in method.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, parameter_name
            assert bool(parameter.grad.isfinite().all()), parameter_name
        else:
            assert parameter.grad is None, parameter_name
    assert sum(float(p.grad.abs().sum()) for p in method.online.parameters() if p.grad is not None) > 0


@pytest.mark.parametrize("name", ALL)
def test_the_fewest_views_are_enough(name: str) -> None:
    method, seen = made(name), batch(name)
    fewest = methods.ViewBatch(seen.views[:, : method.fewest_views], seen.labels, seen.indices)
    try:
        method.step(fewest)
    except IndexError as error:
        pytest.fail(
            f"{type(method).__name__}.fewest_views={method.fewest_views}: must be the number of views that objective "
            f"reads; with {method.fewest_views} it raises IndexError: {error}"
        )


@pytest.mark.parametrize("name", ALL)
def test_sgd_brings_the_loss_below_chance_and_not_below_its_bound(name: str) -> None:
    """On one batch over and over; the bound is the closed form of `geometry.bounds`."""
    method = made(name)
    method.step(batch(name))
    if method.standing(1.0) is None:
        assert name not in PROMISED
        pytest.skip(f"chance and bound of {name} are unknown: it has no `composition`, or its loss no `limits`")
    optimiser = torch.optim.SGD(method.parameters(), lr=0.05, momentum=0.9)
    for _ in range(60):
        optimiser.zero_grad()
        loss = method.step(batch(name))["loss"]
        loss.backward()
        optimiser.step()
        value = float(loss.detach())
        standing = method.standing(value)
        assert standing is not None
        assert value >= standing.bound - 1e-5
        method.after_step()
    assert value < standing.chance


@pytest.mark.parametrize("name", ALL)
def test_the_parts_of_a_step_are_the_step(name: str) -> None:
    method, seen = made(name), batch(name)
    method.eval()  # so that both passes see the same statistics
    whole = method.step(seen)["loss"]
    keys = method.keys(seen.views, seen.seed)
    assert torch.equal(method.objective(method.embed(seen.views), keys, seen), whole)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("pieces", [3, N])
def test_cached_gradient_is_the_plain_one(name: str, pieces: int) -> None:
    """Without batch norm, to float32 rounding of sums in another order (gradients are of order 0.1 … 1)."""
    plain, cached, seen = made(name, batch_norm=False), made(name, batch_norm=False), batch(name)
    one, other = backward(plain, seen), backward(cached, seen, pieces=pieces)
    torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-6)
    for (label, p), q in zip(plain.named_parameters(), cached.parameters(), strict=True):
        if p.requires_grad:
            torch.testing.assert_close(q.grad, p.grad, rtol=1e-4, atol=2e-6, msg=lambda m, label=label: f"{label}: {m}")
    plain.after_step()
    cached.after_step()
    for (label, a), b in zip(plain.named_buffers(), cached.buffers(), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-4, atol=2e-6, msg=lambda m, label=label: f"{label}: {m}")


@pytest.mark.parametrize("name", ALL)
def test_state_dict_is_all_there_is(name: str) -> None:
    """A second method that loads the first one's state goes on like it, queue, bank and momentum included."""
    first, second = made(name), made(name, seed=9)

    def steps(method: methods.Method, start: int, count: int) -> float:
        loss = 0.0
        for step in range(start, start + count):
            result = method.step(batch(name, seed=step))["loss"]
            method.zero_grad()
            result.backward()
            with torch.no_grad():
                for parameter in method.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            method.after_step()
            loss = float(result.detach())
        return loss

    steps(first, 0, 3)
    second.load_state_dict(first.state_dict())
    assert steps(second, 3, 3) == steps(first, 3, 3)


@pytest.mark.parametrize("name", ALL)
def test_report_is_numbers(name: str) -> None:
    method = made(name)
    assert method.report() == {}
    assert method.standing(1.0) is None
    method.step(batch(name))
    report = method.report()
    assert report
    assert all(isinstance(value, float) and value == value for value in report.values())


@pytest.mark.parametrize("name", ALL)
def test_errors(name: str) -> None:
    method, seen = made(name), batch(name)
    if method.needs_labels:
        with pytest.raises(ValueError, match="needs labels, and this batch has none"):
            method.step(methods.ViewBatch(seen.views, None, seen.indices))
    if method.most_views is not None:
        with pytest.raises(ValueError, match=r"views of each sample for .*, got 4"):
            method.step(methods.ViewBatch(seen.views[:, :1].repeat(1, 4, 1), seen.labels, seen.indices))
    with pytest.raises(ValueError, match="has no option 'temprature'"):
        made(name, temprature=0.1)
    signature = inspect.signature(type(method))
    assert list(signature.parameters)[:2] == ["encoder", "head"]


def test_unknown_method() -> None:
    with pytest.raises(ValueError, match="no method 'simclrr'; did you mean 'simclr'"):
        methods.find("simclrr")


class Pairs(methods.Method):
    """A method as docs/contributing.md has it: a constructor and `objective`, nothing else."""

    def __init__(self, encoder: torch.nn.Module, head: torch.nn.Module) -> None:
        super().__init__(encoder, head)
        self.loss = losses.InfoNCELoss(0.1)

    def objective(self, z: torch.Tensor, keys: torch.Tensor | None, batch: methods.ViewBatch) -> torch.Tensor:
        return self.loss(z[:, 0], z[:, 1])


def test_a_constructor_and_an_objective_are_enough() -> None:
    network = torch.nn.Linear(6, 4)
    method = Pairs(network, torch.nn.Identity())
    method.step(batch("simclr"))["loss"].backward()
    assert network.weight.grad.abs().sum() > 0
    assert method.standing(1.0) is None, "chance and bound are not known, and that is no error"
    assert method.report().keys() == {"positive_similarity"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda loss, z: loss.item(), r"Wrong\.objective must return a scalar tensor with a gradient, got a float"),
        (lambda loss, z: None, "got a NoneType"),
        (lambda loss, z: loss.detach(), "got a tensor without a gradient"),
        (lambda loss, z: z[:, 0, 0] * loss, r"got a tensor of shape \[12\]\. Is the reduction"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_an_objective_that_is_no_loss_names_the_method(change: Any, message: str, pieces: int) -> None:
    class Wrong(Pairs):
        def objective(self, z: torch.Tensor, keys: torch.Tensor | None, batch: methods.ViewBatch) -> torch.Tensor:
            return change(super().objective(z, keys, batch), z)

    method = Wrong(torch.nn.Linear(6, 4), torch.nn.Identity())
    with pytest.raises(ValueError, match=message):
        backward(method, batch("simclr"), pieces=pieces)


def test_a_step_without_gradients_is_no_error() -> None:
    with torch.no_grad():
        assert made("simclr").step(batch("simclr"))["loss"].isfinite()


@pytest.mark.parametrize("name", methods.names())
def test_each_method_answers_what_other_stages_ask(name: str) -> None:
    method = made(name)
    classifier = name in ("ce", "ce-l2", "ce-fix")
    assert (method.class_weights is not None) == classifier
    assert method.protocol_options("graf-sgd") == ({"normalize": False} if classifier else {})
    assert method.protocol_options("knn20") == {}
    response = {"supcon": (0.0, 1.0), "sc": (0.0, 1.0), "tcl": (5000.0, 1.0), "tcl-self": (1.0, 1.5)}
    assert method.response == response.get(name)
    assert method.interaction_temperature == (0.1 if name in ("supcon", "sc") else None)
    assert (method.temperature is None) == classifier
