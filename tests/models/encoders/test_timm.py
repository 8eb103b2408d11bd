from __future__ import annotations

import importlib.util
import sys

import pytest
import torch

from kontrast import models

needs_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is an extra")


@needs_timm
@pytest.mark.parametrize("channels", [1, 3])
def test_a_convolutional_one_adapts_to_channels(channels: int) -> None:
    made = models.encoder("timm/resnet10t", in_channels=channels, image_size=32, seed=0)
    h = made(torch.randn(2, channels, 32, 32))
    assert h.shape == (2, made.feature_dim)
    assert made.feature_dim == 512
    assert made.training


@needs_timm
def test_a_transformer_is_made_for_the_image_size() -> None:
    made = models.encoder("timm/vit_tiny_patch16_224", image_size=32, depth=1, seed=0)
    assert made(torch.randn(2, 3, 32, 32)).shape == (2, 192)
    assert made.net.pos_embed.shape[1] == 1 + 4  # the class token and 2×2 patches


@needs_timm
def test_its_weights_load_with_and_without_our_wrapping() -> None:
    a, b = (models.encoder("timm/resnet10t", image_size=32, seed=seed) for seed in (0, 1))
    x = torch.randn(2, 3, 32, 32)
    models.load_weights(b, {"state_dict": a.net.state_dict()}, strict=True)  # as timm writes it
    assert torch.equal(a.eval()(x), b.eval()(x))
    c = models.encoder("timm/resnet10t", image_size=32, seed=2)
    models.load_weights(c, a.state_dict(), strict=True)  # as we write it
    assert torch.equal(a(x), c.eval()(x))


@needs_timm
def test_batch_norm_with_an_activation_keeps_it_when_converted() -> None:
    """timm's BatchNormAct2d does more than normalise."""
    made = models.encoder("timm/mobilenetv3_small_050", image_size=32, seed=0).eval()
    x = torch.randn(2, 3, 32, 32)
    before, keys = made(x), list(made.state_dict())
    models.split_batch_norm(models.sync_batch_norm(made), parts=2)
    assert torch.equal(made(x), before)
    assert list(made.state_dict()) == keys


@needs_timm
def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"has no model 'resnet10tt'; did you mean 'resnet10t'"):
        models.encoder("timm/resnet10tt")
    with pytest.raises(ValueError, match="stem='small': must be left out for encoders of timm"):
        models.encoder("timm/resnet10t", stem="small")


@needs_timm
def test_an_unknown_option_is_an_input_error() -> None:
    with pytest.raises(ValueError, match=r"timm/resnet10t cannot be made with widht=3: .*unexpected keyword .*widht"):
        models.encoder("timm/resnet10t", widht=3)
    with pytest.raises(ValueError, match=r"timm/resnet10t cannot be made with num_classes=5: .*num_classes"):
        models.encoder("timm/resnet10t", num_classes=5)


def test_without_timm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ImportError, match=r"pip install kontrast\[timm\]"):
        models.encoder("timm/resnet10t")
