"""pytorch-metric-learning itself, where it is installed: the classes to extend, and which of its parts the engine does.

kontrast does not need the package. Where it is there, the losses of `kontrast.compat.pytorch_metric_learning` extend
its own of the same name, so that its wrappers accept them and its distances, reducers and regularizers work in them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.sphere import unit

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what its imports deprecate is not for users of kontrast to mend
        from pytorch_metric_learning import distances as _distances
        from pytorch_metric_learning import losses as _losses
        from pytorch_metric_learning import reducers as _reducers
except Exception:  # not installed; or it cannot be imported with this torch, which is no reason to fail here
    INSTALLED = False
else:
    INSTALLED = True


class _Nothing:
    """What a loss extends where there is nothing to extend."""


def base(name: str) -> type:
    """pytorch-metric-learning's loss of that name, or a class that does nothing."""
    return getattr(_losses, name) if INSTALLED else _Nothing


@dataclass(frozen=True)
class Space:
    """A distance that the engine computes, as products of rows: ⟨x, c⟩, or −‖x − c‖² up to a constant of each x."""

    p: float | None = 2  # the norm by which rows are divided first; None: they are taken as they are
    squared: bool = False

    @property
    def plain(self) -> bool:
        """Whether kontrast's own losses compute it, with ``normalize`` or without."""
        return self.p in (2, None) and not self.squared

    def rows(self, x: Tensor) -> Tensor:
        """Embeddings, normalised as the distance says."""
        if self.p is None:
            return x
        return unit(x) if self.p == 2 else F.normalize(x, p=self.p, dim=1)

    def anchors(self, z: Tensor) -> Tensor:
        """With a further 1, for `candidates`."""
        return torch.cat([2 * z, torch.ones_like(z[:, :1])], dim=1) if self.squared else z

    def candidates(self, z: Tensor) -> Tensor:
        """With a further −‖c‖²: 2⟨x, c⟩ − ‖c‖² is −‖x − c‖² + ‖x‖²; what is added to a whole row changes no loss."""
        return torch.cat([z, -z.square().sum(1, keepdim=True)], dim=1) if self.squared else z


def space(distance: Any) -> Space | None:
    """How the engine computes a distance; None if it does not, as for every distance of a user's own."""
    if not INSTALLED:
        return Space()
    kind, p = type(distance), distance.p if getattr(distance, "normalize_embeddings", False) else None
    if kind in (_distances.CosineSimilarity, _distances.DotProductSimilarity):
        return Space(p) if distance.power == 1 and distance.is_inverted else None
    if kind is _distances.LpDistance and distance.p == 2 and distance.power == 2 and not distance.is_inverted:
        return Space(p, squared=True)
    return None


def tell_norms(distance: Any, query: Tensor, ref: Tensor) -> None:
    """What a distance with ``collect_stats`` notes of the embeddings when it is called."""
    distance.reset_stats()
    if distance.collect_stats:
        distance.set_default_stats(query, ref, distance.maybe_normalize(query), distance.maybe_normalize(ref))


def is_mean(reducer: Any, *, above_zero: bool) -> bool:
    """Whether a reducer is the plain mean of all values (or of those above 0) and notes nothing about them."""
    if isinstance(reducer, _reducers.MultipleReducers):
        named = dict(reducer.reducers.items())  # a ModuleDict has no get
        reducer = named.get("loss", reducer.default_reducer)
    if getattr(reducer, "collect_stats", True):
        return False
    if type(reducer) is _reducers.MeanReducer:
        return not above_zero
    threshold = type(reducer) in (_reducers.AvgNonZeroReducer, _reducers.ThresholdReducer)
    return above_zero and threshold and reducer.low == 0 and reducer.high is None
