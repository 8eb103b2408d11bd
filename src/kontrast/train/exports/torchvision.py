"""torchvision: a state dict that loads into its ResNets, and the lines that make the ResNet it is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch

from kontrast.files import write_atomically
from kontrast.train.export import loading, plain_state, small_stem
from kontrast.train.exports._target import Source, Target


class Torchvision(Target):
    """encoder.pth, a state dict of tensors alone."""

    def refusal(self, source: Source) -> str | None:
        """Only its ResNets are torchvision's."""
        return None if source.is_resnet else "torchvision has no such network"

    def write(self, source: Source, folder: Path) -> str:
        """Loaded into torchvision's network, and its features compared."""
        buffer = io.BytesIO()
        torch.save(plain_state(source.encoder, source.name), buffer)
        write_atomically(folder / "encoder.pth", buffer.getvalue())
        with torch.random.fork_rng(devices=[]):  # a network's first weights are drawn
            model = _network(source)
        model.load_state_dict(torch.load(folder / "encoder.pth", weights_only=True))
        source.compare(model.eval(), "torchvision's model")
        lines = loading(source.encoder, source.name, source.options, source.shape)
        read = 'torch.load("encoder.pth", weights_only=True)'
        return lines.replace('load_file("encoder.safetensors")', read).replace(
            "from safetensors.torch import load_file\n", ""
        )


def _network(source: Source) -> Any:
    """The ResNet of torchvision that the lines make."""
    import torchvision  # type: ignore[import-untyped]

    model = getattr(torchvision.models, source.name)()
    channels = source.shape[0]
    if small_stem(source.encoder):
        model.conv1 = torch.nn.Conv2d(channels, 64, 3, stride=1, padding=1, bias=False)
        model.maxpool = torch.nn.Identity()
    elif channels != 3:
        model.conv1 = torch.nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
    model.fc = torch.nn.Identity()
    return model
