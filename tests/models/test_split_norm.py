from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from kontrast import models


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


def test_errors_speak() -> None:
    norm = models.split_batch_norm(nn.BatchNorm1d(5), parts=8)
    with pytest.raises(ValueError, match=r"\[10, 5\] in 8 parts leaves 1 value\(s\) per channel in one"):
        norm(torch.zeros(10, 5))
    with pytest.raises(ValueError, match=r"\[7, 5\] in 8 parts leaves 0 value"):
        norm(torch.zeros(7, 5))
    with pytest.raises(ValueError, match=r"values of shape \[16, 4\]: this norm takes \[N, 5, …\]"):
        norm(torch.zeros(16, 4))
    with pytest.raises(ValueError, match="parts must be a whole number of at least 1, not 0"):
        models.split_batch_norm(nn.BatchNorm1d(5), parts=0)

    class Odd(nn.BatchNorm1d): ...

    with pytest.raises(ValueError, match=r"cannot convert a .*Odd: it is none of BatchNorm1d"):
        models.split_batch_norm(nn.Sequential(Odd(3)), parts=2)
