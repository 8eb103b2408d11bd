"""The grid in its short form, that it can fail, and that the page is written from the record."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

import grid
import numerics
from kontrast.losses import FAMILY, InfoNCELoss
from tests.losses.cases import CASES, PLAIN, Case

SHORT = [next(case for case in PLAIN if case.key == key) for key in FAMILY]


@pytest.mark.parametrize("case", SHORT, ids=str)
def test_errors_are_those_of_rounding(case: Case) -> None:
    """Half of the dtypes and temperatures; tiles of 4 cut the 11 anchors unevenly."""
    dtypes = (torch.float16, torch.float32)
    errors = list(grid.grid([case], dtypes=dtypes, temperatures=(1e-3, 0.1, 100.0), tiles=(4,)))
    assert {e.kind for e in errors} >= set(grid.ROWS)
    assert not [e for e in errors if e.beyond()]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_errors_are_those_of_rounding_everywhere(case: Case) -> None:
    assert not [e for e in grid.grid([case]) if e.beyond()]


@pytest.mark.parametrize("factor", [1 + 1e-5, 1 - 1e-5])
def test_a_loss_that_is_slightly_off_is_seen(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """Eighty units of float32's spacing; the value and the gradient are both off."""
    plain = InfoNCELoss.forward

    @functools.wraps(plain)  # the cases are found from its signature
    def off(self: InfoNCELoss, *args: Any, **kwargs: Any) -> torch.Tensor:
        return plain(self, *args, **kwargs) * factor

    monkeypatch.setattr(InfoNCELoss, "forward", off)
    (case,) = (case for case in SHORT if case.key == "info-nce")
    errors = list(grid.grid([case], dtypes=(torch.float32,), temperatures=(1.0,), kinds=("ordinary",), tiles=(4,)))
    assert all(e.beyond() for e in errors)
    assert all(e.gradient > 0.1 * abs(factor - 1) / 11 for e in errors)  # of one anchor of 11, next to its bound


def test_what_is_not_finite_is_beyond() -> None:
    one = grid.Error("here", "zero", torch.float32, 0.1, True, 0.0, 0.0, 0.0, 0.0)
    assert not one.beyond()
    assert replace(one, finite=False).beyond()
    assert replace(one, value_units=float("nan")).beyond()
    assert replace(one, gradient_units=grid.LIMIT + 0.1).beyond()


def test_a_gradient_where_none_may_be_is_beyond() -> None:
    """Of a zero row, of any size; and rows whose squares overflow have a bound too."""
    case = next(case for case in SHORT if case.key == "info-nce")
    subject = grid.Subject.of(case)
    inputs = case.inputs() | {"query": torch.zeros(11, 6, dtype=torch.float64), "key": case.inputs()["key"] * 1e200}
    scales = grid.Scales.of(subject, inputs, 0.1)
    exact = grid.twin(subject, inputs, 0.1, 11, torch.float64)
    assert not grid.compare(exact, exact, scales, 11, exact.gradients)["gradient"]
    for name, size in (("query", 1e-30), ("key", 1e-205)):
        off = exact.gradients | {name: exact.gradients[name] + size}
        units = grid.compare(grid.Outcome(exact.values, off), exact, scales, 11, off)["gradient_units"]
        assert units == math.inf if name == "query" else 1e9 < units < 1e11  # 1e-205 of 1e-199, in units of 2e-15
    nothing = exact.gradients | {"key": exact.gradients["key"] * math.nan}
    assert grid.compare(grid.Outcome(exact.values, nothing), exact, scales, 11, nothing)["gradient"] == math.inf


def test_the_twin_leaves_zero_rows_alone_and_knows_every_other_length() -> None:
    x = torch.tensor([[3e200, 4e200], [3e-18, 4e-18], [0.0, 0.0], [3e-30, 4e-30]], dtype=torch.float64)
    z = grid.on_sphere(x.requires_grad_(), vanishing=1e-19)
    torch.testing.assert_close(z.detach(), torch.tensor([[0.6, 0.8]] * 2 + [[0.0, 0.0]] * 2, dtype=torch.float64))
    z[:, 0].sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert (x.grad[2:] == 0).all()
    torch.testing.assert_close(x.grad[1], torch.tensor([0.64, -0.48], dtype=torch.float64) / 5e-18)


def test_the_page_is_written_from_the_record() -> None:
    record = json.loads(numerics.PAGE.with_suffix(".json").read_text(encoding="utf-8"))
    assert record["grid"].keys() == set(FAMILY)
    assert not any(found["not finite"] for found in record["grid"].values())
    assert numerics.PAGE.read_text(encoding="utf-8") == numerics.page(record), "run python torture/numerics.py --print"
