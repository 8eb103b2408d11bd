r"""Every loss and its gradient on inputs that break losses, against its dense float64 twin: how large is the error?

The grid is every form of every loss (those of tests/losses/cases.py, 11 anchors in 6 dimensions, up to 17 candidates)
× dtype × temperature × `INPUTS` × tile × reduction, with a fixed and with a learned temperature. The twin gets the same
numbers, as the dtype has them, in float64; its gradients are plain autograd's.

An error is given in units of what rounding must cost, ε = the spacing of the dtype it is computed in (float32 for half
precision) at 1. A logit of size up to κ carries an error of the order of εκ, and so do the loss and each probability p:

    (1)  value:         error / (ε · max(κ, |L|))
    (2)  gradient:      error / (ε · max(κ, 1) · G)      G = 1/(τ‖x‖) bounds the gradient of a mean to a row x
    (3)  temperature:   error / (ε · max(κ, 1)/τ²)

κ = 1/τ on unit rows; against a target distribution of temperature τ_m it is max(1/τ, 1)/τ_m in (1) and the larger of
1/τ, 1/τ_m in (2). TCL's k1 term has no temperature: G is at least 1/‖x‖ there. The cross-entropies, which do not
normalise, have κ = max‖x‖·max‖w‖ and G = max‖w‖ (max‖x‖ to the weights); their rows are divided by τ instead.
Half-precision gradients are rounded when they are handed back, and what that takes is subtracted.

`LIMIT` = 7 units is what n roundings of either sign add up to, √n: D + 5 in each similarity, of which a loss is the
difference of two, and one for each candidate in a sum. Of hard negatives that are equally near others may be chosen:
there the gradient is compared for the anchors only. A zero row has no gradient, nor has one whose squares underflow,
‖x‖ ≤ 1.1e-19 in float32.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from tests.losses.cases import CASES, CLASSES, EMBEDDINGS, Case, D, K
from torch import Tensor

from kontrast.losses import Loss
from kontrast.losses._groups import dense_groups

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
TEMPERATURES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
TILES: tuple[int | str, ...] = ("auto", 1, 4)
LIMIT = math.ceil(math.sqrt(2 * (D + 5) + K))
HALF = (torch.float16, torch.bfloat16)


# -------------------------------------------------------------------------------------------------- degenerate inputs
# Rows that are equal, opposite, zero, huge or tiny, and labels all equal or all different. The same row may stand
# everywhere (`ONE_ROW`), so that every similarity is 1 or −1; in "opposed views" the positive of each anchor is its
# opposite, where a loss is largest.

Inputs = dict[str, Tensor]
Rows = Callable[[Tensor, torch.dtype], Tensor]

HUGE = {torch.float16: 1e4, torch.bfloat16: 1e25, torch.float32: 1e25, torch.float64: 1e200}  # squares overflow
TINY = {torch.float16: 1e-4, torch.bfloat16: 1e-15, torch.float32: 1e-15, torch.float64: 1e-100}


def _column(x: Tensor, numbers: Tensor) -> Tensor:
    """One number a row, shaped to multiply x."""
    return numbers.to(x.dtype).view(-1, *[1] * (x.ndim - 1))


ROWS: dict[str, Rows] = {
    "ordinary": lambda x, dtype: x,
    "equal": lambda x, dtype: x,  # of one row, see inputs_of
    "opposite": lambda x, dtype: x * _column(x, 1.0 - 2.0 * (torch.arange(len(x)) % 2)),
    "opposed views": lambda x, dtype: x * torch.tensor([1.0, -1.0, 1.0])[: x.shape[1], None] if x.ndim == 3 else x,
    "duplicated": lambda x, dtype: x[torch.arange(len(x)) // 2],
    "zero": lambda x, dtype: torch.zeros_like(x),
    "one zero row": lambda x, dtype: x * _column(x, torch.arange(len(x)) != 2),
    "huge": lambda x, dtype: x * HUGE[dtype],
    "tiny": lambda x, dtype: x * TINY[dtype],
}
LABELS: dict[str, Callable[[Tensor], Tensor]] = {
    "one class": torch.zeros_like,
    "one row a class": lambda labels: torch.arange(len(labels)),
}
INPUTS = (*ROWS, *LABELS)
ONE_ROW = ("equal", "opposite")  # every tensor of the call holds the same row: positives, negatives and queue alike
TIES = (*ONE_ROW, "duplicated", "zero")


def inputs_of(case: Case, kind: str, dtype: torch.dtype, *, known: Container[str], scale: float) -> Inputs | None:
    """The inputs of a case, made degenerate, its rows times ``scale``; ``known`` are the loss's options.

    None where there are none such: labels of a loss that takes none, more classes than it knows, rows that the dtype
    does not hold.
    """
    inputs = case.inputs(seed=21)
    labelled = [k for k in inputs if k in ("labels", "ref_labels")]
    if kind in LABELS and (not labelled or (kind == "one row a class" and "num_classes" in known)):
        return None
    rows = [k for k in inputs if k in EMBEDDINGS]
    first = inputs[rows[0]]
    for number, name in enumerate(rows):
        x = inputs[name]
        if kind in ONE_ROW:
            x = first.reshape(-1, D)[:1].expand_as(x)
        if kind == "opposed views" and number == 1 and x.shape == first.shape:
            x = -first
        if kind == "opposed views" and x.ndim == 3:
            x = x[:, :1].expand_as(x)
        inputs[name] = (ROWS.get(kind, ROWS["ordinary"])(x, dtype) * scale).to(dtype)
    if not all(bool(inputs[k].isfinite().all()) for k in rows):
        return None
    return inputs | {k: LABELS[kind](inputs[k]) for k in labelled if kind in LABELS}


# --------------------------------------------------------------------------------------------- a loss and its twin


@dataclass(frozen=True)
class Subject:
    """A case with what is asked of it again and again: finding a loss by its file takes longer than calling it."""

    case: Case
    known: frozenset[str]
    normalize: bool

    @classmethod
    def of(cls, case: Case) -> Subject:
        """The same one each time."""
        return _subject(str(case))

    def make(self, dtype: torch.dtype, **options: Any) -> Loss:
        """The loss, without penalties on its weights, and those the same each time."""
        plain = {"weight_penalty": 0.0, "energy_penalty": 0.0, "num_classes": CLASSES, "dim": D}
        mine = {**self.case.options, **plain, **options}
        loss: Loss = _class(self.case.key)(**{k: v for k, v in mine.items() if k in self.known})
        with torch.no_grad():
            for weight in (p for name, p in loss.named_parameters() if name == "weight"):
                weight.copy_(torch.linspace(-0.4, 0.4, weight.numel()).view_as(weight).sin_())
        return loss.to(dtype)


@functools.cache
def _class(key: str) -> type[Loss]:
    return next(case for case in CASES if case.key == key).cls


@functools.cache
def _subject(name: str) -> Subject:
    case = next(case for case in CASES if str(case) == name)
    return Subject(case, frozenset(case.parameters()), case.make().normalize)


def lengths(x: Tensor) -> Tensor:
    """Of the rows, whose squares may overflow."""
    largest = x.abs().amax(-1, keepdim=True)
    inside: Tensor = torch.linalg.vector_norm(x / largest.masked_fill(largest == 0, 1.0), dim=-1, keepdim=True)
    return inside * largest


def on_sphere(x: Tensor, vanishing: float) -> Tensor:
    """Unit rows by plain autograd; the largest entry is taken out first, and rows that count as zero are constants."""
    largest = x.detach().abs().amax(-1, keepdim=True)
    zero = largest == 0
    y = torch.where(zero, 1.0, x / largest.masked_fill(zero, 1.0))
    norm = torch.linalg.vector_norm(y, dim=-1, keepdim=True)
    return torch.where(zero | (norm.detach() * largest <= vanishing), 0.0, y / norm)


@dataclass(frozen=True)
class Outcome:
    """Values, per anchor or their mean, and the gradients of the mean by name; the temperature's too if learned."""

    values: Tensor
    gradients: Inputs


