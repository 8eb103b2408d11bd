from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from kontrast import models


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()


def stepped(pair: models.MomentumPair, steps: int, *, seed: int = 0) -> None:
    """Optimiser steps on random inputs, the pair updated after each, its target run in train mode."""
    g = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.SGD(pair.online.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(6, 3, dtype=torch.float64, generator=g)
        optimiser.zero_grad()
        (pair(x) - pair.keys(x)).square().sum().add(pair(x).sum()).backward()
        optimiser.step()
        pair.update()


def test_the_target_starts_as_a_copy_without_gradients() -> None:
    pair = models.MomentumPair(network())
    for (name, a), b in zip(pair.online.named_parameters(), pair.target.parameters(), strict=True):
        assert torch.equal(a, b), name
        assert a.data_ptr() != b.data_ptr()
        assert a.requires_grad
        assert not b.requires_grad
    x = torch.randn(5, 3, dtype=torch.float64)
    assert not pair.keys(x).requires_grad
    assert pair(x).requires_grad


def test_update_is_eq_1_parameter_by_parameter() -> None:
    """A literal loop over steps. The two round differently, at float64's 1e-16; assert_close allows 1e-7."""
    pair = models.MomentumPair(network(), momentum=0.9)
    expected = [p.clone() for p in pair.target.parameters()]
    for _ in range(5):
        with torch.no_grad():
            for p in pair.online.parameters():
                p += torch.randn_like(p)
        assert pair.update() == 0.9
        expected = [0.9 * e + 0.1 * p.detach() for e, p in zip(expected, pair.online.parameters(), strict=True)]  # (1)
    for mine, theirs in zip(pair.target.parameters(), expected, strict=True):
        torch.testing.assert_close(mine.detach(), theirs)
    assert int(pair.steps) == 5


def test_cosine_is_eq_3() -> None:
    pair = models.MomentumPair(network(), momentum=0.99, schedule="cosine", total_steps=10)
    used = [pair.update() for _ in range(12)]
    expected = [1 - 0.01 * (math.cos(math.pi * k / 10) + 1) / 2 for k in range(10)] + [1.0, 1.0]
    assert used == pytest.approx(expected, abs=1e-15)  # the same formula in another order: the last digit
    assert used[0] == pytest.approx(0.99, abs=1e-15)
    assert sorted(used) == used


def test_a_momentum_of_one_leaves_and_of_zero_copies() -> None:
    for m in (0.0, 1.0):
        pair = models.MomentumPair(network(), momentum=m)
        start = [p.clone() for p in pair.target.parameters()]
        with torch.no_grad():
            for p in pair.online.parameters():
                p += 1
        pair.update()
        expected = start if m else list(pair.online.parameters())
        assert all(torch.equal(a, b) for a, b in zip(pair.target.parameters(), expected, strict=True))


@pytest.mark.parametrize("buffers", ["average", "copy", "own"])
def test_buffers_follow_the_rule_that_was_chosen(buffers: str) -> None:
    pair = models.MomentumPair(network(), momentum=0.9, buffers=buffers)
    for x in (1.0, 2.0):
        pair.online(x + torch.randn(8, 3, dtype=torch.float64))  # only the online statistics move
    own = pair.target[1].running_mean.clone()
    online = pair.online[1].running_mean.clone()
    assert not torch.equal(own, online)
    pair.update()
    expected = {"average": 0.9 * own + 0.1 * online, "copy": online, "own": own}[buffers]
    torch.testing.assert_close(pair.target[1].running_mean, expected)
    assert int(pair.target[1].num_batches_tracked) == (0 if buffers == "own" else 2)


def test_a_resumed_pair_goes_on_exactly() -> None:
    options = {"momentum": 0.9, "schedule": "cosine", "total_steps": 9}
    whole = models.MomentumPair(network(), **options)
    stepped(whole, 3)
    resumed = models.MomentumPair(network(), **options)
    resumed.load_state_dict(whole.state_dict())
    stepped(whole, 4, seed=1)
    stepped(resumed, 4, seed=1)
    for (name, a), b in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    assert int(resumed.steps) == 7


def test_split_norm_in_the_target_alone_stays_in_step() -> None:
    pair = models.MomentumPair(network(), momentum=0.5)
    models.split_batch_norm(pair.target, parts=2)
    stepped(pair, 2)
    expected = [0.5 * a + 0.5 * b for a, b in zip(pair.target.parameters(), pair.online.parameters(), strict=True)]
    pair.update()
    for mine, theirs in zip(pair.target.parameters(), expected, strict=True):
        torch.testing.assert_close(mine, theirs)


WRAPPED = {
    "DataParallel": nn.DataParallel,  # names as DistributedDataParallel's, without processes
    "compile": lambda m: torch.compile(m, backend="eager"),
    "both": lambda m: nn.DataParallel(torch.compile(m, backend="eager")),
    "a part": lambda m: nn.Sequential(m[0], torch.compile(m[1], backend="eager"), m[2]),
}


@pytest.mark.parametrize("buffers", ["average", "copy"])
@pytest.mark.parametrize("wrap", WRAPPED)
@pytest.mark.parametrize("side", ["online", "target"])
def test_a_wrapped_network_keeps_its_buffers_in_step(wrap: str, side: str, buffers: str) -> None:
    """What DDP and torch.compile put before names does not part the buffers; by literal (1)."""
    pair = models.MomentumPair(network(), momentum=0.9, buffers=buffers)
    norms = pair.online[1], pair.target[1]
    setattr(pair, side, WRAPPED[wrap](getattr(pair, side)))
    assert [n for n, _ in pair.online.named_buffers()] != [n for n, _ in pair.target.named_buffers()]
    norms[0].running_mean += torch.arange(4.0)
    expected = (0.1 if buffers == "average" else 1.0) * torch.arange(4.0, dtype=torch.float64)
    pair.update()
    torch.testing.assert_close(norms[1].running_mean, expected)


def test_names_that_look_like_a_wrappers_are_not_mixed_up() -> None:
    twins = nn.ModuleDict({"module": nn.BatchNorm1d(2), "_orig_mod": nn.BatchNorm1d(2)})
    pair = models.MomentumPair(twins, buffers="copy")
    pair.online["module"].running_mean += 1
    pair.online["_orig_mod"].running_mean += 2
    pair.update()
    assert [float(norm.running_mean[0]) for norm in pair.target.values()] == [1, 2]


def test_a_buffer_without_a_partner_is_refused() -> None:
    pair = models.MomentumPair(network())
    pair.online[1] = nn.BatchNorm1d(4, track_running_stats=False).double()
    before = pair.target[0].weight.clone()
    pair.online[0].weight.data += 1
    with pytest.raises(
        ValueError, match=r"the target has buffers that the online network lacks: 1.running_mean, .*own"
    ):
        pair.update()
    assert torch.equal(pair.target[0].weight, before), "a refused update changes nothing"
    pair.buffer_rule = "own"
    pair.update()


def test_errors_speak() -> None:
    with pytest.raises(ValueError, match=r"momentum=1\.2: must be a finite number of at least 0 and of at most 1"):
        models.MomentumPair(network(), momentum=1.2)
    with pytest.raises(ValueError, match="total_steps=None: must be at least 1 with schedule='cosine'"):
        models.MomentumPair(network(), schedule="cosine")
    with pytest.raises(ValueError, match="schedule='linear': must be one of 'constant', 'cosine'"):
        models.MomentumPair(network(), schedule="linear")
    with pytest.raises(ValueError, match="buffers='mean': must be one of 'average', 'copy', 'own'"):
        models.MomentumPair(network(), buffers="mean")
