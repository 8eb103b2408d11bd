"""TCL's lemmas: every check holds, every check can fail, and the formulas by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.theory import tcl as module
from kontrast.theory._check import REGISTRY
from tests.theory.breaking import Breaks


def softmax_over_these_alone(similarities: Tensor, others: Tensor, *, temperature: float) -> Tensor:
    return (similarities / temperature).softmax(-1)


def pull_without_temperature(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    d = module.denominator(positives, negatives, **tuning)
    return tuning["k1"] * (-positives).exp() / d


def loss_not_averaged(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return -module.positive_probability(positives, negatives, **tuning).log().sum(-1)


def pull_without_norm(pull: Tensor, similarity: Tensor, *, temperature: float, norm: Tensor) -> Tensor:
    return pull.abs() * (1 - similarity**2).sqrt() / temperature


def pull_without_root(pull: Tensor, similarity: Tensor, *, temperature: float, norm: Tensor) -> Tensor:
    return pull.abs() * (1 - similarity**2) / (temperature * norm)


BREAKS: Breaks = {
    "supcon-gradient-is-lemma-1": ("supcon_probability", softmax_over_these_alone),
    "tcl-gradient-is-lemma-2": ("tuned_pull", pull_without_temperature),
    "untuned-tcl-is-supcon": ("tcl_loss", loss_not_averaged),
    "normalisation-scales-positives": ("normalised_pull", pull_without_norm),
    "easy-positives-vanish": ("normalised_pull", pull_without_root),
}


def k1_with_temperature(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    pulled, pushed = ((s / temperature).exp().sum(-1, keepdim=True) for s in (positives, negatives))
    return pulled + k1 * (-positives / temperature).exp().sum(-1, keepdim=True) + k2 * pushed


def k2_everywhere(positives: Tensor, negatives: Tensor, *, temperature: float, k1: float, k2: float) -> Tensor:
    pulled, pushed = ((s / temperature).exp().sum(-1, keepdim=True) for s in (positives, negatives))
    return k2 * (pulled + pushed) + k1 * (-positives).exp().sum(-1, keepdim=True)


@pytest.mark.parametrize(
    ("formula", "wrong"),
    [
        ("denominator", k1_with_temperature),
        ("denominator", k2_everywhere),
        ("mean_weight", lambda positives: 1 / (1 + positives.shape[-1])),
        ("negative_probability", lambda p, n, **tuning: module.denominator(p, n, **tuning) ** -1 * n.exp()),
        ("positive_probability", lambda p, n, **tuning: p.exp() / module.denominator(p, n, **tuning)),
    ],
)
def test_lemma_2_notices_every_part(monkeypatch: pytest.MonkeyPatch, formula: str, wrong: Any) -> None:
    monkeypatch.setattr(module, formula, wrong)
    assert not REGISTRY["tcl-gradient-is-lemma-2"].run(0).holds


def test_formulas_by_hand() -> None:
    """Positives at 0 and log 2, negatives at log 3, τ = 1, k1 = 4, k2 = 5: D = (1 + 2) + 4(1 + ½) + 5·3 = 24."""
    s = (torch.tensor([0.0, math.log(2)], dtype=torch.float64), torch.tensor([math.log(3)], dtype=torch.float64))
    tuning = {"temperature": 1.0, "k1": 4.0, "k2": 5.0}
    assert float(module.denominator(*s, **tuning)) == pytest.approx(24)
    assert module.positive_probability(*s, **tuning).tolist() == pytest.approx([1 / 24, 2 / 24])
    assert module.tuned_pull(*s, **tuning).tolist() == pytest.approx([4 / 24, 2 / 24])
    assert module.negative_probability(*s, **tuning).tolist() == pytest.approx([15 / 24])
    assert float(module.tcl_loss(*s, **tuning)) == pytest.approx(math.log(24) - math.log(2) / 2)
    assert module.supcon_probability(*s, temperature=1.0).tolist() == pytest.approx([1 / 6, 2 / 6])
    assert module.supcon_probability(*s[::-1], temperature=1.0).tolist() == pytest.approx([3 / 6])


def test_shares_of_a_denominator() -> None:
    """Σ_p P_ip + Σ_p Y_ip/τ + Σ_n P_in = 1: the three parts of D, over D."""
    generator = torch.Generator().manual_seed(0)
    s = torch.rand(5, 3, generator=generator).double(), torch.rand(5, 4, generator=generator).double()
    tuning = {"temperature": 0.2, "k1": 30.0, "k2": 1.5}
    p, y, n = (f(*s, **tuning) for f in (module.positive_probability, module.tuned_pull, module.negative_probability))
    torch.testing.assert_close(p.sum(1) + y.sum(1) / 0.2 + n.sum(1), torch.ones(5).double())
