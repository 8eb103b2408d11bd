"""What methods with a momentum encoder and a queue share (MoCo, ReSSL, SCE).

View 0 (weak) goes through the target network, view 1 (strong) through the online one. Symmetric methods take both ways.

Batch norm lets samples find their keys by the statistics they share with them. Against that the keys can be computed in
another order than the queries, over all ranks (``shuffle_keys``), and in parts as if on several devices (``key_parts``
of the whole batch, 8 in sce's code); with batch norm across ranks and neither, it is one batch for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import distributed, losses, models
from kontrast.data.loader import Stream, generator
from kontrast.geometry import penalty_entropy
from kontrast.methods._base import Method, Network, OptionWords, Setting, ViewBatch, out_dim
from kontrast.sphere import unit_rows

SMALL_BATCHES = {"key_parts": 1}  # batch norm over an eighth of a small batch would be noise


class MomentumMethod(Method):
    """Base of the methods with a target network and a queue; its options are theirs too.

    Args:
        encoder: The encoder.
        head: The projector; it must say its ``out_dim``.
        setting: ``total_steps`` for a cosine momentum, and ``seed`` of the queue's first rows.
        symmetric: Whether both views go both ways.
        queue: How many past keys are kept.
        momentum: The weight of the target's old weights in its update.
        momentum_schedule: ``constant``, or ``cosine`` from ``momentum`` to 1.
        shuffle_keys: Whether keys go through the target in another order than the queries.
        key_parts: In how many parts the batch norm of the target sees the whole batch.
    """

    fewest_views = most_views = 2
    option_words: ClassVar[OptionWords] = {
        "target_temperature": "target temperature τ_m = {}",
        "queue": "queue of {} keys",
        "momentum": "momentum encoder {}",
        "symmetric": "both directions",
        "shuffle_keys": "keys shuffled",
        "key_parts": "batch norm of the keys in {} parts",
    }

    def __init__(
        self,
        encoder: nn.Module,
        head: nn.Module,
        *,
        setting: Setting | None,
        symmetric: bool = False,
        queue: int = 4096,
        momentum: float = 0.99,
        momentum_schedule: str = "constant",
        shuffle_keys: bool = True,
        key_parts: int = 8,
    ) -> None:
        setting = setting or Setting()
        super().__init__(encoder, head)
        total = setting.total_steps if momentum_schedule == "cosine" else None
        self.pair = models.MomentumPair(self.network, momentum, schedule=momentum_schedule, total_steps=total)
        del self.network  # the pair holds it: a module has one place in a state dict
        if key_parts > 1:
            models.split_batch_norm(self.pair.target, key_parts)
        self.queue = models.Queue(queue, out_dim(head), generator=generator(setting.seed, Stream.KEYS))
        self.shuffle, self.key_parts, self.symmetric = shuffle_keys, key_parts, symmetric

    @property
    def online(self) -> Network:
        """The online network."""
        return self.pair.online  # type: ignore[return-value]

    @property
    def fewest_at_once(self) -> int:
        """Two images for each part of the target's batch norm."""
        return 2 * max(1, self.key_parts // distributed.world_size())

    def across_ranks(self) -> None:
        """Synchronise batch norm; a target with split batch norm keeps its number of parts, shared by the ranks."""
        models.sync_batch_norm(self.pair.online)
        if self.key_parts == 1:
            models.sync_batch_norm(self.pair.target)
            return
        ranks = distributed.world_size()
        if self.key_parts % ranks:
            raise ValueError(
                f"method.key_parts={self.key_parts}: must be a multiple of the number of processes ({ranks}), or 1 for "
                f"batch norm over all keys. Use {ranks} or 1"
            )
        models.split_batch_norm(self.pair.target, self.key_parts // ranks)

    def embed(self, views: Tensor) -> Tensor:
        """The strong view, or both."""
        return super().embed(views if self.symmetric else views[:, 1:])

    @torch.no_grad()
    def keys(self, views: Tensor, seed: int) -> Tensor:
        """The weak view through the target network, or both views."""
        views = views if self.symmetric else views[:, :1]
        rows = views.flatten(0, 1)
        if self.shuffle:
            rows, order = models.shuffle_keys(rows, seed=seed)
        k: Tensor = self.pair.keys(rows)
        if self.shuffle:
            k = models.unshuffle(k, order)
        return unit_rows(k.float()).view(*views.shape[:2], -1)

    def objective(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> Tensor:
        """The online embedding of one view against the target's of the other; the mean of both ways if symmetric."""
        assert keys is not None
        if not self.symmetric:
            return self._one_way(z[:, 0], keys[:, 0])
        return (self._one_way(z[:, 1], keys[:, 0]) + self._one_way(z[:, 0], keys[:, 1])) / 2

    def _one_way(self, online: Tensor, target: Tensor) -> Tensor:
        return self.loss(online, target, self.queue.rows)  # type: ignore[no-any-return]

    @classmethod
    def words(cls, options: Mapping[str, Any], *, number: Callable[[float], str]) -> str:
        """Those of the base class; the momentum with its schedule."""
        course = "constant" if options["momentum_schedule"] == "constant" else "rising to 1 along a cosine"
        changes: dict[str, Any] = {"momentum": f"{number(options['momentum'])}, {course}", "momentum_schedule": None}
        if options["key_parts"] == 1:
            changes["key_parts"] = None
        return super().words({**options, **changes}, number=number)

    def after_step(self) -> None:
        """Update the target, and add the keys to the queue: the loss has used the queue without them."""
        if self._last is not None and self._last[1] is not None:
            self.queue.enqueue(self._last[1].flatten(0, 1))
        if self.key_parts > 1:  # each rank has seen its own parts' statistics
            distributed.average(b for b in self.pair.target.buffers() if b.is_floating_point())
        self.pair.update()

    @torch.no_grad()
    def report(self) -> dict[str, float]:
        """Mean similarity of a sample's two views, online against target, and of the nearest row of the queue."""
        if self._last is None or self._last[1] is None:
            return {}
        z, keys = F.normalize(self._last[0].float(), dim=2)[:, -1], self._last[1][:, 0]
        return {
            "positive_similarity": float((z * keys).sum(1).mean()),
            "nearest_in_queue": float((z @ self.queue.rows.T).amax(1).mean()),
        }

    def composition(self, z: Tensor, keys: Tensor | None, batch: ViewBatch) -> losses.Batch:
        """The queue, and the mean entropy of the target's relations to it, if there are any (on at most 64 rows)."""
        temperature = getattr(self.loss, "target_temperature", None)
        if temperature is None or keys is None:
            return losses.Batch(num_negatives=len(self.queue))
        target = keys[:64, 0]
        entropy = penalty_entropy(target, target, self.queue.rows, temperature=temperature)
        return losses.Batch(num_negatives=len(self.queue), target_entropy=float(entropy.mean()))
