"""Every loss as a function: tensors and options in, a tensor out. The classes of `kontrast.losses` store the options.

>>> import torch
>>> from kontrast.losses import functional
>>> z, labels = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([7, 7, 3])
>>> functional.supcon(z, labels, temperature=1.0)  # SupConLoss(temperature=1.0)(z, labels)
tensor(0.3133)
"""

from kontrast.losses.cross_entropy import cross_entropy
from kontrast.losses.hard_contrastive import hard_contrastive
from kontrast.losses.info_nce import info_nce
from kontrast.losses.nt_xent import nt_xent
from kontrast.losses.ressl import ressl
from kontrast.losses.sce import sce
from kontrast.losses.simple_contrastive import simple_contrastive
from kontrast.losses.simplex_cross_entropy import simplex_cross_entropy
from kontrast.losses.supcon import supcon
from kontrast.losses.tcl import tcl

__all__ = [
    "cross_entropy",
    "hard_contrastive",
    "info_nce",
    "nt_xent",
    "ressl",
    "sce",
    "simple_contrastive",
    "simplex_cross_entropy",
    "supcon",
    "tcl",
]
