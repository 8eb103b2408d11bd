"""torchvision: a state dict that loads into its ResNets, and the lines that construct that ResNet."""

from __future__ import annotations

import io
from pathlib import Path

import torch

from kontrast.files import write_atomically
from kontrast.train.encoder_files import loading_code, plain_state
from kontrast.train.exports._target import Source, Target


class Torchvision(Target):
    """encoder.pth, a state dict of tensors alone."""

    def refusal(self, source: Source) -> str | None:
        try:
            with torch.device("meta"):  # no memory, and no random numbers
                source.encoder.torchvision_model()
        except ValueError as error:
            return str(error)
        return None

    def write(self, source: Source, folder: Path) -> str:
        buffer = io.BytesIO()
        torch.save(plain_state(source.encoder), buffer)
        write_atomically(folder / "encoder.pth", buffer.getvalue())
        with torch.random.fork_rng(devices=[]):  # a network's first weights are drawn
            model = source.encoder.torchvision_model()
        model.load_state_dict(torch.load(folder / "encoder.pth", weights_only=True))
        source.check_features(model.eval(), "torchvision's model")
        lines = loading_code(source.encoder, source.name, source.options, source.shape)
        load = 'torch.load("encoder.pth", weights_only=True)'
        return lines.replace('load_file("encoder.safetensors")', load).replace(
            "from safetensors.torch import load_file\n", ""
        )
