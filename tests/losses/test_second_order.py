"""Second derivatives: those of the dense reference, or an error; and an ordinary step never goes that way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.functional import hessian, jacobian
from torch.utils._python_dispatch import TorchDispatchMode

from kontrast import autograd
from kontrast.compat import lightly, pytorch_metric_learning, supcontrast
from kontrast.engine import masked_sum
from kontrast.losses import FAMILY, Loss, SupConLoss, sce_terms
from kontrast.sphere import unit
from tests.losses.cases import CASES, PLAIN, Case, D, penalties

every_case = pytest.mark.parametrize("case", CASES, ids=str)
FIRST = [next(c for c in PLAIN if c.key == k) for k in FAMILY]
each_loss = pytest.mark.parametrize("case", FIRST, ids=str)
# The simple loss without hard_negatives is plain torch: nothing limits its second derivative in one process.
DENSE = [c if c.key != "simple-contrastive" else Case(c.key, c.form, {"hard_negatives": 3}) for c in FIRST]

Value = Callable[..., Tensor]


def pair(case: Case, loss: Loss, inputs: dict[str, Tensor]) -> tuple[list[Tensor], Value, Value]:
    """What is learned, and the loss and its reference as functions of the learned inputs, both a scalar.

    Values per anchor are weighted. The weights of a classifier and a temperature are learned too; they are the same
    tensors in both.
    """
    names = case.differentiable(inputs)
    rows = [inputs[k].detach().clone().requires_grad_() for k in names]
    own = [p for p in loss.parameters() if p.requires_grad]
    own += [b for b in loss.buffers() if b.requires_grad]

    def given(rows: tuple[Tensor, ...]) -> dict[str, Tensor]:
        return {**inputs, **dict(zip(names, rows, strict=True))}

    def weighted(values: Tensor) -> Tensor:
        return (values.flatten() * torch.linspace(-1, 2, values.numel(), dtype=values.dtype)).sum()

    def ours(*rows: Tensor) -> Tensor:
        value = loss(**given(rows[: len(names)]))
        return weighted(value) if loss.reduction == "none" else value

    def reference(*rows: Tensor) -> Tensor:
        values = case.reference(loss, given(rows[: len(names)]))
        if loss.reduction == "none":
            return weighted(values)
        counts = int((values != 0).sum()) if getattr(loss, "no_positive", "zero") == "skip" else values.numel()
        total = values.sum() / (counts if loss.reduction == "mean" else 1)
        return total + penalties(loss)

    return rows + own, ours, reference


def learnable(case: Case, **options: Any) -> Loss:
    if "temperature" in case.parameters():
        options["temperature"] = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    return case.make(**options).double()


def penalty(value: Value, learned: list[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """A gradient penalty, Σ_j (1 + j/10) (∂L/∂x_j)², and its gradient."""
    grads = torch.autograd.grad(value(*learned), learned, create_graph=True)
    flat = torch.cat([g.flatten() for g in grads])
    total = (flat.square() * (1 + torch.arange(flat.numel(), dtype=flat.dtype) / 10)).sum()
    return total, torch.autograd.grad(total, learned)


def assert_same_penalty(learned: list[Tensor], ours: Value, reference: Value) -> None:
    (value, grads), (expected, exact) = penalty(ours, learned), penalty(reference, learned)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    for got, wanted in zip(grads, exact, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-8, atol=1e-10)
    assert max(float(g.abs().max()) for g in exact) > 1e-6, "the reference has no second derivative to compare with"


# ---------------------------------------------------------------------------------------- they are the reference's


@pytest.mark.parametrize(
    ("case", "reduction", "normalize"),
    [(c, *how) for c in CASES for how in (("mean", True), ("none", False))]
    + [(c, *how) for c in FIRST for how in (("mean", False), ("sum", True), ("sum", False), ("none", True))],
    ids=str,
)
def test_gradient_penalty(case: Case, reduction: str, normalize: bool) -> None:
    loss = learnable(case, reduction=reduction, normalize=normalize, tile=4)
    assert_same_penalty(*pair(case, loss, case.inputs(seed=1)))


@pytest.mark.parametrize("case", [c for c in CASES if "no_positive" in c.parameters()], ids=str)
def test_gradient_penalty_where_lonely_anchors_count(case: Case) -> None:
    assert_same_penalty(*pair(case, learnable(case, no_positive="zero"), case.inputs(seed=2, n=7)))


@every_case
def test_gradient_penalty_at_a_low_temperature(case: Case) -> None:
    """0.005: the engine subtracts the maximum of each row. Per anchor, since a value may be 0 in float64."""
    loss = case.make(temperature=0.005, reduction="none").double()
    learned, ours, reference = pair(case, loss, case.inputs(seed=3))
    (value, grads), (expected, exact) = penalty(ours, learned), penalty(reference, learned)
    torch.testing.assert_close(value, expected)
    for got, wanted in zip(grads, exact, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-7, atol=1e-7 * float(wanted.abs().max()))


@each_loss
@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
def test_hessian(case: Case, vectorize: bool) -> None:
    loss = case.make(temperature=0.3).double()
    learned, ours, reference = pair(case, loss, case.inputs(seed=4, n=4))
    rows = tuple(learned[: len(case.differentiable(case.inputs()))])
    got, expected = hessian(ours, rows, vectorize=vectorize), hessian(reference, rows)
    for a, b in zip(sum(got, ()), sum(expected, ()), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    assert max(float(b.abs().max()) for b in sum(expected, ())) > 1e-3


@each_loss
def test_maml_step(case: Case) -> None:
    """The gradient of the loss after one inner step of SGD, for the weights before it."""
    torch.manual_seed(0)
    loss = case.make(temperature=0.3).double()
    inputs = case.inputs(seed=5)
    names = case.differentiable(inputs)
    _, ours, reference = pair(case, loss, inputs)

    def outer(value: Value) -> tuple[Tensor, Tensor]:
        weight = torch.eye(D, dtype=torch.float64).add(0.1).requires_grad_()
        rate = torch.tensor(0.05, dtype=torch.float64, requires_grad=True)
        inner = value(*(inputs[k] @ weight for k in names))
        (gradient,) = torch.autograd.grad(inner, weight, create_graph=True)
        adapted = weight - rate * gradient
        return torch.autograd.grad(value(*(inputs[k] @ adapted for k in names)), [weight, rate])

    for got, expected in zip(outer(ours), outer(reference), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("key", ["supcon", "info-nce", "sce"])
def test_third_derivative(key: str) -> None:
    case = next(c for c in FIRST if c.key == key)
    learned, ours, reference = pair(case, case.make(temperature=0.3).double(), case.inputs(seed=6, n=5))

    def third(value: Value) -> Tensor:
        x = learned[0]
        for _ in range(2):
            (x,) = torch.autograd.grad(
                (value(*learned) if x is learned[0] else x.square().sum()), learned[0], create_graph=True
            )
        return torch.autograd.grad(x.square().sum(), learned[0])[0]

    torch.testing.assert_close(third(ours), third(reference), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("queue", [False, True])
def test_parts_of_sce(queue: bool) -> None:
    case = next(c for c in CASES if c.key == "sce" and c.form == ("queue" if queue else "batch"))
    loss = case.make(contrastive_weight=0.4, temperature=0.3, target_temperature=0.1, self_logit="masked").double()
    inputs = case.inputs(seed=7)
    learned, _, reference = pair(case, loss, inputs)

    def ours(online: Tensor) -> Tensor:
        terms = sce_terms(online, inputs["target"], inputs.get("queue"), temperature=0.3, target_temperature=0.1)
        return terms.combine(0.4).mean()

    assert_same_penalty(learned, ours, reference)


@pytest.mark.parametrize(
    "case", [c for c in DENSE if c.key in ("info-nce", "hard-contrastive", "ressl", "sce")], ids=str
)
def test_a_queue_of_another_precision_is_saved_as_it_is(case: Case) -> None:
    """Not as a normalised copy of the user's, which would be held until backward."""
    bank = "queue" if case.key in ("ressl", "sce") else "negatives"
    queue = torch.randn(17, D, generator=torch.Generator().manual_seed(0)).half()
    loss = case.make(temperature=0.3).double()
    inputs = case.inputs(seed=14) | {bank: queue}
    name = case.differentiable(inputs)[0]
    x = inputs[name].requires_grad_()
    exact = inputs | {bank: queue.double()}
    assert_same_penalty([x], lambda x: loss(**inputs), lambda x: case.reference(loss, exact).mean())
    saved: list[Tensor] = []

    def pack(t: Tensor) -> Tensor:
        saved.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss(**inputs)
    assert {t.data_ptr() for t in saved if len(t.shape) and len(t) == len(queue)} == {queue.data_ptr()}


