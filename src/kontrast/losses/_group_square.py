"""A batch against itself, pulled together by its groups: what SupCon and TCL spend their time in.

The pull of an anchor's positives is linear and comes from sums over groups; only the denominator needs blocks
(`_tiles.square`). Both are done in one pass without autograd in between.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from kontrast.losses._groups import Groups
from kontrast.losses._tiles import Grads, SquareBlock, Tile, square, tiled


@dataclass(frozen=True)
class OwnGroup:
    """The pull of a batch's own groups, and its gradient, by sums over groups: no pair is formed.

    (1)  pull_i = share_i Σ_{p≠i in i's group} ⟨z_i, z_p⟩ = share_i ⟨z_i, S − z_i⟩          S = Σ_{j in i's group} z_j
    (2)  ∂(Σ_i g_i pull_i)/∂z_i = h_i (S − z_i) + (T − h_i z_i)      h = g·share,  T = Σ_{j in i's group} h_j z_j

    the first part of (2) as an anchor, the second as a positive of the others.
    """

    z: Tensor
    group: Tensor
    share: Tensor  # 1/|P(i)|
    num_groups: int

    @functools.cached_property
    def _others(self) -> Tensor:
        return self._sums(self.z).sub_(self.z)

    def _sums(self, rows: Tensor) -> Tensor:
        sums = rows.new_zeros(self.num_groups, rows.shape[1]).index_add_(0, self.group, rows)
        return sums.index_select(0, self.group)

    def value(self) -> Tensor:
        """(1), ``[N]``."""
        return (self.z * self._others).sum(1).mul_(self.share)

    def subtract_gradient(self, from_: Tensor, g: Tensor) -> None:
        """Subtract (2) from a gradient."""
        h = (g * self.share)[:, None]
        pulled = self.z * h
        from_.sub_(self._sums(pulled)).add_(pulled).addcmul_(self._others, h, value=-1.0)


def own_groups_square(
    groups: Groups,
    z: Tensor,
    block: SquareBlock,
    *,
    order: Tensor | None = None,
    scale: float,
    weight: Tensor | None,
    tile: Tile,
) -> Tensor:
    """log D_i − scale·pull_i of a batch against itself, per anchor or weighted, in one pass without autograd inside.

    ``order`` is a permutation in which the block function wants its rows.
    """
    assert groups.group is not None
    group, share = groups.group, groups.share
    if order is not None:
        group, share = group[order], share[order]

    def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
        z = tensors[0]
        if order is not None:
            z, weight = z[order], None if weight is None else weight[order]
        own = OwnGroup(z, group, share, groups.num_groups)
        positive = own.value().mul_(scale)
        values, (gz, _) = square(z, positive, block, scale=scale, weight=weight, needs=(needs[0], False), tile=tile)
        if gz is not None and weight is not None:
            own.subtract_gradient(gz, weight * scale)
        if order is not None:
            values = torch.empty_like(values).index_copy_(0, order, values)
            gz = None if gz is None else torch.empty_like(gz).index_copy_(0, order, gz)
        return values, (gz,)

    return tiled(run, weight, z)
