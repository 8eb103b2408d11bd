"""CE-fix: weights at a simplex that do not learn."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.methods.samples import CLASSES, batch, made


def test_weights_are_a_simplex_and_stay() -> None:
    method, seen = made("ce-fix", radius=2.0).eval(), batch("ce-fix")
    weight = method.loss.weight
    cosines = F.normalize(weight, dim=1) @ F.normalize(weight, dim=1).T
    off = cosines[~torch.eye(CLASSES, dtype=torch.bool)]
    torch.testing.assert_close(off, torch.full_like(off, -1 / (CLASSES - 1)), atol=1e-5, rtol=0)
    torch.testing.assert_close(weight.norm(dim=1), torch.full((CLASSES,), 2.0))
    assert "loss.weight" not in dict(method.named_parameters())
    logits = method.embed(seen.views).flatten(0, 1) @ weight.T
    torch.testing.assert_close(method.step(seen)["loss"], F.cross_entropy(logits, seen.labels.repeat_interleave(3)))


def test_random_weights_are_of_that_length_and_no_simplex() -> None:
    method = made("ce-fix", radius=2.0, weights="random")
    weight = method.loss.weight
    torch.testing.assert_close(weight.norm(dim=1), torch.full((CLASSES,), 2.0))
    cosines = F.normalize(weight, dim=1) @ F.normalize(weight, dim=1).T
    off = cosines[~torch.eye(CLASSES, dtype=torch.bool)]
    assert off.std() > 0.05  # a simplex has one cosine
    assert torch.equal(weight, made("ce-fix", radius=2.0, weights="random").loss.weight)
    with pytest.raises(ValueError, match="must be 'simplex' or 'random'"):
        made("ce-fix", weights="square")
