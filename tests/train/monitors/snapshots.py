"""Snapshots for the monitors' tests."""

from __future__ import annotations

from typing import Any

import torch

from kontrast.train.monitors import Snapshot


def snapshot(m: int = 40, views: int = 2, dim: int = 8, **changed: Any) -> Snapshot:
    """Random rows of four classes, everything there."""
    draw = torch.Generator().manual_seed(0)
    given: dict[str, Any] = {
        "features": torch.randn(m, 12, generator=draw),
        "embeddings": torch.randn(m, views, dim, generator=draw),
        "labels": torch.arange(m) % 4,
        "reference": torch.randn(60, 12, generator=draw),
        "reference_labels": torch.arange(60) % 4,
        "temperature": 0.2,
    }
    return Snapshot(**{**given, **changed})
