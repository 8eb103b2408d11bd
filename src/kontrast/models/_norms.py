"""What batch norm across ranks and split batch norm share: torch's batch norm with another way to train."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class Norm(_BatchNorm):
    """Batch norm of any number of dimensions; in train mode `_train` says how, in eval mode it is torch's own.

    What else a norm of timm's does after normalising (``drop``, ``act``) is kept and done here too.
    """

    def __init__(self, num_features: int, *arguments: Any, **options: Any) -> None:
        super().__init__(num_features, *arguments, **options)
        self.drop: nn.Module | None = None
        self.act: nn.Module | None = None

    @classmethod
    def like(cls, old: _BatchNorm, **options: Any) -> Self:
        """One with the very parameters and buffers of another."""
        new = cls(old.num_features, old.eps, old.momentum, affine=False, track_running_stats=False, **options)
        new.affine, new.track_running_stats = old.affine, old.track_running_stats
        new.weight, new.bias = old.weight, old.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(new, name, getattr(old, name))
        new.drop, new.act = getattr(old, "drop", None), getattr(old, "act", None)
        return new.train(old.training)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise ValueError(f"values of shape {list(input.shape)}: this norm takes [N, {self.num_features}, …]")

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
        """Torch's own, with this batch's statistics in train mode or where no others are kept."""
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, by_batch, rate, self.eps)

    @abstractmethod
    def _train(self, x: Tensor, rate: float) -> Tensor:
        """How a batch is normalised in train mode."""


def replace(module: nn.Module, new: Callable[[_BatchNorm], nn.Module]) -> nn.Module:
    """``new(norm)`` in the place of every batch norm inside; one that stands in two places stays one."""
    made: dict[nn.Module, nn.Module] = {}

    def changed(part: nn.Module) -> nn.Module:
        if part in made:
            return made[part]
        made[part] = part
        if isinstance(part, _BatchNorm):
            made[part] = new(_known(part))
        else:
            for name, child in list(part._modules.items()):  # named_children leaves out what it met before
                if child is not None:
                    setattr(part, name, changed(child))
        return made[part]

    return changed(module)


def _known(norm: _BatchNorm) -> _BatchNorm:
    """Refuse a batch norm that does more than we know of, rather than lose it."""
    usual = (*PLAIN, nn.SyncBatchNorm)
    if type(norm) in usual or isinstance(norm, Norm) or (hasattr(norm, "drop") and hasattr(norm, "act")):
        return norm
    kind = f"{type(norm).__module__}.{type(norm).__name__}"
    raise ValueError(f"cannot convert a {kind}: it is none of {', '.join(k.__name__ for k in usual)}")
