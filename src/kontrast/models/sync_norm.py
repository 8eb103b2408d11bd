r"""Batch norm across ranks, on CPU and gloo too: what one process would compute on the whole batch.

Rank r holds n_r values of a channel with mean μ_r and sum of squared deviations q_r. One all-gather gives every rank

    (1)  n = Σ n_r,   μ = Σ n_r μ_r / n,   q = Σ q_r + n_r (μ_r − μ)²,   σ² = q/n
    (2)  y = w x̂ + b,   x̂ = (x − μ)/√(σ² + ε)

and with g = ∂L/∂y one all-reduce of Σ g and Σ g x̂, sums over all ranks' values, gives

    (3)  ∂L/∂x = w/√(σ² + ε) · (g − Σg/n − x̂ Σgx̂/n)

The gradients of w and b are this rank's own sums, which DDP averages over the ranks as all parameters'
(`kontrast.distributed` says why that is right). The running variance is that of n − 1, as torch's. Batches may be of
different sizes, also empty on some ranks.

Deviates: torch's SyncBatchNorm refuses tensors on the CPU; this one runs wherever the process group does, and without
one it is torch's own batch norm. Combining means and deviations (1) instead of sums of squares keeps the variance exact
where the mean is large.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import distributed
from kontrast.models._norms import Norm, replace


class SyncBatchNorm(Norm):
    """Batch norm of 1, 2 or 3 dimensions over the values of all ranks; in eval mode plain batch norm.

    Usually made by `sync_batch_norm`. Every rank must take part in every forward and backward pass in train mode,
    unless ``alone`` is set: then a rank normalises with its own values and asks nobody.
    """

    alone = False

    def _train(self, x: Tensor, rate: float) -> Tensor:
        if self.alone or distributed.world_size() == 1:
            return self._plain(x, rate)
        return _SyncNorm.apply(  # type: ignore[no-any-return]
            x, self.weight, self.bias, self.running_mean, self.running_var, self.eps, rate
        )


def sync_batch_norm(module: nn.Module) -> nn.Module:
    """Turn every batch norm inside into `SyncBatchNorm`; parameters, buffers and their names stay.

    The module is changed in place and returned (a module that is itself a batch norm: only returned).

    >>> sync_batch_norm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): SyncBatchNorm(3, eps=1e-05, momentum=0.1, ...)
    )
    """
    return replace(module, lambda old: SyncBatchNorm.like(old))


class _SyncNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        eps: float,
        rate: float,
    ) -> Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        rows = x.to(wide)
        n, mean, var = _moments(rows)
        if running_mean is not None and running_var is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), rate)
            running_var.lerp_((var * (n / (n - 1))).to(running_var.dtype), rate)
        ctx.save_for_backward(x, weight, mean, (var + eps).rsqrt())
        ctx.n = n
        w, b = (None if p is None else p.to(wide) for p in (weight, bias))
        return F.batch_norm(rows, mean, var, w, b, False, 0.0, eps).to(x.dtype)  # (2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # Not torch's once_differentiable: where the incoming gradient is a constant, it gives a silently wrong result.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "batch norm across ranks has no second derivative (create_graph=True). Compute it in one process, or "
                "with batch norm of each rank (train.batch_norm=local)"
            )
        x, weight, mean, scale = ctx.saved_tensors
        g = grad.to(mean.dtype)
        over = [0, *range(2, x.ndim)]
        shape = [1, -1, *[1] * (x.ndim - 2)]
        normal = (x.to(mean.dtype) - mean.view(shape)) * scale.view(shape)
        sums = torch.stack([g.sum(over), (g * normal).sum(over)])
        of_bias, of_weight = sums.clone()
        of_x = None
        if ctx.needs_input_grad[0]:
            dist.all_reduce(sums)
            first, second = (sums / ctx.n).view(2, *shape)
            w = scale if weight is None else scale * weight.to(scale.dtype)
            of_x = ((g - first - normal * second) * w.view(shape)).to(x.dtype)  # (3)
        like = None if weight is None else weight.dtype
        return (
            of_x,
            of_weight.to(like) if ctx.needs_input_grad[1] else None,
            of_bias.to(like) if ctx.needs_input_grad[2] else None,
            *[None] * 4,
        )


def _moments(rows: Tensor) -> tuple[int, Tensor, Tensor]:
    """(1): how many values each channel has on all ranks, their mean and their variance, both ``[C]``."""
    over = [0, *range(2, rows.ndim)]
    here = rows.numel() // rows.shape[1]
    # an empty rank has no mean; it counts for nothing below
    var, mean = torch.var_mean(rows, over, correction=0) if here else rows.new_zeros(2, rows.shape[1])
    mine = torch.stack([torch.full_like(mean, here), mean, var * here])
    everyone = [torch.empty_like(mine) for _ in range(distributed.world_size())]
    dist.all_gather(everyone, mine)
    count, means, deviations = torch.stack(everyone).unbind(1)  # [W, C] each
    n = int(count[:, 0].to(torch.float64).sum())
    if n < 2:
        raise ValueError(f"batch norm needs more than one value per channel; all ranks together have {n}")
    mean = (count * means).sum(0) / n
    return n, mean, (deviations + count * (means - mean).square()).sum(0) / n
