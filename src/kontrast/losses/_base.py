"""What every loss shares: its options, and how per-anchor values become the number it returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import distributed
from kontrast.autograd import Twin, twice_differentiable
from kontrast.checks import not_empty, one_of, temperature_now
from kontrast.losses._limits import Batch, Limits
from kontrast.losses._tiles import Tile, check_tile, in_range, largest_logit
from kontrast.sphere import unit

# Given each anchor's weight: Σ_i weight_i ℓ_i. Given None: ℓ.
Core = Callable[[Tensor | None], Tensor]


class Loss(nn.Module):
    """Base of the losses. ``tile`` is the side of the blocks the engine works in; "auto" is measured."""

    temperature: float | Tensor

    def __init__(
        self,
        *,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        super().__init__()
        self.normalize = normalize
        self.reduction = one_of("reduction", reduction, ("mean", "sum", "none"))
        self.gather_distributed = gather_distributed
        self.tile = check_tile(tile)

    def _set_temperature(self, temperature: float | Tensor) -> None:
        self.temperature = temperature

    def __setattr__(self, name: str, value: Any) -> None:
        """A temperature is checked, and registered by its kind; any kind may replace any other.

        - A number is an ordinary attribute.
        - An ``nn.Parameter`` is a parameter.
        - Any other tensor without a history is a buffer: it is in ``state_dict`` and follows ``to()``. It stays the
          user's own tensor, and gets its gradient if it requires one.
        - A tensor computed from others (``log_temperature.exp()``) belongs to the step that computed it. It is an
          ordinary attribute: neither saved nor moved, and torch cannot deep-copy it.
        """
        if name != "temperature" or isinstance(getattr(type(self), name, None), property):  # of a parametrization
            super().__setattr__(name, value)
            return
        now = temperature_now(value)
        for registered in (self._parameters, self._buffers, self.__dict__):
            registered.pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        if isinstance(value, nn.Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Tensor) and value.grad_fn is None:
            self.register_buffer(name, value)
        else:
            object.__setattr__(self, name, value if isinstance(value, Tensor) else now)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Loss:
        """Move the module. A temperature that requires a gradient stays the tensor that an optimiser may hold, as
        parameters do: torch would replace it by a copy, which no optimiser changes."""
        held = self._buffers.get("temperature")
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        if held is not None and held.requires_grad:
            with torch.no_grad():
                moved = fn(held)
                if torch._has_compatible_shallow_copy_type(held, moved):
                    grad = None if held.grad is None else fn(held.grad)
                    held.grad = None
                    held.data, held.grad = moved, grad
                    self._buffers["temperature"] = held
        return self

    def extra_repr(self) -> str:
        """The options that say which loss this is, and the others where they are not the default."""
        shown = {}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name, parameter.default)
            if isinstance(value, Tensor):
                value = round(float(value.detach()), 6) if value.numel() == 1 else None
            if parameter.kind is not parameter.KEYWORD_ONLY or value != parameter.default:
                shown[name] = value
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())

    def limits(self, batch: Batch) -> Limits | None:
        """Chance, collapsed value and bound of this loss on a batch; None (the default) if they are not known.

        Args:
            batch: What the batch consists of.

        Returns:
            The limits on the scale of the reduction, or None.

        Raises:
            ValueError: If the batch lacks something that the limits depend on.
        """
        return None

    # ---------------------------------------------------------------------------------------- embeddings

    def _rows(self, x: Tensor) -> Tensor:
        return unit(x) if self.normalize else x

    def _tau(self) -> tuple[float | Tensor, float]:
        """The temperature as it enters the graph, and its present value."""
        now = temperature_now(self.temperature)
        if not (isinstance(self.temperature, Tensor) and self.temperature.requires_grad):
            return now, now
        # Its roots and quotients are taken in the widest precision there is; as a scalar it widens no rows.
        widest = torch.float32 if self.temperature.device.type == "mps" else torch.float64
        return self.temperature.reshape(()).to(widest), now

    def _scaled(self, z: Tensor, power: float = 1.0) -> tuple[Tensor, float]:
        """z and what its products are still to be multiplied by: 1/τ, unless τ is learned and so divides z here.

        ``power`` is 0.5 where both factors of a product are z.
        """
        tau, now = self._tau()
        return (z / tau**power, 1.0) if isinstance(tau, Tensor) else (z, 1.0 / now)

    def _bounded(self, x: Tensor, c: Tensor, tau: float) -> bool:
        """Whether ⟨x, c⟩/τ needs no shift before its exponential: unit vectors bound it by 1/τ."""
        largest = 1.001 if self.normalize else largest_logit(x.detach(), c.detach())
        return in_range(largest / tau, len(c), x.dtype)

    # ----------------------------------------------------------------------------------------- processes

    def _counts(self, local: Tensor, name: str) -> list[int]:
        """Rows of each rank, or just ours; an empty batch is an error (on every rank alike)."""
        counts = distributed.row_counts(local) if self.gather_distributed else [len(local)]
        not_empty(name, sum(counts))
        return counts

    def _gather(self, local: Tensor, counts: list[int]) -> tuple[Tensor, int]:
        """Every rank's rows, and where ours begin."""
        if not self._together:
            return local, 0
        return distributed.gather(local, counts), sum(counts[: distributed.rank()])

    @property
    def _together(self) -> bool:
        return self.gather_distributed and distributed.world_size() > 1

    # ----------------------------------------------------------------------------------------- reduction

    def _reduce(
        self, core: Core, like: Tensor, *, counts: list[int], valid: Tensor | None = None, twin: Twin | None = None
    ) -> Tensor:
        """Mean or sum over every rank's anchors, or this rank's values.

        ``valid`` marks the anchors that have a positive; the others are 0 in "none" and in the sum, and whether
        they count in the mean is for `no_positive` to say. ``like`` gives the dtype and the device, ``counts`` the
        number of anchors on each rank. ``twin`` is the dense form, for second derivatives; without one ``core`` must be
        plain torch.
        """
        processes = distributed.world_size() if self._together else 1
        here = counts[distributed.rank()] if self._together else counts[0]
        if self.reduction == "none":
            values = twice_differentiable(core(None), None, twin, processes=processes)
            values = values if valid is None else torch.where(valid, values, 0.0)
            return distributed.own(values) if self.gather_distributed else values
        weight = like.new_ones(here) if valid is None else valid.to(like.dtype)
        if self.reduction == "mean":
            weight /= self._anchors(counts, valid)
        value = twice_differentiable(core(weight), weight, twin, processes=processes)
        return distributed.total(value) if self.gather_distributed else value

    def _dense_form(self, values: Callable[..., Tensor], *inputs: Tensor | None, pairs: int) -> Twin:
        """The dense form of a loss: ``values(*inputs, tau)``, where τ is 1 if the loss has none."""
        tau, now = self._tau() if hasattr(self, "temperature") else (1.0, 1.0)
        learned = tau if isinstance(tau, Tensor) else None

        def with_temperature(*inputs: Tensor | None) -> Tensor:
            *rows, tau = inputs
            return values(*rows, now if tau is None else tau)

        return Twin(with_temperature, (*inputs, learned), pairs)

    def _anchors(self, counts: list[int], valid: Tensor | None) -> float | Tensor:
        """How many anchors the mean is over, on all ranks; at least 1."""
        if valid is None or getattr(self, "no_positive", "skip") != "skip":
            return float(sum(counts))
        return self._over_ranks(valid.sum()).clamp(min=1)

    def _over_ranks(self, number: Tensor) -> Tensor:
        """A count, summed over the ranks."""
        if self._together:
            torch.distributed.all_reduce(number)
        return number
