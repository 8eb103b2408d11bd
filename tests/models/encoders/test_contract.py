"""What holds for every encoder, whichever file declares it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from kontrast import models
from kontrast.models.encoders._base import is_small

IMAGES: dict[str, dict[str, Any]] = {name: {} for name in models.names() if name not in ("mlp", "timm/…")}
LIGHT = [name for name in IMAGES if name not in ("resnet50", "resnet101", "resnet34")]


def make(name: str, **options: Any) -> models.Encoder:
    return models.encoder(name, **{"image_size": 16, "seed": 0, **options})


def images(channels: int = 3, side: int = 16, n: int = 3) -> torch.Tensor:
    return torch.randn(n, channels, side, side, generator=torch.Generator().manual_seed(1))


def test_the_names_are_those_that_were_promised() -> None:
    promised = {"mlp", "resnet101", "resnet18", "resnet34", "resnet50", "small-resnet", "timm/…"}
    assert promised <= set(models.names())


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_features_of_any_channels_and_gradients_to_every_parameter(name: str, channels: int) -> None:
    made = make(name, in_channels=channels)
    h = made(images(channels))
    assert h.shape == (3, made.feature_dim)
    h.square().sum().backward()
    without = [n for n, p in made.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not without


@pytest.mark.parametrize("name", LIGHT)
def test_layout_changes_nothing_but_speed(name: str) -> None:
    """In float64, where the order of sums shows at 1e-15 a term: assert_close's own 1e-7 is far above that."""
    fast, plain = (make(name, channels_last=on).double().eval() for on in (True, False))
    convolutions = [m for m in fast.modules() if isinstance(m, nn.Conv2d) and m.kernel_size != (1, 1)]
    assert all(m.weight.is_contiguous(memory_format=torch.channels_last) for m in convolutions)
    assert not any(m.weight.is_contiguous(memory_format=torch.channels_last) for m in plain.modules() if m_is_wide(m))
    x = images().double()
    torch.testing.assert_close(fast(x), plain(x))


def m_is_wide(module: nn.Module) -> bool:
    return isinstance(module, nn.Conv2d) and module.kernel_size != (1, 1) and module.in_channels > 1


@pytest.mark.parametrize("name", LIGHT)
def test_a_seed_fixes_the_start_and_leaves_torchs_generator_alone(name: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    a, b, c = make(name, seed=3), make(name, seed=3), make(name, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    weights = [torch.cat([p.flatten() for p in m.parameters()]) for m in (a, b, c)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    make(name, seed=None)
    assert not torch.equal(torch.get_rng_state(), before), "without a seed torch's own generator draws"


@pytest.mark.parametrize("name", LIGHT)
def test_wrong_images_are_refused_with_what_to_do(name: str) -> None:
    made = make(name)
    with pytest.raises(ValueError, match=r"images has shape \[3, 1, 16, 16\]: must be \[N, 3, H, W\].*in_channels=1"):
        made(images(1))
    with pytest.raises(ValueError, match=r"images has shape \[3, 3, 16\]"):
        made(images()[..., 0])
    with pytest.raises(ValueError, match=r"images has torch.uint8: must be floating point. Normalise first"):
        made(torch.zeros(2, 3, 16, 16, dtype=torch.uint8))


def test_unknown_names_name_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no encoder 'resnet81'; did you mean 'resnet18'\? Known: mlp, .*resnet101"):
        models.encoder("resnet81")
    with pytest.raises(ValueError, match=r"no encoder 'smal-resnet'; did you mean 'small-resnet'"):
        models.encoder("smal-resnet")
    with pytest.raises(ValueError, match=r"no encoder 'timm'; did you mean 'timm/…'"):
        models.encoder("timm")
    with pytest.raises(ValueError, match=r"no encoder 'resnet18/x'"):
        models.encoder("resnet18/x")
    assert models.encoder("small_resnet").feature_dim == 64


def test_unknown_options_name_the_nearest() -> None:
    with pytest.raises(
        ValueError, match=r"encoder 'small-resnet' has no option 'widht'; did you mean 'width'\? It has"
    ):
        models.encoder("small-resnet", widht=16)
    with pytest.raises(ValueError, match=r"encoder 'mlp' has no option 'stem'"):
        models.encoder("mlp", in_features=3, stem="small")
    with pytest.raises(ValueError, match=r"in_channels=0: must be a whole number of at least 1"):
        models.encoder("resnet18", in_channels=0)
    with pytest.raises(ValueError, match=r"stem='tiny': must be one of 'auto', 'small', 'half', 'large'"):
        models.encoder("small-resnet", stem="tiny")
    with pytest.raises(ValueError, match=r"image_size=-3: must be a whole number of at least 1"):
        models.encoder("resnet18", image_size=-3)
    with pytest.raises(ValueError, match=r"image_size=0: must be a whole number of at least 1"):
        models.encoder("small-resnet", image_size=0)
    with pytest.raises(ValueError, match=r"image_size=\(3, 32, 32\): must be .* a pair \(height, width\)"):
        models.encoder("resnet18", image_size=(3, 32, 32))


@pytest.mark.parametrize("name", [*LIGHT, "timm/resnet10t"])
def test_numbers_of_numpy_are_numbers(name: str) -> None:
    if name.startswith("timm/"):
        pytest.importorskip("timm")
    made = make(name, in_channels=np.int64(1), image_size=np.int64(16), seed=np.int64(0))
    plain = make(name, in_channels=1, image_size=16, seed=0)
    assert type(made.in_channels) is int
    assert str(made) == str(plain), "the small stem, too"
    assert torch.equal(made.eval()(images(1)), plain.eval()(images(1)))


def test_numbers_of_numpy_are_numbers_in_an_mlp() -> None:
    made = models.encoder("mlp", in_channels=np.int64(1), image_size=np.array([4, 5]), features=np.int64(6))
    assert made(torch.zeros(2, 1, 4, 5)).shape == (2, 6)
    assert (type(made.in_features), type(made.feature_dim)) == (int, int)


@pytest.mark.parametrize(
    ("image_size", "stem", "small"),
    [
        (28, "auto", True),
        (64, "auto", True),
        (65, "auto", False),
        ((32, 96), "auto", False),
        (None, "auto", False),
        (None, "small", True),
        (32, "large", False),
    ],
)
def test_the_stem_goes_by_the_longer_side(image_size: Any, stem: str, small: bool) -> None:
    assert is_small(image_size, stem) is small
