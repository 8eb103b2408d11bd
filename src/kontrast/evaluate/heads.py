r"""Many linear classifiers on the same features, trained at once.

Head g of G has weights W_g [D, K] and bias b_g [K], a learning rate η_g and a weight decay λ_g. A batch X [n, D] goes
through all of them in one matrix product, and so do its gradients:

    (1)  Z = X [W_1 … W_G] + [b_1 … b_G]                        [n, K·G]
    (2)  ∂/∂W_g = Xᵀ (softmax(Z_g) − Y)/n + λ_g W_g,            ∂/∂b_g = mean of (softmax(Z_g) − Y)
    (3)  v ← μ v + ∂,   W ← W − η_g(t) (∂ + μ v),               η_g(t) = η_g (1 + cos(π t/T))/2

(SGD with Nesterov momentum μ and a cosine over all T steps, from zero weights; the bias has no decay.) Heads lie
innermost in memory, [D, K, G], so that the softmax over K runs along all heads at once.

Features should be standardised: then one learning rate fits all directions, whatever the encoder's scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kontrast.data import generator

ORDER = 100  # the stream of the rows' order; own purposes count from 100


class Heads(NamedTuple):
    """G linear classifiers: ``weight [G, K, D]``, ``bias [G, K]``.

    >>> heads = Heads(torch.eye(2)[None], torch.zeros(1, 2))
    >>> heads.scores(torch.tensor([[3.0, 4.0]]), head=0)
    tensor([[3., 4.]])
    """

    weight: Tensor
    bias: Tensor

    def scores(self, x: Tensor, head: int) -> Tensor:
        """One head's logits ``[n, K]`` of features ``x [n, D]``."""
        return torch.addmm(self.bias[head], x, self.weight[head].T)


@torch.no_grad()
def train_heads(
    x: Tensor,
    labels: Tensor,
    num_classes: int,
    *,
    learning_rates: Sequence[float],
    weight_decays: Sequence[float],
    epochs: int,
    batch_size: int = 512,
    momentum: float = 0.9,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> Heads:
    """Train a head for each pair of a learning rate and a weight decay (1)–(3).

    Args:
        x: Features, float ``[N, D]``, standardised.
        labels: int64 ``[N]``.
        num_classes: K.
        learning_rates: One for each head.
        weight_decays: As many.
        epochs: Passes over the rows.
        batch_size: Rows of a step.
        momentum: Nesterov momentum.
        seed: Decides, with the epoch, the order of the rows.
        progress: Called with ``(done, of)`` after each epoch.

    Returns:
        The heads.

    Raises:
        ValueError: Lists of different lengths, or empty ones.

    >>> x = torch.tensor([[-1.0], [1.0]]).repeat(8, 1)
    >>> heads = train_heads(x, torch.tensor([0, 1]).repeat(8), 2, learning_rates=[0.1, 1.0], weight_decays=[0.0, 0.0],
    ...                     epochs=5)
    >>> heads.weight.shape, heads.scores(x[:2], 1).argmax(1)
    (torch.Size([2, 2, 1]), tensor([0, 1]))
    """
    if len(learning_rates) != len(weight_decays) or not len(learning_rates):
        raise ValueError(
            f"{len(learning_rates)} learning rates and {len(weight_decays)} weight decays; expected one pair a head"
        )
    rows, dim, count = len(x), x.shape[1], len(learning_rates)
    size = min(batch_size, rows)
    # Rates and decays as wide as the weights: without broadcasting an update is a fifth of the time.
    rate, decay = (torch.tensor(v, dtype=x.dtype, device=x.device) for v in (learning_rates, weight_decays))
    rates, decays = (v.repeat(dim, num_classes) for v in (rate, decay))
    w, v, grad = (x.new_zeros(dim, num_classes * count) for _ in range(3))
    b, vb = (x.new_zeros(num_classes, count) for _ in range(2))
    batch, z = x.new_empty(size, dim), x.new_empty(size, num_classes * count)
    steps, step, place = math.ceil(rows / size), 0, torch.arange(size, device=x.device)
    for epoch in range(epochs):
        order = torch.randperm(rows, generator=generator(seed, ORDER, epoch)).to(x.device)
        for start in range(0, rows, size):
            picks = order[start : start + size]
            n = len(picks)
            here, logits = batch[:n], z[:n]
            torch.index_select(x, 0, picks, out=here)
            torch.addmm(b.view(-1), here, w, out=logits)  # (1)
            p = logits.view(n, num_classes, count)
            torch.softmax(p, 1, out=p)
            p[place[:n], labels[picks]] -= 1.0
            torch.mm(here.T, logits, out=grad)  # (2), n times
            grad.div_(n).addcmul_(w, decays)
            gb = p.mean(0)
            cosine = 0.5 * (1 + math.cos(math.pi * step / (epochs * steps)))
            v.mul_(momentum).add_(grad)  # (3)
            w.addcmul_(grad.add_(v, alpha=momentum), rates, value=-cosine)
            vb.mul_(momentum).add_(gb)
            b.addcmul_(gb.add_(vb, alpha=momentum), rate, value=-cosine)
            step += 1
        if progress is not None:
            progress(epoch + 1, epochs)
    return Heads(w.view(dim, num_classes, count).permute(2, 1, 0).contiguous(), b.T.contiguous())
