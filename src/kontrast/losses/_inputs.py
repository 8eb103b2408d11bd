"""What comes into a loss: checked, brought to full precision, put on the unit sphere.

Every error here is a ``ValueError`` that says what was seen and what is accepted.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from kontrast.losses._autograd import ReverseOnly, refuse_transforms
from kontrast.registry import quoted

COLDEST, HOTTEST = (
    9.999999e-7,
    1e15,
)  # of temperatures, 1e-6 in float32 too: beyond, float32 cannot tell quotients apart
P = ParamSpec("P")
R = TypeVar("R")


def full_precision(forward: Callable[P, R]) -> Callable[P, R]:
    """Run a loss as it stands: outside autocast, so that half-precision training does not reach inside it, and
    outside torch.compile, which would unroll the loops over blocks (the graph breaks around the loss)."""

    @functools.wraps(forward)
    def eager(*args: P.args, **kwargs: P.kwargs) -> R:
        refuse_transforms()
        tensor = next((a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)), None)
        device = "cpu" if tensor is None or tensor.is_meta else tensor.device.type
        with torch.autocast(device, enabled=False):
            return forward(*args, **kwargs)

    @functools.wraps(forward)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.compiler.is_compiling():  # asked here, because disabling ahead would load the compiler on import
            return torch.compiler.disable(eager)(*args, **kwargs)  # type: ignore[no-untyped-call, no-any-return]
        return eager(*args, **kwargs)

    return wrapped


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """``value`` if it is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, allowed))}")
    return value


def true_or_false(name: str, value: Any) -> bool:
    """``value`` if it is True or False: a word such as "no" would count as True."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {quoted(value)}")
    return value


def finite(value: Any) -> bool:
    """Whether a real number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def number(name: str, value: Any, *, above: float | None = None, least: float | None = None) -> float:
    """A finite number in its range, as a float; any kind of real number, but not a bool or a tensor."""
    bounds = f"above {above:g}" if above is not None else f"of at least {least:g}"
    if not (isinstance(value, numbers.Real) and not isinstance(value, bool) and finite(value)):
        raise ValueError(f"{name} must be a finite number {bounds}, got {quoted(value)}")
    if (above is not None and value <= above) or (least is not None and value < least):
        raise ValueError(f"{name} must be a finite number {bounds}, got {quoted(value)}")
    return float(value)


def whole_number(name: str, value: Any, *, least: int) -> int:
    """An integer of any kind in its range, as an int."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {quoted(value)}")
    return int(value)


def temperature_now(temperature: float | Tensor) -> float:
    """The present value of a temperature, which may be a scalar tensor that is learned."""
    if isinstance(temperature, Tensor) and temperature.numel() != 1:
        raise ValueError(f"temperature must be a number or a scalar tensor, got shape {list(temperature.shape)}")
    given = float(temperature.detach()) if isinstance(temperature, Tensor) else temperature
    now = number("temperature", given, above=0.0)
    if not COLDEST <= now <= HOTTEST:
        raise ValueError(f"temperature must lie between {COLDEST:g} and {HOTTEST:g}, got {now:g}")
    return now


def rows(name: str, x: Tensor, *, like: Tensor | None = None, ndim: tuple[int, ...] = (2,)) -> Tensor:
    """An embedding tensor in computing precision: fp16 and bf16 become fp32, fp32 and fp64 stay."""
    forms = {2: "[N, D]", 3: "[N, V, D]"}
    accepted = " or ".join(forms[n] for n in ndim)
    if not isinstance(x, Tensor):
        raise ValueError(f"{name} must be a tensor of shape {accepted}, got {type(x).__name__}")
    _dense(name, x, accepted)
    if x.ndim not in ndim:
        raise ValueError(f"{name} has shape {list(x.shape)}; accepted: {accepted}")
    if not x.is_floating_point():
        raise ValueError(f"{name} must hold floating point numbers, got {x.dtype}")
    if 0 in x.shape[1:]:
        raise ValueError(
            f"{name} has shape {list(x.shape)}: no views or no dimensions to compare; accepted: {accepted}, none empty"
        )
    if like is not None and x.shape[-1] != like.shape[-1]:
        raise ValueError(
            f"{name} has shape {list(x.shape)}, which does not fit {list(like.shape)}: the last sizes must agree"
        )
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _dense(name: str, x: Tensor, accepted: str) -> None:
    if x.is_nested or x.layout != torch.strided or x.is_meta:
        kind = "nested" if x.is_nested else "on the meta device, without values" if x.is_meta else f"of {x.layout}"
        raise ValueError(f"{name} is a tensor {kind}; expected an ordinary dense one of shape {accepted}")


def same_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in the widest of their precisions, so that a float32 queue goes with float64 queries."""
    widest = functools.reduce(torch.promote_types, (t.dtype for t in tensors))
    return tuple(t.to(widest) for t in tensors)


def same_shape(name: str, x: Tensor, other_name: str, other: Tensor) -> None:
    """Two tensors whose rows belong together."""
    if x.shape != other.shape:
        raise ValueError(
            f"{name} has shape {list(x.shape)} and {other_name} {list(other.shape)}; they must be the same, "
            f"row i of one belonging to row i of the other"
        )