def positives(inputs: Inputs) -> int:
    """How many anchors have one; 1 if none has: the divisor of the mean."""
    given = [inputs.get(k) for k in ("embeddings", "labels", "positives", "ref_emb", "ref_labels")]
    return max(1, int(dense_groups(*given)[1].any(1).sum()))  # type: ignore[arg-type]


def outcome(subject: Subject, loss: Loss, inputs: Inputs, number: int, call: Callable[[Inputs], Tensor]) -> Outcome:
    """What a call yields, and its gradients; ``number`` is how many anchors the mean is over."""
    wanted = subject.case.differentiable(inputs)
    mine = {k: v.detach().clone().requires_grad_(k in wanted) for k, v in inputs.items()}
    leaves = {k: mine[k] for k in wanted} | {f"own {k}": p for k, p in loss.named_parameters()}
    if isinstance(loss.__dict__.get("temperature"), Tensor):
        leaves["temperature"] = loss.temperature  # type: ignore[assignment]
    values = call(mine)
    total = values.sum() / number if values.ndim else values
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return Outcome(values.detach(), dict(zip(leaves, grads, strict=True)))


def twin(subject: Subject, inputs: Inputs, tau: float, number: int, computed: torch.dtype) -> Outcome:
    """The dense reference in float64 on the same numbers, its temperature learned where it has one."""
    loss = subject.make(torch.float64, temperature=torch.tensor(tau, dtype=torch.float64, requires_grad=True))
    exact = {k: v.double() if k in EMBEDDINGS else v for k, v in inputs.items()}
    vanishing = torch.finfo(computed).tiny ** 0.5
    loss.normalize = False  # it gets unit rows

    def call(mine: Inputs) -> Tensor:
        to_sphere = [k for k in mine if k in EMBEDDINGS and subject.normalize]
        return subject.case.reference(loss, mine | {k: on_sphere(mine[k], vanishing) for k in to_sphere})

    found = outcome(subject, loss, exact, number, call)
    if not all(bool(t.isfinite().all()) for t in (found.values, *found.gradients.values())):
        raise ArithmeticError(f"the float64 twin of {subject.case} is itself not finite at τ = {tau:g}")
    return found


