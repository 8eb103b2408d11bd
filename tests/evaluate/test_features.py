"""Extraction: the rows in order, the encoder left as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from kontrast import data
from kontrast.data import DataSet
from kontrast.evaluate import extract


def test_features_are_those_of_eval_mode_in_order(encoder: nn.Module, pictures: DataSet) -> None:
    encoder.train()
    encoder[1].eval()  # frozen by hand: a mode of its own
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    found = extract(encoder, pictures.train, mean=pictures.mean, std=pictures.std, batch_size=64)
    assert encoder.training
    assert not encoder[1].training
    assert encoder[2].training
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.state_dict().items())
    x = (pictures.train.inputs.read(torch.arange(300)).float() / 255 - 0.5) / 0.5
    with torch.no_grad():
        expected = encoder.eval()(x)
    assert found.shape == (300, 128)
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, atol=1e-5)  # convolutions of other batch sizes round differently
    assert not found.requires_grad
    assert not found.is_inference(), "a probe of one's own may train on them"


def test_vectors_are_standardised_if_asked() -> None:
    made = data.from_arrays(np.random.default_rng(0).normal(3.0, 2.0, (50, 4)), np.arange(50) % 2)
    plain = extract(nn.Flatten(), made.train, mean=None, std=None)
    standard = extract(nn.Flatten(), made.train, mean=made.mean, std=made.std)
    assert torch.equal(plain, made.train.inputs.read(torch.arange(50)))
    assert torch.allclose(standard.mean(0), torch.zeros(4), atol=1e-5)  # float32 sums of 50 numbers of size 1
    assert torch.allclose(standard.std(0, correction=0), torch.ones(4), atol=1e-5)


def test_images_of_several_sizes_are_read_at_their_middle(tmp_path) -> None:
    for i, (width, height) in enumerate([(40, 60), (50, 30), (64, 64)]):
        folder = tmp_path / "ab"[i % 2]
        folder.mkdir(exist_ok=True)
        Image.new("RGB", (width, height), (50 * i, 0, 0)).save(folder / f"{i}.png")
    made = data.load(tmp_path)
    assert made.train.inputs.shape is None
    found = extract(nn.Flatten(), made.train, mean=None, std=None, size=16)
    assert found.shape == (3, 3 * 16 * 16)
    with pytest.raises(ValueError, match="differ in size; give size="):
        extract(nn.Flatten(), made.train, mean=None, std=None)


def test_size_with_images_of_one_size_is_an_error(encoder: nn.Module, pictures: DataSet) -> None:
    with pytest.raises(ValueError, match="Load them with size=32"):
        extract(encoder, pictures.train, mean=None, std=None, size=32)


def test_a_fraction_is_of_every_image(pictures: DataSet) -> None:
    """Of one size too, and bit for bit as each alone."""
    found = extract(nn.Flatten(), pictures.test, mean=None, std=None, size=14, fraction=0.5)
    pixels = pictures.test.inputs.read(torch.arange(100))[:, :, 7:21, 7:21]  # the middle half of 28, as it is
    assert torch.equal(found, (pixels.float() / 255).flatten(1))
    whole = extract(nn.Flatten(), pictures.test, mean=None, std=None, size=28, fraction=1.0)
    assert torch.equal(whole, extract(nn.Flatten(), pictures.test, mean=None, std=None))
    with pytest.raises(ValueError, match=r"fraction is 0\.5 without a size; give size="):
        extract(nn.Flatten(), pictures.test, mean=None, std=None, fraction=0.5)


class _Bad(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1).masked_fill(x.flatten(1) > 0.99, torch.nan)


def test_errors_say_what_the_encoder_gave(pictures: DataSet) -> None:
    with pytest.raises(ValueError, match=r"gives \[100, 1, 28, 28\] for 100 rows"):
        extract(nn.Identity(), pictures.test, mean=None, std=None)
    with pytest.raises(ValueError, match=r"NaN or infinity for row \d+;"):
        extract(_Bad(), pictures.train, mean=None, std=None)


def test_progress_is_told(encoder: nn.Module, pictures: DataSet) -> None:
    told: list[tuple[str, int, int]] = []
    extract(encoder, pictures.test, mean=0.5, std=0.5, batch_size=40, progress=lambda *x: told.append(x))
    assert told == [("features", 40, 100), ("features", 80, 100), ("features", 100, 100)]
