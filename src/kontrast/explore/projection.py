r"""The map: t-SNE of up to a hundred thousand rows, in time linear in their number.

A point y_i on the map for each row i, such that rows that are neighbours among the features are neighbours there
(van der Maaten & Hinton 2008). With the k nearest others N(i) of each row, and d² = ‖y_i − y_j‖²:

    (1)  p_j|i = 1/k for j in N(i),   p_ij = (p_j|i + p_i|j)/2N            which rows belong together
    (2)  w_ij = 1/(1 + d²),   q_ij = w_ij/Z,   Z = Σ_{k≠l} w_kl            how near they are on the map
    (3)  ∂KL/∂y_i = 4 Σ_j p_ij w_ij (y_i − y_j) − 4/Z Σ_j w_ij² (y_i − y_j)

The first sum of (3) has k terms a row. The second has N; it is three sums Σ_j w_ij² c_j with the charges c = 1, y_j^x,
y_j^y, and Z follows from a fourth, c = ‖y_j‖², because w = (1 + d²) w². All four are convolutions with one kernel
(FIt-SNE, Linderman et al. 2019):

    (4)  charges go to the nodes of a regular grid, by cubic weights of the 4 × 4 nodes around each point;
         one product of Fourier transforms sums them over the grid; the same weights bring the sums back to the points

Deviates: Linderman et al. use the weights of a Gaussian with a perplexity and quadratic interpolation within boxes of
side 1. Uniform weights of fewer neighbours give the same maps (Böhm et al. 2022) and need no search for widths; nodes
`SPACING` apart with cubic weights have an error of about a hundredth in the forces on fewer nodes.

The start is the plane of largest variance, the first quarter of the steps has the attraction (the first sum)
twelvefold, and the rate is N over that factor (Belkina et al. 2019; Kobak & Berens 2019). Nothing is drawn at random.
Of up to `FEW` rows all pairs are summed. Distances between groups, and sizes of groups, mean nothing on such a map;
`trustworthiness` says how much of the neighbourhoods is to be believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from kontrast.sphere import directions

NEIGHBOURS = 15  # of a row, on the map: what two dimensions can show
FACTOR = 12.0  # of the attraction at first
STEPS = 500
SPACING = 0.4  # of the grid's nodes; the kernel's width is 1
FEWEST_NODES, MOST_NODES = 64, 1024  # along a side
MOMENTUM = 0.8
LEAST_RATE = 50.0
FEW = 500  # rows whose pairs are quicker than a grid
LARGEST_STEP = 5.0


def pca(x: Tensor) -> Tensor:
    """The coordinates of rows ``[N, D]`` in the plane of largest variance, ``[N, 2]``.

    The largest entry of each direction is positive, so that the plane does not flip from machine to machine.

    >>> pca(torch.tensor([[0.0, 0.0], [6.0, 0.0], [3.0, 1.0], [3.0, -1.0]])).round().int().tolist()
    [[-3, 0], [3, 0], [0, 1], [0, -1]]
    """
    mean = x.double().mean(0)
    centred = x - mean.to(x.dtype)
    if x.shape[1] < 2:
        centred = torch.cat([centred, torch.zeros(len(x), 2 - x.shape[1])], 1)
    _, vectors = torch.linalg.eigh((centred.T @ centred).double())
    plane = vectors[:, -2:].flip(1)
    signs = plane.gather(0, plane.abs().argmax(0, keepdim=True)).sign()
    coordinates: Tensor = centred @ (plane * torch.where(signs == 0, 1.0, signs)).to(x.dtype)
    return coordinates


@torch.no_grad()
def project(
    features: Tensor,
    neighbours: Tensor,
    *,
    steps: int = STEPS,
    progress: Callable[[int, int], object] | None = None,
) -> Tensor:
    """Place every row on a map (1)–(4).

    Args:
        features: Float ``[N, D]``; their directions give the start.
        neighbours: The nearest other rows of each, int64 ``[N, k]``, the nearest first; `NEIGHBOURS` are used.
        steps: Of the descent.
        progress: Called with ``(done, of)``.

    Returns:
        float32 ``[N, 2]``, about 0.

    >>> draw = torch.Generator().manual_seed(0)
    >>> x = torch.eye(4).repeat_interleave(25, 0) + 0.1 * torch.randn(100, 4, generator=draw)
    >>> near = torch.cdist(x, x).fill_diagonal_(9).topk(15, largest=False).indices
    >>> y = project(x, near)
    >>> trustworthiness(x, y, k=10) > 0.9
    True
    """
    start = pca(directions(features, torch.float32)).float()
    y = start / start[:, 0].std().clamp_min(1e-12) * 1e-4
    if len(y) < 4:
        return start
    rows, columns, p = affinities(neighbours[:, :NEIGHBOURS])
    update, gains = torch.zeros_like(y), torch.ones_like(y)
    early = steps // 4
    for step in range(steps):
        factor = FACTOR if step < early else 1.0
        pull = _attraction(y, rows, columns, p)
        push, z = _repulsion(y)
        gradient = factor * pull - push / z
        same = gradient.sign() == update.sign()
        gains = torch.where(same, gains * 0.8, gains + 0.2).clamp_min_(0.01)
        update = MOMENTUM * update - max(len(y) / FACTOR, LEAST_RATE) * gains * gradient  # without the 4 of (3)
        length = torch.linalg.vector_norm(update, dim=1, keepdim=True)
        update = update * (LARGEST_STEP / length).clamp_max(1.0)
        y = y + update
        y -= y.mean(0)
        if progress is not None:
            progress(step + 1, steps)
    return y


def affinities(neighbours: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs (i, j) with p_ij above 0, in the order of i, and p_ij (1).

    >>> affinities(torch.tensor([[1], [0], [0]]))
    (tensor([0, 0, 1, 2]), tensor([1, 2, 0, 0]), tensor([0.3333, 0.1667, 0.3333, 0.1667]))
    """
    n, k = neighbours.shape
    here, there = torch.arange(n).repeat_interleave(k), neighbours.flatten()
    pairs, counts = torch.unique(torch.cat([here * n + there, there * n + here]), return_counts=True)
    return pairs // n, pairs % n, counts.float() / (2 * n * k)


