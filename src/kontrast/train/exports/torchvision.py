"""torchvision: a state dict that loads into its ResNets, and the lines that construct that ResNet.

A classifier is the ResNet's own ``fc``; the file is then called classifier.pth.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kontrast.files import write_atomically
from kontrast.train.encoder_files import loading_code, plain_state
from kontrast.train.exports._target import Source, Target


class Torchvision(Target):
    """encoder.pth or classifier.pth, a state dict of tensors alone."""

    takes_classifier = True

    def refusal(self, source: Source) -> str | None:
        try:
            with torch.device("meta"):  # no memory, and no random numbers
                source.encoder.torchvision_model()
        except ValueError as error:
            return str(error)
        return None

    def write(self, source: Source, folder: Path) -> str:
        head = source.head
        name = "encoder.pth" if head is None else "classifier.pth"
        buffer = io.BytesIO()
        torch.save({**plain_state(source.encoder), **({} if head is None else head.tensors("fc."))}, buffer)
        write_atomically(folder / name, buffer.getvalue())
        with torch.random.fork_rng(devices=[]):  # a network's first weights are drawn
            model: Any = source.encoder.torchvision_model()
        if head is not None:
            model.fc = head.linear()
        model.load_state_dict(torch.load(folder / name, weights_only=True))
        model.eval()
        lines = loading_code(source.encoder, source.name, source.options, source.shape)
        load = f'torch.load("{name}", weights_only=True)'
        lines = lines.replace('load_file("encoder.safetensors")', load)
        lines = lines.replace("from safetensors.torch import load_file\n", "")
        if head is not None:
            source.check_predictions(model, "torchvision's model")
            layer = f"model.fc = torch.nn.Linear({model.fc.in_features}, {model.fc.out_features})"
            lines = lines.replace("model.fc = torch.nn.Identity()", layer)
            model.fc = nn.Identity()
        source.check_features(model, "torchvision's model")
        return lines
