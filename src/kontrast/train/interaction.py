r"""How rows of other classes act on a row in the supervised contrastive loss: their share, what cancels, what varies.

Cross-entropy moves a sample by itself and the weights alone. In SC every row of the batch moves every other, and Graf
et al. suspect these interaction terms behind its slowness on random labels. For a batch of unit rows z_i with labels,
s_ij = ⟨z_i, z_j⟩/τ, P_i the other rows of i's class:

    (1)  L = Σ_i ℓ_i,   ℓ_i = −(1/|P_i|) Σ_{p∈P_i} log q_ip,   q_ij = e^{s_ij}/Σ_{k≠i} e^{s_ik};   ℓ_i = 0 where P_i = ∅
    (2)  c_ij = ∂L/∂s_ij + ∂L/∂s_ji,      ∂L/∂s_ij = [P_i ≠ ∅] (q_ij − [j ∈ P_i]/|P_i|)
    (3)  −∂L/∂z_i, along the sphere, is pull_i + push_i,
         pull_i = −(1/τ) Π_i Σ_{j∈P_i} c_ij z_j        the rows of the own class
         push_i = −(1/τ) Π_i Σ_{j∉P_i} c_ij z_j        the rows of other classes;   Π_i = 1 − z_i z_iᵀ

and, averaged over rows (those with pull_i = push_i = 0 are left out),

    (4)  share      ‖push_i‖/(‖pull_i‖ + ‖push_i‖)             what comes from other classes' rows
    (5)  net        ‖pull_i + push_i‖/(‖pull_i‖ + ‖push_i‖)    1: nothing cancels; 0: pull and push cancel
    (6)  agreement  ‖mean_B f_i‖/√mean_B ‖f_i‖²                f_i = pull_i + push_i over batches B in which i and the
                    rows of its class are the same and the others are drawn anew; 1: the others make no difference

By batch composition: (4)–(6) depend on how many rows of the class are in the batch. For each number m of `OWN` that the
data and half the batch hold, batches of the training's size are made of m rows of a class and others drawn from all
other classes (`CLASSES` classes, `DRAWS` draws of others), and the m rows are measured. The rows are drawn from the
run's seed, the same at each evaluation.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.data import Stream, generator

OWN = (2, 4, 8, 16, 32)  # rows of the measured class in a batch
CLASSES, DRAWS = 10, 4


def forces(z: Tensor, labels: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """(3): pull and push on each row, ``[N, D]`` each, of unit rows ``z [N, D]``.

    >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    >>> pull, push = forces(z, torch.tensor([0, 0, 1]), temperature=1.0)
    >>> bool(pull[0, 1] > 0)  # the first row is drawn to the second, which is of its class
    True
    """
    same = labels[:, None] == labels
    same.fill_diagonal_(False)
    s = (z @ z.T / temperature).fill_diagonal_(-torch.inf)
    count = same.sum(1, keepdim=True)
    slope = torch.where(count > 0, s.softmax(1) - same / count.clamp_min(1), 0.0)
    c = slope + slope.T  # (2)

    def along_sphere(weights: Tensor) -> Tensor:
        total = -(weights @ z) / temperature
        return total - (total * z).sum(1, keepdim=True) * z

    return along_sphere(c * same), along_sphere(c * ~same)


def shares(pull: Tensor, push: Tensor) -> tuple[Tensor, Tensor]:
    """(4) and (5) of each row; NaN where nothing moves it.

    >>> share, net = shares(torch.tensor([[3.0, 0.0]]), torch.tensor([[-1.0, 0.0]]))
    >>> share.tolist(), net.tolist()
    ([0.25], [0.5])
    """
    pulls, pushes, sums = (torch.linalg.vector_norm(force, dim=-1) for force in (pull, push, pull + push))
    total = pulls + pushes
    total = torch.where(total > 0, total, torch.nan)
    return pushes / total, sums / total


def agreement(force: Tensor) -> Tensor:
    """(6) of each row, from its forces in several batches ``[B, N, D]``.

    >>> agreement(torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])).tolist()
    [1.0, 0.7071...]
    """
    size = force.square().sum(-1).mean(0).sqrt()
    result: Tensor = torch.linalg.vector_norm(force.mean(0), dim=-1) / torch.where(size > 0, size, torch.nan)
    return result


def measure(z: Tensor, labels: Tensor, temperature: float, *, batch_size: int, seed: int) -> dict[str, float]:
    """(4)–(6) by batch composition: ``interaction/share_8`` is that of eight rows of a class in the batch.

    >>> z = torch.nn.functional.normalize(torch.randn(40, 8, generator=torch.Generator().manual_seed(0)), dim=1)
    >>> sorted(measure(z, torch.arange(40) % 4, 0.1, batch_size=16, seed=0))[:3]
    ['interaction/agreement_2', 'interaction/agreement_4', 'interaction/agreement_8']
    """
    draw = generator(seed, Stream.HELD_OUT, 3)
    rows = [torch.nonzero(labels == label).flatten() for label in sorted(set(labels.tolist()))]
    values_by_name: dict[str, float] = {}
    if len(rows) < 2:
        return values_by_name
    # In double precision: forces of collapsed classes are differences of nearly equal numbers.
    z = torch.nn.functional.normalize(z.double(), dim=1)
    for m in OWN:
        parts = []
        holds = [i for i, members in enumerate(rows) if len(members) >= m]
        for i in [holds[k] for k in torch.randperm(len(holds), generator=draw)[:CLASSES].tolist()]:
            others = torch.cat([other for j, other in enumerate(rows) if j != i])
            if m <= batch_size // 2 and len(others) >= batch_size - m:
                anchors = rows[i][torch.randperm(len(rows[i]), generator=draw)[:m]]
                draws = [others[torch.randperm(len(others), generator=draw)[: batch_size - m]] for _ in range(DRAWS)]
                parts.append(_of_rows(z, labels, temperature, anchors, draws))
        if parts:
            values = torch.cat(parts).nanmean(0).tolist()
            values_by_name |= {
                f"interaction/{name}_{m}": value
                for name, value in zip(("share", "net", "agreement"), values, strict=True)
                if value == value
            }
    return values_by_name


def _of_rows(z: Tensor, labels: Tensor, temperature: float, anchors: Tensor, draws: list[Tensor]) -> Tensor:
    """(4), (5), (6) of the anchors ``[m, 3]``, the first two averaged over batches: one for each draw of other rows."""
    pulls, pushes = [], []
    for others in draws:
        batch = torch.cat([anchors, others])
        pull, push = forces(z[batch], labels[batch], temperature)
        pulls.append(pull[: len(anchors)])
        pushes.append(push[: len(anchors)])
    pull, push = torch.stack(pulls), torch.stack(pushes)
    share, net = shares(pull, push)
    return torch.stack([share.nanmean(0), net.nanmean(0), agreement(pull + push)], dim=1)
