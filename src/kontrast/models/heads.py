"""Heads: the layers between the features h and the loss, as each paper defines them.

A head is linear layers; between two of them stands [BN–]ReLU. Where batch norm follows, the linear layer has no bias
(the norm would take it away again).

| name | layers | whose |
|---|---|---|
| none | h itself | graf: the encoder's output goes into the loss |
| wang-liu | Linear(d, 128) | wang-liu, "linear projection head" |
| tcl | Linear(d, d)–ReLU–Linear(d, 128) | tcl and SupCon with labels |
| tcl-ssl | Linear(d, 2048)–ReLU–Linear(2048, 256) | tcl without labels, solo-learn's SimCLR |
| sce | Linear(d, 512)–BN–ReLU–Linear(512, 256) | sce, small and medium sets |
| sce-imagenet | Linear(d, 2048)–BN–ReLU–Linear(2048, 2048)–BN–ReLU–Linear(2048, 256)–BN | sce, ImageNet |
| sce-predictor | Linear(d, 4096)–BN–ReLU–Linear(4096, 256) | sce, ImageNet, after the online projector |

The last BN of sce-imagenet has no weight and bias; neither of its linear layers nor of the predictor's has a bias.
Every head's output goes to the loss as it is: the losses normalise.

Deviates: sce's text has 256 outputs on small sets, its published configuration 128; 256 here, ``out=128`` for the
other. sce's multi-crop runs have ``hidden=4096`` in the ImageNet projector.
"""

from __future__ import annotations

import itertools
from typing import Any

from torch import Tensor, nn

from kontrast.checks import size
from kontrast.models.encoders._base import MOST_LAYERS, seeded
from kontrast.registry import FAMILIES


class LinearHead(nn.Module):
    """One linear layer, ``h [N, in_dim] → z [N, out]``.

    Args:
        in_dim: The length of the features.
        out: The length of z.
        bias: Whether it has a bias.

    Raises:
        ValueError: A length is below 1.

    >>> import torch
    >>> LinearHead(512)(torch.zeros(2, 512)).shape
    torch.Size([2, 128])
    """

    def __init__(self, in_dim: int, out: int = 128, *, bias: bool = True) -> None:
        super().__init__()
        self.in_dim, self.out_dim = size("in_dim", in_dim), size("out", out)
        self.linear = nn.Linear(self.in_dim, self.out_dim, bias=bias)

    def forward(self, features: Tensor) -> Tensor:
        """``features [N, in_dim]`` → ``[N, out]``."""
        return self.linear(features)  # type: ignore[no-any-return]


class MLPHead(nn.Module):
    """Linear layers with [BN and] ReLU between them, ``h [N, in_dim] → z [N, out]``.

    Args:
        in_dim: The length of the features.
        hidden: The width of the inner layers; ``in_dim`` if left out.
        out: The length of z.
        layers: How many linear layers.
        batch_norm: Whether BN follows every linear layer but the last.
        bias: Whether the linear layers without a following BN have a bias.
        last_bias: The same for the last one; ``bias`` if left out.
        last_batch_norm: Whether BN follows the last linear layer.
        last_affine: Whether that BN has a weight and a bias.

    Raises:
        ValueError: A number is below 1.

    >>> MLPHead(512, 512, 256, batch_norm=True).layers
    Sequential(
      (0): Linear(in_features=512, out_features=512, bias=False)
      (1): BatchNorm1d(512, eps=1e-05, momentum=0.1, ...)
      (2): ReLU(inplace=True)
      (3): Linear(in_features=512, out_features=256, bias=True)
    )
    """

    def __init__(
        self,
        in_dim: int,
        hidden: int | None = None,
        out: int = 128,
        layers: int = 2,
        *,
        batch_norm: bool = False,
        bias: bool = True,
        last_bias: bool | None = None,
        last_batch_norm: bool = False,
        last_affine: bool = False,
    ) -> None:
        super().__init__()
        self.in_dim, self.out_dim = size("in_dim", in_dim), size("out", out)
        inner = [self.in_dim if hidden is None else size("hidden", hidden)] * (size("layers", layers, MOST_LAYERS) - 1)
        *pairs, (a, b) = itertools.pairwise([self.in_dim, *inner, self.out_dim])
        modules: list[nn.Module] = []
        for i, o in pairs:
            modules.append(nn.Linear(i, o, bias=bias and not batch_norm))
            modules += [nn.BatchNorm1d(o), nn.ReLU(inplace=True)] if batch_norm else [nn.ReLU(inplace=True)]
        modules.append(nn.Linear(a, b, bias=(bias if last_bias is None else last_bias) and not last_batch_norm))
        if last_batch_norm:
            modules.append(nn.BatchNorm1d(self.out_dim, affine=last_affine))
        self.layers = nn.Sequential(*modules)

    def forward(self, features: Tensor) -> Tensor:
        """``features [N, in_dim]`` → ``[N, out]``."""
        return self.layers(features)  # type: ignore[no-any-return]


class NoHead(nn.Identity):
    """The features themselves, as a head.

    Args:
        in_dim: The length of the features.

    Raises:
        ValueError: ``in_dim`` is below 1.

    >>> NoHead(512).out_dim
    512
    """

    def __init__(self, in_dim: int) -> None:
        super().__init__()
        self.in_dim = self.out_dim = size("in_dim", in_dim)


ENTRIES: dict[str, tuple[type[nn.Module], dict[str, Any], str]] = {
    "none": (NoHead, {}, "The encoder's output itself goes into the loss (graf)."),
    "wang-liu": (LinearHead, {"out": 128}, "One linear layer (wang-liu)."),
    "tcl": (MLPHead, {"out": 128}, "Two linear layers (tcl and SupCon, with labels)."),
    "tcl-ssl": (
        MLPHead,
        {"hidden": 2048, "out": 256},
        "Two linear layers, 2,048 wide (tcl without labels, solo-learn's SimCLR).",
    ),
    "sce": (
        MLPHead,
        {"hidden": 512, "out": 256, "batch_norm": True},
        "Two linear layers with batch norm (sce, small and medium sets).",
    ),
    "sce-imagenet": (
        MLPHead,
        {"hidden": 2048, "out": 256, "layers": 3, "batch_norm": True, "last_batch_norm": True},
        "Three linear layers with batch norm, after the last one too (sce, ImageNet).",
    ),
    "sce-predictor": (
        MLPHead,
        {"hidden": 4096, "out": 256, "batch_norm": True, "last_bias": False},
        "Two linear layers with batch norm, behind the online projector (sce, ImageNet).",
    ),
}
"""The heads by name: the class, the paper's options, and a line about it."""
HEADS = FAMILIES["head"]


def head(name: str, in_dim: int, *, seed: int | None = None, **options: Any) -> nn.Module:
    """The head of this name.

    Args:
        name: one of `HEADS`.
        in_dim: the length of the features that go into it.
        seed: fixes the random start; without it, torch's own generator is used.
        **options: change those of the paper (``HEADS.options(name)``).

    Returns:
        The head.

    Raises:
        ValueError: an unknown name or option; the error names the nearest one.

    >>> head("tcl", in_dim=512).out_dim, head("sce", in_dim=512, out=128).out_dim
    (128, 128)
    >>> head("tlc", in_dim=512)
    Traceback (most recent call last):
        ...
    ValueError: no head 'tlc'; did you mean 'tcl'? Known: none, wang-liu, tcl, tcl-ssl, sce, sce-imagenet, sce-predictor
    """
    with seeded(seed):
        return HEADS.make(name, in_dim, **options)  # type: ignore[no-any-return]
