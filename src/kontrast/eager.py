"""Optimisers of torch without torch's compiler, which takes as long to import as the rest of torch (1.4 s of CPU).

Torch keeps the methods of its optimisers out of what ``torch.compile`` compiles: it wraps them, and the wrapper imports
the compiler when it is first called. A process that compiles nothing needs neither; the method inside does the same.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.optim import Optimizer

WRAPPED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict", "step")
Class = TypeVar("Class", bound=type[Optimizer])


def eager(optimiser: Class) -> Class:
    """Let the methods of an optimiser run without loading torch's compiler. A decorator of the class.

    Where the compiler is loaded already, torch's wrappers are used as they are.

    Args:
        optimiser: A subclass of one of torch's, not ``differentiable``.

    Returns:
        The class itself.

    >>> @eager
    ... class SGD(torch.optim.SGD):
    ...     pass
    >>> weight = torch.nn.Parameter(torch.ones(1))
    >>> weight.grad = torch.ones(1)
    >>> SGD([weight], lr=0.25).step()
    >>> weight.item()
    0.75
    """
    for name in WRAPPED:
        # Torch adds the hooks of a step when a class has its first instance; those of an ancestor would run twice.
        method = inspect.unwrap(getattr(optimiser, name), stop=lambda f: not getattr(f, "hooked", False))
        inside = inspect.unwrap(method)
        if inside is not method:
            setattr(optimiser, name, _unless_loaded(method, torch.no_grad()(inside) if name == "step" else inside))
    return optimiser


def _unless_loaded(method: Callable[..., Any], inside: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inside)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (method if "torch._dynamo" in sys.modules else inside)(*args, **kwargs)

    return call


@eager
class LBFGS(torch.optim.LBFGS):
    """Torch's L-BFGS.

    >>> x = torch.nn.Parameter(torch.zeros(1))
    >>> def closure():
    ...     x.grad = x.detach() - 3
    ...     return float(x.grad.square() / 2)
    >>> _ = LBFGS([x], line_search_fn="strong_wolfe").step(closure)
    >>> round(x.item(), 4)
    3.0
    """