# ------------------------------------------------------------------------------------------------------- the errors


@dataclass(frozen=True)
class Error:
    """One evaluation of the grid: errors as they are, and in the units of (1)–(3)."""

    where: str
    kind: str
    dtype: torch.dtype
    temperature: float
    finite: bool
    value: float  # |L − twin|, the largest of the anchors, relative where |L| > 1
    value_units: float
    gradient: float  # as a part of the bound G
    gradient_units: float

    def beyond(self) -> bool:
        """Whether it is worse than rounding explains."""
        return not (self.finite and max(self.value_units, self.gradient_units) <= LIMIT)


@dataclass(frozen=True)
class Scales:
    """κ of a value and of a gradient, and G by name."""

    value: float
    gradient: float
    bounds: dict[str, Tensor | float]

    @classmethod
    def of(cls, subject: Subject, inputs: Inputs, tau: float) -> Scales:
        """Those of a case on its inputs."""
        loss = subject.make(torch.float64)
        norm = {k: lengths(v.double()) for k, v in inputs.items() if k in EMBEDDINGS}
        if not subject.normalize:
            z, w = max(float(n.max()) for n in norm.values()), float(loss.state_dict()["weight"].norm(dim=1).max())
            return cls(max(1.0, z * w), max(1.0, z * w), {**dict.fromkeys(norm, w), "own weight": z})
        sharp = 1 / tau if "temperature" in subject.known else 1.0
        target = 1 / getattr(loss, "target_temperature", 1.0)
        force = max(sharp, 1.0) if getattr(loss, "k1", 0.0) else sharp
        force *= max(1.0, K * (getattr(loss, "weight", None) or 0.0))  # the simple loss's weight of each negative
        # A zero row is to have no gradient at all.
        bounds: dict[str, Tensor | float] = {k: force / n.masked_fill(n == 0, torch.inf) for k, n in norm.items()}
        return cls(max(1.0, sharp) * target, max(1.0, sharp, target), bounds | {"temperature": force * sharp})