def test_one_tensor_as_query_and_key() -> None:
    """Not normalised, both are the same variable; each counts once."""
    x = torch.randn(5, D, dtype=torch.float64, requires_grad=True)
    case = next(c for c in FIRST if c.key == "info-nce")
    loss = case.make(temperature=1.0, normalize=False)
    assert_same_penalty(
        [x],
        lambda x: loss(x, x.tanh()) + loss(x, x),
        lambda x: sum(case.reference(loss, {"query": x, "key": k}).mean() for k in (x.tanh(), x)),
    )


@each_loss
def test_gradient_with_a_graph_is_the_ordinary_one(case: Case) -> None:
    learned, ours, _ = pair(case, learnable(case), case.inputs(seed=8))
    ordinary = torch.autograd.grad(ours(*learned), learned)
    for got, expected in zip(torch.autograd.grad(ours(*learned), learned, create_graph=True), ordinary, strict=True):
        torch.testing.assert_close(got, expected)


@each_loss
def test_autocast_does_not_reach_inside(case: Case) -> None:
    inputs = {k: v.float() if v.is_floating_point() else v for k, v in case.inputs(seed=8).items()}
    learned, ours, _ = pair(case, case.make(), inputs)
    plain = torch.autograd.grad(ours(*learned), learned[0], create_graph=True)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = torch.autograd.grad(ours(*learned), learned[0], create_graph=True)[0]
    torch.testing.assert_close(inside, plain, rtol=0, atol=0)


