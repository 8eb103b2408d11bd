"""What the tests of named sets share: no network, and checksums that made-up files cannot have."""

from __future__ import annotations

import os
from typing import Any
from urllib.error import URLError

import pytest


def no_network(*_: Any, **__: Any) -> None:
    raise URLError("no route to host")


def unplug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks the web for something gets an error."""
    monkeypatch.setattr("urllib.request.urlopen", no_network)


def trust_files(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Every file that is there passes torchvision's check in ``module``, and ours of CIFAR's batches."""
    monkeypatch.setattr(f"torchvision.datasets.{module}.check_integrity", lambda path, md5=None: os.path.isfile(path))
    monkeypatch.setattr("kontrast.data.sets.cifar10.matches", lambda content, checksum: True)
