r"""SupCon and NT-Xent as pytorch-metric-learning (2.9) computes them with its default distance and reducers.

Anchors z_i and candidates c_j are unit vectors, the candidates being the anchors or ``ref_emb``; l_ij = ⟨z_i, c_j⟩/τ.
P(i) and N(i) are the positives and negatives of i: same and other label, i itself left out where the labels of the
candidates *are* the anchors' (the same tensor, or none given); or the pairs that a miner lists. SupCon:

    (1)  L_i = −(1/|P(i)|) Σ_{p∈P(i)} log( e^{l_ip} / Σ_{a∈P(i)∪N(i)} e^{l_ia} ),   mean over the anchors with L_i > 0
    (2)  ∂L_i/∂l_ia = e^{l_ia} / Σ_{a'} e^{l_ia'} − 1[a∈P(i)]/|P(i)|

NT-Xent has one positive and the anchor's negatives in each denominator, and a pair that is listed m times counts m
times, in the mean as in the sums:

    (3)  L_ip = −log( e^{l_ip} / (e^{l_ip} + e^{λ_i}) ) = log(1 + e^{λ_i − l_ip}),     λ_i = log Σ_n m_in e^{l_in}
    (4)  L = Σ_i Σ_p m_ip L_ip / Σ_i Σ_p m_ip
    (5)  ∂L_ip/∂l_ip = −σ(λ_i − l_ip),   ∂L_ip/∂l_in = m_in e^{l_in − λ_i} σ(λ_i − l_ip)

Either is 0 if there is no positive pair at all, or no negative one, or not more than one of each.

Two cases are kontrast's own SupCon and take its fast path: (1) where no anchor has just one positive, so that
L_i ≥ log 2 and nothing is left out, and (3) where none has more than one. The others go through whole rows, where
numerator and denominator share their logits, so that an L_i that vanishes there vanishes here.

Deviates: (3) is exact where the probability underflows; there it stops at −log of the smallest number. A zero row
gets a zero gradient, there one multiplied by 1e12. Half precision is computed in float32. A temperature that is not
above zero, wrong indices, a pair that is both positive and negative to SupCon, and reference rows without as many
labels are ValueErrors. A ``distance``, ``reducer`` or ``embedding_regularizer`` is not taken.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast import losses
from kontrast.compat._pairs import Batch, Labelled, Listed, Pairs, read
from kontrast.losses._inputs import full_precision
from kontrast.losses._softmax import row_shift
from kontrast.losses._tiles import LOG2E, Grads, Rows, strips, tiled


class _PairLoss(losses.Loss):
    """What both losses share: their options, their inputs, and when they are zero."""

    def __init__(self, temperature: float | Tensor, refused: dict[str, Any]) -> None:
        super().__init__(gather_distributed=False)
        self._set_temperature(temperature)
        for name, value in refused.items():
            if value is not None and value is not False:
                raise ValueError(
                    f"{name} ({type(value).__name__}) is not supported here: kontrast.compat computes what "
                    f"pytorch-metric-learning does by default. Leave {name} out, or use kontrast.losses.SupConLoss or "
                    f"kontrast.losses.NTXentLoss, which take normalize= and reduction="
                )

    @full_precision
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Sequence[Tensor] | None = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """``embeddings [N, D]`` with ``labels [N]``, or with a miner's indices → a scalar.

        ``ref_emb [M, D]`` and ``ref_labels [M]`` are the candidates, if they are not the embeddings.
        """
        batch = read(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        positive, negative = batch.pairs.total()
        if min(positive, negative) == 0 or max(positive, negative) <= 1:
            return (batch.anchors * 0).sum()
        return self._value(batch)

    @abstractmethod
    def _value(self, batch: Batch) -> Tensor:
        """The loss of a batch that has pairs of both kinds."""

    def _plain(self, batch: Batch, pairs: Labelled) -> Tensor | None:
        """kontrast's SupCon of the same groups, if it leaves out the same candidates."""
        loss = losses.SupConLoss(self._tau()[0], gather_distributed=False, tile=self.tile)
        value: Tensor
        if not pairs.themselves:
            value = loss(batch.anchors, pairs.group, ref_emb=batch.candidates, ref_labels=pairs.candidate_group)
        elif batch.candidates is batch.anchors:
            value = loss(batch.anchors, pairs.group)
        else:
            return None
        return value

    def _over_rows(self, batch: Batch, block: Callable[[Tensor, slice, bool], Rows]) -> Tensor:
        """The sum of the block's values over all anchors."""

        def run(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x, c = tensors
            needs = (*needs, False, False)
            values, grads = strips(x, c, block, scale=scale, weight=weight, needs=needs, tile=self.tile)
            return values, grads[:2]

        z = self._rows(batch.anchors)
        c = z if batch.candidates is batch.anchors else self._rows(batch.candidates)
        x, scale = self._scaled(z)
        return tiled(run, z.new_ones(len(z)), x, c)


class SupConLoss(_PairLoss):
    """SupCon, the mean over the anchors whose loss is above zero.

    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> SupConLoss(temperature=1.0)(z, torch.tensor([7, 7, 3]))  # log(e + 1) − 1; the third has no positive
    tensor(0.3133)
    """

    def __init__(
        self,
        temperature: float | Tensor = 0.1,
        *,
        distance: None = None,
        reducer: None = None,
        embedding_regularizer: None = None,
        embedding_reg_weight: float = 1,
        collect_stats: bool | None = None,
    ) -> None:
        refused = {"distance": distance, "reducer": reducer, "embedding_regularizer": embedding_regularizer}
        super().__init__(temperature, {**refused, "collect_stats": collect_stats})

    def _value(self, batch: Batch) -> Tensor:
        pairs = batch.pairs
        if isinstance(pairs, Listed) and bool(torch.isin(pairs.positive.place, pairs.negative.place).any()):
            raise ValueError("indices_tuple lists a pair both as positive and as negative: it can be one only")
        if isinstance(pairs, Labelled) and not bool((pairs.num_positives == 1).any()):
            plain = self._plain(batch, pairs)
            if plain is not None:
                return plain
        block = _SupConBlock(pairs, batch.anchors.new_zeros(()))
        return self._over_rows(batch, block) / block.counted.clamp(min=1)


class NTXentLoss(_PairLoss):
    """NT-Xent, each positive pair against the anchor's negatives, the mean over the pairs.

    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> NTXentLoss(temperature=1.0)(z, torch.tensor([7, 7, 3]))  # log(e + 1) − 1
    tensor(0.3133)
    >>> NTXentLoss(temperature=1.0)(z, indices_tuple=([0, 1], [1, 0], [0, 0], [2, 2]))  # half log(e + 2) − 1
    tensor(0.2757)
    """

    def __init__(
        self,
        temperature: float | Tensor = 0.07,
        *,
        distance: None = None,
        reducer: None = None,
        embedding_regularizer: None = None,
        embedding_reg_weight: float = 1,
        collect_stats: bool | None = None,
    ) -> None:
        refused = {"distance": distance, "reducer": reducer, "embedding_regularizer": embedding_regularizer}
        super().__init__(temperature, {**refused, "collect_stats": collect_stats})

    def _value(self, batch: Batch) -> Tensor:
        pairs = batch.pairs
        if isinstance(pairs, Labelled) and int(pairs.num_positives.max()) == 1:
            plain = self._plain(batch, pairs)
            if plain is not None:
                return plain
        return self._over_rows(batch, _NTXentBlock(pairs)) / pairs.total()[0]  # (4)


@dataclass(frozen=True)
class _SupConBlock:
    """(1) and (2) on whole rows; ``counted`` becomes the number of anchors with L_i > 0."""

    pairs: Pairs
    counted: Tensor

    def __call__(self, logits: Tensor, r: slice, grad: bool) -> Rows:
        positives = self.pairs.positives(r, logits)
        row, column, times = positives
        own, top = logits[row, column], logits.amax(1)
        self.pairs.keep_pairs(logits, r, positives)
        shift = row_shift(logits)
        sums = logits.sub_(shift[:, None]).exp2_().sum(1)
        sums = torch.where(sums == 0, 1.0, sums)  # an anchor in no pair
        number = sums.new_zeros(len(sums)).index_add_(0, row, torch.ones_like(times))
        # Both terms of (1) are taken relative to the largest logit of all, as there: what rounds to 0 is the same.
        log_d = sums.log() + (shift - top) / LOG2E
        mean = sums.new_zeros(len(sums)).index_add_(0, row, (own - top[row]) / LOG2E) / number.clamp(min=1)
        value = torch.where(number > 0, log_d - mean, 0.0)  # (1)
        above = value > 0
        self.counted.add_(above.sum())
        if grad:
            logits.mul_(sums.reciprocal()[:, None])
            logits[row, column] -= number.reciprocal()[row]  # (2)
        return Rows(value, above.to(value.dtype))


@dataclass(frozen=True)
class _NTXentBlock:
    """Σ_p m_ip L_ip of (3), and (5), on whole rows."""

    pairs: Pairs

    def __call__(self, logits: Tensor, r: slice, grad: bool) -> Rows:
        positives = self.pairs.positives(r, logits)
        row, column, times = positives
        own = logits[row, column]
        self.pairs.keep_negatives(logits, r, positives)
        shift = row_shift(logits)
        sums = logits.sub_(shift[:, None]).exp2_().sum(1)
        gap = ((sums.log2() + shift)[row] - own) / LOG2E  # λ_i − l_ip; −∞ without negatives
        each = times * torch.logaddexp(gap, torch.zeros_like(gap))  # (3)
        value = sums.new_zeros(len(sums)).index_add_(0, row, each)
        if grad:
            pull = times * gap.sigmoid()
            push = sums.new_zeros(len(sums)).index_add_(0, row, pull) / torch.where(sums == 0, 1.0, sums)
            logits.mul_(push[:, None])
            logits[row, column] -= pull  # (5)
        return Rows(value, torch.ones_like(value))
