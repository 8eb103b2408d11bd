"""The switch between the engine's gradient and the dense form's, and what is refused.

tests/losses/test_second_order.py holds every loss to it; here is the smallest example.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from kontrast import autograd
from kontrast.autograd import ReverseOnly, Twin, full_precision, refuse_second_order, twice_differentiable


class Cube(ReverseOnly):
    """Σ x³ with a gradient that is a formula without a graph."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return (x**3).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Tensor | None:
        if grad is None:
            return None
        if torch.is_grad_enabled():
            refuse_second_order()
        (x,) = ctx.saved_tensors
        return 3 * x.square() * grad


def cube(x: Tensor, **options: Any) -> Tensor:
    twin = Twin(lambda x: x**3, (x,), pairs=options.pop("pairs", 1))
    return twice_differentiable(Cube.apply(x), torch.ones(len(x), dtype=x.dtype), twin, **options)


def test_both_derivatives() -> None:
    x = torch.tensor([2.0, -1.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cube, [x])
    assert torch.autograd.gradgradcheck(cube, [x])


def test_the_engine_alone_refuses_a_second_derivative() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="has no second derivative"):
        torch.autograd.grad(Cube.apply(x), x, create_graph=True)


def test_pairs_and_processes_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autograd, "MAX_PAIRS", 9)
    x = torch.ones(2, requires_grad=True)
    torch.autograd.grad(cube(x, pairs=9), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"compares 10 pairs .* up to 9"):
        torch.autograd.grad(cube(x, pairs=10), x, create_graph=True)
    with pytest.raises(RuntimeError, match="computed by 2 processes"):
        torch.autograd.grad(cube(x, processes=2), x, create_graph=True)
    torch.autograd.grad(cube(x, processes=2, pairs=10), x)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning", "ignore:.*torch.jit.script:DeprecationWarning")
def test_forward_mode_and_transforms_are_refused() -> None:
    x = torch.ones(2)
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="no forward mode"):
        Cube.apply(forward_ad.make_dual(x, x))
    with pytest.raises(RuntimeError, match=r"inside a transform of torch\.func"):
        torch.func.grad(full_precision(lambda x: x.sum()))(x)


def test_full_precision_is_outside_autocast_and_the_compiler() -> None:
    @full_precision
    def product(x: Tensor) -> Tensor:
        assert not torch.compiler.is_compiling()
        return x @ x

    x = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        assert product(x).dtype == torch.float32
    compiled = torch.compile(lambda x: product(x) + 1, backend="aot_eager")
    torch.testing.assert_close(compiled(x), x @ x + 1)


def test_several_incoming_gradients_at_once_are_refused() -> None:
    autograd.refuse_batched(torch.ones(2))
    with pytest.raises(RuntimeError, match="several incoming gradients at once"):
        torch.vmap(lambda grad: autograd.refuse_batched(grad))(torch.ones(2, 3))
