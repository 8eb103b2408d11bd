r"""What pulls and pushes an anchor: gradients of the contrastive losses with respect to the similarities.

InfoNCE (Wang & Liu), P_ij = e^{s_ij/τ}/Σ_k e^{s_ik/τ} over the positive and the negatives:

    (1)  |∂L_i/∂s_ii| = (1/τ) Σ_{k≠i} P_ik,   |∂L_i/∂s_ij| = (1/τ) P_ij          (eq. 4)
    (2)  r_i(s_ij) = |∂L_i/∂s_ij| / |∂L_i/∂s_ii|                                  (eq. 5)

SupCon and TCL (TCL, Lemmas 1 and 2; k1 = 0, k2 = 1 is SupCon), D_i the loss's denominator:

    (3)  X_ip = 1/|P(i)|,   P_ip = e^{s_ip/τ}/D_i,   Y_ip = τ k1 e^{−s_ip}/D_i,   P_in = k2 e^{s_in/τ}/D_i
    (4)  D_i = Σ_p e^{s_ip/τ} + k1 Σ_p e^{−s_ip} + k2 Σ_n e^{s_in/τ}
    (5)  response to a positive |X − P + Y|, to a negative P_in;  τ times the coefficient of z_p, z_n in ∂L_i/∂z_i
    (6)  through the normalisation each is multiplied by √(1 − s²): 0 for an easy positive (s = 1)

Ranges: (1) 0 … 1/τ; (2) 0 … 1; P 0 … 1, X + Y ≥ 0; the response to a positive is 0 … 1 for SupCon.

Theorem 1 (TCL's response is above SupCon's for k1, k2 ≥ 1) is about hard positives: it can fail where P_ip > X_ip,
which never is the case for the least similar one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import number, same_dtype
from kontrast.engine import LOG2E
from kontrast.geometry._rows import (
    HIDDEN,
    Classes,
    as_rows,
    check_classes,
    check_indices,
    check_keys,
    measure,
    one_or_many,
    strips,
)


@dataclass(frozen=True, eq=False)
class GradientMagnitudes:
    """The gradient magnitudes (1) and (2) of InfoNCE per anchor, ``[N]`` each.

    Attributes:
        positive: |∂L_i/∂s_ii|.
        negative: Σ_j |∂L_i/∂s_ij|; by (1) equal to ``positive``.
        hardest: The largest |∂L_i/∂s_ij|.
        ratio: (2) of the hardest negative: its share of the whole push.

    >>> key = torch.eye(3)
    >>> gradient_magnitudes(key, key, temperature=1.0).ratio
    tensor([0.5000, 0.5000, 0.5000])
    """

    positive: Tensor
    negative: Tensor
    hardest: Tensor
    ratio: Tensor


@measure
def gradient_magnitudes(
    query: Any,
    key: Any,
    negatives: Any = None,
    own_index: Any = None,
    *,
    temperature: float,
    normalize: bool = True,
) -> GradientMagnitudes:
    """Gradient magnitudes (1) of InfoNCE per anchor. `relative_penalty` gives (2) of every negative.

    Args:
        query: Anchors ``[N, D]``.
        key: Their positives ``[N, D]``; without ``negatives`` the other rows are the negatives.
        negatives: The negatives ``[K, D]`` of every anchor, such as a queue.
        own_index: For each anchor ``[N]`` its own row of ``negatives``, which is left out.
        temperature: τ.
        normalize: Whether rows are scaled to length one.

    Returns:
        The magnitudes per anchor.

    Raises:
        ValueError: Shapes do not fit, rows hold NaN or infinity, no negative is left, or ``temperature`` is not above
            0.

    >>> key = torch.eye(3)
    >>> at = gradient_magnitudes(key, key, temperature=1.0)  # e against 1 and 1
    >>> at.positive[0], at.negative[0], at.ratio[0]
    (tensor(0.4239), tensor(0.4239), tensor(0.5000))
    """
    tau = number("temperature", temperature, above=0.0)
    query, key, candidates, own_rows = check_keys(query, key, negatives, own_index, normalize=normalize)
    query, key, candidates = same_dtype(query, key, candidates)
    positive = (query * key).sum(1) / tau
    nearest, log_sum = torch.empty_like(positive), torch.empty_like(positive)
    for r, s in strips(query, candidates, own_rows):
        nearest[r] = s.amax(1)
        log_sum[r] = _log_sum_exp(s, nearest[r], tau)
    push = torch.sigmoid(log_sum - positive) / tau  # (1): Σ_{k≠i} P_ik, which keeps its digits where 1 − P_ii has none
    ratio = (nearest / tau - log_sum).exp()
    return GradientMagnitudes(positive=push, negative=push.clone(), hardest=push * ratio, ratio=ratio)


@dataclass(frozen=True, eq=False)
class GradientResponse:
    """Gradient responses (3) and (5) to each anchor's hardest positive and hardest negative.

    Tensors are ``[N]``; for lists of k1 or k2 ``[N, len(k1), len(k2)]``. Anchors without positives are left out.

    Attributes:
        anchors: Rows of the embeddings, ``[N]``.
        similarity_positive: Similarity to the hardest (least similar) positive, ``[N]``.
        similarity_negative: Similarity to the hardest (most similar) negative, ``[N]``; −∞ if there is none.
        x: X of the hardest positive.
        p_positive: P of the hardest positive.
        y: Y of the hardest positive.
        p_negative: P of the hardest negative.

    >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> at = gradient_response(z, [0, 0, 1, 1], temperature=1.0, k1=0.0, k2=1.0)
    >>> at.similarity_positive, at.similarity_negative
    (tensor([ 0.,  0., -1., -1.]), tensor([1., 0., 1., 0.]))
    """

    anchors: Tensor
    similarity_positive: Tensor
    similarity_negative: Tensor
    x: Tensor
    p_positive: Tensor
    y: Tensor
    p_negative: Tensor

    @property
    def positive(self) -> Tensor:
        """|X − P + Y|, the response to the hardest positive."""
        return (self.x - self.p_positive + self.y).abs()

    @property
    def negative(self) -> Tensor:
        """P_in, the response to the hardest negative."""
        return self.p_negative

    def through_normalisation(self) -> tuple[Tensor, Tensor]:
        """Responses (6) to positive and negative as they reach the unnormalised output.

        Returns:
            The two responses, in the shape of ``positive``.

        Raises:
            ValueError: The rows were not unit rows (``normalize=False``).

        >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
        >>> at = gradient_response(z, [0, 0, 1, 1], temperature=1.0, k1=0.0, k2=1.0)
        >>> at.through_normalisation()[1]  # a negative at similarity 1 has no effect
        tensor([0.0000, 0.3333, 0.0000, 0.5761])
        """
        if bool((self.similarity_positive.abs() > 1.001).any() or (self.similarity_negative > 1.001).any()):
            raise ValueError("similarities above 1: (6) is about unit rows, but these were taken with normalize=False")

        def damp(response: Tensor, s: Tensor) -> Tensor:
            factor = (1 - s.clamp(-1, 1).square()).sqrt()
            return response * factor.view(-1, *[1] * (response.ndim - 1))  # per anchor, on each point of a grid

        return damp(self.positive, self.similarity_positive), damp(self.negative, self.similarity_negative)


@measure
def gradient_response(
    embeddings: Any,
    labels: Any,
    *,
    temperature: float,
    k1: float | Sequence[float],
    k2: float | Sequence[float],
    anchors: Any = None,
    normalize: bool = True,
) -> GradientResponse:
    """Gradient responses (3)–(5) of SupCon and TCL per anchor, for one k1 and k2 or a grid of them, in one pass.

    Args:
        embeddings: A batch ``[N, D]``.
        labels: Integer labels ``[N]``.
        temperature: τ.
        k1: TCL's k1, one or several; 0 is SupCon.
        k2: TCL's k2, one or several; 1 is SupCon.
        anchors: Rows to take as anchors, each against all others; all rows by default.
        normalize: Whether rows are scaled to length one.

    Returns:
        The responses per anchor.

    Raises:
        ValueError: No anchor has a positive, rows hold NaN or infinity, or a number lies outside its range.

    >>> z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> at = gradient_response(z, [0, 0, 1, 1], temperature=1.0, k1=[0.0, 1.0], k2=1.0)
    >>> at.positive[0].flatten()  # anchor 0: positive at 0, negatives at 1 and −1; SupCon, then TCL
    tensor([0.7553, 1.0000])
    """
    tau = number("temperature", temperature, above=0.0)
    k1s, is_one_k1 = one_or_many("k1", k1, least=0.0)
    k2s, is_one_k2 = one_or_many("k2", k2, least=0.0)
    z = as_rows("embeddings", embeddings, normalize=normalize)
    classes = check_classes(labels, z)
    num_positives = classes.counts[classes.index] - 1
    has_positive = num_positives > 0
    if not bool(has_positive.any()):
        raise ValueError(f"no anchor has a positive: {len(classes)} classes among {len(z)} rows")
    anchor_rows = torch.arange(len(z), device=z.device) if anchors is None else check_indices("anchors", anchors, z)
    anchor_rows = anchor_rows[has_positive[anchor_rows]]
    s_p, s_n, log_p, log_y, log_n = _anchor_terms(z, classes, anchor_rows, tau).double()

    a, b = (torch.tensor(k, dtype=torch.float64, device=z.device).log() for k in (k1s, k2s))
    a, b = a[None, :, None], b[None, None, :]
    s_p3, s_n3, log_p, log_y, log_n = (t[:, None, None] for t in (s_p, s_n, log_p, log_y, log_n))
    log_d = torch.logaddexp(torch.logaddexp(log_p, a + log_y), b + log_n)  # (4)
    x = (1 / num_positives[anchor_rows].double())[:, None, None].expand_as(log_d)
    parts = (
        x,
        (s_p3 / tau - log_d).exp(),
        (math.log(tau) + a - s_p3 - log_d).exp(),
        (b + s_n3 / tau - log_d).exp(),
    )  # (3)
    x, p, y, q = (part[:, 0, 0] if is_one_k1 and is_one_k2 else part for part in (t.to(z.dtype) for t in parts))
    return GradientResponse(anchor_rows, s_p.to(z.dtype), s_n.to(z.dtype), x, p, y, q)


def _anchor_terms(z: Tensor, classes: Classes, anchors: Tensor, tau: float) -> Tensor:
    """``[5, anchors]``: s of the hardest positive and negative, log Σ_p e^{s/τ}, log Σ_p e^{−s}, log Σ_n e^{s/τ}.

    Rows are sorted by class, so that a strip's positives lie in few columns side by side.
    """
    order = torch.argsort(classes.index, stable=True)
    z, index = z[order], classes.index[order]
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device)
    places, to = place[anchors].sort()  # the anchors' places among the sorted rows, and their columns of `terms`
    stops = classes.counts.cumsum(0)
    terms = z.new_empty(5, len(anchors))
    for r, s in strips(z[places], z):
        first, last = index[places[r.start]], index[places[r.stop - 1]]
        columns = slice(int(stops[first] - classes.counts[first]), int(stops[last]))
        same = index[places[r], None] == index[None, columns]
        positive = s[:, columns].clone()
        s[:, columns].masked_fill_(same, HIDDEN)
        same.scatter_(1, places[r, None] - columns.start, False)
        hardest = s.amax(1)
        terms[:, to[r]] = torch.stack(
            [
                positive.masked_fill(~same, torch.inf).amin(1),
                torch.where(hardest > HIDDEN / 2, hardest, -torch.inf),
                (positive / tau).masked_fill_(~same, -torch.inf).logsumexp(1),
                (-positive).masked_fill_(~same, -torch.inf).logsumexp(1),
                torch.where(hardest > HIDDEN / 2, _log_sum_exp(s, hardest, tau), -torch.inf),
            ]
        )
    return terms


def _log_sum_exp(s: Tensor, top: Tensor, tau: float) -> Tensor:
    """log Σ_j e^{s_ij/τ} with the largest known; overwrites s."""
    return s.sub_(top[:, None]).mul_(LOG2E / tau).exp2_().sum(1).log_().add_(top / tau)