def compare(got: Outcome, exact: Outcome, scales: Scales, number: int, names: Iterable[str]) -> dict[str, Any]:
    """How far a loss is from its twin, the figures of `Error`; gradients by these names, the others finite only."""
    epsilon = torch.finfo(got.values.dtype).eps
    expected = exact.values if got.values.ndim else exact.values.sum() / number
    off = (got.values.double() - expected).abs()
    finite = bool(got.values.isfinite().all())
    worst = 0.0
    for name, gradient in got.gradients.items():
        true, holds = exact.gradients[name], torch.finfo(gradient.dtype)
        finite &= bool((gradient.isfinite() | (true.abs() > 0.99 * holds.max)).all())
        if name not in names:
            continue
        far = (gradient.double().clamp(holds.min, holds.max) - true.clamp(holds.min, holds.max)).abs()
        if gradient.dtype in HALF:
            far = (far - true.abs() * holds.eps - holds.smallest_normal * holds.eps).clamp(min=0.0)
        part = torch.where(far == 0, 0.0, far / scales.bounds[name])  # 0 of 0 is no error, anything of 0 is
        worst = max(worst, float(part.nan_to_num(nan=torch.inf, posinf=torch.inf).max()))
    return {
        "finite": finite,
        "value": float((off / expected.abs().clamp(min=1.0)).max()),
        "value_units": float((off / (epsilon * expected.abs().clamp(min=scales.value))).max()),
        "gradient": worst,
        "gradient_units": worst / (epsilon * scales.gradient),
    }


def grid(
    cases: Iterable[Case] = CASES,
    *,
    dtypes: Iterable[torch.dtype] = DTYPES,
    temperatures: Iterable[float] = TEMPERATURES,
    kinds: Iterable[str] = INPUTS,
    tiles: Iterable[int | str] = TILES,
) -> Iterator[Error]:
    """Every evaluation, as it comes. A learned temperature is tried with the first tile only."""
    tiles = tuple(tiles)
    for case in cases:
        subject = Subject.of(case)
        for dtype in dtypes:
            for tau in (float(torch.tensor(t)) for t in temperatures):  # as float32 has it
                for kind in kinds:
                    scale = 1.0 if subject.normalize else 1.0 / tau
                    inputs = inputs_of(case, kind, dtype, known=subject.known, scale=scale)
                    if inputs is not None:
                        yield from _evaluations(subject, inputs, kind, dtype, tau, tiles)


def _evaluations(
    subject: Subject, inputs: Inputs, kind: str, dtype: torch.dtype, tau: float, tiles: tuple[int | str, ...]
) -> Iterator[Error]:
    computed = torch.float64 if dtype == torch.float64 else torch.float32
    number = positives(inputs) if "no_positive" in subject.known else len(next(iter(inputs.values())))
    number *= 2 if "view1" in inputs else 1
    exact, scales = twin(subject, inputs, tau, number, computed), Scales.of(subject, inputs, tau)
    names = set(exact.gradients)
    if "hard_negatives" in subject.known and kind in TIES:
        names &= {"query", "temperature"}
    for learned in (False, True) if "temperature" in subject.known else (False,):
        for tile in tiles[:1] if learned else tiles:
            for reduction in ("mean", "none"):
                temperature = torch.tensor(tau, dtype=computed, requires_grad=True) if learned else tau
                loss = subject.make(computed, temperature=temperature, tile=tile, reduction=reduction)
                got = outcome(subject, loss, inputs, number, functools.partial(_called, loss))
                where = f"{subject.case}, tile {tile}, {reduction}{', τ learned' if learned else ''}"
                yield Error(where, kind, dtype, tau, **compare(got, exact, scales, number, names))


def _called(loss: Loss, inputs: Inputs) -> Tensor:
    value: Tensor = loss(**inputs)
    return value
