"""CE is the cross-entropy of a linear classifier without bias."""

from __future__ import annotations

import json

import pytest
import torch
import torch.nn.functional as F

from kontrast import recipes
from kontrast.train.resolving import resolve
from tests.methods.samples import batch, made


def test_loss_is_torchs_cross_entropy() -> None:
    method, seen = made("ce").eval(), batch("ce")
    logits = method.embed(seen.views).flatten(0, 1) @ method.loss.weight.T
    torch.testing.assert_close(method.step(seen)["loss"], F.cross_entropy(logits, seen.labels.repeat_interleave(3)))


def test_accuracy_of_the_batch_is_reported() -> None:
    method, seen = made("ce").eval(), batch("ce")
    method.step(seen)
    guess = (method.embed(seen.views) @ method.loss.weight.T).argmax(2)
    expected = float((guess == seen.labels[:, None]).float().mean())
    assert abs(method.report()["batch_accuracy"] - expected) < 1e-6


def test_first_weights_are_the_seeds() -> None:
    torch.manual_seed(1)
    one = made("ce").loss.weight
    torch.manual_seed(2)
    assert torch.equal(made("ce").loss.weight, one)


@pytest.mark.parametrize(("options", "power"), [({}, 2.0), ({"energy_power": 0.0}, 0.0), ({"energy_power": 1.0}, 1.0)])
def test_the_energy_penalty_is_added_once(options: dict[str, float], power: float) -> None:
    plain, penal, seen = made("ce").eval(), made("ce", energy_penalty=0.3, **options).eval(), batch("ce")
    assert torch.equal(plain.loss.weight, penal.loss.weight)
    w = F.normalize(plain.loss.weight.detach(), dim=1)
    distances = torch.pdist(w)
    repulsion = (distances**-power if power else -distances.log()).mean()
    torch.testing.assert_close(penal.step(seen)["loss"], plain.step(seen)["loss"] + 0.3 * repulsion)


def test_a_power_without_a_penalty_is_refused() -> None:
    with pytest.raises(ValueError, match=r"method.energy_power=1.0: needs method.energy_penalty, which is not set"):
        made("ce", energy_power=1.0)


def test_options_that_are_not_asked_for_do_not_rename_a_run() -> None:
    """None is left out of the hash; a penalty, even of 0, is in it."""
    recipe = resolve(recipes.find("ce-fashion-mini"))
    assert recipe.method.options == {"energy_penalty": None, "energy_power": None}
    decisive = json.loads(recipe.model_dump_json(exclude_none=True))
    assert decisive["method"] == {"name": "ce"}
    assert recipe.override(["method.energy_penalty=1"]).hash != recipe.hash
