"""What holds for every loss: found by its file, run in every form it takes (see cases.py)."""

from __future__ import annotations

import copy
import inspect
import itertools
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kontrast.losses import FAMILY, Batch, Loss
from tests.descent import assert_not_below, descend, in_ball
from tests.losses.cases import CASES, EMBEDDINGS, FIXED, NO_GRADIENT, PLAIN, Case, D, N, at, penalties

every_case = pytest.mark.parametrize("case", CASES, ids=str)
each_loss = pytest.mark.parametrize("case", [next(c for c in PLAIN if c.key == k) for k in FAMILY], ids=str)
TEMPERED = [c for c in CASES if "temperature" in c.parameters()]


def leaves(case: Case, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    wanted = case.differentiable(inputs)
    return {k: v.detach().clone().requires_grad_(k in wanted) for k, v in inputs.items()}


def value_and_gradients(
    case: Case, loss: Any, inputs: dict[str, Tensor], weight: Tensor | None = None, *, dense: bool = False
) -> tuple[Tensor, dict[str, Tensor]]:
    """A loss's (or its dense twin's) value and the gradient of its sum, weighted where it is per anchor."""
    mine = leaves(case, inputs)
    value = case.reference(loss, mine) if dense else loss(**mine)
    total = value.sum() if weight is None else (value * weight.view_as(value)).sum()
    wanted = case.differentiable(mine)
    grads = torch.autograd.grad(total, [mine[k] for k in wanted])
    return value.detach(), dict(zip(wanted, grads, strict=True))


def assert_same(
    actual: tuple[Tensor, dict[str, Tensor]], expected: tuple[Tensor, dict[str, Tensor]], **tol: float
) -> None:
    torch.testing.assert_close(actual[0], expected[0], **tol)
    assert actual[1].keys() == expected[1].keys()
    for name in expected[1]:
        torch.testing.assert_close(
            actual[1][name], expected[1][name], **tol, msg=lambda m, n=name: f"gradient of {n}: {m}"
        )


# ------------------------------------------------------------------------------------ the tiled is the dense


@every_case
def test_tiled_is_reference_per_anchor_and_gradient(case: Case) -> None:
    inputs = case.inputs()
    weight = torch.linspace(-1, 2, case.reference(case.make().double(), inputs).numel(), dtype=torch.float64)
    expected = value_and_gradients(case, case.make().double(), inputs, weight, dense=True)
    for tile in ("auto", 1, 4, 8):  # of 11 anchors: whole, single, and cut unevenly
        with at(tile):
            loss = case.make(reduction="none", tile=tile).double()
            assert_same(value_and_gradients(case, loss, inputs, weight), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("case", [c for c in CASES if c.key in ("supcon", "tcl", "nt-xent")], ids=str)
def test_tiled_is_reference_where_blocks_are_wider_than_high(case: Case) -> None:
    """ "auto" has such blocks on a CPU from N = 384 on."""
    loss = case.make().double()
    inputs = case.inputs(seed=16, n=450)
    value, gradients = value_and_gradients(case, loss, inputs)
    values = case.reference(loss, inputs)
    share = 1 / int((values != 0).sum())
    _, expected = value_and_gradients(case, loss, inputs, torch.full_like(values, share), dense=True)
    assert_same((value, gradients), (values.sum() * share, expected), rtol=1e-9, atol=1e-12)


@every_case
def test_tiled_is_reference_at_other_temperatures_and_norms(case: Case) -> None:
    """0.004 and unnormalised rows leave the range in which no maximum is subtracted."""
    inputs = {k: v * 3 if k in EMBEDDINGS else v for k, v in case.inputs(seed=1).items()}
    for temperature, normalize in itertools.product([0.004, 2.0], [True, False]):
        with at(temperature, normalize):
            loss = case.make(reduction="none", temperature=temperature, normalize=normalize, tile=4).double()
            assert_same(
                value_and_gradients(case, loss, inputs),
                value_and_gradients(case, loss, inputs, dense=True),
                rtol=1e-8,
                atol=1e-9,
            )


@every_case
def test_mean_and_sum_reduce_the_values(case: Case) -> None:
    inputs = case.inputs(seed=2)
    for reduction in ("mean", "sum"):
        with at(reduction):
            loss = case.make(reduction=reduction).double()
            values = case.reference(loss, inputs)
            counted = (values != 0).sum() if hasattr(loss, "no_positive") else values.numel()
            share = 1 / counted if reduction == "mean" else 1.0
            value, grads = value_and_gradients(case, loss, inputs)
            torch.testing.assert_close(value, (values.sum() * share + penalties(loss)).detach())
            _, expected = value_and_gradients(case, loss, inputs, torch.full_like(values, share), dense=True)
            for name, gradient in expected.items():
                torch.testing.assert_close(grads[name], gradient)


@each_loss
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradcheck(case: Case, reduction: str) -> None:
    loss = case.make(reduction=reduction, tile=3).double()
    inputs = leaves(case, case.inputs(seed=3, n=5))
    names = case.differentiable(inputs)

    def function(*rows: Tensor) -> Tensor:
        return loss(**{**inputs, **dict(zip(names, rows, strict=True))})

    assert torch.autograd.gradcheck(function, [inputs[k] for k in names])


@each_loss
def test_weights_of_a_loss_get_their_gradient(case: Case) -> None:
    loss = case.make(tile=3).double()
    for name, parameter in loss.named_parameters():
        inputs = case.inputs(seed=4)
        loss(**inputs).backward()
        expected = torch.autograd.grad(case.reference(loss, inputs).mean() + penalties(loss), parameter)
        torch.testing.assert_close(parameter.grad, expected[0], msg=name)


@pytest.mark.parametrize("case", TEMPERED, ids=str)
@pytest.mark.parametrize("start", [0.3, 0.005])
def test_temperature_can_be_learned(case: Case, start: float) -> None:
    tau = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    loss = case.make(temperature=tau, reduction="none", tile=4)
    inputs = leaves(case, case.inputs(seed=5))
    weight = torch.linspace(0.5, 2, case.reference(loss, inputs).numel(), dtype=torch.float64)

    def gradients(values: Tensor) -> tuple[Tensor, ...]:
        wanted = [tau, *(inputs[k] for k in case.differentiable(inputs))]
        return torch.autograd.grad((values * weight.view_as(values)).sum(), wanted)

    for got, expected in zip(gradients(loss(**inputs)), gradients(case.reference(loss, inputs)), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-8, atol=1e-8)


def test_learned_temperature_is_a_parameter_and_moves() -> None:
    loss = FAMILY["supcon"](temperature=torch.nn.Parameter(torch.tensor(0.5)))
    assert [name for name, _ in loss.named_parameters()] == ["temperature"]
    rows, labels = torch.randn(8, 4), torch.arange(8) % 2
    loss(rows, labels).backward()
    assert loss.temperature.grad.abs() > 0
    with torch.no_grad():
        loss.temperature.fill_(-1.0)
    with pytest.raises(ValueError, match=r"temperature=-1.0: must be a finite number above 0"):
        loss(rows, labels)


@pytest.mark.parametrize("case", TEMPERED, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)  # narrower and wider than the rows
def test_learned_temperature_of_any_precision(case: Case, dtype: torch.dtype) -> None:
    """Its value is rounded to its dtype; what is computed with it is not."""
    tau = torch.tensor(0.3, dtype=dtype, requires_grad=True)
    inputs = case.inputs(seed=5)
    expected = case.make(temperature=float(tau.detach()), reduction="none")(**inputs)
    value = case.make(temperature=tau, reduction="none")(**inputs)
    torch.testing.assert_close(value.detach(), expected)
    value.sum().backward()
    assert tau.grad is not None
    assert tau.grad.dtype == dtype


@every_case
def test_changing_an_input_before_backward_is_noticed_or_harmless(case: Case) -> None:
    """A queue is often written to right after the loss: the gradient must be the old one's, or an error."""
    for reduction in ("mean", "none"):
        with at(reduction):
            change_before_backward(case, case.make(reduction=reduction, normalize=False).double())


def change_before_backward(case: Case, loss: Any) -> None:
    inputs = case.inputs(seed=15)
    name = case.differentiable(inputs)[0]
    expected = torch.autograd.grad(loss(**{**inputs, name: inputs[name].requires_grad_()}).sum(), inputs[name])[0]
    for changed in [k for k in inputs if k != name]:
        mine = {k: v.detach().clone() for k, v in inputs.items()}
        mine[name].requires_grad_()
        value = loss(**mine).sum()
        mine[changed].copy_(mine[changed].roll(1, 0))
        complaint = "modified by an inplace operation"
        try:
            (got,) = torch.autograd.grad(value, mine[name])
            torch.testing.assert_close(got, expected, msg=lambda m, c=changed: f"{c}: {m}")
        except RuntimeError as error:
            complaint = str(error)
        assert "modified by an inplace operation" in complaint


# ------------------------------------------------------------------------------------------------ invariance


@every_case
def test_permuting_the_batch_permutes_the_values(case: Case) -> None:
    inputs = case.inputs(seed=6)
    loss = case.make(reduction="none").double()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    moved = {k: v if k in FIXED else v[order] for k, v in inputs.items()}
    if "positives" in moved and "ref_emb" not in moved:
        moved["positives"] = moved["positives"][:, order]
    torch.testing.assert_close(loss(**moved), loss(**inputs)[order])


@every_case
def test_turning_the_space_changes_nothing(case: Case) -> None:
    inputs = case.inputs(seed=7)
    loss = case.make(reduction="none").double()
    before = loss(**inputs)
    turn = torch.linalg.qr(torch.randn(D, D, dtype=torch.float64)).Q
    if hasattr(loss, "num_classes"):
        loss.weight.data = loss.weight.data @ turn
    torch.testing.assert_close(loss(**{k: v @ turn if k in EMBEDDINGS else v for k, v in inputs.items()}), before)


@every_case
def test_length_of_rows_does_not_matter_when_normalised(case: Case) -> None:
    loss = case.make(reduction="none", normalize=True).double()
    inputs = case.inputs(seed=8)
    longer = {k: v * 7.5 if k in EMBEDDINGS else v for k, v in inputs.items()}
    torch.testing.assert_close(loss(**longer), loss(**inputs))


# ------------------------------------------------------------------------------------------------- precision


@every_case
def test_low_precision_inputs_are_computed_in_float32(case: Case) -> None:
    """Against the float64 twin on the same numbers; rounding of similarities is magnified by 1/τ."""
    for dtype, temperatures in (
        (torch.float16, (1e-3, 0.1)),
        (torch.bfloat16, (0.02, 100.0)),
        (torch.float32, (1e-3, 0.02)),
    ):
        for temperature in temperatures:
            with at(dtype, temperature):
                compare_with_float64(case, dtype, temperature)


def compare_with_float64(case: Case, dtype: torch.dtype, temperature: float) -> None:
    inputs = case.inputs(seed=9, dtype=dtype)
    loss = case.make(temperature=temperature, reduction="none")
    value, grads = value_and_gradients(case, loss, inputs)
    exact = {k: v.double() if k in EMBEDDINGS else v for k, v in inputs.items()}
    twin = case.make(temperature=temperature, reduction="none").double()
    expected, exact_grads = value_and_gradients(case, twin, exact, dense=True)
    assert value.dtype == torch.float32
    tolerance = 2e-6 * max(1.0, 1 / temperature)
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=tolerance)
    for name, gradient in grads.items():
        assert gradient.dtype == dtype
        assert gradient.isfinite().all()
        if temperature >= 0.02:
            rough = {torch.float32: 1e-4, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
            scale = exact_grads[name].abs().max()
            assert (gradient.double() - exact_grads[name]).abs().max() <= rough * scale


@pytest.mark.parametrize("key", ["info-nce", "nt-xent", "supcon"])
@pytest.mark.parametrize("temperature", [0.05, 0.03, 0.001])
def test_a_loss_near_zero_keeps_its_digits(key: str, temperature: float) -> None:
    """Close pairs far from all others, one positive each: neither negative nor noise."""
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(32, 256, generator=generator)
    pair = [first, first + 0.05 * torch.randn(32, 256, generator=generator)]

    def value(loss: Any, *rows: Tensor) -> Tensor:
        return loss(torch.stack(rows, dim=1)) if key == "supcon" else loss(*rows)

    got, exact = ([x.to(dtype, copy=True).requires_grad_() for x in pair] for dtype in (torch.float32, torch.float64))
    loss = FAMILY[key](temperature=temperature)
    mine, true = value(loss, *got), value(loss, *exact)
    assert mine >= 0
    torch.testing.assert_close(mine.double(), true, rtol=1e-3, atol=1e-30)
    mine.backward()
    true.backward()
    for a, b in zip(got, exact, strict=True):
        assert (a.grad.double() - b.grad).abs().max() <= 0.2 * b.grad.abs().max() + 1e-30


def test_rows_whose_squares_overflow_are_still_normalised() -> None:
    rows, labels = torch.randn(8, 4), torch.arange(8) % 2
    loss = FAMILY["supcon"]()
    torch.testing.assert_close(loss(rows * 1e25, labels), loss(rows, labels))
    assert loss(rows.index_fill(0, torch.tensor([1]), torch.inf), labels).isnan()


@each_loss
def test_autocast_does_not_reach_inside(case: Case) -> None:
    inputs = case.inputs(seed=10, dtype=torch.float32)
    loss = case.make(reduction="none")
    plain = value_and_gradients(case, loss, inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(value_and_gradients(case, loss, inputs), plain, rtol=0, atol=0)


DEGENERATE = {
    "identical": lambda x: x[:1].expand_as(x).clone(),
    "duplicated": lambda x: x[torch.arange(len(x)) // 2],
    "zero": torch.zeros_like,
    "one zero row": lambda x: torch.where(torch.arange(len(x)).view(-1, *[1] * (x.ndim - 1)) == 2, 0.0, x),
    "opposite": lambda x: (
        x[:1].expand_as(x) * torch.where(torch.arange(len(x)) % 2 == 0, 1.0, -1.0).view(-1, *[1] * (x.ndim - 1))
    ),
    "huge": lambda x: x * (1e4 if x.dtype != torch.float32 else 1e15),
    "tiny": lambda x: x * (1e-4 if x.dtype != torch.float32 else 1e-15),
}


@pytest.mark.parametrize("case", [c for c in CASES if c.make().normalize], ids=str)
def test_degenerate_rows_give_finite_values_and_gradients(case: Case) -> None:
    """At the two ends of the temperatures; `tests/torture/test_numerics.py` compares such rows with their twin."""
    for rows in DEGENERATE:
        with at(rows):
            check_degenerate(case, rows)


def check_degenerate(case: Case, rows: str) -> None:
    for dtype, temperature, reduction in (
        (torch.float16, 1e-3, "mean"),
        (torch.float16, 100.0, "none"),
        (torch.float32, 1e-3, "none"),
        (torch.float32, 100.0, "mean"),
    ):
        inputs = case.inputs(seed=11, dtype=dtype)
        inputs = {k: DEGENERATE[rows](v).to(dtype) if k in EMBEDDINGS else v for k, v in inputs.items()}
        loss = case.make(temperature=temperature, reduction=reduction)
        value, grads = value_and_gradients(case, loss, inputs)
        assert value.isfinite().all()
        if rows == "tiny" and dtype != torch.float32:
            continue  # the true gradient, 1e4 times larger, is beyond half precision
        for name, gradient in grads.items():
            assert gradient.isfinite().all(), (name, dtype, temperature, reduction)


@pytest.mark.parametrize("case", [c for c in CASES if c.make().normalize], ids=str)
def test_a_zero_row_gets_no_gradient_and_disturbs_no_other(case: Case) -> None:
    for dtype in (torch.float16, torch.float32):
        with at(dtype):
            check_zero_row(case, dtype)


def check_zero_row(case: Case, dtype: torch.dtype) -> None:
    inputs = case.inputs(seed=12, dtype=dtype)
    inputs = {k: DEGENERATE["one zero row"](v).to(dtype) if k in EMBEDDINGS else v for k, v in inputs.items()}
    loss = case.make(temperature=0.5)
    _, grads = value_and_gradients(case, loss, inputs)
    exact = {k: v.double() if k in EMBEDDINGS else v for k, v in inputs.items()}
    _, expected = value_and_gradients(case, case.make(temperature=0.5).double(), exact)
    for name, gradient in grads.items():
        assert (gradient[2] == 0).all()
        torch.testing.assert_close(gradient.double(), expected[name], rtol=2e-3, atol=1e-5)
    for name, gradient in expected.items():
        others = torch.arange(len(gradient)) != 2
        assert gradient[others].abs().max() < 100, name


@each_loss
def test_cross_entropy_stays_finite_with_huge_logits(case: Case) -> None:
    if case.make().normalize:
        pytest.skip("bounded by its normalisation")
    inputs = {k: v * 1e8 if k in EMBEDDINGS else v for k, v in case.inputs(dtype=torch.float32).items()}
    value, grads = value_and_gradients(case, case.make(), inputs)
    assert value.isfinite()
    assert all(g.isfinite().all() for g in grads.values())


# ---------------------------------------------------------------------------------------------- how it is used


@each_loss
def test_strided_and_transposed_inputs(case: Case) -> None:
    loss = case.make(reduction="none").double()
    inputs = case.inputs(seed=13)

    def strange(x: Tensor) -> Tensor:
        wide = torch.stack([x, x + 1], dim=-1).transpose(0, 1).contiguous().transpose(0, 1)[..., 0]
        assert not wide.is_contiguous()
        return wide

    odd = {k: strange(v) if k in EMBEDDINGS else v for k, v in inputs.items()}
    assert_same(value_and_gradients(case, loss, odd), value_and_gradients(case, loss, inputs))


@every_case
def test_gradient_on_either_side_alone(case: Case) -> None:
    loss = case.make(reduction="mean", tile=4).double()
    inputs = case.inputs(seed=14)
    _, together = value_and_gradients(case, loss, inputs)
    for name in together:
        alone = {k: v.detach().clone().requires_grad_(k == name) for k, v in inputs.items()}
        loss(**alone).backward()
        torch.testing.assert_close(alone[name].grad, together[name])


@each_loss
def test_without_gradients_nothing_is_recorded(case: Case) -> None:
    loss = case.make().double()
    inputs = leaves(case, case.inputs())
    with torch.no_grad():
        value = loss(**inputs)
    assert not value.requires_grad
    torch.testing.assert_close(value, loss(**inputs).detach())


@each_loss
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_backward_twice_gives_the_same_gradient_again(case: Case, reduction: str) -> None:
    loss = case.make(reduction=reduction).double()
    inputs = leaves(case, case.inputs())
    name = case.differentiable(inputs)[0]
    value = loss(**inputs).sum()
    first, second = (torch.autograd.grad(value * 3, inputs[name], retain_graph=True)[0] for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


COMPILED = ("info-nce", "supcon", "cross-entropy")  # two inputs, labels, weights; the others are long tests


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[] if case.key in COMPILED else [pytest.mark.slow])
        for case in (next(c for c in PLAIN if c.key == k) for k in FAMILY)
    ],
)
def test_compiled_model_may_call_it(case: Case) -> None:
    loss = case.make()
    inputs = case.inputs(dtype=torch.float32)
    name = case.differentiable(inputs)[0]
    net = torch.nn.Linear(D, D)

    def step(x: Tensor) -> Tensor:
        return loss(**{**inputs, name: net(x)}) * 2

    expected = step(inputs[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        actual = torch.compile(step, backend="aot_eager")(inputs[name])
    torch.testing.assert_close(actual, expected)
    actual.backward()
    assert net.weight.grad.abs().sum() > 0


@each_loss
def test_it_is_an_ordinary_module(case: Case) -> None:
    loss = case.make()
    inputs = case.inputs(dtype=torch.float32)
    again = copy.deepcopy(loss)
    again.load_state_dict(loss.state_dict())
    torch.testing.assert_close(again(**inputs), loss(**inputs))
    assert repr(loss).startswith(f"{case.cls.__name__}(")


@each_loss
def test_one_sample(case: Case) -> None:
    for reduction in ("mean", "sum", "none"):
        inputs = leaves(case, {k: v[:1] if k not in FIXED else v for k, v in case.inputs().items()})
        if "positives" in inputs:
            inputs["positives"] = inputs["positives"][:, :1]
        loss = case.make(reduction=reduction).double()
        value = loss(**inputs).sum()
        assert value.isfinite()
        value.backward()
        assert all(inputs[k].grad.isfinite().all() for k in case.differentiable(inputs))


@settings(max_examples=60, deadline=None)
@given(case=st.sampled_from(CASES), n=st.integers(1, 24), tile=st.integers(1, 30), seed=st.integers(0, 999))
def test_any_shape(case: Case, n: int, tile: int, seed: int) -> None:
    loss = case.make(reduction="none", tile=tile).double()
    inputs = case.inputs(seed=seed, n=n)
    assert_same(
        value_and_gradients(case, loss, inputs),
        value_and_gradients(case, loss, inputs, dense=True),
        rtol=1e-8,
        atol=1e-9,
    )


# ------------------------------------------------------------------------------------------------------ limits


def batch_of(loss: Loss, inputs: dict[str, Tensor], radius: float) -> Batch:
    """What `Loss.limits` is told of these inputs."""
    rows = next(v for k, v in inputs.items() if k in EMBEDDINGS)
    more = inputs.get("negatives", inputs.get("queue"))
    count = None if more is None else len(more) - ("own_index" in inputs)
    beside = more is None or getattr(loss, "negatives_in_batch", False)
    views = rows.shape[1] if rows.ndim == 3 else 1
    entropy = 0.0
    if hasattr(loss, "target_temperature"):  # of the relations of each target to the others
        target = F.normalize(inputs["target"], dim=1)
        s = target @ (target if more is None else F.normalize(more, dim=1)).T / loss.target_temperature
        p = s.fill_diagonal_(-torch.inf).softmax(1) if more is None else s.softmax(1)
        entropy = float(torch.special.entr(p).sum(1).mean())
    return Batch(inputs.get("labels"), len(rows) if beside else None, views, count, entropy, radius)


LIMITED = [
    case
    for case in CASES
    if type(case.make()).limits is not Loss.limits and not {"mask", "ref"} & set(case.form.split("+"))
    if case.options.get("form", "out") == "out"
    and not (case.form == "batch" and "target_temperature" in case.parameters())
]
"""The forms of each loss that has limits whose batch `Batch` can describe."""
RADIUS = 2.0  # of embeddings that are not normalised


@pytest.mark.parametrize("case", LIMITED, ids=str)
def test_chance_is_the_loss_at_similarities_of_0(case: Case) -> None:
    """A row of zeros has similarity 0 to every other."""
    loss, inputs = case.make().double(), case.inputs()
    inputs |= {k: torch.zeros_like(v) for k, v in inputs.items() if k in EMBEDDINGS}
    assert loss.limits(batch_of(loss, inputs, RADIUS)).chance == pytest.approx(
        loss(**inputs).item(), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("case", LIMITED, ids=str)
def test_collapsed_is_the_loss_at_equal_embeddings(case: Case) -> None:
    loss, inputs = case.make().double(), case.inputs()
    if hasattr(loss, "num_classes"):
        pytest.skip("of a classifier it is the best that one embedding can do")
    inputs |= {k: torch.ones_like(v) for k, v in inputs.items() if k in EMBEDDINGS}
    collapsed = loss.limits(batch_of(loss, inputs, RADIUS)).collapsed
    assert collapsed == pytest.approx(loss(**inputs).item(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("case", LIMITED, ids=str)
def test_descent_does_not_go_below_the_bound_and_comes_near_it(case: Case) -> None:
    loss, inputs = case.make(temperature=0.5).double(), case.inputs()
    names = [k for k in inputs if k in EMBEDDINGS and k not in NO_GRADIENT.get(case.cls.__name__, ())]
    limits = loss.limits(batch_of(loss, inputs, RADIUS))

    def value(*rows: Tensor) -> Tensor:
        inside = rows if loss.normalize else [in_ball(x, RADIUS) for x in rows]
        return loss(**{**inputs, **dict(zip(names, inside, strict=True))})

    def check(found: float) -> None:
        assert_not_below(found, limits.bound, str(case))

    best = descend(value, [inputs[name] for name in names], check)
    share = (best - limits.bound) / (limits.chance - limits.bound)
    assert share < 0.5, f"the bound must be near what can be reached: {best:.3g} is, and limits says {limits.bound:.3g}"


# ------------------------------------------------------------------------------------------------------ errors


@each_loss
def test_wrong_inputs_say_what_was_seen(case: Case) -> None:
    loss = case.make()
    inputs = case.inputs(dtype=torch.float32)
    name = case.differentiable(inputs)[0]
    x = inputs[name]
    for wrong, message in (
        (x[0], rf"{name} has shape \[{D}\]; accepted: \[N, D\]"),
        (x[None, None], rf"{name} has shape .*; accepted: \[N, D\]"),
        (x.long(), f"{name} must hold floating point numbers, got torch.int64"),
        (x.tolist(), f"{name} must be a tensor of shape"),
        (x[:, :0], "no dimensions to compare"),
    ):
        with pytest.raises(ValueError, match=message):
            loss(**{**inputs, name: wrong})
    nothing = {k: v[:0] if k not in FIXED else v for k, v in inputs.items()}
    with pytest.raises(ValueError, match="is empty: a loss needs at least one row"):
        loss(**nothing)
    for other in inputs:
        if other != name and other not in FIXED:
            with pytest.raises(ValueError, match=r"shape"):
                loss(**{**inputs, other: inputs[other][:-1]})
        if other != name and other in EMBEDDINGS:
            with pytest.raises(ValueError, match=r"shape"):
                loss(**{**inputs, other: inputs[other][:, :-1]})
        if other in ("labels", "own_index"):
            with pytest.raises(ValueError, match=f"{other} must be integers, got torch.float32"):
                loss(**{**inputs, other: inputs[other].float()})


@each_loss
def test_wrong_options_say_what_is_allowed(case: Case) -> None:
    with pytest.raises(ValueError, match="reduction='avg': must be one of 'mean', 'sum', 'none'"):
        case.make(reduction="avg")
    for wrong in (0, -1, "big", 2.5, True):
        with pytest.raises(ValueError, match=r"tile=.*: must be"):
            case.make(tile=wrong)
    allowed: dict[str, tuple[Any, ...]] = {
        "temperature": (0.0, -0.1, float("nan"), float("inf"), "cold", torch.ones(2)),
        "target_temperature": (0.0, -0.1, float("nan")),
        "k1": (-1.0, float("nan")),
        "k2": (-1.0, float("inf")),
        "hard_negatives": (0, -3, 1.5),
        "contrastive_weight": (-0.1, 1.1, float("nan")),
        "weight_penalty": (-0.1,),
        "energy_penalty": (-0.1, float("nan")),
        "energy_power": (-1.0, 10.5, float("inf"), "two"),
        "form": ("both",),
        "self_logit": ("one",),
        "no_positive": ("ignore",),
    }
    for name, values in allowed.items():
        if name in inspect.signature(case.cls).parameters:
            for value in values:
                with pytest.raises(ValueError, match=name):
                    case.make(**{name: value})


def test_an_option_that_the_class_forgot_is_named() -> None:
    loss = FAMILY["info-nce"]()
    del loss.__dict__["negatives_in_batch"]
    message = r"^InfoNCELoss has no attribute 'negatives_in_batch': __init__ must store every option of .*info_nce"
    with pytest.raises(TypeError, match=message):
        loss(torch.randn(3, 2), torch.randn(3, 2))


def test_float32_and_float64_may_be_mixed() -> None:
    q = torch.randn(4, D, dtype=torch.float64)
    queue = torch.randn(9, D)
    value = FAMILY["info-nce"](reduction="none")(q, q.float(), negatives=queue)
    expected = FAMILY["info-nce"](reduction="none")(q, q.float().double(), negatives=queue.double())
    assert value.dtype == torch.float64
    torch.testing.assert_close(value, expected)


@each_loss
@pytest.mark.filterwarnings("ignore:Sparse CSR|The PyTorch API of nested:UserWarning")
def test_tensors_that_are_not_dense_are_refused(case: Case) -> None:
    for name, x in case.inputs().items():
        strange = {
            "sparse_coo": x.to_sparse(),
            "sparse_csr": x.to_sparse_csr() if x.ndim == 2 else x.to_sparse(),
            "meta device": x.to("meta"),
            "nested": torch.nested.nested_tensor([x, x]),
        }
        for word, odd in strange.items():
            wanted = "sparse_coo" if odd.layout == torch.sparse_coo else word
            with pytest.raises(ValueError, match=f"^{name} is a tensor .*{wanted}.*; expected an ordinary dense one"):
                case.make()(**case.inputs() | {name: odd})
