"""What every loss shares: its options, and how per-anchor values become the number it returns."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import distributed
from kontrast.autograd import Twin, twice_differentiable
from kontrast.checks import not_empty, one_of, temperature_now
from kontrast.engine import OnePass, Tile, check_tile, in_range, largest_logit
from kontrast.losses._limits import Batch, Limits
from kontrast.sphere import unit

# Given each anchor's weight: Σ_i weight_i ℓ_i. Given None: ℓ.
Core = Callable[[Tensor | None], Tensor]
REDUCTIONS = ("mean", "sum", "none")


class Options:
    """The options that all loss functions have, checked, and what follows from them.

    Args:
        temperature: A number or a scalar tensor; None for a loss without one.
        normalize: Whether rows are put on the unit sphere.
        reduction: "mean", "sum" or "none".
        gather_distributed: Whether the candidates are the rows of all processes.
        tile: The side of the engine's blocks, or "auto".

    Raises:
        ValueError: For a value out of range.
    """

    def __init__(
        self,
        temperature: float | Tensor | None = None,
        *,
        normalize: bool = True,
        reduction: str = "mean",
        gather_distributed: bool = True,
        tile: Tile = "auto",
    ) -> None:
        self.temperature = temperature
        self.now = 1.0 if temperature is None else temperature_now(temperature)  # its present value
        self.normalize = normalize
        # Checks are called where they fail: this runs at every call of a loss.
        self.reduction = reduction if reduction in REDUCTIONS else one_of("reduction", reduction, REDUCTIONS)
        self.gather_distributed = gather_distributed
        self.tile = tile if tile == "auto" else check_tile(tile)
        single = not (gather_distributed and torch.distributed.is_available() and torch.distributed.is_initialized())
        self.processes = 1 if single else distributed.world_size()
        # Whether the temperature gets a gradient.
        self.is_learned = isinstance(temperature, Tensor) and temperature.requires_grad

    # ---------------------------------------------------------------------------------------- embeddings

    def rows(self, x: Tensor) -> Tensor:
        """The rows as the loss compares them."""
        return unit(x) if self.normalize else x

    @property
    def tau(self) -> float | Tensor:
        """The temperature as it enters the graph: a number, or a tensor that is learned.

        A loss computes with this, not with its argument: a learned tensor of half precision would round every quotient.
        """
        if not (isinstance(self.temperature, Tensor) and self.temperature.requires_grad):
            return self.now
        # Its roots and quotients are taken in the widest precision there is; as a scalar it widens no rows.
        widest = torch.float32 if self.temperature.device.type == "mps" else torch.float64
        return self.temperature.reshape(()).to(widest)

    def scaled(self, z: Tensor, power: float = 1.0) -> tuple[Tensor, float]:
        """z and what its products are still to be multiplied by: 1/τ, unless τ is learned and so divides z here.

        ``power`` is 0.5 where both factors of a product are z.
        """
        tau = self.tau
        return (z / tau**power, 1.0) if isinstance(tau, Tensor) else (z, 1.0 / self.now)

    def is_bounded(self, x: Tensor, c: Tensor, tau: float | None = None) -> bool:
        """Whether ⟨x, c⟩/τ needs no shift before its exponential: unit vectors bound it by 1/τ."""
        largest = 1.001 if self.normalize else largest_logit(x.detach(), c.detach())
        return in_range(largest / (self.now if tau is None else tau), len(c), x.dtype)

    # ----------------------------------------------------------------------------------------- processes

    def counts(self, local: Tensor, name: str) -> list[int]:
        """Rows of each rank, or just ours; an empty batch is an error (on every rank alike)."""
        counts = distributed.row_counts(local) if self.gather_distributed else [len(local)]
        not_empty(name, sum(counts))
        return counts

    def gather(self, local: Tensor, counts: list[int]) -> tuple[Tensor, int]:
        """Every rank's rows, and where ours begin."""
        if self.processes == 1:
            return local, 0
        return distributed.gather(local, counts), sum(counts[: distributed.rank()])

    def over_ranks(self, number: Tensor) -> Tensor:
        """A count, summed over the ranks."""
        if self.processes > 1:
            torch.distributed.all_reduce(number)
        return number

    # ----------------------------------------------------------------------------------------- reduction

    def reduce(
        self,
        core: Core,
        like: Tensor,
        *,
        counts: list[int],
        valid: Tensor | None = None,
        counted: bool = False,
        twin: Twin | None = None,
    ) -> Tensor:
        """Mean or sum over every rank's anchors, or this rank's values.

        Args:
            core: The values, or their weighted sum.
            like: A tensor of the values' dtype and device.
            counts: The number of anchors on each rank.
            valid: Which anchors have a positive, if some have none. The others are 0 in "none" and in the sum.
            counted: Whether the mean counts the others too.
            twin: The dense form, for second derivatives; without one ``core`` must be plain torch.
        """
        here = counts[0] if self.processes == 1 else counts[distributed.rank()]
        if self.reduction == "none":
            values = self._evaluate(core, None, twin)
            values = values if valid is None else torch.where(valid, values, 0.0)
            return distributed.own(values) if self.processes > 1 else values
        share = 1.0 / sum(counts) if self.reduction == "mean" else 1.0
        if valid is None:
            weight = like.new_full((here,), share)
        elif self.reduction == "sum" or counted:
            weight = valid.to(like.dtype).mul_(share)
        else:
            weight = valid.to(like.dtype).div_(self.over_ranks(valid.sum()).clamp(min=1))
        value = self._evaluate(core, weight, twin)
        return distributed.total(value) if self.processes > 1 else value

    def _evaluate(self, core: Core, weight: Tensor | None, twin: Twin | None) -> Tensor:
        """The values, or their weighted sum, with a gradient that can be differentiated again."""
        if isinstance(core, OnePass):  # only a batch of one process is a single pass
            return core(weight, twin)
        return twice_differentiable(core(weight), weight, twin, processes=self.processes)

    def twin(self, values: Callable[..., Tensor], *inputs: Tensor | None, pairs: int) -> Twin:
        """The dense form of a loss: ``values(*inputs, tau)``, where τ is 1 if the loss has none."""
        tau = self.tau if self.is_learned else None
        now, learned = self.now, tau if isinstance(tau, Tensor) else None

        def with_temperature(*inputs: Tensor | None) -> Tensor:
            *rows, tau = inputs
            return values(*rows, now if tau is None else tau)

        return Twin(with_temperature, (*inputs, learned), pairs)


