"""Encoders, heads, the momentum pair, queue, memory bank, weights from disk, batch norm across ranks.

Each is a module or a function of its own, usable in any loop.

>>> import torch
>>> from kontrast import models
>>> encoder = models.encoder("small-resnet", in_channels=1, image_size=28, seed=0)
>>> head = models.head("tcl", in_dim=encoder.feature_dim, seed=1)
>>> head(encoder(torch.zeros(4, 1, 28, 28))).shape
torch.Size([4, 128])
"""

from kontrast.models.batch_norm import (
    SplitBatchNorm,
    SyncBatchNorm,
    shuffle_keys,
    split_batch_norm,
    sync_batch_norm,
    unshuffle,
)
from kontrast.models.encoders import FAMILY, Encoder, encoder, missing_error, names, norm_of, refuse_tag, takes_vectors
from kontrast.models.encoders._base import ImageEncoder, seeded
from kontrast.models.heads import HEADS, LinearHead, MLPHead, NoHead, head
from kontrast.models.memory_bank import MemoryBank
from kontrast.models.momentum import MomentumPair, momentum_at
from kontrast.models.preprocessing import Preprocessing
from kontrast.models.pretrained import Weights, find_weights
from kontrast.models.published import Published
from kontrast.models.queue import Queue
from kontrast.models.weights import Loaded, fit_weights, load_weights

__all__ = [
    "FAMILY",
    "HEADS",
    "Encoder",
    "ImageEncoder",
    "LinearHead",
    "Loaded",
    "MLPHead",
    "MemoryBank",
    "MomentumPair",
    "NoHead",
    "Preprocessing",
    "Published",
    "Queue",
    "SplitBatchNorm",
    "SyncBatchNorm",
    "Weights",
    "encoder",
    "find_weights",
    "fit_weights",
    "head",
    "load_weights",
    "missing_error",
    "momentum_at",
    "names",
    "norm_of",
    "refuse_tag",
    "seeded",
    "shuffle_keys",
    "split_batch_norm",
    "sync_batch_norm",
    "takes_vectors",
    "unshuffle",
]
