"""Channels and labels as asked for."""

from __future__ import annotations

import pytest
import torch

from kontrast.data.conforming import Recoloured, conformed
from kontrast.data.loading import load
from kontrast.data.options import Options
from kontrast.data.records import Memory
from kontrast.data.statistics import channel_statistics


def test_what_conforms_stays_itself() -> None:
    data = load("digits")
    assert conformed(data, Options()) is data
    assert conformed(data, Options(channels=1, labelled=True)) is data


def test_grey_made_rgb_repeats_pixels_and_statistics() -> None:
    grey, colour = load("digits"), load("digits", channels=3)
    rows = torch.tensor([3, 5])
    assert torch.equal(colour.train.inputs.read(rows), grey.train.inputs.read(rows).expand(-1, 3, -1, -1))
    assert colour.mean == grey.mean * 3


def test_rgb_made_grey_has_statistics_of_its_own() -> None:
    images = torch.randint(0, 256, (20, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    data = load((images, torch.arange(20) % 2), channels=1)
    assert data.train.inputs.shape == (1, 8, 8)
    assert (data.mean, data.std) == channel_statistics(data.train.inputs)


def test_inputs_outside_memory_are_recoloured_when_read() -> None:
    images = Memory(torch.arange(48, dtype=torch.uint8).view(1, 3, 4, 4))
    seen = Recoloured(images, 1)
    assert (len(seen), seen.shape) == (1, (1, 4, 4))
    assert seen.read(torch.tensor([0])).shape == (1, 1, 4, 4)
    assert repr(seen).startswith("Recoloured(Memory(")


def test_labels_dropped_or_insisted_on() -> None:
    bare = conformed(load("digits"), Options(labelled=False))
    assert bare.train.labels is None
    assert bare.test is not None
    assert bare.test.labels is None
    with pytest.raises(ValueError, match="labelled=True, but the rows for training"):
        conformed(bare, Options(labelled=True))
