"""Argument checks: what passes, in which type, and what an error says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kontrast import checks


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2), Fraction(2)])
def test_any_kind_of_real_number_becomes_a_float(value: Any) -> None:
    result = checks.number("x", value, above=1, most=2)
    assert type(result) is float
    assert result == 2.0


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("inf"), 10**400, 1j, torch.tensor(1.0)])
def test_what_is_no_finite_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^x=.*: must be a finite number$"):
        checks.number("x", value)


@pytest.mark.parametrize(
    ("value", "limits", "text"),
    [
        (0, {"above": 0}, "x=0: must be a finite number above 0"),
        (-0.5, {"least": 0}, "x=-0.5: must be a finite number of at least 0"),
        (1, {"least": 0, "below": 1}, "x=1: must be a finite number of at least 0 and below 1"),
        (2.5, {"above": 0, "most": 2}, "x=2.5: must be a finite number above 0 and of at most 2"),
    ],
)
def test_limits_of_a_number(value: float, limits: dict[str, float], text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        checks.number("x", value, **limits)


def test_limits_that_are_included() -> None:
    assert checks.number("x", 0, least=0) == 0
    assert checks.number("x", 1, most=1) == 1


@pytest.mark.parametrize("value", [3, np.int16(3)])
def test_any_kind_of_integer_becomes_an_int(value: Any) -> None:
    result = checks.whole_number("x", value, least=3, most=3)
    assert type(result) is int
    assert result == 3


@pytest.mark.parametrize("value", [2, 4.0, True, "3", None, 10**30])
def test_limits_of_a_whole_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^x=.*: must be a whole number of at least 3 and at most 2,000$"):
        checks.whole_number("x", value, least=3, most=2000)


def test_names() -> None:
    assert checks.one_of("kind", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match=r"^kind='c': must be one of 'a', 'b'$"):
        checks.one_of("kind", "c", ("a", "b"))
    assert checks.true_or_false("flag", False) is False
    for value in ("no", 1, None, np.True_):
        with pytest.raises(ValueError, match=r"^flag=.*: must be True or False$"):
            checks.true_or_false("flag", value)


@pytest.mark.parametrize("value", [0.1, torch.tensor(0.1), torch.tensor([0.1], requires_grad=True)])
def test_a_temperature_is_a_number_or_a_scalar_tensor(value: float | Tensor) -> None:
    assert checks.temperature_now(value) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (torch.ones(2), r"temperature has shape \[2\]: must be a number or a scalar tensor"),
        (torch.tensor(0.0), "temperature=0.0: must be a finite number above 0"),
        (1e-7, "temperature=1e-07: must lie between 1e-06 and 1e"),
        (1e16, "temperature=1e.16: must lie between 1e-06 and 1e"),
    ],
)
def test_a_temperature_has_limits(value: float | Tensor, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        checks.temperature_now(value)
    assert checks.temperature_now(torch.tensor(1e-6)) > 0, "the limit itself, as float32 rounds it"


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_rows_come_in_the_precision_they_are_computed_in(dtype: torch.dtype, computed: torch.dtype) -> None:
    assert checks.rows("x", torch.ones(2, 3, dtype=dtype)).dtype == computed


@pytest.mark.parametrize(
    ("x", "text"),
    [
        ([[1.0]], r"x must be a tensor of shape \[N, D\], got list"),
        (torch.ones(2), r"x has shape \[2\]; accepted: \[N, D\]"),
        (torch.ones(2, 3).long(), "x must hold floating point numbers, got torch.int64"),
        (torch.ones(2, 0), "no views or no dimensions to compare"),
        (torch.ones(2, 3).to_sparse(), "x is a tensor of torch.sparse_coo; expected an ordinary dense one"),
        (torch.ones(2, 3, device="meta"), "x is a tensor on the meta device"),
        (torch.ones(2, 4), r"x has shape \[2, 4\], which does not fit \[5, 3\]: the last sizes must agree"),
    ],
)
def test_rows_that_are_refused(x: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        checks.rows("x", x, like=torch.ones(5, 3))


def test_views_where_they_are_accepted() -> None:
    assert checks.rows("x", torch.ones(2, 3, 4), ndim=(2, 3)).shape == (2, 3, 4)
    with pytest.raises(ValueError, match=r"accepted: \[N, D\] or \[N, V, D\]"):
        checks.rows("x", torch.ones(2), ndim=(2, 3))


def test_tensors_that_go_together() -> None:
    single, double = checks.same_dtype(torch.ones(1), torch.ones(1, dtype=torch.float64))
    assert single.dtype == double.dtype == torch.float64
    checks.same_shape("x", torch.ones(2, 3), "y", torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"x has shape \[2\] and y \[3\]"):
        checks.same_shape("x", torch.ones(2), "y", torch.ones(3))
    checks.not_empty("x", 1)
    with pytest.raises(ValueError, match="x is empty: a loss needs at least one row"):
        checks.not_empty("x", 0)


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 2],
        (1, 0, 2),
        np.array([1, 0, 2], dtype=np.uint8),
        np.array([1, 0, 2], dtype=">i4"),
        np.array([2, 0, 1])[::-1],
        torch.tensor([1, 0, 2], dtype=torch.int16),
    ],
)
def test_labels_become_int64(labels: Any) -> None:
    result = checks.integer_labels("labels", labels, 3, torch.device("cpu"))
    assert result.dtype == torch.int64
    assert result.tolist() == [1, 0, 2]


def test_labels_are_a_copy() -> None:
    labels = torch.tensor([1, 0])
    result = checks.integer_labels("labels", labels, 2, torch.device("cpu"))
    labels.fill_(7)
    assert result.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (None, "labels must be integers, one a row, got none"),
        ([[1], [1, 2]], r"labels is a nest of lists of several lengths; expected integers \[2\]"),
        ([0.5, 1.0], "labels must be integers, one a row, got list of float64"),
        (torch.tensor([0.5, 1.0]), r"labels must be integers, got torch.float32: convert with labels.long\(\)"),
        ([1, 2, 3], r"labels has shape \[3\]; expected \[2\]"),
        (np.ma.masked_equal([1, -1], -1), "labels has 1 masked entries"),
    ],
)
def test_labels_that_are_refused(labels: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        checks.integer_labels("labels", labels, 2, torch.device("cpu"))


def test_a_masked_array_that_hides_nothing_is_an_array() -> None:
    checks.unmasked("x", np.ma.masked_equal([1, 2], -1))
    checks.unmasked("x", [1, 2])
