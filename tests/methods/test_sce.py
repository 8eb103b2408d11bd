"""SCE: one way or both, with and without a predictor."""

from __future__ import annotations

import torch

from kontrast import losses
from tests.methods.samples import N, batch, made


def test_asymmetric_is_weak_target_and_strong_online() -> None:
    method, seen = made("sce", contrastive_weight=0.3).eval(), batch("sce")
    target, online = method.pair.target(seen.views[:, 0]), method.pair.online(seen.views[:, 1])
    expected = losses.SCELoss(0.1, 0.05, 0.3)(online, target, method.queue.read())
    torch.testing.assert_close(method.step(seen)["loss"], expected)
    method.after_step()
    assert int(method.queue.pointer) == N


def test_symmetric_is_the_mean_of_both_ways_and_queues_both_views() -> None:
    method, seen = made("sce", symmetric=True, queue=40).eval(), batch("sce")
    ways = []
    for target_view, online_view in ((0, 1), (1, 0)):
        target, online = method.pair.target(seen.views[:, target_view]), method.pair.online(seen.views[:, online_view])
        ways.append(losses.SCELoss(0.1, 0.05, 0.5)(online, target, method.queue.read()))
    torch.testing.assert_close(method.step(seen)["loss"], (ways[0] + ways[1]) / 2)
    method.after_step()
    assert int(method.queue.pointer) == 2 * N


def test_a_contrastive_weight_of_one_is_moco() -> None:
    seen = batch("sce")
    one = made("sce", contrastive_weight=1.0).eval().step(seen)["loss"]
    torch.testing.assert_close(one, made("moco").eval().step(seen)["loss"])


def test_the_predictor_is_online_only() -> None:
    method, seen = made("sce", predictor="sce-predictor", symmetric=True), batch("sce")
    assert not [name for name, _ in method.pair.named_parameters() if "predictor" in name]
    method.step(seen)["loss"].backward()
    assert all(p.grad is not None for p in method.predictor.parameters())
