r"""Are the training labels fitted? The question of Graf et al.'s random labels: after how many steps they are.

Every ``train.fit_every`` steps the plain training rows go through the encoder in eval mode, and a linear classifier is
fitted anew on the frozen features z_i ∈ S^{D−1}, the same for every method, whatever classifier it trains itself:

    (1)  W⁰ = s (M − M̄),                  rows of M the class means of z, M̄ their mean, s = `SCALE`
    (2)  min_W  −(1/N) Σ_i log softmax(s W z_i)_{y_i} + `PENALTY` ‖W‖²      by L-BFGS from W⁰, `ITERATIONS` at most
    (3)  fitted: argmax_k ⟨w_k, z_i⟩ = y_i for every i;  training stops there

(2) is convex, so that it comes near the answer to "can a linear classifier without bias tell the labels apart?", and it
draws nothing at random: a resumed run sees what an uninterrupted one does. Rows are brought to length 1, which takes
nothing from methods that do not normalise: (3) does not depend on the length of z_i. The iterations end as soon as (3)
is met. A run that reaches its last step unfitted is censored.

Deviates: the paper does not state when the training set counts as fitted; here it is at 100 %. Its code retrains a
linear classifier at each evaluation by 1,000 steps of SGD. That one lags: on 2,000 images with random labels and
cross-entropy it found 90 % where the nearest class mean and the method's own classifier had every row right, for more
time than (2) takes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.eager import LBFGS
from kontrast.sphere import unit
from kontrast.train import interaction
from kontrast.train.job import Job
from kontrast.train.watching import features

ITERATIONS, AT_ONCE = 100, 20  # of L-BFGS; how many before (3) is looked at
SCALE, PENALTY = 10.0, 1e-6


class Fit:
    """``fit()`` is the share of training rows that a freshly fitted classifier predicts as labelled, now.

    For the supervised contrastive loss the interaction of rows stands beside it (`kontrast.train.interaction`).
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.labels = job.train.require_labels("train.fit_every")

    @torch.no_grad()
    def __call__(self) -> dict[str, float]:
        """``fitted``, and ``interaction/…`` where there is one; the method is left in train mode."""
        job, method = self.job, self.job.method
        method.eval()
        h = features(job, job.train)
        weight = fit_linear(unit(h), self.labels, job.data.num_classes)
        values = {"fitted": share_predicted(unit(h), self.labels, weight)}
        tau = method.interaction_temperature
        if tau is not None:
            z = unit(method.online.head(h.to(job.device)).float().cpu())
            batch = job.recipe.train.batch_size
            values |= interaction.measure(z, self.labels, tau, batch_size=batch, seed=job.recipe.seed)
        method.train()
        return values


def fit_linear(z: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """(2): the weights ``[K, D]`` for unit rows ``z [N, D]``.

    >>> z = unit(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]))
    >>> labels = torch.tensor([0, 1, 1, 0])  # no linear classifier without bias has all four
    >>> share_predicted(z, labels, fit_linear(z, labels, 2)) < 1
    True
    """
    counts = torch.bincount(labels, minlength=num_classes).clamp_min(1)
    means = torch.zeros(num_classes, z.shape[1], dtype=z.dtype).index_add_(0, labels, z) / counts[:, None]
    w = SCALE * (means - means.mean(0))  # (1)
    w.requires_grad_()
    solver = LBFGS([w], max_iter=AT_ONCE, history_size=10, line_search_fn="strong_wolfe")

    def objective() -> Tensor:
        solver.zero_grad()
        value = F.cross_entropy(SCALE * z @ w.T, labels) + PENALTY * w.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    for _ in range(0, ITERATIONS, AT_ONCE):
        if share_predicted(z, labels, w) == 1.0:
            break
        with torch.enable_grad():
            solver.step(objective)  # type: ignore[no-untyped-call]
    return w.detach()


@torch.no_grad()
def share_predicted(z: Tensor, labels: Tensor, weight: Tensor) -> float:
    """The share of rows of which (3) is right."""
    return float(((z @ weight.T).argmax(1) == labels).double().mean())
