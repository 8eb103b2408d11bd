r"""Near-duplicates: copies of an image, resized or encoded again, and shots that are nearly the same.

Encoders put look-alikes near each other whether or not they are one picture. So neighbours are only candidates, and
pixels decide. Of each image there is the signature g, 32 × 32 pixels of the whole image
(`kontrast.explore.thumbnails`), grey for (1) to (4):

    (1)  candidates      the `NEAREST` nearest others by cosine of the features, and as many by the correlation of g
                         averaged to 8 × 8, and rows with the same g
    (2)  c(g, h)         the correlation of the pixels of two signatures, with a floor of one grey level of noise
    (3)  f(g, h)         the same of their fine detail, each pixel minus the mean of the 5 × 5 around it: a sky above a
                         sea has a high (2) with every other one, and no (3)
    (4)  l(g)            the median of f over the candidates by pixels, at least 0: what look-alikes have. Photos have
                         about 0, clothes on a black ground 0.4
    (5)  near-duplicates c ≥ `ALIKE`; 1 − f ≤ `REST` · (1 − the larger l of the two), or f ≥ `COPY`; colours that differ
                         by at most 8 levels + 2 standard deviations (root mean square), proportions by at most
                         `STRETCH`

Resizing by 0.2 to 1.7 and encoding as JPEG of quality 20 to 95, WebP or PNG leaves c above 0.99 and f above 0.94 on
photos. Tried on 12,000 images of CIFAR-10, which has near-duplicates of its own, and on Fashion-MNIST, whose clothes
are all alike: all pairs found are the same picture to the eye. Turned, mirrored and cropped copies are not found.

Rows without images are near-duplicates if their features differ by at most `SAME` of their distance to the mean.

Groups are connected components: what is a copy of a copy belongs together. A group with rows of the test split and of
another one is a *leak*: the accuracy on those test rows is not that of unseen images.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from kontrast.evaluate.neighbours import nearest_others

NEAREST = 10  # candidates of a row, of either kind
ALIKE, REST, COPY = 0.88, 0.15, 0.98
LEVELS, DEVIATIONS = 8.0, 2.0
STRETCH = 0.1  # a copy 20 pixels wide is up to 5 % out of proportion
SAME = 1e-3
COARSE = 4  # pixels of a signature that are averaged to one
WINDOW = 5
BLOCK = 2048  # rows or pairs whose pixels are compared at once


@dataclass(frozen=True)
class Group:
    """Rows that are near-duplicates of each other.

    Args:
        rows: The rows, ascending.
        similarity: The least of (2) and (3) over the pairs that hold the group together; of features, the cosine.
        leak: Whether rows of the test split and of another one are in it.
        differ: Whether the rows have different labels.
    """

    rows: tuple[int, ...]
    similarity: float
    leak: bool = False
    differ: bool = False


@torch.no_grad()
def duplicates(
    features: Tensor,
    neighbours: Tensor,
    *,
    signatures: NDArray[np.uint8] | None = None,
    shapes: NDArray[np.int32] | None = None,
    splits: Sequence[str] | None = None,
    labels: Tensor | None = None,
) -> list[Group]:
    """Find the groups of near-duplicates (1)–(5).

    Args:
        features: ``[N, D]``.
        neighbours: The nearest other rows of each, by cosine of the features, int64 ``[N, k]``.
        signatures: uint8 ``[N, 3, 32, 32]``; None for rows that are no images.
        shapes: Height and width of each image, ``[N, 2]``; required with signatures.
        splits: The split of each row.
        labels: int64 ``[N]``, −1 for none.

    Returns:
        The groups: leaks first, then by their least similarity, the highest first.

    >>> x = torch.randn(20, 8, generator=torch.Generator().manual_seed(0))
    >>> x[7] = x[3]
    >>> from kontrast.evaluate.neighbours import nearest_others
    >>> duplicates(x, nearest_others(x, 5)[1])[0].rows
    (3, 7)
    """
    if signatures is None:
        pairs, similarity = _same_features(features, neighbours)
    else:
        assert shapes is not None
        pairs, similarity = _same_pixels(neighbours, torch.from_numpy(signatures), torch.from_numpy(shapes))
    groups = []
    for rows, least in _components(len(features), pairs, similarity):
        of = {splits[row] for row in rows} if splits is not None else set()
        has = {int(labels[row]) for row in rows} - {-1} if labels is not None else set()
        groups.append(Group(tuple(rows), least, leak="test" in of and len(of) > 1, differ=len(has) > 1))
    return sorted(groups, key=lambda group: (not group.leak, -group.similarity, group.rows))


def _same_pixels(neighbours: Tensor, signatures: Tensor, shapes: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs of (5), ``[P, 2]``, and the smaller of (2) and (3)."""
    n = len(signatures)
    coarse, whole, fine, contrast = (
        torch.cat(parts) for parts in zip(*map(_described, _blocks(signatures)), strict=True)
    )
    by_pixels = nearest_others(coarse, min(NEAREST, n - 1))[1]
    look_alikes = [
        _cosine(fine[rows, None], fine[by_pixels[rows]]).median(1).values for rows in _blocks(torch.arange(n))
    ]
    level = torch.cat(look_alikes).clamp_min(0)  # (4)
    candidates = torch.cat([_pairs(torch.cat([neighbours[:, :NEAREST], by_pixels], 1)), _identical(signatures)])
    candidates = torch.unique(candidates, dim=0)
    ratio = (shapes[:, 1].double() / shapes[:, 0].double()).log()
    candidates = candidates[(ratio[candidates[:, 0]] - ratio[candidates[:, 1]]).abs() <= STRETCH]
    kept, similarity = [candidates[:0]], [torch.empty(0)]
    for part in _blocks(candidates):
        a, b = part.unbind(1)
        alike, detail = _cosine(whole[a], whole[b]), _cosine(fine[a], fine[b])
        colours = (signatures[a].float() - signatures[b].float()).square().flatten(1).mean(1).sqrt()
        enough = (1 - REST * (1 - torch.maximum(level[a], level[b]))).clamp_max(COPY)
        same = (alike >= ALIKE) & (detail >= enough)
        same &= colours <= LEVELS + DEVIATIONS * torch.minimum(contrast[a], contrast[b])  # (5)
        kept.append(part[same])
        similarity.append(torch.minimum(alike, detail)[same])
    return torch.cat(kept), torch.cat(similarity)