def test_unit_rows_and_masked_sums_are_differentiable_twice() -> None:
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(unit, [x])
    mask = torch.rand(4, 5) < 0.5
    assert torch.autograd.gradgradcheck(lambda x: masked_sum(mask, x).square(), [x])


@pytest.mark.parametrize("case", [c for c in FIRST if c.make().normalize], ids=str)
def test_a_zero_row_stays_finite(case: Case) -> None:
    inputs = case.inputs(seed=9)
    name = case.differentiable(inputs)[0]
    inputs[name][2] = 0.0
    learned, ours, _ = pair(case, learnable(case), inputs)
    _, grads = penalty(ours, learned)
    assert all(g.isfinite().all() for g in grads)
    assert (grads[0][2] == 0).all()


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("case", DENSE, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_beyond_the_budget(case: Case, reduction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loss = case.make(reduction=reduction).double()
    learned, ours, _ = pair(case, loss, case.inputs(seed=10))
    monkeypatch.setattr(autograd, "MAX_PAIRS", 40)
    torch.autograd.grad(ours(*learned), learned)  # the first derivative has no limit
    with pytest.raises(RuntimeError, match=r"compares \d+ pairs .* is computed for up to 40, .*Use fewer rows, or"):
        torch.autograd.grad(ours(*learned), learned, create_graph=True)
    with pytest.raises(RuntimeError, match="up to 40"):
        hessian(ours, tuple(learned))


def test_the_budget_is_4096_rows_against_each_other() -> None:
    x = torch.randn(4097, 2, requires_grad=True)
    value = SupConLoss()(x, torch.arange(4097) % 10)
    with pytest.raises(RuntimeError, match=r"compares 16,785,409 pairs .* up to 16,777,216"):
        torch.autograd.grad(value, x, create_graph=True)


def test_without_hard_negatives_the_simple_loss_has_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autograd, "MAX_PAIRS", 1)
    case = next(c for c in FIRST if c.key == "simple-contrastive")
    assert_same_penalty(*pair(case, case.make().double(), case.inputs(seed=11)))


@pytest.mark.usefixtures("group_of_one")
@pytest.mark.parametrize("case", DENSE, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_group_of_one_process_is_one_process(case: Case, reduction: str) -> None:
    """Several are in tests/test_distributed.py: they raise."""
    assert_same_penalty(*pair(case, learnable(case, reduction=reduction), case.inputs(seed=12)))


def test_changing_an_input_is_noticed_by_a_second_derivative_alone() -> None:
    """A queue that is not normalised may be written to before an ordinary backward, as the engine is done with it."""
    query, queue = (torch.randn(6, D, dtype=torch.float64) for _ in range(2))
    for create_graph in (False, True):
        x, bank = query.clone().requires_grad_(), queue.clone()
        value = FAMILY["info-nce"](normalize=False)(x, x, negatives=bank)
        bank.roll(1, 0)
        bank.add_(1.0)
        if create_graph:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                torch.autograd.grad(value, x, create_graph=True)
        else:
            torch.autograd.grad(value, x)


def test_a_value_may_be_changed_in_place() -> None:
    x = torch.randn(6, D, requires_grad=True)
    value = SupConLoss()(x, torch.arange(6) % 2)
    (expected,) = torch.autograd.grad(value / 4, x, retain_graph=True)
    value /= 4
    torch.testing.assert_close(torch.autograd.grad(value, x)[0], expected)


@each_loss
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
def test_transforms_of_torch_func_are_refused(case: Case) -> None:
    loss = case.make().double()
    inputs = case.inputs()
    name = case.differentiable(inputs)[0]

    def value(x: Tensor) -> Tensor:
        return loss(**inputs | {name: x})

    several = inputs[name].expand(2, *inputs[name].shape)
    for function in (torch.func.grad, torch.func.hessian, torch.func.jacfwd, torch.vmap):
        with pytest.raises(RuntimeError, match=r"inside a transform of torch\.func .*Use torch\.autograd\.grad"):
            function(value)(several if function is torch.vmap else inputs[name])


@each_loss
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:FutureWarning")
def test_forward_mode_is_refused(case: Case) -> None:
    loss = case.make(normalize=True).double()
    inputs = case.inputs()
    name = case.differentiable(inputs)[0]
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match=r"losses have no forward mode .* Use reverse mode"):
        loss(**inputs | {name: forward_ad.make_dual(inputs[name], torch.ones_like(inputs[name]))})


def test_batched_gradients_of_values_per_anchor_are_refused() -> None:
    x, labels = torch.randn(6, D, dtype=torch.float64), torch.arange(6) % 2
    with pytest.raises(RuntimeError, match=r'reduction="none" cannot be .* one after another \(vectorize=False\)'):
        jacobian(lambda z: SupConLoss(reduction="none")(z, labels), x, vectorize=True)
    one_by_one = jacobian(lambda z: SupConLoss(reduction="none")(z, labels), x)
    torch.testing.assert_close(one_by_one.mean(0), jacobian(lambda z: SupConLoss()(z, labels), x, vectorize=True))


def test_compat_is_right_or_refuses() -> None:
    """Its own formulas have no dense form: an error, also where the incoming gradient depends on something learned."""
    x = torch.randn(6, D, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    tau = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    for value in (
        supcontrast.SupConLoss()(x.view(3, 2, D)),
        supcontrast.SupConLoss(tau)(x.view(3, 2, D)),
        pytorch_metric_learning.SupConLoss()(x, labels),
        pytorch_metric_learning.NTXentLoss(tau)(x, labels) * tau,
    ):
        with pytest.raises(RuntimeError, match="this loss has no second derivative"):
            torch.autograd.grad(value, x, create_graph=True)
    case = next(c for c in FIRST if c.key == "nt-xent")
    loss = lightly.NTXentLoss(temperature=0.5)
    assert_same_penalty(
        [x],
        lambda x: loss(x[:3], x[3:]),
        lambda x: case.reference(case.make(temperature=0.5), {"view1": x[:3], "view2": x[3:]}).mean(),
    )


# ------------------------------------------------------------------------------- an ordinary step makes no N×M


class Largest(TorchDispatchMode):
    """The bytes of the largest floating-point storage that any operation returns, also in backward."""

    bytes = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        for t in out if isinstance(out, tuple | list) else (out,):
            if isinstance(t, Tensor) and t.is_floating_point():
                self.bytes = max(self.bytes, t.untyped_storage().nbytes())
        return out


@pytest.mark.parametrize("case", DENSE, ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("temperature", [0.1, 0.001])
def test_a_first_order_step_allocates_no_matrix_of_pairs(case: Case, reduction: str, temperature: float) -> None:
    """In blocks of 16 rows; the blocks a square keeps are its upper half. With a graph the same call allocates it.

    The energy of the weights, which is over pairs of classes, has a test of its own (test_energy)."""
    n = 32 if case.key == "nt-xent" else 64  # 64 anchors
    m = D + 1 if case.key == "simplex-cross-entropy" else 64  # a simplex has one vertex more than dimensions
    options = {"reduction": reduction, "tile": 16, "temperature": temperature, "energy_penalty": 0.0}
    inputs = case.inputs(seed=13, n=n)
    if "num_classes" in case.parameters():
        options |= {"num_classes": m, "dim": D}
    loss = case.cls(**{k: v for k, v in {**case.options, **options}.items() if k in case.parameters()}).double()
    learned, ours, _ = pair(case, loss, inputs)
    matrix = 8 * 64 * m
    with Largest() as ordinary:
        torch.autograd.grad(ours(*learned), learned)
    with Largest() as twice:
        torch.autograd.grad(ours(*learned), learned, create_graph=True)
    assert ordinary.bytes < matrix <= twice.bytes
