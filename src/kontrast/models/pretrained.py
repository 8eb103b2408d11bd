"""What ``encoder.pretrained`` names: a file, a run's folder, or weights that the encoder's library publishes.

| ``pretrained`` | weights | preprocessing |
|---|---|---|
| ``True`` | timm's of the name and tag, torchvision's ``DEFAULT`` | timm's configuration, torchvision's transforms |
| ``"IMAGENET1K_V1"``, ``"a1_in1k"`` | torchvision's of this name, timm's of this tag | the same |
| a run's folder, or its encoder.safetensors | the run's | its model.json |
| another file, for ``timm/…`` | the file's | timm's configuration of the name and tag |
| another file, for a ResNet | the file's | torchvision's, if the file has the name of a file of theirs (``resnet50-11ad3fa6.pth``) |
| any other file | the file's | unknown |

>>> find_weights("resnet18", "IMAGENET1K_V1").preprocessing.size
224
>>> find_weights("resnet18", "IMAGENET1K_V2")
Traceback (most recent call last):
    ...
ValueError: encoder.pretrained=IMAGENET1K_V2: torchvision has no weights 'IMAGENET1K_V2' of resnet18; did you mean ...
"""  # noqa: E501 (a table)

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from kontrast.files import expanded
from kontrast.models.preprocessing import Preprocessing
from kontrast.models.published import Published
from kontrast.registry import FAMILIES, quoted
from kontrast.runs import Run

WEIGHTS = "encoder.safetensors"  # of a run's folder
NAME = re.compile(r"[A-Z]+|[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")  # DEFAULT, IMAGENET1K_V2, a1_in1k: no file has such a name


@dataclass(frozen=True)
class Weights:
    """The weights that an encoder starts from.

    Attributes:
        label: ``pretrained`` as a recipe writes it.
        source: The file or folder, or what the library publishes.
        preprocessing: What their images went through; None if nobody says it.
    """

    label: str
    source: Path | Published | Mapping[str, Any]
    preprocessing: Preprocessing | None

    @property
    def name(self) -> str:
        """What they are called in reports."""
        if isinstance(self.source, Published):
            return self.source.name
        return "a mapping" if isinstance(self.source, Mapping) else str(self.source)

    def content(self, network: nn.Module) -> Path | Mapping[str, Any]:
        """What `kontrast.models.load_weights` takes: the file, or the published tensors.

        Raises:
            ValueError: They are not in the library's cache and cannot be downloaded.
        """
        return self.source.tensors(network) if isinstance(self.source, Published) else self.source


def find_weights(name: str, pretrained: str | os.PathLike[str] | bool | Mapping[str, Any] | None) -> Weights | None:
    """Find the weights that ``pretrained`` names for an encoder; nothing is read or downloaded yet.

    Args:
        name: The encoder's name.
        pretrained: As in the table above.

    Returns:
        The weights; None for a random start.

    Raises:
        ValueError: The encoder's library publishes none, or none of this name.
    """
    if pretrained is None or pretrained is False:
        return None
    kind = FAMILIES["encoder"][name]
    if isinstance(pretrained, Mapping):
        return Weights("a mapping", pretrained, kind.preprocessing_of_file(name, Path()))
    if pretrained is True or pretrained in ("true", "True"):
        published = kind.published(name)
        if published is None:
            raise ValueError(
                f"encoder.pretrained=true: nobody publishes weights for encoder {name}. Use encoder.pretrained=FILE, "
                "or timm/… or a ResNet (resnet18 …)"
            )
        return Weights("true", published, published.preprocessing)
    if not isinstance(pretrained, str | os.PathLike):
        raise ValueError(
            f"encoder.pretrained={quoted(pretrained)}: must be true, a file, a run's folder, or the name of weights"
        )
    label = os.fspath(pretrained)
    path = expanded(label, "encoder.pretrained")
    if not path.exists() and NAME.fullmatch(label):
        try:
            published = kind.published(name, label)
        except ValueError as error:
            raise ValueError(f"encoder.pretrained={label}: {error}. There is no file of this name either") from None
        if published is not None:
            return Weights(label, published, published.preprocessing)
    folder = path if path.is_dir() else path.parent if path.name == WEIGHTS else None
    if folder is not None and (run := Run(folder)).card_file.is_file() and run.weights_file.is_file():
        return Weights(label, path, Preprocessing.of_card(run.card.input.model_dump()))
    return Weights(label, path, kind.preprocessing_of_file(name, path))