def _described(signatures: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For (1), (2) and (3) a vector of each signature, and its contrast, the standard deviation of its pixels."""
    grey = torch.einsum("nchw,c->nhw", signatures.float(), torch.tensor([0.299, 0.587, 0.114]))
    coarse = functional.avg_pool2d(grey[:, None], COARSE).flatten(1)
    edge = WINDOW // 2
    fine = grey[:, edge:-edge, edge:-edge] - functional.avg_pool2d(grey[:, None], WINDOW, stride=1)[:, 0]
    coarse -= coarse.mean(1, keepdim=True)
    return coarse, _correlating(grey), _correlating(fine), grey.flatten(1).std(1)


def _correlating(images: Tensor) -> Tensor:
    """Unit vectors whose cosine is (2); those of images without contrast are the same. Half precision is enough."""
    x = images.flatten(1)
    x = x - x.mean(1, keepdim=True)
    x = torch.cat([x, torch.full((len(x), 1), x.shape[1] ** 0.5)], 1)  # one level of noise in each pixel
    return functional.normalize(x).half()


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() * b.float()).sum(-1)


def _blocks(rows: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, BLOCK)


def _same_features(features: Tensor, neighbours: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs whose rows are the same but for rounding, and their cosines."""
    centred = (features - features.mean(0)).float()
    length = torch.linalg.vector_norm(centred, dim=1)
    candidates = _pairs(neighbours[:, :NEAREST])
    kept = []
    for part in _blocks(candidates):
        a, b = part.unbind(1)
        apart = torch.linalg.vector_norm(centred[a] - centred[b], dim=1)
        kept.append(part[apart <= SAME * torch.minimum(length[a], length[b])])
    pairs = torch.cat(kept) if kept else candidates[:0]
    return pairs, functional.cosine_similarity(features[pairs[:, 0]].float(), features[pairs[:, 1]].float())


def _pairs(neighbours: Tensor) -> Tensor:
    """Each pair of a row and a neighbour once, the smaller row first, ``[P, 2]``."""
    n, k = neighbours.shape
    here, there = torch.arange(n).repeat_interleave(k), neighbours.flatten()
    pairs = torch.unique(torch.minimum(here, there) * n + torch.maximum(here, there))
    return torch.stack([pairs // n, pairs % n], 1)


def _identical(signatures: Tensor) -> Tensor:
    """Pairs of the rows with one and the same signature, each row with the next: images without contrast have no
    correlation to be found by."""
    rows: dict[bytes, list[int]] = {}
    for row, signature in enumerate(signatures.numpy()):
        rows.setdefault(hashlib.blake2b(signature.tobytes(), digest_size=16).digest(), []).append(row)
    pairs = [pair for same in rows.values() for pair in pairwise(same)]
    return torch.tensor(pairs, dtype=torch.int64).view(-1, 2)


def _components(n: int, pairs: Tensor, similarity: Tensor) -> list[tuple[list[int], float]]:
    """The connected components of at least two rows, and the least similarity of their pairs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(pairs):
        return []
    a, b = pairs.numpy().T
    number = connected_components(coo_array((np.ones(len(a)), (a, b)), shape=(n, n)), directed=False)[1]
    found: dict[int, list[int]] = {}
    for row in np.unique(pairs.numpy()).tolist():
        found.setdefault(int(number[row]), []).append(row)
    least: dict[int, float] = {}
    for of, value in zip(number[a].tolist(), similarity.tolist(), strict=True):
        least[of] = min(least.get(of, 1.0), value)
    return [(rows, least[of]) for of, rows in found.items()]
