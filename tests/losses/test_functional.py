"""The functions and the classes are the same losses, with the same defaults."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest
import torch

from kontrast import losses
from kontrast.losses import FAMILY, functional
from tests.losses.cases import PLAIN, Case

every_loss = pytest.mark.parametrize("case", [next(c for c in PLAIN if c.key == key) for key in FAMILY], ids=str)
MODULE_ONLY = {"num_classes", "dim", "radius", "seed"}  # what makes the weights of a classifier


def test_every_loss_is_a_function() -> None:
    names = {name.replace("-", "_") for name in FAMILY}
    assert set(functional.__all__) == names, (
        "each loss's function must be imported, and listed, in losses/functional.py"
    )


@every_loss
def test_the_function_has_the_name_of_the_file(case: Case) -> None:
    name, module = case.key.replace("-", "_"), sys.modules[case.cls.__module__]
    assert callable(getattr(module, name, None)), (
        f"{module.__file__}: the loss's function must be called {name}, as its file"
    )


@every_loss
def test_the_function_is_the_module(case: Case) -> None:
    loss = case.make(reduction="none").double()
    inputs = case.inputs()
    function = getattr(functional, case.key.replace("-", "_"))
    names = inspect.signature(function).parameters
    options = {name: getattr(loss, name) for name in names if name not in inputs and hasattr(loss, name)}
    rtol = 1e-6 if case.key == "simplex-cross-entropy" else 0  # the module's fixed weights were made in float32
    torch.testing.assert_close(function(**inputs, **options), loss(**inputs), rtol=rtol, atol=0)


@every_loss
def test_defaults_are_the_same(case: Case) -> None:
    of_class = inspect.signature(case.cls).parameters
    of_function = inspect.signature(getattr(functional, case.key.replace("-", "_"))).parameters
    shared = of_class.keys() & of_function.keys()
    assert of_class.keys() - shared <= MODULE_ONLY
    assert {n: of_class[n].default for n in shared} == {n: of_function[n].default for n in shared}


@every_loss
def test_every_option_is_described(case: Case) -> None:
    for part in (case.cls, getattr(functional, case.key.replace("-", "_"))):
        doc = inspect.getdoc(part) or ""
        missing = [n for n in inspect.signature(part).parameters if f"\n    {n}:" not in doc]
        assert not missing, f"the docstring of {part.__name__} must describe {missing} under Args:"
        result = "Call the module with" if inspect.isclass(part) else "Returns:"
        lacking = [text for text in ("Args:", result, "Raises:", ">>>") if text not in doc]
        assert not lacking, f"the docstring of {part.__name__} must have {lacking}; see InfoNCELoss and info_nce"


def test_options_are_checked_in_both() -> None:
    x, labels = torch.randn(4, 3), torch.tensor([0, 0, 1, 1])
    cases: list[tuple[dict[str, Any], str]] = [
        ({"form": "both"}, "form='both'"),
        ({"no_positive": "no"}, "no_positive='no'"),
    ]
    for options, text in cases:
        with pytest.raises(ValueError, match=text):
            losses.SupConLoss(**options)
        with pytest.raises(ValueError, match=text):
            functional.supcon(x, labels, **options)
