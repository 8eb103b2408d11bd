"""Methods: which views go through what into which loss. One method a file, and the file's name is its name.

A method holds the networks, and whatever memory it needs, as one module; it works in any loop:

    outcome = method.step(batch)           # {"loss": …}, with gradient
    outcome["loss"].backward()
    optimiser.step()
    method.after_step()                    # momentum, queue, bank

>>> import torch
>>> from kontrast import methods, models
>>> encoder = models.encoder("mlp", in_features=8, features=16, seed=0)
>>> method = methods.method("supcon", encoder, models.head("tcl", in_dim=16, out=4, seed=0), temperature=0.1)
>>> batch = methods.ViewBatch(torch.randn(6, 2, 8), labels=torch.tensor([0, 0, 1, 1, 2, 2]))
>>> sorted(method.step(batch))
['loss']
>>> methods.names()
['ce', 'ce-fix', 'ce-l2', 'instance', 'moco', 'ressl', 'sc', 'sce', 'simclr', 'supcon', 'tcl', 'tcl-self']
"""

from __future__ import annotations

import inspect
from typing import Any

from torch import nn

from kontrast.methods._base import Method, Network, Setting, ViewBatch
from kontrast.registry import Family, nearest
from kontrast.vocabulary import check_name

METHODS = Family("kontrast.methods")

__all__ = ["METHODS", "Method", "Network", "Setting", "ViewBatch", "method", "names", "options_of"]


def names() -> list[str]:
    """Every method's name, as one writes it."""
    return [name.replace("_", "-") for name in METHODS.names()]


def find(name: str) -> type[Method]:
    """The class of this name; an unknown one is an error that names the nearest.

    >>> find("spucon")
    Traceback (most recent call last):
        ...
    ValueError: no method 'spucon'; did you mean 'supcon'? Known: ce, ce-fix, ce-l2, instance, ...
    """
    check_name("method", name, names())
    return METHODS[name]


def options_of(name: str) -> dict[str, Any]:
    """A method's options with their defaults.

    >>> options_of("tcl")
    {'temperature': 0.1, 'k1': 5000.0, 'k2': 1.0}
    """
    options: dict[str, Any] = {}
    for kind in find(name).__mro__:
        found = inspect.signature(kind).parameters.values()
        for p in found:
            if p.kind is p.KEYWORD_ONLY and p.name != "setting":
                options.setdefault(p.name, p.default)
        if not any(p.kind is p.VAR_KEYWORD for p in found):  # what is not named goes on to the class above
            break
    return options


def method(name: str, encoder: nn.Module, head: nn.Module, *, setting: Setting | None = None, **options: Any) -> Method:
    """The method of this name around an encoder and a head, with its own options.

    ``setting`` tells what it cannot know by itself (how many samples, classes and steps there are); a method that
    needs one of these says so.
    """
    known = options_of(name)
    for option in options:
        if option not in known:
            hint = nearest(option, known)
            raise ValueError(f"method {name!r} has no option {option!r}{hint} It has {', '.join(known)}")
    kind: Any = find(name)
    made: Method = kind(encoder, head, setting=setting or Setting(), **options)
    return made
