"""A temperature of any kind: a number, a parameter, a tensor of the user's, or one computed from others."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parametrize

from kontrast.losses import FAMILY, Loss
from tests.losses.cases import PLAIN, Case

FIRST = [next(c for c in PLAIN if c.key == k) for k in FAMILY]
TEMPERED = [c for c in FIRST if "temperature" in c.parameters()]
each_loss = pytest.mark.parametrize("case", TEMPERED, ids=str)

KINDS: dict[str, Callable[[], float | Tensor]] = {
    "number": lambda: 0.2,
    "parameter": lambda: nn.Parameter(torch.tensor(0.2)),
    "tensor": lambda: torch.tensor(0.2),
    "learned tensor": lambda: torch.tensor(0.2, requires_grad=True),
    "computed": lambda: torch.tensor(0.2).log().requires_grad_().exp(),
}
SAVED = ["parameter", "tensor", "learned tensor"]


def value(loss: Loss, case: Case) -> Tensor:
    return loss(**case.inputs(dtype=torch.float32)).sum()


@each_loss
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_registered_as_what_it_is(case: Case, kind: str) -> None:
    given = KINDS[kind]()
    loss = case.make(temperature=given)
    assert ("temperature" in dict(loss.named_parameters())) == (kind == "parameter")
    assert ("temperature" in dict(loss.named_buffers())) == (kind in ("tensor", "learned tensor"))
    assert ("temperature" in loss.state_dict()) == (kind in SAVED)
    assert loss.temperature is given
    assert "temperature=0.2" in repr(loss)
    torch.testing.assert_close(value(loss, case), value(case.make(temperature=0.2), case), check_dtype=False)


@each_loss
@pytest.mark.parametrize("kind", SAVED)
def test_it_is_saved_and_loaded(case: Case, kind: str) -> None:
    first, second = case.make(temperature=KINDS[kind]()), case.make(temperature=torch.tensor(0.9))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert second.temperature == first.temperature
    torch.testing.assert_close(value(second, case), value(first, case).detach())
    second.load_state_dict(case.make(temperature=torch.tensor(0.5)).state_dict(), assign=True)
    assert second.temperature == 0.5


@each_loss
@pytest.mark.parametrize("kind", SAVED)
def test_it_follows_the_module(case: Case, kind: str) -> None:
    model = nn.Module()
    model.loss = case.make(temperature=KINDS[kind]())
    assert model.double().loss.temperature.dtype == torch.float64
    assert model.to(torch.bfloat16).loss.temperature.dtype == torch.bfloat16
    assert model.to("meta").loss.temperature.is_meta


@each_loss
@pytest.mark.parametrize("kind", ["parameter", "learned tensor"])
def test_it_is_learned_before_and_after_a_move(case: Case, kind: str) -> None:
    """The optimiser holds the tensor that was given: it must stay the one that is used."""
    given = KINDS[kind]()
    assert isinstance(given, Tensor)
    loss = case.make(temperature=given)
    optimiser = torch.optim.SGD([given], lr=1e-4)
    value(loss, case).backward()
    assert given.grad is not None
    before = given.grad.clone()
    loss.double()
    assert loss.temperature is given
    assert given.grad is not None
    assert given.grad.dtype == torch.float64
    optimiser.zero_grad()
    value(loss, case).backward()
    torch.testing.assert_close(given.grad.float(), before, rtol=1e-3, atol=1e-4)
    optimiser.step()
    assert given != 0.2
    torch.testing.assert_close(
        value(loss, case), value(case.make(temperature=float(given.detach())), case), check_dtype=False
    )
    copy.deepcopy(loss)


@pytest.mark.parametrize("case", [c for c in TEMPERED if c.key in ("supcon", "sce")], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [*KINDS, "wrong"])
def test_it_can_be_replaced_by_any_other(case: Case, kind: str, other: str) -> None:
    loss = case.make(temperature=KINDS[kind]())
    if other == "wrong":
        before = loss.temperature
        for wrong in (-1.0, torch.tensor(0.0), torch.ones(2), "cold", None):
            with pytest.raises(ValueError, match=r"temperature.*must"):
                loss.temperature = wrong
        assert loss.temperature is before
        return
    new = KINDS[other]()
    loss.temperature = new
    assert loss.temperature is new
    fresh = case.make(temperature=new)
    assert loss.state_dict().keys() == fresh.state_dict().keys()
    assert dict(loss.named_parameters()).keys() == dict(fresh.named_parameters()).keys()


@each_loss
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_copied_and_pickled(case: Case, kind: str) -> None:
    loss = case.make(temperature=KINDS[kind]())
    again = pickle.loads(pickle.dumps(loss))
    torch.testing.assert_close(value(again, case).detach(), value(loss, case).detach(), rtol=0, atol=0)
    if kind == "computed":  # torch copies no tensor that has a history
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(loss)
        return
    other = copy.deepcopy(loss)
    assert other.state_dict().keys() == loss.state_dict().keys()
    if isinstance(other.temperature, Tensor):
        assert other.temperature is not loss.temperature
        assert other.temperature.requires_grad == loss.temperature.requires_grad
    torch.testing.assert_close(value(other, case).detach(), value(loss, case).detach(), rtol=0, atol=0)


def test_a_computed_one_gets_its_gradient_through() -> None:
    log = torch.tensor(0.2).log().requires_grad_()
    case = TEMPERED[0]
    value(case.make(temperature=log.exp()), case).backward()
    assert log.grad is not None
    assert log.grad != 0


def test_a_parametrization_may_keep_it_positive() -> None:
    class Exp(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.exp()

        def right_inverse(self, x: Tensor) -> Tensor:
            return x.log()

    case = TEMPERED[0]
    loss = case.make(temperature=nn.Parameter(torch.tensor(0.2)))
    parametrize.register_parametrization(loss, "temperature", Exp())
    torch.testing.assert_close(value(loss, case).detach(), value(case.make(temperature=0.2), case))
    loss.temperature = torch.tensor(0.4)
    torch.testing.assert_close(value(loss, case).detach(), value(case.make(temperature=0.4), case))


@pytest.mark.usefixtures("group_of_one")
@pytest.mark.parametrize("kind", KINDS)
def test_inside_ddp(kind: str) -> None:
    case = next(c for c in TEMPERED if c.key == "supcon")

    class Model(nn.Module):
        def __init__(self, temperature: Any) -> None:
            super().__init__()
            self.net = nn.Linear(6, 6)
            self.loss = case.make(temperature=temperature)

        def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
            value: Tensor = self.loss(self.net(embeddings), labels)
            return value

    model = DistributedDataParallel(Model(given := KINDS[kind]()))
    for _ in range(2):  # buffers are broadcast before each call
        model(**case.inputs(dtype=torch.float32)).backward(retain_graph=kind == "computed")
    assert model.module.loss.temperature is given
    if kind in ("parameter", "learned tensor"):
        assert isinstance(given, Tensor)
        assert given.grad is not None


@pytest.mark.parametrize("case", [c for c in FIRST if "target_temperature" in c.parameters()], ids=str)
def test_the_target_temperature_is_a_number(case: Case) -> None:
    """No gradient goes to the target, so there is nothing to learn in it."""
    for given in (torch.tensor(0.05), nn.Parameter(torch.tensor(0.05))):
        with pytest.raises(ValueError, match=r"target_temperature=.*: must be a finite number above 0"):
            case.make(target_temperature=given)
