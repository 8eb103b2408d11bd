"""TCL's lemmas and theorems: every check holds, every check can fail, and the formulas by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast.losses import SupConLoss, TCLLoss
from kontrast.theory import tcl as module
from kontrast.theory._inputs import group_slopes
from kontrast.theory.check import REGISTRY
from tests.theory.breaking import Breaks

# The right formulas, for the wrong versions below: by then those of the module are replaced.
right_mean_weight = module.mean_weight
right_positive_probability = module.positive_probability
right_negative_probability = module.negative_probability
right_tuned_pull = module.tuned_pull
right_supcon_probability = module.supcon_probability


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


def supcon_probability_over_negatives(similarities: Tensor, others: Tensor, *, temperature: float) -> Tensor:
    return (similarities / temperature).exp() / (others / temperature).exp().sum(-1, keepdim=True)


def pull_with_temperature_inside(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return right_tuned_pull(positives, negatives, **tuning) * (positives - positives / tuning["temperature"]).exp()


def response_with_supcon_probability(positives: Tensor, negatives: Tensor, *, temperature: float, **k: float) -> Tensor:
    p = right_supcon_probability(positives, negatives, temperature=temperature)
    y = right_tuned_pull(positives, negatives, temperature=temperature, **k)
    return (right_mean_weight(positives) - p + y).abs()


def margin_of_the_paper(positives: Tensor, negatives: Tensor, *, temperature: float, **k: float) -> Tensor:
    """P^s < X: enough for (15), but (15) also holds elsewhere."""
    return 2 * (right_mean_weight(positives) - right_supcon_probability(positives, negatives, temperature=temperature))


def negative_response_of_untuned(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return right_negative_probability(positives, negatives, **{**tuning, "k2": 1.0})


def negative_probability_without_k2(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return right_negative_probability(positives, negatives, **tuning) / max(tuning["k2"], 1.0)


def positive_probability_times_k2(positives: Tensor, negatives: Tensor, **tuning: Any) -> Tensor:
    return right_positive_probability(positives, negatives, **tuning) * tuning["k2"]


def change_of_the_paper(positives: Tensor, negatives: Tensor, growth: Tensor, **tuning: Any) -> Tensor:
    """Section 3's reason, which leaves Y where it is."""
    return right_positive_probability(positives, negatives, **tuning) * (1 - 1 / growth)


BREAKS: Breaks = {
    "supcon-gradient-is-lemma-1": ("supcon_probability", softmax_over_these_alone),
    "tcl-gradient-is-lemma-2": ("tuned_pull", pull_without_temperature),
    "untuned-tcl-is-supcon": ("tcl_loss", loss_not_averaged),
    "normalisation-scales-positives": ("normalised_pull", pull_without_norm),
    "easy-positives-vanish": ("normalised_pull", pull_without_root),
    "tuning-lowers-positive-probability": ("supcon_probability", supcon_probability_over_negatives),
    "tuned-pull-is-positive": ("tuned_pull", pull_with_temperature_inside),
    "tuning-raises-hardest-positive": ("tcl_response", response_with_supcon_probability),
    "tuning-can-lower-easy-positives": ("margin", margin_of_the_paper),
    "negatives-rise-with-k2": ("negative_response", negative_response_of_untuned),
    "probabilities-fall-with-k1": ("negative_probability", negative_probability_without_k2),
    "positive-probability-falls-with-k2": ("positive_probability", positive_probability_times_k2),
    "positives-rise-with-k2-where-unsaturated": ("response_change", change_of_the_paper),
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


@pytest.mark.parametrize("name", ["tuning-lowers-positive-probability", "tuning-raises-hardest-positive"])
def test_the_conditions_are_needed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """With k2 below 1 the denominator can be smaller than SupCon's, and neither (16) nor (15) holds."""
    monkeypatch.setattr(module, "THEOREM_1_TUNINGS", ((0.001, 0.1),))
    assert math.isinf(REGISTRY[name].run(0).error)


def test_an_easy_positive_where_theorem_1_fails() -> None:
    """s = 1 among positives at 0: P^s is nearly 1, X = ¼, and TCL's response is the smaller one."""
    s = torch.tensor([[1.0, 0.0, 0.0, 0.0]]).double(), torch.tensor([[0.0]]).double()
    supcon, _ = group_slopes(SupConLoss(0.1, normalize=False, reduction="none"), *s)
    tuned, _ = group_slopes(TCLLoss(0.1, 1.0, 1.5, normalize=False, reduction="none"), *s)
    assert float(tuned[0, 0].abs()) < float(supcon[0, 0].abs())
    assert bool((tuned[0, 1:].abs() > supcon[0, 1:].abs()).all())
    assert (module.margin(*s, temperature=0.1, k1=1.0, k2=1.5) > 0).tolist() == [[False, True, True, True]]


def test_formulas_of_the_theorems_by_hand() -> None:
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
