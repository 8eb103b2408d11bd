"""Features, kNN, retrieval, linear probes: an encoder or a file of embeddings in, numbers with their protocol out.

>>> import torch
>>> from kontrast import evaluate
>>> corners = torch.eye(6).repeat_interleave(10, 0)
>>> noisy = [corners + 0.3 * torch.randn(60, 6, generator=torch.Generator().manual_seed(s)) for s in (0, 1)]
>>> labels = torch.arange(6).repeat_interleave(10)
>>> subject = evaluate.Subject.from_features(noisy[0], labels, noisy[1], labels)
>>> print(evaluate.evaluate(subject, "knn20"))
95.00 % ± 2.81: kNN, k = 20, weights exp(s/0.07), cosine; train: 60 rows, test: 60 rows, seed 0
"""

from kontrast.evaluate.baselines import affordable, baselines
from kontrast.evaluate.classifier import Classifier
from kontrast.evaluate.features import extract
from kontrast.evaluate.heads import Heads, train_heads
from kontrast.evaluate.neighbours import nearest, nearest_others, votes
from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.protocols import PROTOCOLS, evaluate, fit_classifier, names
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject, feature_rows, hold_out

__all__ = [
    "PROTOCOLS",
    "Classifier",
    "Heads",
    "Progress",
    "Protocol",
    "Result",
    "Subject",
    "affordable",
    "baselines",
    "evaluate",
    "extract",
    "feature_rows",
    "fit_classifier",
    "hold_out",
    "names",
    "nearest",
    "nearest_others",
    "train_heads",
    "votes",
]