def not_empty(name: str, size: int) -> None:
    """A batch with at least one row (over all ranks)."""
    if size == 0:
        raise ValueError(f"{name} is empty: a loss needs at least one row")


def unmasked(name: str, given: Any) -> None:
    """A NumPy array that hides nothing: made a tensor, what is masked would come to light again."""
    masked = isinstance(given, np.ma.MaskedArray) and given.dtype.names is None  # records are refused as such
    hidden = int(np.ma.getmaskarray(given).sum()) if masked else 0
    if hidden:
        raise ValueError(f"{name} has {hidden} masked entries; expected none. Leave those rows out, or fill them")


def integer_labels(name: str, labels: Any, length: int, device: torch.device) -> Tensor:
    """Labels as int64: any integer dtype, any values, also a list or an array."""
    if not isinstance(labels, Tensor):
        unmasked(name, labels)
        try:
            array = np.array(labels)  # a copy: of any byte order and strides, and writable
        except ValueError:
            raise ValueError(f"{name} is a nest of lists of several lengths; expected integers [{length}]") from None
        if array.dtype.kind not in "iub" and array.size:
            seen = "none" if labels is None else f"{type(labels).__name__} of {array.dtype}"
            raise ValueError(f"{name} must be integers, one a row, got {seen}")
        labels = torch.from_numpy(array.astype(np.int64))
    _dense(name, labels, f"[{length}]")
    if labels.numel() and (labels.is_floating_point() or labels.is_complex()):
        raise ValueError(f"{name} must be integers, got {labels.dtype}: convert with {name}.long() if they are")
    if labels.shape != (length,):
        raise ValueError(f"{name} has shape {list(labels.shape)}; expected [{length}], one a row of the embeddings")
    # A copy, because a loss may read them again in backward.
    return torch.as_tensor(labels, device=device).to(torch.int64, copy=True)


def unit(x: Tensor) -> Tensor:
    """Rows of length one; a zero row stays zero and gets no gradient.

    Deviates: ``F.normalize`` divides by max(norm, 1e-12), so a zero row's gradient is multiplied by 1e12
    there (an overflow in half precision); here it is zero.

    >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    return _Unit.apply(x)[0]  # type: ignore[no-any-return]


def directions(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """`unit` for measures, of rows of any size but zero: also where their squares are 0 or infinite in ``dtype``.

    >>> directions(torch.tensor([[3e-30, 4e-30], [3e30, 4e30], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    dtype = x.dtype if dtype is None else dtype
    x = x if x.is_floating_point() else x.to(dtype)
    largest = torch.maximum(x.amax(1, keepdim=True), -x.amin(1, keepdim=True))  # 15 times as fast as the ∞-norm
    odd = _out_of_reach(largest, dtype)
    if bool(odd.any()):  # the other rows stay as they are, to the bit
        x = torch.where(odd, x / largest, x)
    return unit(x.to(dtype))


def sized(x: Tensor) -> tuple[Tensor, float]:
    """All rows over their largest entry, and that, if their squares are 0 or infinite; else as they are, and 1.

    >>> sized(torch.tensor([[1e-30, 2e-30]])), sized(torch.tensor([[1.0, 2.0]]))
    ((tensor([[0.5000, 1.0000]]), 2.000...e-30), (tensor([[1., 2.]]), 1.0))
    """
    largest = torch.maximum(x.amax(), -x.amin())
    return (x / largest, float(largest)) if bool(_out_of_reach(largest, x.dtype)) else (x, 1.0)


def _out_of_reach(largest: Tensor, dtype: torch.dtype) -> Tensor:
    """Whether the squares of rows with such largest entries, or of entries that count beside them, are not numbers."""
    least = torch.finfo(dtype).tiny ** 0.25  # 3e-10 in float32, 1e-77 in float64
    found: Tensor = (largest > 0) & largest.isfinite() & ((largest < least) | (largest > 1 / least))
    return found


class _Unit(ReverseOnly):
    """z = x/‖x‖ and 1/‖x‖; ∂z/∂xᵀ·g = (g − z⟨z, g⟩)/‖x‖, ∂(1/‖x‖)/∂x = −z/‖x‖².

    Both derivatives are made of the two outputs, which autograd knows: so they can be differentiated any number of
    times, and x is not kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        if not bool(norm.isfinite().all()):  # squares overflow before the rows do: take out the largest entry first
            largest = x.abs().amax(-1, keepdim=True)
            norm = torch.linalg.vector_norm(x / largest.clamp(min=1.0), dim=-1, keepdim=True) * largest.clamp(min=1.0)
        # Below this the squares underflow and the norm is not known: such a row counts as zero.
        vanishing = norm <= torch.finfo(x.dtype).tiny ** 0.5
        inverse = norm.reciprocal().masked_fill_(vanishing, 0.0)
        z: Tensor = x * inverse
        ctx.save_for_backward(z, inverse)
        return z, inverse

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, of_inverse: Tensor | None) -> Tensor | None:
        z, inverse = ctx.saved_tensors
        gradient: Tensor | None = None
        if grad is not None:
            along = (z * grad).sum(-1, keepdim=True)
            gradient = torch.addcmul(grad, z, along, value=-1).mul_(inverse)
        if of_inverse is not None:  # in second derivatives only
            more = -of_inverse * inverse.square() * z
            gradient = more if gradient is None else gradient + more
        return gradient
