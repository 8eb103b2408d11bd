"""In one process; test_across_ranks.py has several."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from kontrast import models

# --------------------------------------------------------------------------------------------------------- across ranks


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


def test_a_network_is_converted_to_sync_in_place_with_its_names_and_tensors() -> None:
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


# ------------------------------------------------------------------------------------------------------------- in parts


def values(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 3 + 1


@pytest.mark.parametrize("shape", [(12, 5), (12, 5, 3, 2), (13, 5, 3, 2), (11, 5)])
@pytest.mark.parametrize("momentum", [0.1, None])
def test_equals_batch_norm_of_each_part_alone(shape: tuple[int, ...], momentum: float | None) -> None:
    """Value, gradients and running statistics against one plain norm a part, sizes even and uneven, two batches."""
    plain = (nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(5, momentum=momentum).double()
    nn.init.normal_(plain.weight), nn.init.normal_(plain.bias)
    alone = [copy.deepcopy(plain) for _ in range(4)]
    split = models.split_batch_norm(plain, parts=4)
    for scale in (1.0, 2.0):
        x, y = (scale * values(shape)).requires_grad_(), (scale * values(shape)).requires_grad_()
        means = [n.running_mean.clone() for n in alone]
        expected = torch.cat([norm(part) for norm, part in zip(alone, y.tensor_split(4), strict=True)])
        out = split(x)
        torch.testing.assert_close(out, expected)
        out.pow(3).sum().backward()
        expected.pow(3).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
        torch.testing.assert_close(split.weight.grad, sum(n.weight.grad for n in alone))
        for name in ("running_mean", "running_var"):
            mean = torch.stack([getattr(n, name) for n in alone]).mean(0)
            torch.testing.assert_close(getattr(split, name), mean)
        assert not any(torch.equal(a.running_mean, b) for a, b in zip(alone, means, strict=True))
        for norm in alone:  # the next batch starts from the mean, on every part
            norm.running_mean.copy_(split.running_mean)
            norm.running_var.copy_(split.running_var)
    assert int(split.num_batches_tracked) == 2


def test_eval_mode_is_plain_batch_norm() -> None:
    plain = nn.BatchNorm1d(5).double()
    plain(values((20, 5)))
    split = models.split_batch_norm(copy.deepcopy(plain).eval(), parts=4)
    assert not split.training
    assert torch.equal(split(values((3, 5))), plain.eval()(values((3, 5))))


def test_a_network_is_converted_in_place_with_its_names_and_tensors() -> None:
    net = models.encoder("small-resnet", width=4)
    before = net.state_dict(keep_vars=True)
    assert models.split_batch_norm(net, parts=2) is net
    after = net.state_dict(keep_vars=True)
    assert list(before) == list(after)
    assert all(before[name] is after[name] for name in before)
    norms = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    assert norms
    assert all(type(m) is models.SplitBatchNorm and m.parts == 2 for m in norms)
    assert "parts=2" in repr(norms[0])


def test_one_norm_in_two_places_stays_one() -> None:
    shared = nn.BatchNorm1d(3)
    net = models.split_batch_norm(nn.Sequential(shared, nn.Linear(3, 3), shared), parts=2)
    assert net[0] is net[2]
    assert type(net[0]) is models.SplitBatchNorm


def test_errors_of_split_batch_norm() -> None:
    norm = models.split_batch_norm(nn.BatchNorm1d(5), parts=8)
    with pytest.raises(ValueError, match=r"parts=8: must leave at least 2 .* of shape \[10, 5\] leaves 1"):
        norm(torch.zeros(10, 5))
    with pytest.raises(ValueError, match=r"of shape \[7, 5\] leaves 0"):
        norm(torch.zeros(7, 5))
    with pytest.raises(ValueError, match=r"values have shape \[16, 4\]: must be \[N, 5, …\]"):
        norm(torch.zeros(16, 4))
    with pytest.raises(ValueError, match="parts=0: must be a whole number of at least 1"):
        models.split_batch_norm(nn.BatchNorm1d(5), parts=0)

    class Odd(nn.BatchNorm1d): ...

    with pytest.raises(ValueError, match=r"norm=.*Odd: must be one of BatchNorm1d"):
        models.split_batch_norm(nn.Sequential(Odd(3)), parts=2)


# -------------------------------------------------------------------------------------------------------- shuffled keys


def test_unshuffle_undoes_and_the_seed_decides() -> None:
    rows = torch.randn(9, 2, 3)
    shuffled, order = models.shuffle_keys(rows, seed=1)
    assert not torch.equal(shuffled, rows)
    assert torch.equal(models.unshuffle(shuffled, order), rows)
    again, _ = models.shuffle_keys(rows, seed=1)
    other, _ = models.shuffle_keys(rows, seed=2)
    assert torch.equal(again, shuffled)
    assert not torch.equal(other, shuffled)


def test_keys_may_have_another_shape() -> None:
    rows = torch.randn(6, 3, 4, 4)
    shuffled, order = models.shuffle_keys(rows, seed=0)
    assert torch.equal(models.unshuffle(shuffled.mean((2, 3)), order), rows.mean((2, 3)))


def test_it_changes_who_shares_a_part_of_split_batch_norm() -> None:
    norm = models.split_batch_norm(torch.nn.BatchNorm1d(2), parts=2)
    x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    shuffled, order = models.shuffle_keys(x, seed=3)
    assert not torch.allclose(models.unshuffle(norm(shuffled), order), norm(x))


def test_keys_of_another_number_are_refused() -> None:
    shuffled, order = models.shuffle_keys(torch.randn(6, 3), seed=0)
    with pytest.raises(ValueError, match=r"keys has shape \[4, 3\]: must have 6 rows"):
        models.unshuffle(shuffled[:4], order)