def _attraction(y: Tensor, rows: Tensor, columns: Tensor, p: Tensor) -> Tensor:
    """Σ_j p_ij w_ij (y_i − y_j)."""
    difference = y.index_select(0, rows) - y.index_select(0, columns)
    difference *= (p / (1 + difference.square().sum(1)))[:, None]
    return torch.zeros_like(y).index_add_(0, rows, difference)


def _repulsion(y: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_j w_ij² (y_i − y_j) and Z: term by term for few rows, else by (4)."""
    return _by_pairs(y) if len(y) <= FEW else _by_grid(y)


def _by_pairs(y: Tensor) -> tuple[Tensor, Tensor]:
    w = (torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist").square_() + 1).reciprocal_()
    z = w.double().sum() - len(y)
    w.square_()
    return y * w.sum(1, keepdim=True) - w @ y, z.clamp_min(1e-12).float()


def _by_grid(y: Tensor) -> tuple[Tensor, Tensor]:
    low = y.amin(0)
    span = float((y.amax(0) - low).max())
    nodes = min(MOST_NODES, max(FEWEST_NODES, math.ceil(span / SPACING) + 4))
    step = max(span / (nodes - 4), 1e-12)
    place = (y - low) / step + 1  # two nodes on either side of every point
    first = place.floor().clamp_(1, nodes - 3)
    weights = _cubic(place - first)  # [N, 2, 4]
    corner = first.long() - 1
    offsets = torch.arange(4)
    index = ((corner[:, :1] + offsets)[:, :, None] * nodes + (corner[:, 1:] + offsets)[:, None, :]).flatten(1)
    both = (weights[:, 0, :, None] * weights[:, 1, None, :]).flatten(1)  # [N, 16]
    charges = torch.stack([torch.ones(len(y)), y[:, 0], y[:, 1], y.square().sum(1)], 1)
    grid = torch.zeros(nodes * nodes, 4)
    for node in range(16):
        grid.index_add_(0, index[:, node], both[:, node, None] * charges)
    size = 2 * nodes
    at = torch.arange(size)
    at = torch.minimum(at, size - at) * step
    kernel = (1 + at[:, None].square() + at.square()).pow(-2)
    spectrum = torch.fft.rfft2(grid.view(nodes, nodes, 4).permute(2, 0, 1), s=(size, size)) * torch.fft.rfft2(kernel)
    summed = torch.fft.irfft2(spectrum, s=(size, size))[:, :nodes, :nodes].permute(1, 2, 0).reshape(-1, 4).contiguous()
    phi = torch.zeros(len(y), 4)
    for node in range(16):
        phi += both[:, node, None] * summed.index_select(0, index[:, node])
    z = ((1 + charges[:, 3]) * phi[:, 0] - 2 * (y * phi[:, 1:3]).sum(1) + phi[:, 3]).double().sum() - len(y)
    return y * phi[:, :1] - phi[:, 1:3], z.clamp_min(1e-12).float()


def _cubic(t: Tensor) -> Tensor:
    """Lagrange's weights of four nodes at −1, 0, 1, 2 for places t in 0…1; ``[…]`` → ``[…, 4]``."""
    a, b, c = t + 1, t - 1, t - 2
    return torch.stack([-t * b * c / 6, a * b * c / 2, -a * t * c / 2, a * t * b / 6], -1)


@torch.no_grad()
def trustworthiness(features: Tensor, places: Tensor, *, k: int = NEIGHBOURS, rows: int = 1000) -> float:
    r"""How much the neighbours on the map are neighbours among the features: 1 all, 0.5 by chance (Venna & Kaski 2001).

    With r_ij the rank of j among the others of i by cosine of the features, and M(i) the k nearest on the map,

        (5)  T = 1 − 2/(n k (2N − 3k − 1)) Σ_i Σ_{j in M(i)} max(0, r_ij − k)

    over n rows i at even distances; j is any row.

    Args:
        features: ``[N, D]``.
        places: ``[N, 2]``.
        k: Neighbours, fewer than N/2.
        rows: n, at most.

    Returns:
        A number from 0 to 1.
    """
    count = len(features)
    k = min(k, max(1, (count - 1) // 2))
    queries = torch.arange(0, count, max(1, count // rows))[:rows]
    unit = directions(features, torch.float32)
    total = 0.0
    for part in torch.split(queries, max(1, 2**24 // count)):
        own = torch.arange(len(part))
        cosine = unit[part] @ unit.T
        cosine[own, part] = -torch.inf
        distance = torch.cdist(places[part], places, compute_mode="donot_use_mm_for_euclid_dist")
        distance[own, part] = torch.inf
        near = distance.topk(k, largest=False).indices
        value = cosine.gather(1, near)
        for column in value.T:
            rank = 1 + (cosine > column[:, None]).sum(1)
            total += float((rank - k).clamp_min(0).sum())
    return 1 - 2 * total / (len(queries) * k * (2 * count - 3 * k - 1))
