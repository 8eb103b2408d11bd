"""A multi-layer perceptron for feature vectors: tables, or embeddings of another model.

    h = f_depth(… f_1(x))        f_l(x) = ReLU(BN(W_l x)), the last layer without ReLU and BN

The last layer is plain, so that h can point anywhere: after a ReLU no feature would be below 0.
"""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn

from kontrast.checks import size
from kontrast.models.encoders._base import LOAD, MOST_LAYERS, Encoder, ImageSize, height_and_width, loading_code


class MLP(Encoder):
    """Feature vectors ``[N, in_features]`` → ``h [N, features]``. Further dimensions are flattened.

    Args:
        in_features: The length of the vectors; if left out they are the pixels of images.
        hidden: The width of the layers between.
        features: The length of h.
        depth: How many linear layers.
        batch_norm: Whether there is BN between them.
        in_channels: Channels of the images.
        image_size: Their sides.

    Raises:
        ValueError: A number is below 1, or there is neither ``in_features`` nor ``image_size``.

    >>> MLP(in_features=20, features=16)
    MLP(
      (layers): Sequential(
        (0): Linear(in_features=20, out_features=256, bias=False)
        (1): BatchNorm1d(256, eps=1e-05, momentum=0.1, ...)
        (2): ReLU(inplace=True)
        (3): Linear(in_features=256, out_features=16, bias=True)
      )
    )
    """

    plain_prefix = "layers."

    def __init__(
        self,
        *,
        in_features: int | None = None,
        hidden: int = 256,
        features: int = 128,
        depth: int = 2,
        batch_norm: bool = True,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
    ) -> None:
        super().__init__()
        if in_features is None:
            if image_size is None:
                raise ValueError("in_features: must be set, the length of the vectors (or image_size, for pixels)")
            height, width = height_and_width(image_size)
            in_features = size("in_channels", in_channels) * height * width
        self.in_features = size("in_features", in_features)
        self.feature_dim = size("features", features)
        inner = [size("hidden", hidden)] * (size("depth", depth, MOST_LAYERS) - 1)
        *pairs, last = itertools.pairwise([self.in_features, *inner, self.feature_dim])
        layers: list[nn.Module] = []
        for a, b in pairs:
            layers += [nn.Linear(a, b, bias=not batch_norm), *([nn.BatchNorm1d(b)] if batch_norm else [])]
            layers.append(nn.ReLU(inplace=True))
        self.layers = nn.Sequential(*layers, nn.Linear(*last))

    def forward(self, vectors: Tensor) -> Tensor:
        """``vectors [N, …]`` of in_features numbers each → ``h [N, feature_dim]``."""
        rows = vectors.flatten(1) if vectors.ndim > 1 else vectors
        if rows.ndim != 2 or rows.shape[1] != self.in_features:
            raise ValueError(f"vectors has shape {list(vectors.shape)}: must be [N, {self.in_features}]")
        return self.layers(rows)  # type: ignore[no-any-return]

    @classmethod
    def options_for(cls, feature_dim: int) -> dict[str, Any]:
        return {"features": feature_dim}

    def stage_names(self) -> list[list[str]]:
        """Each linear layer with its batch norm."""
        stages: list[list[str]] = []
        for name, layer in self.layers.named_children():
            if isinstance(layer, nn.Linear):
                stages.append([])
            stages[-1].append(f"layers.{name}")
        return stages

    def loading_code(self) -> str:
        layers = ", ".join(_constructor(layer) for layer in self.layers)
        code = loading_code(f"import torch\n{LOAD}", f"torch.nn.Sequential({layers})")
        return f"{code}  # of vectors; of images as model(x.flatten(1))"


def _constructor(layer: nn.Module) -> str:
    """The call that makes a layer, in words that every torch understands."""
    if isinstance(layer, nn.Linear):
        return f"torch.nn.Linear({layer.in_features}, {layer.out_features}, bias={layer.bias is not None})"
    if isinstance(layer, nn.BatchNorm1d):
        return f"torch.nn.BatchNorm1d({layer.num_features})"
    return f"torch.nn.{type(layer).__name__}()"