class Loss(nn.Module):
    """Base of the losses: a module that stores options and calls its loss function with them.

    A new loss is a function in a file of its own, and a class whose ``function`` it is; see
    `kontrast.losses.info_nce`.

    Args:
        normalize: Whether rows are put on the unit sphere.
        reduction: "mean", "sum", or "none" for a value per anchor.
        gather_distributed: Whether the candidates are the rows of all processes.
        tile: The side of the blocks the engine works in; "auto" is measured.

    Raises:
        ValueError: For a value out of range.
    """

    temperature: float | Tensor
    function: Callable[..., Tensor]  # called with the inputs and, as keywords, with the attributes of the same names

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
        self.reduction = one_of("reduction", reduction, REDUCTIONS)
        self.gather_distributed = gather_distributed
        self.tile = check_tile(tile)

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

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of the loss function that are attributes of this module."""
        values = {}
        for name in setting_names(type(self)):  # type: ignore[arg-type]
            try:
                values[name] = getattr(self, name)
            except AttributeError:  # torch would only say that there is no `settings`
                raise _not_stored(self, name) from None
        return values

    @property
    def options(self) -> Options:
        """The shared options of this module, with the temperature as it is now."""
        return Options(
            getattr(self, "temperature", None),
            normalize=self.normalize,
            reduction=self.reduction,
            gather_distributed=self.gather_distributed,
            tile=self.tile,
        )

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


def _not_stored(loss: Loss, name: str) -> TypeError:
    """The error for an option of the function that the class does not keep."""
    return TypeError(
        f"{type(loss).__name__} has no attribute {name!r}: __init__ must store every option of its function, "
        f"{type(loss).function.__name__}: self.{name} = {name}"
    )


@functools.cache
def setting_names(loss: type[Loss]) -> tuple[str, ...]:
    """The keyword arguments of a loss function that are no inputs of its module."""
    inputs = inspect.signature(loss.forward).parameters
    parameters = inspect.signature(loss.function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in inputs)
