"""Photos with copies and leaks, and an encoder of random weights that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kontrast import models
from kontrast.train import preparing
from tests.explore.made import photos
from tests.report.browser import Browser, started


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """56 photos of three classes, in train and test."""
    return photos(tmp_path_factory.mktemp("explore") / "photos")


@pytest.fixture(scope="session")
def encoder() -> models.Encoder:
    """Random weights tell colours apart, which is what the classes are."""
    net = models.encoder("small-resnet", width=8, seed=0, image_size=32).eval()
    net.preprocessing = models.Preprocessing(32, (0.5,) * 3, (0.25,) * 3, "bilinear", 1.0)
    net.embedder = preparing.embed
    return net


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with its module: playwright keeps an event loop running meanwhile."""
    with started() as found:
        yield found
