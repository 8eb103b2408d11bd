from __future__ import annotations

import pytest
import torch

from kontrast import models


@pytest.mark.parametrize("width", [16, 32, 48])
def test_sizes_from_80k_to_700k(width: int) -> None:
    """By hand: convolutions (4.5 + 9 + 0.5)w² + (18 + 36 + 2)w² + (72 + 144 + 8)w², stem 13.5w, norms 43w."""
    made = models.encoder("small-resnet", width=width)
    count = sum(p.numel() for p in made.parameters())
    assert count == 294 * width**2 + 113 * width // 2
    assert 75_000 < count < 700_000
    assert made.feature_dim == 4 * width


def test_depth_adds_blocks_of_the_same_width() -> None:
    """Each stage gets one more block, 18w² + 4w at its width: (1 + 4 + 16) · 18w² + (1 + 2 + 4) · 4w."""
    count = sum(p.numel() for p in models.encoder("small-resnet", width=32, depth=2).parameters())
    assert count == 294 * 32**2 + 113 * 16 + 21 * 18 * 32**2 + 7 * 4 * 32


@pytest.mark.parametrize(("image_size", "side"), [(8, 1), (28, 4), (32, 4), (64, 8), (96, 3), (224, 7), (None, 4)])
def test_the_last_map_is_neither_lost_nor_large(image_size: int | None, side: int) -> None:
    made = models.encoder("small-resnet", image_size=image_size)
    seen: list[torch.Size] = []
    made.blocks.register_forward_hook(lambda module, inputs, out: seen.append(out.shape))
    h = made.eval()(torch.randn(2, 3, image_size or 32, image_size or 32))
    assert seen[0][2:] == (side, side)
    assert h.shape == (2, 64)


@pytest.mark.parametrize(("image_size", "side"), [(8, 1), (28, 4), (32, 4), (64, 8), (224, 28)])
def test_behind_the_half_stem_the_first_stage_keeps_the_map(image_size: int, side: int) -> None:
    made = models.encoder("small-resnet", image_size=image_size, stem="half", width=8)
    seen: list[torch.Size] = []
    made.blocks.register_forward_hook(lambda module, inputs, out: seen.append(out.shape))
    made.eval()(torch.randn(2, 3, image_size, image_size))
    assert seen[0] == (2, 32, side, side)


def test_features_set_the_size_of_the_output() -> None:
    made = models.encoder("small-resnet", width=8, features=40).eval()
    assert made.feature_dim == 40
    h = made(torch.randn(3, 3, 32, 32))
    assert h.shape == (3, 40)
    assert bool((h >= 0).all())
    signed = models.encoder("small-resnet", width=8, features=40, signed=True).eval()
    assert bool((signed(torch.randn(3, 3, 32, 32)) < 0).any())


def test_without_features_the_network_is_what_it_was() -> None:
    """The names of its weights are those of runs made before there were ``features``."""
    names = {name.partition(".")[0] for name in models.encoder("small-resnet", width=8).state_dict()}
    assert names == {"stem", "blocks"}


def test_an_unknown_stem_is_refused() -> None:
    with pytest.raises(ValueError, match="stem='halb': must be one of 'auto', 'small', 'half', 'large'"):
        models.encoder("small-resnet", stem="halb")


def test_it_learns_to_tell_bars_from_columns() -> None:
    """Two kinds of noisy stripes: a linear read-out of h reaches every sample in a few steps, on a fixed seed."""
    g = torch.Generator().manual_seed(0)
    labels = torch.arange(32) % 2
    stripes = (torch.arange(16) // 2 % 2).float().expand(32, 1, 16, 16)
    x = torch.where(labels.view(-1, 1, 1, 1) == 1, stripes, stripes.mT) + 0.3 * torch.randn(32, 1, 16, 16, generator=g)
    made = models.encoder("small-resnet", in_channels=1, width=8, seed=0)
    read = models.head("wang-liu", in_dim=made.feature_dim, out=2, seed=1)
    optimiser = torch.optim.SGD([*made.parameters(), *read.parameters()], lr=0.1, momentum=0.9)
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(read(made(x)), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (read(made(x)).argmax(1) == labels).all()


@pytest.mark.parametrize("side", [7, 8])
def test_the_shortcut_is_a_strided_convolution(side: int) -> None:
    """Skipping pixels first is the same function; sums of 4 products in float32, in another order at most."""
    block = models.encoder("small-resnet", width=8).blocks[0].eval()
    conv, norm = block.shortcut
    x = torch.randn(2, 4, side, side, generator=torch.Generator().manual_seed(0))
    strided = norm(torch.nn.functional.conv2d(x, conv.weight, stride=2))
    torch.testing.assert_close(block.shortcut(x[:, :, ::2, ::2]), strided)
    inner = torch.relu(block.norm1(block.conv1(x)))
    torch.testing.assert_close(block(x), torch.relu(block.norm2(block.conv2(inner)) + strided))


def test_signed_leaves_out_the_last_relu_alone() -> None:
    """The same weights; the features without it are those before the mean was taken of what a ReLU cut off."""
    x = torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    plain, signed = (models.encoder("small-resnet", width=8, seed=0, signed=how).eval() for how in (None, True))
    assert plain.state_dict().keys() == signed.state_dict().keys()
    assert all(
        torch.equal(a, b) for a, b in zip(plain.state_dict().values(), signed.state_dict().values(), strict=True)
    )
    maps = signed.blocks(signed.stem(x))
    torch.testing.assert_close(signed(x), maps.mean((2, 3)))
    torch.testing.assert_close(plain(x), maps.relu().mean((2, 3)))
    assert (plain(x) >= 0).all()
    assert (signed(x) < 0).any()


def test_a_signed_that_is_no_flag_is_refused() -> None:
    with pytest.raises(ValueError, match="signed='no': must be true or false"):
        models.encoder("small-resnet", signed="no")
