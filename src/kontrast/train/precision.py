"""Mixed precision: float32, or autocast to bfloat16 or float16 with the loss scaled. The losses stay in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Precision:
    """How a step is computed; ``float16`` scales the loss so that small gradients survive.

    >>> Precision("float32", torch.device("cpu")).scale(torch.tensor(2.0))
    tensor(2.)
    """

    def __init__(self, name: str, device: torch.device) -> None:
        if name not in ("float32", *DTYPES):
            raise ValueError(f"precision is {name!r}; expected float32, bfloat16 or float16")
        if name == "float16" and device.type == "cpu":
            raise ValueError("precision float16 needs a GPU; on a CPU take bfloat16 or float32")
        self.name, self.device = name, device
        self._scaler = torch.amp.GradScaler(device.type) if name == "float16" else None  # type: ignore[attr-defined]

    def autocast(self) -> AbstractContextManager[Any]:
        """The context that forward passes run in."""
        return nullcontext() if self.name == "float32" else torch.autocast(self.device.type, DTYPES[self.name])

    def scale(self, loss: Tensor) -> Tensor:
        """The loss as backward is to take it."""
        return loss if self._scaler is None else self._scaler.scale(loss)

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """The optimiser's step, on unscaled gradients; left out if they overflowed."""
        if self._scaler is None:
            optimiser.step()
            return
        self._scaler.step(optimiser)
        self._scaler.update()

    def state_dict(self) -> dict[str, Any]:
        """The scale, for a checkpoint."""
        return {} if self._scaler is None else self._scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from a checkpoint."""
        if self._scaler is not None and state:
            self._scaler.load_state_dict(state)
