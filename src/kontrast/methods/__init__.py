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
['ce', 'ce-fix', ...]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn

from kontrast.methods._base import Method, Network, Setting, ViewBatch
from kontrast.registry import FAMILIES

METHODS = FAMILIES["method"]
names, options_of = METHODS.names, METHODS.options
find: Callable[[str], type[Method]] = METHODS.find

__all__ = ["METHODS", "Method", "Network", "Setting", "ViewBatch", "find", "method", "names", "options_of"]


def method(name: str, encoder: nn.Module, head: nn.Module, *, setting: Setting | None = None, **options: Any) -> Method:
    """The method of this name around an encoder and a head.

    Args:
        name: One of `names`.
        encoder: The encoder that is trained.
        head: From the encoder's features to the embeddings of the loss.
        setting: What the method cannot know by itself (how many samples, classes and steps there are); a method that
            needs one of these raises an error without it.
        **options: The method's own (`options_of`).

    Returns:
        The method, one module with all networks.

    Raises:
        ValueError: The name or an option is unknown (the error names the nearest one), or a value is wrong.

    >>> from kontrast import models
    >>> encoder = models.encoder("mlp", in_features=4, features=8, seed=0)
    >>> method("tcl", encoder, models.head("none", in_dim=8), k1=10.0).response
    (10.0, 1.0)
    """
    if "setting" in inspect.signature(find(name)).parameters:
        options["setting"] = setting or Setting()
    return METHODS.make(name, encoder, head, **options)  # type: ignore[no-any-return]
