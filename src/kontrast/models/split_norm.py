"""Split batch norm: each part of a batch is normalised by itself, as if it lay on a device of its own.

Samples cannot then find their keys by the statistics they share with them, which is what shuffled keys do across ranks
(`kontrast.models.shuffle_keys`). sce simulates 8 devices in the momentum network when it runs on one.

The batch is cut into ``parts`` runs of rows, of equal size or, if that does not come out, of sizes that differ by one.
The running statistics move by the mean of what each part alone would make of them. In eval mode it is plain batch norm.

Deviates: MoCo's code gives every eighth sample to a part, ours gives it a run; the order of a batch is random, so this
is the same in law. MoCo's needs a batch that its parts divide.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast.models._norms import Norm, replace
from kontrast.models._options import positive


class SplitBatchNorm(Norm):
    """Batch norm whose batch is split into ``parts`` in train mode. Usually made by `split_batch_norm`."""

    parts: int = 1

    def _train(self, x: Tensor, rate: float) -> Tensor:
        per_part = len(x) // self.parts * (x[0, 0].numel() if len(x) else 0)
        if per_part < 2:
            raise ValueError(
                f"a batch of shape {list(x.shape)} in {self.parts} parts leaves {per_part} value(s) per channel "
                "in one; batch norm needs at least 2: take a larger batch or fewer parts"
            )
        done, means, variances = [], [], []
        for part in x.tensor_split(self.parts):
            mean, var = (None if r is None else r.clone() for r in (self.running_mean, self.running_var))
            done.append(F.batch_norm(part, mean, var, self.weight, self.bias, True, rate, self.eps))
            means.append(mean)
            variances.append(var)
        if self.running_mean is not None and self.running_var is not None:
            self.running_mean.copy_(torch.stack(means).mean(0))  # type: ignore[arg-type]
            self.running_var.copy_(torch.stack(variances).mean(0))  # type: ignore[arg-type]
        return torch.cat(done)

    def extra_repr(self) -> str:
        """Torch's words, and the parts."""
        return f"{super().extra_repr()}, parts={self.parts}"  # type: ignore[no-untyped-call]


def split_batch_norm(module: nn.Module, parts: int = 8) -> nn.Module:
    """Turn every batch norm inside into one over ``parts`` parts; parameters, buffers and their names stay.

    The module is changed in place and returned (a module that is itself a batch norm: only returned).

    >>> norm = split_batch_norm(nn.BatchNorm1d(1), parts=2)
    >>> norm(torch.tensor([[0.0], [2.0], [10.0], [30.0]])).detach().round().flatten()
    tensor([-1.,  1., -1.,  1.])
    """
    parts = positive("parts", parts)

    def split(old: nn.modules.batchnorm._BatchNorm) -> nn.Module:
        new = SplitBatchNorm.like(old)
        new.parts = parts
        return new

    return replace(module, split)
