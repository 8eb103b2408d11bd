"""One loss a file, its equations on top; tensors in, numbers out.

>>> from kontrast import losses
>>> losses.FAMILY.names()
['cross-entropy', 'hard-contrastive', ...]
>>> losses.FAMILY["supcon"](temperature=0.07)
SupConLoss(temperature=0.07)
"""

from kontrast.losses import functional
from kontrast.losses._base import Loss
from kontrast.losses._limits import Batch, Limits
from kontrast.losses._relations import SCETerms
from kontrast.losses.cross_entropy import CrossEntropyLoss
from kontrast.losses.hard_contrastive import HardContrastiveLoss
from kontrast.losses.info_nce import InfoNCELoss, cold_limit, hot_limit
from kontrast.losses.nt_xent import NTXentLoss
from kontrast.losses.ressl import ReSSLLoss
from kontrast.losses.sce import SCELoss, sce_terms
from kontrast.losses.simple_contrastive import SimpleContrastiveLoss
from kontrast.losses.simplex_cross_entropy import SimplexCrossEntropyLoss
from kontrast.losses.supcon import SupConLoss
from kontrast.losses.tcl import TCLLoss
from kontrast.registry import FAMILIES

FAMILY = FAMILIES["loss"]

__all__ = [
    "FAMILY",
    "Batch",
    "CrossEntropyLoss",
    "HardContrastiveLoss",
    "InfoNCELoss",
    "Limits",
    "Loss",
    "NTXentLoss",
    "ReSSLLoss",
    "SCELoss",
    "SCETerms",
    "SimpleContrastiveLoss",
    "SimplexCrossEntropyLoss",
    "SupConLoss",
    "TCLLoss",
    "cold_limit",
    "functional",
    "hot_limit",
    "sce_terms",
]
