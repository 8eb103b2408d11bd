"""Policy, magnitudes, signs and operations are torchvision's AutoAugment for CIFAR-10."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor
from torchvision.transforms import v2

from kontrast.augment import AutoAugment, Params
from kontrast.augment.operations.autoaugment import MOVES, POLICY, SIGNED, change, magnitude, move
from tests.augment.samples import floats, levels, seeded

THEIRS = v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10)
NAMES = tuple(THEIRS._AUGMENTATION_SPACE)


def torchvision(x: Tensor, name: str, m: float, fill: float | None = None) -> Tensor:
    """Its operation on one uint8 image."""
    fills = {torch.Tensor: fill}
    return THEIRS._apply_image_or_video_transform(x, name, m, interpolation=v2.InterpolationMode.NEAREST, fill=fills)


def ours(x: Tensor, name: str, m: list[float]) -> Tensor:
    values = torch.tensor(m, dtype=torch.float64)
    return move(x.float(), [name] * len(m), values, 0.0) if name in MOVES else change(x.float(), name, values)


def test_policy_is_torchvisions() -> None:
    assert list(POLICY) == THEIRS._policies


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [(32, 32), (28, 40), (331, 662)], ids=str)
def test_magnitudes_are_torchvisions(name: str, size: tuple[int, int]) -> None:
    """To the last bit of what it applies, float(magnitudes[level]) of float32."""
    make, signed = THEIRS._AUGMENTATION_SPACE[name]
    theirs = make(10, *size)
    assert (name in SIGNED) == signed
    if theirs is None:
        assert magnitude(name, None, *size) == 0.0
    else:
        assert [magnitude(name, level, *size) for level in range(10)] == [float(m) for m in theirs]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_operations_equal_torchvisions_on_levels(name: str, channels: int) -> None:
    """All levels and signs. Movements and tables are exact. Blends cut off fractions: where one is a whole level but
    for the last bit of float32, that bit decides, and it may differ where a processor fuses multiplication and addition
    elsewhere (here all are equal): at most one level, in at most one pixel of a thousand."""
    x = levels(16, channels)
    known = [magnitude(name, level, 32, 32) for level in range(10)]
    for m in {s * m for m in known for s in ((1, -1) if name in SIGNED else (1,))} if known[1:] else {0.0}:
        theirs = torch.stack([torchvision(image, name, m) for image in x]).float()
        difference = (ours(x, name, [m] * 16) - theirs).abs()
        if name in ("Brightness", "Contrast", "Color", "Sharpness", "AutoContrast"):
            assert difference.max() <= 1
            assert (difference > 0).float().mean() < 0.001
        else:
            assert difference.max() == 0, m


def whole(x: Tensor, policy: int, negative: list[bool], monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """What v2.AutoAugment itself makes of a uint8 image, when it draws this sub-policy, both operations and signs."""
    theirs, drawn = v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10), []
    theirs._policies = [POLICY[policy]]
    for (name, p, _), minus in zip(POLICY[policy], negative, strict=True):
        drawn += [p, *([0.0 if minus else 1.0] if name in SIGNED else [])]  # it compares these with p and 0.5
    with monkeypatch.context() as patched:
        patched.setattr(torch, "rand", lambda size: torch.tensor(drawn.pop(0), dtype=torch.float64))
        out = theirs(x)
    assert not drawn
    return out


@pytest.mark.parametrize("size", [(32, 32), (66, 331)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_each_sub_policy_equals_torchvisions(
    channels: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 25 with both operations on, every pair of signs, against v2.AutoAugment with those draws. In images 331 wide
    translations are whole numbers of pixels but for the last bit."""
    cases = list(itertools.product(range(25), (False, True), (False, True)))
    x = levels(len(cases), channels, *size, seed=3)
    params = Params(
        len(cases),
        {
            "policy": torch.tensor([c[0] for c in cases]),
            "on": torch.ones(len(cases), 2, dtype=torch.bool),
            "negative": torch.tensor([c[1:] for c in cases]),
        },
    )
    views = AutoAugment().apply(x, params) * 255
    for i, (policy, *negative) in enumerate(cases):
        wrong = (views[i] - whole(x[i], policy, negative, monkeypatch).float()).abs() > 0.5
        assert wrong.float().mean() < 0.001, POLICY[policy]  # the same level, but for what the test above allows


@pytest.mark.parametrize("name", MOVES)
def test_fill(name: str) -> None:
    x, m = levels(4, seed=2), magnitude(name, 9, 32, 32)
    mine = move(x.float(), [name] * 4, torch.full((4,), m), 128.0)
    for i in range(4):
        assert torch.equal(mine[i], torchvision(x[i], name, m, fill=128.0).float())


def test_movements_of_different_kinds_go_together() -> None:
    x = levels(5, seed=2)
    m = [magnitude(name, 5, 32, 32) for name in MOVES]
    together = move(x.float(), list(MOVES), torch.tensor(m), 0.0)
    for i, name in enumerate(MOVES):
        assert torch.equal(together[i], torchvision(x[i], name, m[i]).float())


def test_draws() -> None:
    """50,000 draws: 2,000 of each sub-policy, chi-square with 24 degrees of freedom below 51.2 with probability 0.999;
    probabilities and signs within 4.5 standard errors (150 comparisons), 0 and 1 exactly."""
    params = AutoAugment().draw(50_000, (32, 32), seeded())
    count = torch.bincount(params["policy"], minlength=25).double()
    assert float((count - 2000).square().sum() / 2000) < 51.2
    for i, steps in enumerate(POLICY):
        mine = params["policy"] == i
        for slot, (_, p, _) in enumerate(steps):
            error = 4.5 * (p * (1 - p) / float(count[i])) ** 0.5
            assert abs(float(params["on"][mine, slot].float().mean()) - p) <= error
    assert abs(float(params["negative"].float().mean()) - 0.5) < 4.5 * 0.5 / 100_000**0.5


def test_nothing_on_changes_nothing() -> None:
    x = levels(25)
    off = torch.zeros(25, 2, dtype=torch.bool)
    params = Params(25, {"policy": torch.arange(25), "on": off, "negative": off})
    assert torch.equal((AutoAugment().apply(x, params) * 255).round().byte(), x)


def test_values_between_levels_are_rounded() -> None:
    x = floats(8) * 0.999
    out = AutoAugment()(x, seeded()) * 255
    torch.testing.assert_close(out, out.round(), atol=1e-4, rtol=0)


def test_unknown_names_are_named() -> None:
    with pytest.raises(ValueError, match="no operation 'Blur'"):
        change(torch.zeros(1, 1, 4, 4), "Blur", torch.zeros(1))
    with pytest.raises(ValueError, match="no movement 'Zoom'"):
        move(torch.zeros(1, 1, 4, 4), ["Zoom"], torch.zeros(1), 0.0)


def test_tiny_images_are_not_sharpened() -> None:
    x = levels(4, 3, 2, 2)
    assert torch.equal(ours(x, "Sharpness", [0.9] * 4), x.float())
