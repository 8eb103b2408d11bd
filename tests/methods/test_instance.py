"""Instance discrimination: the bank is the keys, and follows the features."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kontrast import losses, methods, models
from kontrast.methods import ViewBatch
from tests.methods.samples import batch, made

KINDS = {
    "ordinary": losses.InfoNCELoss(0.2),
    "hard": losses.HardContrastiveLoss(0.2, 5),
    "simple": losses.SimpleContrastiveLoss(),
    "hard-simple": losses.SimpleContrastiveLoss(hard_negatives=5),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_loss_against_the_bank_without_the_own_slot(kind: str) -> None:
    method, seen = made("instance", loss=kind, temperature=0.2, hard_negatives=5).eval(), batch("instance")
    bank = method.bank.rows.clone()
    query = method.online(seen.views[:, 0])
    expected = KINDS[kind](query, bank[seen.indices], bank, own_index=seen.indices)
    torch.testing.assert_close(method.step(seen)["loss"], expected)


def test_after_a_step_the_slots_have_moved_half_way() -> None:
    method, seen = made("instance").eval(), batch("instance")
    bank, feature = method.bank.rows.clone(), F.normalize(method.online(seen.views[:, 0]), dim=1)
    method.step(seen)
    method.after_step()
    expected = F.normalize(0.5 * bank[seen.indices] + 0.5 * feature, dim=1)
    torch.testing.assert_close(method.bank.rows[seen.indices], expected)
    others = torch.ones(len(bank), dtype=torch.bool)
    others[seen.indices] = False
    assert torch.equal(method.bank.rows[others], bank[others])


def test_errors() -> None:
    with pytest.raises(ValueError, match="must be one of ordinary, hard"):
        made("instance", loss="soft")
    with pytest.raises(ValueError, match=r"batch\.indices=None: must be the rows of the data set"):
        made("instance").step(ViewBatch(batch("instance").views))
    with pytest.raises(ValueError, match="needs num_samples"):
        methods.method("instance", torch.nn.Identity(), models.head("wang-liu", in_dim=4))
