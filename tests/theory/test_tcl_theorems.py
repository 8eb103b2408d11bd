"""TCL's theorems: every check holds, every check can fail, and the formulas by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.losses import SupConLoss, TCLLoss
from kontrast.theory import tcl
from kontrast.theory import tcl_theorems as module
from kontrast.theory._check import REGISTRY
from kontrast.theory._similarities import group_slopes
from tests.theory.breaking import Breaks


def supcon_probability_over_negatives(similarities: Tensor, others: Tensor, *, temperature: float) -> Tensor:
    return (similarities / temperature).exp() / (others / temperature).exp().sum(-1, keepdim=True)


def pull_with_temperature_inside(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return tcl.tuned_pull(positives, negatives, **tuning) * (positives - positives / tuning["temperature"]).exp()


def response_with_supcon_probability(positives: Tensor, negatives: Tensor, *, temperature: float, **k: float) -> Tensor:
    p = tcl.supcon_probability(positives, negatives, temperature=temperature)
    y = tcl.tuned_pull(positives, negatives, temperature=temperature, **k)
    return (tcl.mean_weight(positives) - p + y).abs()


def margin_of_the_paper(positives: Tensor, negatives: Tensor, *, temperature: float, **k: float) -> Tensor:
    """P^s < X: enough for (15), but (15) also holds elsewhere."""
    return 2 * (tcl.mean_weight(positives) - tcl.supcon_probability(positives, negatives, temperature=temperature))


def negative_response_of_untuned(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return tcl.negative_probability(positives, negatives, **{**tuning, "k2": 1.0})


def negative_probability_without_k2(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return tcl.negative_probability(positives, negatives, **tuning) / max(tuning["k2"], 1.0)


def positive_probability_times_k2(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return tcl.positive_probability(positives, negatives, **tuning) * tuning["k2"]


def change_of_the_paper(positives: Tensor, negatives: Tensor, growth: Tensor, **tuning: Any) -> Tensor:
    """Section 3's reason, which leaves Y where it is."""
    return tcl.positive_probability(positives, negatives, **tuning) * (1 - 1 / growth)


BREAKS: Breaks = {
    "tuning-lowers-positive-probability": ("supcon_probability", supcon_probability_over_negatives),
    "tuned-pull-is-positive": ("tuned_pull", pull_with_temperature_inside),
    "tuning-raises-hardest-positive": ("tcl_response", response_with_supcon_probability),
    "tuning-can-lower-easy-positives": ("margin", margin_of_the_paper),
    "negatives-rise-with-k2": ("negative_response", negative_response_of_untuned),
    "probabilities-fall-with-k1": ("negative_probability", negative_probability_without_k2),
    "positive-probability-falls-with-k2": ("positive_probability", positive_probability_times_k2),
    "positives-rise-with-k2-where-unsaturated": ("response_change", change_of_the_paper),
}


@pytest.mark.parametrize("name", ["tuning-lowers-positive-probability", "tuning-raises-hardest-positive"])
def test_the_conditions_are_needed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With k2 below 1 the denominator can be smaller than SupCon's, and neither (16) nor (15) holds."""
    monkeypatch.setattr(module, "TUNINGS", ((0.001, 0.1),))
    assert math.isinf(REGISTRY[name].run(0).error)


def test_an_easy_positive_where_theorem_1_fails() -> None:
    """s = 1 among positives at 0: P^s is nearly 1, X = ¼, and TCL's response is the smaller one."""
    s = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).double(), torch.tensor([[0.0]]).double()
    supcon, _ = group_slopes(SupConLoss(0.1, normalize=False, reduction="none"), *s)
    tuned, _ = group_slopes(TCLLoss(0.1, 1.0, 1.5, normalize=False, reduction="none"), *s)
    assert float(tuned[0, 0].abs()) < float(supcon[0, 0].abs())
    assert bool((tuned[0, 1:].abs() > supcon[0, 1:].abs()).all())
    assert (module.margin(*s, temperature=0.1, k1=1.0, k2=1.5) > 0).tolist() == [[False, True, True, True]]


def test_formulas_by_hand() -> None:
    """Positives at 0 and log 2, negatives at log 3, τ = 1, k1 = 4, k2 = 5: D = 24, SupCon's is 6."""
    s = (torch.tensor([0.0, math.log(2)], dtype=torch.float64), torch.tensor([math.log(3)], dtype=torch.float64))
    tuning = {"temperature": 1.0, "k1": 4.0, "k2": 5.0}
    assert module.supcon_response(*s, temperature=1.0).tolist() == pytest.approx([1 / 2 - 1 / 6, 1 / 2 - 2 / 6])
    assert module.tcl_response(*s, **tuning).tolist() == pytest.approx([1 / 2 + 3 / 24, 1 / 2])
    assert module.margin(*s, **tuning).tolist() == pytest.approx([1 + 4 / 24 - 1 / 6 - 1 / 24, 1 - 2 / 6])
    assert module.negative_response(*s, **tuning).tolist() == pytest.approx([15 / 24])
    growth = torch.tensor([1.5]).double()
    assert module.response_change(*s, growth, **tuning).tolist() == pytest.approx([-3 / 24 / 3, 0])


@pytest.mark.parametrize(("k1", "turn"), [(1.0, -0.2093), (5000.0, 0.5650)])
def test_where_a_raised_k2_raises_positives(k1: float, turn: float) -> None:
    """At τ = 0.1: P > Y from s = log(τ k1)/(1 + 1/τ) on."""
    s = torch.tensor([turn - 1e-3, turn + 1e-3]).double(), torch.tensor([0.5]).double()
    change = module.response_change(*s, torch.tensor([2.0]).double(), temperature=0.1, k1=k1, k2=1.0)
    assert (change > 0).tolist() == [False, True]
