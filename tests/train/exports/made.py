"""Run folders without a training: an encoder as after one, its card, and a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn

import kontrast
from kontrast import models
from kontrast.files import write_json
from kontrast.train.encoder_files import loading_code, plain_state

RESULT = {
    "weights": "last, step 9",
    "results": [
        {
            "name": "knn20",
            "protocol": "kNN, k = 20 | cosine",
            "value": 0.875,
            "error": 0.01,
            "split": "test",
            "train_rows": 100,
            "test_rows": 1200,
            "epochs": None,
            "seed": 3,
            "confusion": [[1]],
        }
    ],
}


def made(folder: Path, name: str, shape: tuple[int, ...], **options: Any) -> Path:
    """A folder with the encoder ``name`` for inputs of ``shape``; running statistics are not those of the start."""
    folder.mkdir(parents=True, exist_ok=True)
    if len(shape) == 1:
        encoder = models.encoder(name, in_features=shape[0], seed=1, **options)
    else:
        encoder = models.encoder(name, in_channels=shape[0], image_size=shape[1], seed=1, **options)
    draws = torch.Generator().manual_seed(2)
    for part in encoder.modules():
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.copy_(0.2 * torch.randn(part.num_features, generator=draws))
            part.running_var.copy_(0.5 + torch.rand(part.num_features, generator=draws))
    save_file(plain_state(encoder), folder / "encoder.safetensors")
    if name == "small-resnet":
        options = {"width": 16, "depth": 1, **options}
    card = {
        "encoder": {"name": name, **options},
        "input": {
            "kind": "vector" if len(shape) == 1 else "image",
            "shape": list(shape),
            "range": "",
            "mean": [0.3 + 0.1 * i for i in range(shape[0])],
            "std": [0.2 + 0.05 * i for i in range(shape[0])],
        },
        "feature_dim": encoder.feature_dim,
        "recipe": "made-up",
        "hash": "0123abcd",
        "method": {"name": "supcon", "temperature": 0.1},
        "data": {"name": "pets", "note": "pictures of pets", "classes": ["cat", "<b>dog</b>"]},
        "kontrast": kontrast.__version__,
        "load": loading_code(encoder, name, options, shape),
    }
    write_json(folder / "model.json", card)
    write_json(folder / "result.json", RESULT)
    return folder


def normalised(x: torch.Tensor, card: dict[str, Any]) -> torch.Tensor:
    """By hand: (x − mean) / std, channel by channel."""
    mean, std = (torch.tensor(card["input"][key]) for key in ("mean", "std"))
    shape = (-1, *[1] * (x.ndim - 2))
    return (x - mean.view(shape)) / std.view(shape)
