r"""Batch norm over other batches than one rank's: across ranks, in parts, and with shuffled keys.

**Across ranks** (`sync_batch_norm`), on CPU and gloo too: what one process would compute on the whole batch. Rank r
holds n_r values of a channel with mean μ_r and sum of squared deviations q_r. One all-gather gives every rank

    (1)  n = Σ n_r,   μ = Σ n_r μ_r / n,   q = Σ q_r + n_r (μ_r − μ)²,   σ² = q/n
    (2)  y = w x̂ + b,   x̂ = (x − μ)/√(σ² + ε)

and with g = ∂L/∂y one all-reduce of Σ g and Σ g x̂, sums over all ranks' values, gives

    (3)  ∂L/∂x = w/√(σ² + ε) · (g − Σg/n − x̂ Σgx̂/n)

The gradients of w and b are this rank's own sums, which DDP averages over the ranks as all parameters'
(`kontrast.distributed` says why that is right). The running variance is that of n − 1, as torch's. Batches may be of
different sizes, also empty on some ranks.

**In parts** (`split_batch_norm`): each part of a batch is normalised by itself, as if it lay on a device of its own. A
sample cannot then recognise its key by the statistics they share. sce simulates 8 devices in the momentum network when
it runs on one. The batch is cut into ``parts`` runs of rows, of equal size or of sizes that differ by one. The running
statistics move by the mean of what each part alone would make of them. In eval mode it is plain batch norm.

**Shuffled keys** (`shuffle_keys`) have the same purpose across ranks (MoCo, "shuffling BN"): the momentum encoder gets
batches in another order, so no key shares the batch statistics of its query.

    (4)  the rows of all ranks are gathered and permuted by one permutation, the same on every rank; rank r encodes the
         n_r rows that fall to it
    (5)  the keys are gathered and put back, and rank r takes those of its own n_r rows

In one process the rows are permuted all the same: it matters with split batch norm.

Deviates: torch's SyncBatchNorm refuses tensors on the CPU; this one runs wherever the process group does, and without
one it is torch's own batch norm. Combining means and deviations (1) instead of sums of squares keeps the variance exact
where the mean is large.

Deviates: MoCo's split batch norm gives every eighth sample to a part, ours gives it a run; the order of a batch is
random, so this is the same in law. MoCo's needs a batch that its parts divide.

Deviates: MoCo draws the permutation on rank 0 and sends it; here it follows from a seed that every rank knows (the
number of the step, say), which needs no message and repeats when a run is resumed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from kontrast import distributed
from kontrast.checks import whole_number

USUAL = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class Norm(_BatchNorm):
    """Batch norm of any number of dimensions; `_train` computes it in train mode, torch in eval mode.

    The steps that timm's norms take after normalising (``drop``, ``act``) are kept.
    """

    def __init__(self, num_features: int, *arguments: Any, **options: Any) -> None:
        super().__init__(num_features, *arguments, **options)
        self.drop: nn.Module | None = None
        self.act: nn.Module | None = None

    @classmethod
    def like(cls, old: _BatchNorm, **options: Any) -> Self:
        """A norm with the same parameters and buffers (not copies) as another."""
        new = cls(old.num_features, old.eps, old.momentum, affine=False, track_running_stats=False, **options)
        new.affine, new.track_running_stats = old.affine, old.track_running_stats
        new.weight, new.bias = old.weight, old.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(new, name, getattr(old, name))
        new.drop, new.act = getattr(old, "drop", None), getattr(old, "act", None)
        return new.train(old.training)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise ValueError(f"values have shape {list(input.shape)}: must be [N, {self.num_features}, …]")

    def forward(self, input: Tensor) -> Tensor:
        """``[N, C, …]`` → the same, normalised over all but C."""
        self._check_input_dim(input)
        if self.training:
            rate = 0.0 if self.momentum is None else self.momentum
            if self.num_batches_tracked is not None and self.track_running_stats:
                self.num_batches_tracked.add_(1)
                if self.momentum is None:  # a plain mean over all batches
                    rate = 1.0 / float(self.num_batches_tracked)
            out = self._train(input, rate)
        else:
            out = self._plain(input, 0.0)
        for after in (self.drop, self.act):
            out = out if after is None else after(out)
        return out

    def _plain(self, x: Tensor, rate: float) -> Tensor:
        """Torch's own: by the statistics of this batch in train mode, or if there are no running ones."""
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, by_batch, rate, self.eps)

    @abstractmethod
    def _train(self, x: Tensor, rate: float) -> Tensor:
        """Normalise a batch in train mode."""


def _replace(module: nn.Module, new: Callable[[_BatchNorm], nn.Module]) -> nn.Module:
    """Replace every batch norm inside by ``new(norm)``; a norm that stands in two places stays one."""
    replacements: dict[nn.Module, nn.Module] = {}

    def visit(part: nn.Module) -> nn.Module:
        if part in replacements:
            return replacements[part]
        replacements[part] = part
        if isinstance(part, _BatchNorm):
            _require_known(part)
            replacements[part] = new(part)
        else:
            for name, child in list(part._modules.items()):  # named_children leaves out what it met before
                if child is not None:
                    setattr(part, name, visit(child))
        return replacements[part]

    return visit(module)


def _require_known(norm: _BatchNorm) -> None:
    """Raise a ValueError for a batch norm of an unknown kind, whose extra behaviour would be lost."""
    if type(norm) not in USUAL and not isinstance(norm, Norm) and not (hasattr(norm, "drop") and hasattr(norm, "act")):
        kind = f"{type(norm).__module__}.{type(norm).__name__}"
        raise ValueError(
            f"norm={kind}: must be one of {', '.join(k.__name__ for k in USUAL)}. Other kinds cannot be converted"
        )


