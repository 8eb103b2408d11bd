"""SimCLR is NT-Xent of two views; the hard one both directions of the hard loss."""

from __future__ import annotations

import pytest
import torch

from kontrast import losses
from tests.methods.samples import batch, made


def test_ordinary_is_nt_xent() -> None:
    method, seen = made("simclr", temperature=0.3).eval(), batch("simclr")
    first, second = (method.online(seen.views[:, v]) for v in (0, 1))
    torch.testing.assert_close(method.step(seen)["loss"], losses.NTXentLoss(0.3)(first, second))


def test_hard_keeps_the_nearest_both_ways() -> None:
    method, seen = made("simclr", loss="hard", hard_negatives=4).eval(), batch("simclr")
    first, second = (method.online(seen.views[:, v]) for v in (0, 1))
    hard = losses.HardContrastiveLoss(0.1, 4)
    torch.testing.assert_close(method.step(seen)["loss"], (hard(first, second) + hard(second, first)) / 2)


@pytest.mark.parametrize(("loss", "kept"), [("simple", None), ("hard-simple", 4)])
def test_simple_ones_both_ways(loss: str, kept: int | None) -> None:
    method, seen = made("simclr", loss=loss, hard_negatives=4).eval(), batch("simclr")
    first, second = (method.online(seen.views[:, v]) for v in (0, 1))
    simple = losses.SimpleContrastiveLoss(hard_negatives=kept)
    torch.testing.assert_close(method.step(seen)["loss"], (simple(first, second) + simple(second, first)) / 2)


def test_warm_up_is_nt_xent_and_survives_a_checkpoint() -> None:
    method, seen = made("simclr", loss="hard", hard_negatives=4, warmup_steps=1).eval(), batch("simclr")
    plain = made("simclr").eval()
    plain.load_state_dict(method.state_dict())
    torch.testing.assert_close(method.step(seen)["loss"], plain.step(seen)["loss"])
    method.after_step()
    other = made("simclr", loss="hard", hard_negatives=4, warmup_steps=1).eval()
    other.load_state_dict(method.state_dict())
    hard = made("simclr", loss="hard", hard_negatives=4).eval()
    hard.load_state_dict(method.state_dict())
    after, expected, before = (float(m.step(seen)["loss"].detach()) for m in (other, hard, plain))
    assert after == expected != before


@pytest.mark.parametrize("steps", [-1, True, 0.5])
def test_warm_up_is_a_number_of_steps(steps: object) -> None:
    with pytest.raises(ValueError, match="warmup_steps"):
        made("simclr", warmup_steps=steps)


def test_unknown_loss() -> None:
    with pytest.raises(ValueError, match="must be one of ordinary"):
        made("simclr", loss="soft")
