"""What holds for every optimiser, whichever file declares it."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

from kontrast import optim
from tests.optim.networks import give_gradients, network, weights

NAMES = optim.OPTIMIZERS.names()
EXCLUDE: dict[str, dict[str, Any]] = {
    "sgd": {"exclude_norm_and_bias": True},
    "adamw": {"exclude_norm_and_bias": True},
    "lars": {"exclude_bias_n_norm": True},
}


def trained(name: str, steps: int, *, interrupted_at: int | None = None, **options: Any) -> torch.Tensor:
    module = network(channels_last=True)
    optimiser = optim.optimizer(name, module, lr=0.1, **options)
    for step in range(steps):
        if step == interrupted_at:
            file = io.BytesIO()
            torch.save({"network": module.state_dict(), "optimiser": optimiser.state_dict()}, file)
            file.seek(0)
            saved = torch.load(file, weights_only=True)
            module = network(channels_last=True)
            module.load_state_dict(saved["network"])
            optimiser = optim.optimizer(name, module, lr=0.1, **options)
            optimiser.load_state_dict(saved["optimiser"])
        give_gradients(module, step)
        optimiser.step()
    return weights(module)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("exclude", [False, True])
def test_a_resumed_run_ends_with_the_same_bits(name: str, exclude: bool) -> None:
    options = {"weight_decay": 0.05, **(EXCLUDE[name] if exclude else {})}
    whole = trained(name, 6, **options)
    assert torch.equal(trained(name, 6, **options), whole)
    assert torch.equal(trained(name, 6, interrupted_at=3, **options), whole)
    assert not torch.equal(trained(name, 5, **options), whole), "else the sixth step did nothing"


@pytest.mark.parametrize("name", NAMES)
def test_gradients_in_another_layout_give_the_same_weights(name: str) -> None:
    """Torch's fused kernels would take the numbers in the wrong order. To the bit, but for sums in another order."""
    ends = []
    for as_it_lies in (True, False):
        module = network(channels_last=True)
        optimiser = optim.optimizer(name, module, lr=0.1)
        for step in range(3):
            give_gradients(module, step, as_it_lies=as_it_lies)
            assert module[0].weight.grad is not None
            assert (module[0].weight.grad.stride() == module[0].weight.stride()) == as_it_lies
            optimiser.step()
        ends.append(weights(module))
    rounding = 1e-6 if name == "lars" else 0.0  # it has norms
    torch.testing.assert_close(*ends, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", NAMES)
def test_what_does_not_learn_is_left_out_and_what_has_no_gradient_stays(name: str) -> None:
    module = network()
    optimiser = optim.optimizer(name, module, lr=0.1, weight_decay=0.1)
    inside = {id(p) for group in optimiser.param_groups for p in group["params"]}
    assert inside == {id(p) for p in module.parameters() if p.requires_grad}
    give_gradients(module, 0)
    module[2].weight.grad = None
    before = [p.detach().clone() for p in module.parameters()]
    optimiser.step()
    stayed = [torch.equal(p, q) for p, q in zip(module.parameters(), before, strict=True)]
    kept = {id(module[2].weight), id(module[3].weight)}
    assert stayed == [id(p) in kept for p in module.parameters()]


@pytest.mark.parametrize("name", NAMES)
def test_what_gets_its_first_gradient_late_begins_as_if_alone(name: str) -> None:
    """As an encoder does behind a head that learns first; to the bit, but for LARS' norms of several tensors."""
    module, alone = network(), network()
    optimiser = optim.optimizer(name, module, lr=0.1)
    late, twin = module[2].weight, alone[2].weight
    give_gradients(module, 0)
    late.grad = None
    optimiser.step()
    assert late not in optimiser.state
    other = optim.optimizer(name, [twin], lr=0.1)
    for step in (1, 2):
        give_gradients(module, step)
        twin.grad = late.grad.clone()  # type: ignore[union-attr]
        optimiser.step()
        other.step()
    rounding = 1e-6 if name == "lars" else 0.0
    torch.testing.assert_close(late, twin, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_or_its_parameters_and_each_once(name: str) -> None:
    module = network()
    ends = []
    for given in (module, module.parameters(), [*module.parameters(), *module.parameters()]):
        optimiser = optim.optimizer(name, given, lr=0.1)
        ends.append([id(p) for group in optimiser.param_groups for p in group["params"]])
    assert ends[0] == ends[1] == ends[2]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_learn_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="parameters: must hold one that requires a gradient; none of the 7 does"):
        optim.optimizer(name, network().requires_grad_(False), lr=0.1)
    with pytest.raises(ValueError, match="parameters: must be a module or its parameters; one of them is a tuple"):
        optim.optimizer(name, network().named_parameters(), lr=0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("option", ["lr", "weight_decay"])
@pytest.mark.parametrize("wrong", [-1.0, float("nan"), "0.1", True])
def test_wrong_numbers_are_refused_by_name(name: str, option: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"{option}={wrong!r}: must be a finite number of at least 0"):
        optim.optimizer(name, network(), **{"lr": 0.1, option: wrong})


def test_an_unknown_name_or_option_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no optimiser 'sdg'; did you mean 'sgd'\? Known: adamw, lars, sgd"):
        optim.optimizer("sdg", network(), lr=0.1)
    with pytest.raises(ValueError, match=r"optimiser 'lars' has no option 'clip_lars_lr'; did you mean 'clip_lr'\?"):
        optim.optimizer("lars", network(), lr=0.1, clip_lars_lr=True)
    with pytest.raises(ValueError, match=r"'sgd' has no option 'exclude_bias_n_norm_wd'; .*'exclude_norm_and_bias'"):
        optim.optimizer("sgd", network(), lr=0.1, exclude_bias_n_norm_wd=True)


def test_options_with_their_defaults() -> None:
    assert optim.OPTIMIZERS.options("sgd") == {
        "lr": None,
        "momentum": 0.9,
        "weight_decay": 0.0,
        "nesterov": False,
        "exclude_norm_and_bias": False,
        "layer_decay": None,  # of every optimiser
        "head_lr": None,
    }
    with pytest.raises(ValueError, match="no optimiser 'adam'; did you mean 'adamw'"):
        optim.OPTIMIZERS.options("adam")
