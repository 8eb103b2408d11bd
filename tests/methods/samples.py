"""Small networks and batches for the tests of methods."""

from __future__ import annotations

from typing import Any

import torch

from kontrast import methods, models

N, FEATURES, CLASSES, SAMPLES = 12, 6, 3, 40


def made(name: str, *, seed: int = 0, batch_norm: bool = True, out: int = 5, **options: Any) -> methods.Method:
    """The method over a small perceptron; the head has batch norm where asked for, so that it is not left untested."""
    encoder = models.encoder("mlp", in_features=FEATURES, hidden=8, features=7, batch_norm=batch_norm, seed=seed)
    head = models.MLPHead(7, 8, out, batch_norm=batch_norm)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for part in head.modules():
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()
    small = {"queue": 16, "key_parts": 1, "shuffle_keys": False} if name in ("moco", "ressl", "sce") else {}
    setting = methods.Setting(num_samples=SAMPLES, num_classes=CLASSES, total_steps=20, seed=3)
    return methods.method(name, encoder, head, setting=setting, **{**small, **options})


def views_of(name: str) -> int:
    """How many views the method is given: three or more where it takes any number."""
    kind = methods.find(name)
    return kind.most_views or max(3, kind.fewest_views)


def batch(name: str, *, seed: int = 0, n: int = N) -> methods.ViewBatch:
    """A batch that the method can work on: classes lie apart, and the views of a sample near each other."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % CLASSES
    centres = torch.randn(n, 1, FEATURES, generator=draw) + 2 * torch.eye(CLASSES, FEATURES)[labels][:, None]
    views = centres + 0.2 * torch.randn(n, views_of(name), FEATURES, generator=draw)
    indices = torch.randperm(SAMPLES, generator=draw)[:n]
    return methods.ViewBatch(views, labels, indices, seed)
