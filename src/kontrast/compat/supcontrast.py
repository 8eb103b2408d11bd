r"""SupCon as SupContrast (HobbitLong, `losses.py`) computes it.

B instances in V views make BV rows z, taken as they are; the views of one instance share its row of the mask m
(same label; or given, with weights; or the identity, which is SimCLR). For the anchor (i, v), with the sums over
every row (j, u) but (i, v) itself and s = ⟨z, z⟩:

    (1)  M_i = Σ m_ij           or 1 where that is below 1e-6
    (2)  L_iv = −(1/M_i) Σ m_ij log( e^{s_{iv,ju}/τ} / Σ_{(k,w)≠(i,v)} e^{s_{iv,kw}/τ} )
    (3)  L = (τ/τ_base) · mean over the anchors of L_iv

so an anchor without positives adds 0 and is counted. Anchors are all rows (``contrast_mode="all"``) or those of
the first view (``"one"``). What has to be computed over pairs is the normaliser only; the rest of (2) is

    (4)  Σ m_ij s_{iv,ju} = ⟨z_iv, Σ_j m_ij S_j⟩ − m_ii ‖z_iv‖²,     S_j = Σ_u z_ju

Deviates: the row maximum that is subtracted before the exponential leaves the anchor itself out, so features far
from unit length do not give NaN. Weights in the mask are added in float64, there in float32. Half precision is
computed in float32; the result is float32, as it is there. A batch of one row is 0, there NaN; an empty batch, a
temperature that is not above zero and a mask that wants a gradient are errors. An unknown ``contrast_mode`` is one as
soon as the loss is made.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kontrast.autograd import full_precision
from kontrast.checks import not_empty, number, rows
from kontrast.engine import hide_diagonal, log_normaliser, masked_sum, row_sums, softmax_square
from kontrast.losses import Loss

SMALLEST = 1e-6  # below this the weights of an anchor's positives count as none


class SupConLoss(Loss):
    """SupCon in SupContrast's signature; its factor temperature/base_temperature included.

    Args:
        temperature: τ, a number above 0 or a scalar tensor.
        contrast_mode: "all" rows are anchors, or those of "one" view, the first.
        base_temperature: τ_base of (3).

    Raises:
        ValueError: A number lies outside its range, or ``contrast_mode`` is unknown.

    >>> views = torch.stack([torch.eye(2), torch.eye(2)], dim=1)
    >>> SupConLoss(temperature=1.0, base_temperature=1.0)(views)  # log(e + 2) − 1
    tensor(0.5514)
    >>> SupConLoss(temperature=1.0, base_temperature=0.5)(views, torch.tensor([0, 0]))  # twice log(e + 2) − 1/3
    tensor(2.4362)
    """

    def __init__(
        self,
        temperature: float | Tensor = 0.07,
        contrast_mode: str = "all",
        base_temperature: float = 0.07,
    ) -> None:
        super().__init__(normalize=False, gather_distributed=False)
        self.temperature = temperature
        if contrast_mode not in ("all", "one"):
            raise ValueError(f"Unknown mode: {contrast_mode}; contrast_mode must be 'all' or 'one'")
        self.contrast_mode = contrast_mode
        self.base_temperature = number("base_temperature", base_temperature, above=0.0)

    @full_precision
    def forward(self, features: Tensor, labels: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """``features [B, V, ...]`` with ``labels [B]``, or ``mask [B, B]``, or neither → a scalar."""
        features = _views(features)
        if labels is not None and mask is not None:
            raise ValueError("Cannot define both `labels` and `mask`")
        total, self_weight, mass = _positives(features, labels, mask)
        views = 1 if self.contrast_mode == "one" else features.shape[1]
        z = features.transpose(0, 1).flatten(0, 1)  # view after view: anchor i is row i, in either mode
        anchors = z[: views * len(features)]
        tau = self.options.tau

        some = torch.where(mass < SMALLEST, 1.0, mass)  # (1)
        positive = (anchors * total.repeat(views, 1)).sum(1)
        positive = positive - self_weight.repeat(views) * anchors.square().sum(1)  # (4)
        positive = positive / (some.repeat(views) * tau)
        weight = (mass / some).repeat(views) / len(anchors)  # of 1 or 0, but for tiny sums of weights
        value = self._normaliser(anchors, z, weight) - positive.mean()  # (2)
        return value * (tau / self.base_temperature)  # (3)

    def _normaliser(self, anchors: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """Σ_i weight_i log Σ_{j≠i} e^{s_ij/τ}."""
        bounded = self.options.is_bounded(anchors, z)
        if bounded and len(anchors) == len(z):
            x, scale = self.options.scaled(z, power=0.5)
            return softmax_square(x, torch.zeros_like(weight), scale=scale, weight=weight, tile=self.tile)
        x, scale = self.options.scaled(anchors)
        hide = hide_diagonal(0)
        return log_normaliser(x, z, hide=hide, scale=scale, bounded=bounded, weight=weight, tile=self.tile)


def _views(features: Tensor) -> Tensor:
    if isinstance(features, Tensor) and features.ndim < 3:
        raise ValueError(
            f"`features` needs to be [bsz, n_views, ...],at least 3 dimensions are required; got {list(features.shape)}"
        )
    if isinstance(features, Tensor) and features.ndim > 3:
        features = features.flatten(2)
    features = rows("features", features, ndim=(3,))
    not_empty("features", len(features))
    return features


def _positives(features: Tensor, labels: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Per instance: Σ_j m_ij S_j ``[B, D]``, m_ii ``[B]`` and the weight of its positives ``[B]``."""
    size, views = features.shape[:2]
    over_views = features.sum(1)
    self_weight = features.new_ones(size)
    if mask is not None:
        mask = _check_mask(mask, features)
        self_weight = mask.diagonal().to(features.dtype)
        # In float64, so that taking m_ii away again leaves 0 where nothing else was there.
        mass = (views * row_sums(mask, torch.float64) - self_weight).to(features.dtype)
        return masked_sum(mask, over_views), self_weight, mass
    if labels is None:
        return over_views, self_weight, self_weight * (views - 1)
    group = _groups(labels, features)
    sums = over_views.new_zeros(size, over_views.shape[1]).index_add(0, group, over_views)
    members = torch.bincount(group, minlength=size)[group]
    return sums.index_select(0, group), self_weight, (views * members - 1).to(features.dtype)


def _groups(labels: Tensor, features: Tensor) -> Tensor:
    """Labels of any dtype as group numbers below B; ``[B, 1]`` is as good as ``[B]``."""
    labels = torch.as_tensor(labels, device=features.device).reshape(-1)
    if len(labels) != len(features):
        raise ValueError(
            f"Num of labels does not match num of features: {len(labels)} labels, features {list(features.shape)}"
        )
    return torch.unique(labels, return_inverse=True)[1]  # type: ignore[no-any-return]


def _check_mask(mask: Tensor, features: Tensor) -> Tensor:
    """The mask as bool, or as float32, which is what it is rounded to there."""
    size = len(features)
    mask = torch.as_tensor(mask, device=features.device)
    if mask.shape != (size, size):
        raise ValueError(f"mask has shape {list(mask.shape)}; expected [{size}, {size}], instances by instances")
    if mask.requires_grad:
        raise ValueError("mask requires a gradient, which this loss does not give: pass mask.detach()")
    return mask if mask.dtype == torch.bool else mask.float()