# --------------------------------------------------------------------------------------------------------- across ranks


class SyncBatchNorm(Norm):
    """Batch norm of 1, 2 or 3 dimensions over the values of all ranks; in eval mode plain batch norm.

    Usually made by `sync_batch_norm`. Every rank must take part in every forward and backward pass in train mode,
    unless ``alone`` is set: then a rank normalises with its own values.

    >>> SyncBatchNorm(2)(torch.tensor([[0.0, 1.0], [2.0, 3.0]])).detach().round()
    tensor([[-1., -1.],
            [ 1.,  1.]])
    """

    alone = False

    def _train(self, x: Tensor, rate: float) -> Tensor:
        if self.alone or distributed.world_size() == 1:
            return self._plain(x, rate)
        statistics = self.running_mean, self.running_var
        return _SyncNorm.apply(x, self.weight, self.bias, *statistics, self.eps, rate)  # type: ignore[no-any-return]


def sync_batch_norm(module: nn.Module) -> nn.Module:
    """Turn every batch norm inside into `SyncBatchNorm`; parameters, buffers and their names stay.

    Args:
        module: A network, changed in place; or a batch norm, which is not changed.

    Returns:
        The network itself, or the new batch norm.

    Raises:
        ValueError: It has a batch norm of an unknown kind.

    >>> sync_batch_norm(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): SyncBatchNorm(3, eps=1e-05, momentum=0.1, ...)
    )
    """
    return _replace(module, SyncBatchNorm.like)


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


# ------------------------------------------------------------------------------------------------------------- in parts


class SplitBatchNorm(Norm):
    """Batch norm whose batch is split into ``parts`` in train mode. Usually made by `split_batch_norm`.

    >>> SplitBatchNorm(1).parts
    1
    """

    parts: int = 1

    def _train(self, x: Tensor, rate: float) -> Tensor:
        per_part = len(x) // self.parts * (x[0, 0].numel() if len(x) else 0)
        if per_part < 2:
            raise ValueError(
                f"parts={self.parts}: must leave at least 2 values per channel in each part, and a batch of shape "
                f"{list(x.shape)} leaves {per_part}. Use a larger batch or fewer parts"
            )
        outputs, means, variances = [], [], []
        for part in x.tensor_split(self.parts):
            mean, var = (None if r is None else r.clone() for r in (self.running_mean, self.running_var))
            outputs.append(F.batch_norm(part, mean, var, self.weight, self.bias, True, rate, self.eps))
            means.append(mean)
            variances.append(var)
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.copy_(torch.stack(means).mean(0))  # type: ignore[arg-type]
            self.running_var.copy_(torch.stack(variances).mean(0))  # type: ignore[arg-type]
        return torch.cat(outputs)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, parts={self.parts}"  # type: ignore[no-untyped-call]


def split_batch_norm(module: nn.Module, parts: int = 8) -> nn.Module:
    """Turn every batch norm inside into one over ``parts`` parts; parameters, buffers and their names stay.

    Args:
        module: A network, changed in place; or a batch norm, which is not changed.
        parts: How many parts of the batch are normalised by themselves.

    Returns:
        The network itself, or the new batch norm.

    Raises:
        ValueError: ``parts`` is below 1, or there is a batch norm of an unknown kind.

    >>> norm = split_batch_norm(nn.BatchNorm1d(1), parts=2)
    >>> norm(torch.tensor([[0.0], [2.0], [10.0], [30.0]])).detach().round().flatten()
    tensor([-1.,  1., -1.,  1.])
    """
    parts = whole_number("parts", parts, least=1)

    def new(old: _BatchNorm) -> nn.Module:
        norm = SplitBatchNorm.like(old)
        norm.parts = parts
        return norm

    return _replace(module, new)


# -------------------------------------------------------------------------------------------------------- shuffled keys


class Order(NamedTuple):
    """The permutation of the rows of all ranks, on the CPU, and how many rows each rank has; for `unshuffle`."""

    permutation: Tensor
    counts: list[int]


def shuffle_keys(rows: Tensor, *, seed: int) -> tuple[Tensor, Order]:
    """Exchange the rows of all ranks at random (4). Every rank must call it.

    Args:
        rows: ``[N, …]``, this rank's rows.
        seed: The same on every rank, another one at each step.

    Returns:
        N rows taken from all ranks, and their order for `unshuffle`.

    >>> shuffled, order = shuffle_keys(torch.arange(5), seed=0)
    >>> unshuffle(shuffled * 10, order)
    tensor([ 0, 10, 20, 30, 40])
    """
    counts = distributed.row_counts(rows)
    permutation = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(seed))
    return _own_part(distributed.gather(rows, counts), permutation, counts), Order(permutation, counts)


def unshuffle(keys: Tensor, order: Order) -> Tensor:
    """Bring the keys of shuffled rows back to the ranks of their rows (5). Every rank must call it.

    Args:
        keys: ``[N, …]``, one for each shuffled row.
        order: As `shuffle_keys` returned it.

    Returns:
        ``[N, …]``, the keys in the order of the rows before.

    Raises:
        ValueError: There are not as many keys as shuffled rows.

    >>> unshuffle(torch.tensor([7, 5]), Order(torch.tensor([1, 0]), [2]))
    tensor([5, 7])
    """
    rows = order.counts[distributed.rank()]
    if len(keys) != rows:
        raise ValueError(f"keys has shape {list(keys.shape)}: must have {rows} rows, one for each shuffled row")
    return _own_part(distributed.gather(keys, order.counts), order.permutation.argsort(), order.counts)


def _own_part(everyone: Tensor, permutation: Tensor, counts: list[int]) -> Tensor:
    start = sum(counts[: distributed.rank()])
    mine = permutation[start : start + counts[distributed.rank()]]
    return everyone[mine.to(everyone.device)]
