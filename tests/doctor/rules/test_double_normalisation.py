"""Normalised twice: pixels, images in files, vectors and features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from tests.doctor import patients


def test_pixels_divided_twice() -> None:
    found = patients.findings("divided")["double-normalisation"]
    assert found.status == "problem"
    assert "divided by 255 twice" in found.evidence
    assert patients.findings("healthy")["double-normalisation"].status == "ok"


def test_images_that_were_normalised_before(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(20, 8, 8, 3)).astype(np.float32)
    np.savez(tmp_path / "normalised.npz", x_train=x, y_train=np.arange(20) % 2)
    np.savez(tmp_path / "plain.npz", x_train=(x - x.min()) / (x.max() - x.min()), y_train=np.arange(20) % 2)
    for name, status in (("normalised", "problem"), ("plain", "ok")):
        found = patients.of_recipe("supcon", f"data={tmp_path / name}.npz", "train.batch_size=8")
        assert found["double-normalisation"].status == status


def test_unit_vectors_that_are_standardised(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(60, 8))
    np.savez(tmp_path / "plain.npz", x_train=x)
    np.savez(tmp_path / "unit.npz", x_train=x / np.linalg.norm(x, axis=1, keepdims=True))
    for name, status in (("plain", "ok"), ("unit", "warning")):
        settings = (f"data={tmp_path / name}.npz", "encoder=mlp", "augment=vector-noise", "train.batch_size=8")
        assert patients.of_recipe("simclr", *settings)["double-normalisation"].status == status


def test_features() -> None:
    x = torch.randn(100, 8, generator=torch.Generator().manual_seed(0))
    assert patients.of_features(x)["double-normalisation"].status == "ok"
    unit = patients.of_features(x / x.norm(dim=1, keepdim=True))["double-normalisation"]
    assert unit.status == "ok"
    assert "changes nothing" in unit.evidence
    assert patients.of_features(x.softmax(1))["double-normalisation"].status == "problem"
