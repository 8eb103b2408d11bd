"""Are the training labels fitted? The question of Graf et al.'s random labels: after how many steps they are.

Every ``train.fit_every`` steps the plain training rows go through the encoder in eval mode. A method with a classifier
of its own (cross-entropy) predicts with it; of any other a linear classifier is retrained on the features, as the
published code does at each of its evaluations (`GrafLinear`, 1,000 iterations on unit rows). Fitted means that every
row is predicted as labelled; training stops there. A run that reaches its last step unfitted is censored.

Deviates: the paper does not state when the training set counts as fitted; here it is at 100 %.
"""

from __future__ import annotations

import torch

from kontrast.evaluate.protocols.graf_linear import GrafLinear
from kontrast.losses import CrossEntropyLoss, SimplexCrossEntropyLoss
from kontrast.losses._inputs import unit
from kontrast.train.job import Job
from kontrast.train.watching import features

ITERATIONS = 1000  # of the classifier, at each question


class Fit:
    """``fit()`` is the share of training rows that are predicted as labelled, now."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.labels = job.train.require_labels("train.fit_every")

    @torch.no_grad()
    def __call__(self) -> float:
        """The share now; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        h = features(job, job.train)
        loss = method.loss
        if isinstance(loss, CrossEntropyLoss | SimplexCrossEntropyLoss):
            z = method.online.head(h.to(job.device)).float().cpu()
            scores = z @ loss.weight.float().cpu().T
        else:
            z = unit(h)
            w = GrafLinear(iterations=ITERATIONS).fit(
                z, self.labels, job.data.num_classes, seed=job.recipe.seed, progress=None
            )
            scores = z @ w.T
        method.train()
        return float((scores.argmax(1) == self.labels).double().mean())
