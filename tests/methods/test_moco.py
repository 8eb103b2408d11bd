"""MoCo: the weak view is the key, the strong one the query, the queue the negatives."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kontrast import losses
from tests.methods.samples import batch, made


def test_loss_is_info_nce_against_the_queue() -> None:
    method, seen = made("moco", temperature=0.2).eval(), batch("moco")
    with torch.no_grad():
        key = method.pair.target(seen.views[:, 0])
    query = method.pair.online(seen.views[:, 1])
    expected = losses.InfoNCELoss(0.2)(query, key, method.queue.read())
    torch.testing.assert_close(method.step(seen)["loss"], expected)


def test_after_a_step_the_keys_are_in_the_queue_and_the_target_has_followed() -> None:
    method, seen = made("moco", momentum=0.9).eval(), batch("moco")
    key = F.normalize(method.pair.target(seen.views[:, 0]), dim=1)
    with torch.no_grad():
        for parameter in method.pair.online.parameters():
            parameter += 1.0
    before = [p.clone() for p in method.pair.target.parameters()]
    method.step(seen)
    method.after_step()
    torch.testing.assert_close(method.queue.rows[: len(seen)], key)
    for old, new, online in zip(before, method.pair.target.parameters(), method.pair.online.parameters(), strict=True):
        torch.testing.assert_close(new, 0.9 * old + 0.1 * online)


def test_keys_come_back_in_order_however_they_were_shuffled() -> None:
    plain, shuffled, seen = made("moco").eval(), made("moco", shuffle_keys=True).eval(), batch("moco")
    torch.testing.assert_close(shuffled.keys(seen.views, seed=5), plain.keys(seen.views, seed=5))


def test_key_parts_split_the_batch_norm_of_the_target_alone() -> None:
    method, seen = made("moco", key_parts=3), batch("moco")
    kinds = {type(m).__name__ for m in method.pair.target.modules() if "Norm" in type(m).__name__}
    assert kinds == {"SplitBatchNorm"}
    assert not [m for m in method.pair.online.modules() if type(m).__name__ == "SplitBatchNorm"]
    alone = made("moco").pair.target(seen.views[:4, 0])
    torch.testing.assert_close(method.pair.target(seen.views[:, 0])[:4], alone)


def test_the_queue_starts_from_the_seed() -> None:
    assert torch.equal(made("moco").queue.rows, made("moco", seed=5).queue.rows)
