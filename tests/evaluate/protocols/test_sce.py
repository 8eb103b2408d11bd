"""SCE's probe: schedules, augmentations, the last epoch."""

from __future__ import annotations

import pytest
import torch
from PIL import Image
from torch import nn

from kontrast import augment, data
from kontrast.data import DataSet
from kontrast.evaluate import Subject, evaluate
from kontrast.evaluate.protocols._augmented import BEST
from kontrast.evaluate.protocols.sce import SCE


def test_small_sets(encoder: nn.Module, pictures: DataSet) -> None:
    settings = SCE().settings(Subject.from_encoder(encoder, pictures))
    assert (settings.epochs, settings.batch_size, settings.weight_decay) == (100, 256, 0.0)
    assert [settings.rate(e) for e in (0, 59, 60, 79, 80, 99)] == pytest.approx([30, 30, 3, 3, 0.3, 0.3])
    assert [type(o) for o in settings.augmentation.operations] == [augment.RandomCrop, augment.HorizontalFlip]
    assert not settings.moving_norms


def test_imagenet(encoder: nn.Module, pictures: DataSet) -> None:
    settings = SCE(setting="imagenet").settings(Subject.from_encoder(encoder, pictures))
    assert (settings.epochs, settings.batch_size) == (90, 1024)
    assert [settings.rate(e) for e in (0, 45)] == pytest.approx([0.4, 0.2])
    assert isinstance(settings.augmentation.operations[0], augment.RandomResizedCrop)


def test_the_last_epoch_is_the_value_and_the_best_a_detail(encoder: nn.Module, pictures: DataSet) -> None:
    found = evaluate(Subject.from_encoder(encoder, pictures), "sce", epochs=3, batch_size=64, limit=200)
    assert "SGD 3 epochs" in found.protocol
    assert "limited to 200 training rows" in found.protocol
    assert found.epochs == 3
    assert found.details[BEST]["accuracy"] >= found.value


def test_images_of_several_sizes_are_cropped_at_decoding(tmp_path) -> None:
    draw = torch.Generator().manual_seed(0)
    for part in ("train", "test"):
        for i in range(8):
            folder = tmp_path / part / "ab"[i % 2]
            folder.mkdir(parents=True, exist_ok=True)
            noise = torch.randint(0, 60, (30 + i, 40, 3), generator=draw, dtype=torch.uint8)
            noise[..., i % 2] += 150  # red or green
            Image.fromarray(noise.numpy()).save(folder / f"{i}.png")
    made = data.load(tmp_path)
    assert made.train.inputs.shape is None
    mean_colour = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    subject = Subject.from_encoder(mean_colour, made, size=16)
    found = evaluate(subject, "sce", setting="imagenet", epochs=20, batch_size=4)
    assert found.value == 1.0
    with pytest.raises(ValueError, match="Load the images with size="):
        evaluate(subject, "sce", setting="small", epochs=1)


def test_unknown_setting() -> None:
    with pytest.raises(ValueError, match="must be one of 'auto', 'small', 'imagenet'"):
        SCE(setting="large")
