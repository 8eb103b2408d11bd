"""In one process; test_across_ranks.py has several."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from kontrast import models


@pytest.mark.parametrize("momentum", [0.1, None])
def test_without_a_group_it_is_torchs_own(momentum: float | None) -> None:
    plain = nn.BatchNorm2d(3, momentum=momentum)
    sync = models.sync_batch_norm(copy.deepcopy(plain))
    assert type(sync) is models.SyncBatchNorm
    for _ in range(3):
        x = torch.randn(4, 3, 2, 2)
        assert torch.equal(sync(x), plain(x))
    for name, tensor in plain.state_dict().items():
        assert torch.equal(sync.state_dict()[name], tensor)
    assert torch.equal(sync.eval()(x), plain.eval()(x))


def test_a_network_is_converted_in_place_with_its_names_and_tensors() -> None:
    net = models.encoder("small-resnet", width=4)
    before = net.state_dict(keep_vars=True)
    assert models.sync_batch_norm(net) is net
    after = net.state_dict(keep_vars=True)
    assert list(before) == list(after)
    assert all(before[name] is after[name] for name in before)
    kinds = {type(m) for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)}
    assert kinds == {models.SyncBatchNorm}


def test_torchs_own_sync_norm_is_converted_too() -> None:
    theirs = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3)))
    assert type(models.sync_batch_norm(theirs)[0]) is models.SyncBatchNorm


def test_norms_without_weights_or_statistics() -> None:
    bare = models.sync_batch_norm(nn.BatchNorm1d(3, affine=False, track_running_stats=False))
    assert bare.state_dict() == {}
    x = torch.randn(6, 3)
    expected = nn.functional.batch_norm(x, None, None, training=True)
    assert torch.equal(bare(x), expected)
    assert torch.equal(bare.eval()(x), expected)
