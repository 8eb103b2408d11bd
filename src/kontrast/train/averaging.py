r"""A moving average of the weights, ``train.average``: steadier than the weights of any single step.

After every step of the optimiser, with m = train.average, and the averaged network θ̄ at first the network θ itself:

    (1)  θ̄ ← m θ̄ + (1 − m) θ          `kontrast.models.MomentumPair`; buffers (statistics of batch norm) too

It is an average over about the last 1/(1 − m) steps, and after K of them still has m^K of the start in it. Averaged are
the encoder and the head, so that embeddings fit features; what the loss has of its own (a classifier) is not.

The loss, monitors and ``train.fit_every`` see the network that learns. Validation, the weights that early stopping
keeps, evaluation, analysis and export see the average. In momentum methods it is a third network: the target stays the
target of the loss, with a momentum and a schedule of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.models import MomentumPair

MOST_OF_START = 0.1  # the share of the start in the average at the end of a run, beyond which there is a warning
LITTLE_OF_START = 0.01  # the share that the warning proposes


class Average:
    """The average of a network's weights, beside the network.

    Args:
        network: The network that learns.
        momentum: m, above 0 and below 1.

    >>> network = nn.Linear(1, 1, bias=False)
    >>> with torch.no_grad():
    ...     _ = network.weight.fill_(0.0)
    >>> average = Average(network, 0.75)
    >>> with torch.no_grad():
    ...     _ = network.weight.fill_(1.0)
    >>> average.update()
    >>> with average.in_place():
    ...     print(network.weight.item())
    0.25
    >>> network.weight.item()
    1.0
    """

    def __init__(self, network: nn.Module, momentum: float) -> None:
        self.pair = MomentumPair(network, momentum)

    def update(self) -> None:
        """Move the average (1); after each step of the optimiser."""
        self.pair.update()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the network have the averaged weights inside, and its own again afterwards, to the bit."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def take(self) -> None:
        """Give the network the averaged weights for good."""
        self.pair.online.load_state_dict(self.pair.target.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """The averaged weights, for a checkpoint."""
        return self.pair.target.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        self.pair.target.load_state_dict(state)

    @torch.no_grad()
    def _exchange(self) -> None:
        for own, averaged in zip(_tensors(self.pair.online), _tensors(self.pair.target), strict=True):
            kept = own.clone()
            own.copy_(averaged)
            averaged.copy_(kept)


def warn_if_too_slow(momentum: float, steps: int) -> None:
    """Warn if the average would be mostly the start when the run of so many steps ends.

    >>> warn_if_too_slow(0.9, steps=100)
    """
    share = momentum**steps
    if share > MOST_OF_START:
        warnings.warn(
            f"train.average={momentum:g}: after the {steps:,} steps of this run {share:.0%} of the average is still "
            f"the start. Use {LITTLE_OF_START ** (1 / steps):.4g}, which leaves {LITTLE_OF_START:.0%}",
            stacklevel=2,
        )


def _tensors(module: nn.Module) -> Iterator[Tensor]:
    return chain(module.parameters(), module.buffers())
