"""A multi-layer perceptron for feature vectors: tables, or embeddings of another model.

    h = f_depth(… f_1(x))        f_l(x) = ReLU(BN(W_l x)), the last layer without ReLU and BN

The last layer is plain, so that h can point anywhere: after a ReLU no feature would be below 0.
"""

from __future__ import annotations

import itertools

from torch import Tensor, nn

from kontrast.models._options import MOST_LAYERS, positive
from kontrast.models.encoders._base import Encoder, ImageSize, height_and_width


class MLP(Encoder):
    """Feature vectors ``[N, in_features]`` → ``h [N, features]``; ``depth`` linear layers, ``hidden`` wide.

    Without ``in_features`` they are the pixels of images of ``in_channels`` and ``image_size``. Anything beyond one
    dimension is flattened.

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
                raise ValueError("mlp needs in_features, the length of the vectors (or image_size, for pixels)")
            height, width = height_and_width(image_size)
            in_features = positive("in_channels", in_channels) * height * width
        self.in_features = positive("in_features", in_features)
        self.feature_dim = positive("features", features)
        inner = [positive("hidden", hidden)] * (positive("depth", depth, MOST_LAYERS) - 1)
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
            raise ValueError(f"vectors of shape {list(vectors.shape)}: this mlp takes [N, {self.in_features}]")
        return self.layers(rows)  # type: ignore[no-any-return]
