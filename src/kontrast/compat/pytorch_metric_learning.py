r"""SupCon and NT-Xent as pytorch-metric-learning (2.9) computes them.

With its default distance, anchors z_i and candidates c_j are unit vectors, the candidates being the anchors or
``ref_emb``, and l_ij = ⟨z_i, c_j⟩/τ; with another, l_ij is the similarity, or minus the distance, over τ.
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

With pytorch-metric-learning installed, these classes extend its own of the same name: its ``DistributedLossWrapper``,
``CrossBatchMemory``, ``SelfSupervisedLoss`` and ``MultipleLosses`` take them, and its options mean what they mean
there.

- ``distance``: cosines and dot products (normalised by any p-norm, or not at all) and squared Euclidean distances,
  ``LpDistance(power=2)``, are computed block by block. Any other distance, a user's own included, is handed to
  pytorch-metric-learning's own code, which holds the whole N×M matrix and takes its time.
- ``reducer``: any. One that is not the loss's default gets the values of (1), or of (3) for each pair, from the
  engine; the pairs' embeddings are then held at once, [pairs, D].
- ``embedding_regularizer``, ``embedding_reg_weight`` and ``collect_stats``: as there.

Without it installed, the defaults of these options are all there is. A loss that has only defaults can be pickled with
the package and loaded without it, and the other way round.

Deviates: (3) is exact where the probability underflows; there it stops at −log of the smallest number (9.7 in
float16, 87 in float32). A zero row gets a zero gradient, there one multiplied by 1e12. Half precision is computed in
float32 and the result rounded to the embeddings' precision, under autocast too. A temperature that is not above zero,
wrong indices, a pair that is both positive and negative to SupCon, and reference rows without as many labels are
ValueErrors.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast import losses
from kontrast.autograd import full_precision
from kontrast.checks import rows, same_dtype
from kontrast.engine import LOG2E, Grads, Rows, row_shift, spans, strip_height, strips, tiled
from kontrast.sphere import unit

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        from pytorch_metric_learning import distances as _distances
        from pytorch_metric_learning import losses as _losses
        from pytorch_metric_learning import reducers as _reducers
except Exception:  # not installed, or it cannot be imported with this torch
    INSTALLED = False
else:
    INSTALLED = True

__all__ = ["NTXentLoss", "SupConLoss"]

LossDict = dict[str, dict[str, Any]]  # pytorch-metric-learning's: the values of a loss, and what they are values of


# ------------------------------------------------------------------------------------------------ which pairs count


class Places(NamedTuple):
    """Pairs of some rows: where they stand in the block, and how often each is listed."""

    row: Tensor
    column: Tensor
    times: Tensor


@dataclass(frozen=True)
class LabelPairs:
    """All pairs of an anchor and a candidate, by their labels (as group numbers)."""

    group: Tensor  # [N]
    candidate_group: Tensor  # [M]
    num_positives: Tensor  # [N]
    is_self: bool  # whether candidate i is anchor i, and no pair of it

    def total(self) -> tuple[int, int]:
        """The numbers of positive and of negative pairs."""
        n, m, positive = len(self.group), len(self.candidate_group), int(self.num_positives.sum())
        return positive, n * m - positive - (n if self.is_self else 0)

    def positives(self, r: slice, like: Tensor) -> Places:
        """The positive pairs of some anchors."""
        same = self.group[r, None] == self.candidate_group[None]
        if self.is_self:
            same.diagonal(r.start).fill_(False)
        row, column = same.nonzero(as_tuple=True)
        return Places(row, column, like.new_ones(()).expand(len(row)))

    def keep_pairs(self, logits: Tensor, r: slice, positives: Places) -> None:
        """Put −∞ wherever there is no pair."""
        if self.is_self:
            logits.diagonal(r.start).fill_(-torch.inf)

    def keep_negatives(self, logits: Tensor, r: slice, positives: Places) -> None:
        """Put −∞ wherever there is no negative, and add log₂ of how often there is."""
        self.keep_pairs(logits, r, positives)
        logits[positives.row, positives.column] = -torch.inf


class Table(NamedTuple):
    """Pairs of an index list, each once: its place row·width + column, ascending, and how often it was in the list."""

    place: Tensor
    times: Tensor
    width: int

    def within(self, r: slice, like: Tensor) -> Places:
        """Those of a slice of rows."""
        edges = torch.tensor([r.start * self.width, r.stop * self.width], device=self.place.device)
        start, stop = torch.searchsorted(self.place, edges).tolist()
        place = self.place[start:stop] - r.start * self.width
        return Places(place // self.width, place % self.width, self.times[start:stop].to(like.dtype))


@dataclass(frozen=True)
class IndexPairs:
    """The pairs of an ``indices_tuple``; the methods are those of `LabelPairs`."""

    positive: Table
    negative: Table
    places: tuple[Tensor, Tensor]  # anchors and positives, in the order of the argument

    def total(self) -> tuple[int, int]:
        return int(self.positive.times.sum()), int(self.negative.times.sum())

    def positives(self, r: slice, like: Tensor) -> Places:
        return self.positive.within(r, like)

    def keep_pairs(self, logits: Tensor, r: slice, positives: Places) -> None:
        negatives = self.negative.within(r, logits)
        hidden = torch.ones_like(logits, dtype=torch.bool)
        for pairs in (positives, negatives):
            hidden[pairs.row, pairs.column] = False
        logits.masked_fill_(hidden, -torch.inf)

    def keep_negatives(self, logits: Tensor, r: slice, positives: Places) -> None:
        negatives = self.negative.within(r, logits)
        log_times = torch.full_like(logits, -torch.inf)
        log_times[negatives.row, negatives.column] = negatives.times.log2()
        logits.add_(log_times)


Pairs = LabelPairs | IndexPairs


@dataclass(frozen=True)
class PairBatch:
    """Anchors and candidates before they are normalised, and their pairs."""

    anchors: Tensor  # [N, D]
    candidates: Tensor  # [M, D]
    pairs: Pairs


def make_batch(
    embeddings: Tensor,
    labels: Tensor | None,
    indices_tuple: Sequence[Tensor] | None,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
) -> PairBatch:
    """Check the arguments of a loss, and find the pairs by labels or by a miner's indices."""
    anchors = rows("embeddings", embeddings)
    if labels is None and indices_tuple is None:
        raise ValueError("labels and indices_tuple cannot both be None: say which rows belong together")
    anchor_labels, labels = labels, _check_labels("labels", labels, anchors)
    if ref_emb is None:
        candidates, ref_labels = anchors, labels
    else:
        candidates = anchors if ref_emb is embeddings else rows("ref_emb", ref_emb, like=anchors)
        ref_labels = labels if ref_labels is anchor_labels else _check_labels("ref_labels", ref_labels, candidates)
        anchors, candidates = same_dtype(anchors, candidates)
    pairs: Pairs
    if indices_tuple is not None:
        pairs = _index_pairs(indices_tuple, len(anchors), len(candidates), anchors.device)
    else:
        assert labels is not None
        pairs = _label_pairs(anchors, candidates, labels, ref_labels)
    return PairBatch(anchors, candidates, pairs)


def _check_labels(name: str, labels: Tensor | None, x: Tensor) -> Tensor | None:
    if labels is None:
        return None
    if not isinstance(labels, Tensor) or labels.shape != (len(x),):
        shape = list(labels.shape) if isinstance(labels, Tensor) else type(labels).__name__
        raise ValueError(f"{name} must be a tensor of shape [{len(x)}], one a row of {list(x.shape)}; got {shape}")
    return labels.to(x.device)


def _label_pairs(anchors: Tensor, candidates: Tensor, labels: Tensor, ref_labels: Tensor | None) -> LabelPairs:
    is_self = ref_labels is None or ref_labels is labels
    if ref_labels is None:
        ref_labels = labels
    if len(ref_labels) != len(candidates):
        raise ValueError(
            f"ref_emb has {len(candidates)} rows and embeddings {len(anchors)}: only if they are as many are "
            f"ref_labels taken to be labels; pass ref_labels [{len(candidates)}]"
        )
    _, group = torch.unique(torch.cat([labels, ref_labels]), return_inverse=True)
    group, candidate_group = group[: len(labels)], group[len(labels) :]
    members = torch.bincount(candidate_group, minlength=len(labels) + len(ref_labels))
    return LabelPairs(group, candidate_group, members[group] - int(is_self), is_self)


def _index_pairs(indices_tuple: Sequence[Tensor], n: int, m: int, device: torch.device) -> IndexPairs:
    if len(indices_tuple) not in (3, 4):
        raise ValueError(
            f"indices_tuple has {len(indices_tuple)} entries; expected triplets (anchors, positives, negatives) or "
            f"pairs (anchors, positives, anchors, negatives)"
        )
    first, positive, *second, negative = (torch.as_tensor(index, device=device) for index in indices_tuple)
    negatives = _table(second[0] if second else first, negative, n, m)
    return IndexPairs(_table(first, positive, n, m), negatives, (first.long(), positive.long()))


def _table(row: Tensor, column: Tensor, n: int, m: int) -> Table:
    for index, size in ((row, n), (column, m)):
        if index.ndim != 1 or index.is_floating_point() or index.shape != row.shape:
            raise ValueError(
                f"indices_tuple must hold 1D integer tensors, those of a pair equally long; got {index.dtype} "
                f"{list(index.shape)} beside {row.dtype} {list(row.shape)}"
            )
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < size:
            raise ValueError(
                f"indices_tuple holds {int(index.min())} … {int(index.max())}, but there are rows 0 … {size - 1}"
            )
    place, times = torch.unique(row.long() * m + column.long(), return_counts=True)
    return Table(place, times, m)


# ------------------------------------------------------------------------------------------------ distances


class _Empty:
    pass


def _base(name: str) -> type:
    """pytorch-metric-learning's loss of that name, which ours extends; an empty class where it is not installed."""
    return getattr(_losses, name) if INSTALLED else _Empty


@dataclass(frozen=True)
class Space:
    """A distance that the engine computes, as products of rows: ⟨x, c⟩, or −‖x − c‖² up to a constant of each x.

    Attributes:
        p: Rows are divided by their p-norm first; None leaves them as they are.
        squared: Whether it is the squared Euclidean distance.

    >>> Space(squared=True).candidates(torch.tensor([[3.0, 4.0]]))
    tensor([[  3.,   4., -25.]])
    """

    p: float | None = 2
    squared: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether kontrast's own losses compute it, with ``normalize`` or without."""
        return self.p in (2, None) and not self.squared

    def rows(self, x: Tensor) -> Tensor:
        """Embeddings, normalised as the distance says."""
        if self.p is None:
            return x
        return unit(x) if self.p == 2 else F.normalize(x, p=self.p, dim=1)

    def anchors(self, z: Tensor) -> Tensor:
        """Anchors; of squared distances with a further 1, for `candidates`."""
        return torch.cat([2 * z, torch.ones_like(z[:, :1])], dim=1) if self.squared else z

    def candidates(self, z: Tensor) -> Tensor:
        """Candidates; of squared distances with a further −‖c‖².

        2⟨x, c⟩ − ‖c‖² is −‖x − c‖² + ‖x‖², and a number added to a whole row changes no loss.
        """
        return torch.cat([z, -z.square().sum(1, keepdim=True)], dim=1) if self.squared else z


def _space(distance: Any) -> Space | None:
    """How the engine computes a distance; None if it cannot, as for every distance of a user's own."""
    if not INSTALLED:
        return Space()
    kind, p = type(distance), distance.p if getattr(distance, "normalize_embeddings", False) else None
    if kind in (_distances.CosineSimilarity, _distances.DotProductSimilarity):
        return Space(p) if distance.power == 1 and distance.is_inverted else None
    if kind is _distances.LpDistance and distance.p == 2 and distance.power == 2 and not distance.is_inverted:
        return Space(p, squared=True)
    return None


def _collect_stats(distance: Any, query: Tensor, ref: Tensor) -> None:
    """Store the statistics that a distance with ``collect_stats`` stores when it is called."""
    distance.reset_stats()
    if distance.collect_stats:
        distance.set_default_stats(query, ref, distance.maybe_normalize(query), distance.maybe_normalize(ref))


def _is_mean(reducer: Any, *, above_zero: bool) -> bool:
    """Whether a reducer is the plain mean of all values (or of those above 0) and collects no statistics."""
    if isinstance(reducer, _reducers.MultipleReducers):
        reducer = dict(reducer.reducers.items()).get("loss", reducer.default_reducer)  # a ModuleDict has no get
    if getattr(reducer, "collect_stats", True):
        return False
    if type(reducer) is _reducers.MeanReducer:
        return not above_zero
    threshold = type(reducer) in (_reducers.AvgNonZeroReducer, _reducers.ThresholdReducer)
    return above_zero and threshold and reducer.low == 0 and reducer.high is None


class _PairLoss(losses.Loss):
    """What both losses share: their options, their inputs, and when they are zero."""

    above_zero: bool  # whether the default reducer leaves out what is 0
    distance: nn.Module | None  # None only where pytorch-metric-learning is not installed
    reducer: nn.Module | None

    def __init__(
        self,
        temperature: float | Tensor,
        *,
        distance: nn.Module | None = None,
        reducer: nn.Module | None = None,
        embedding_regularizer: nn.Module | None = None,
        embedding_reg_weight: float = 1,
        collect_stats: bool | None = None,
    ) -> None:
        super().__init__(gather_distributed=False)
        self._set_their_options(
            distance=distance,
            reducer=reducer,
            embedding_regularizer=embedding_regularizer,
            embedding_reg_weight=embedding_reg_weight,
            collect_stats=collect_stats,
        )
        self.temperature = temperature

    def _set_their_options(self, **options: Any) -> None:
        """The state that pytorch-metric-learning's losses have; ``temperature`` is left to be set."""
        if INSTALLED:
            # Loss comes before their class among the bases, so this is their constructor; it makes the module anew.
            super(losses.Loss, self).__init__(**options)
            del self.temperature
            return
        self.distance = self.reducer = None
        for name, value in options.items():
            if name != "embedding_reg_weight" and value is not None and value is not False:
                raise ValueError(
                    f"{name}={type(value).__name__}: needs pytorch-metric-learning, which is not installed. "
                    f"Install it with pip install 'kontrast[peers]', or leave {name} out"
                )

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
        inputs = (embeddings, labels, indices_tuple, ref_emb, ref_labels)
        if _space(self.distance) is None:
            return super(losses.Loss, self).forward(*inputs)  # type: ignore[no-any-return]  # calls `compute_loss`
        return self._by_engine(*inputs)

    @full_precision
    def _by_engine(self, embeddings: Tensor, labels: Tensor | None, *others: Any) -> Tensor:
        """What pytorch-metric-learning's ``forward`` does, with the checks of kontrast."""
        if not INSTALLED:
            batch = make_batch(embeddings, labels, *others)
            value = (batch.anchors * 0).sum() if _is_zero(batch) else self._value(batch, Space())
            return value.to(embeddings.dtype)
        theirs: Any = self
        theirs.reset_stats()
        values = self.compute_loss(embeddings, labels, *others)
        theirs.add_embedding_regularization_to_loss_dict(values, embeddings)
        on_device = labels if labels is None else labels.to(embeddings.device)
        reduced: Tensor = theirs.reducer(values, embeddings, on_device)
        return reduced

    def compute_loss(
        self,
        embeddings: Tensor,
        labels: Tensor | None,
        indices_tuple: Sequence[Tensor] | None,
        ref_emb: Tensor | None,
        ref_labels: Tensor | None,
    ) -> LossDict:
        """pytorch-metric-learning's dictionary: the values before they are reduced.

        Where the reducer is the loss's default they are reduced already, which costs less.
        """
        theirs: Any = self
        engine = _space(self.distance)
        if engine is None:
            dense: Any = super(losses.Loss, self)
            return dense.compute_loss(embeddings, labels, indices_tuple, ref_emb, ref_labels)  # type: ignore[no-any-return]
        batch = make_batch(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        _collect_stats(self.distance, embeddings, embeddings if ref_emb is None else ref_emb)
        if _is_zero(batch):
            return theirs.zero_losses()  # type: ignore[no-any-return]
        if _is_mean(self.reducer, above_zero=self.above_zero):
            value = self._value(batch, engine).to(embeddings.dtype)
            return {"loss": {"losses": value, "indices": None, "reduction_type": "already_reduced"}}
        values, indices, kind = self._each(batch, engine)
        return {"loss": {"losses": values.to(embeddings.dtype), "indices": indices, "reduction_type": kind}}

    def extra_repr(self) -> str:
        """The temperature; distance and reducer are modules and show themselves."""
        return f"temperature={round(self.options.now, 6)!r}"

    # ------------------------------------------------------------------------------------------------ pickling

    def __getstate__(self) -> dict[str, Any]:
        """Without what `_set_their_options` makes, if that is nothing but defaults."""
        fresh = self._fresh()
        state = dict(self.__dict__)
        if not INSTALLED or _describe(self) == _describe(fresh):
            of_base = losses.Loss().__dict__
            state = {k: v for k, v in state.items() if k in of_base or k not in fresh.__dict__}
            state["_modules"] = {k: v for k, v in self._modules.items() if k not in fresh._modules}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "distance" not in state["_modules"]:  # the defaults were left out
            fresh = self._fresh()
            state = {**fresh.__dict__, **state, "_modules": {**fresh._modules, **state["_modules"]}}
            if INSTALLED:
                state["loss_method"] = getattr(self, state["loss_method"].__name__)  # not the fresh loss's own
        super().__setstate__(state)  # type: ignore[no-untyped-call]

    def _fresh(self) -> _PairLoss:
        """A loss of this class with the defaults, but for its temperature, which it lacks."""
        fresh = type(self).__new__(type(self))
        losses.Loss.__init__(fresh)
        fresh._set_their_options()
        return fresh

    # ----------------------------------------------------------------------------------------------- computing

    @abstractmethod
    def _value(self, batch: PairBatch, engine: Space) -> Tensor:
        """The loss with its default reducer, of a batch that has pairs of both kinds."""

    @abstractmethod
    def _each(self, batch: PairBatch, engine: Space) -> tuple[Tensor, Any, str]:
        """Every value, which rows it is of, and what pytorch-metric-learning calls such values."""

    def _plain(self, batch: PairBatch, pairs: LabelPairs, engine: Space) -> Tensor | None:
        """kontrast's SupCon of the same groups, if it leaves out the same candidates."""
        if not engine.is_plain:
            return None
        loss = losses.SupConLoss(
            self.options.tau, normalize=engine.p is not None, gather_distributed=False, tile=self.tile
        )
        value: Tensor
        if not pairs.is_self:
            value = loss(batch.anchors, pairs.group, ref_emb=batch.candidates, ref_labels=pairs.candidate_group)
        elif batch.candidates is batch.anchors:
            value = loss(batch.anchors, pairs.group)
        else:
            return None
        return value

    def _over_rows(
        self, batch: PairBatch, engine: Space, block: Callable[[Tensor, slice, bool], Rows], *, each: bool = False
    ) -> Tensor:
        """The sum of the block's values over all anchors; or the values, ``each``."""

        def compute(tensors: Sequence[Tensor], weight: Tensor | None, needs: Sequence[bool]) -> tuple[Tensor, Grads]:
            x, c = tensors
            needs = (*needs, False, False)
            values, grads = strips(x, c, block, scale=scale, weight=weight, needs=needs, tile=self.tile)
            return values, grads[:2]

        z, c = self._embedded(batch, engine)
        x, scale = self.options.scaled(z)
        return tiled(compute, None if each else z.new_ones(len(z)), x, c)

    def _embedded(self, batch: PairBatch, engine: Space) -> tuple[Tensor, Tensor]:
        """Rows whose products are the similarities of anchors and candidates."""
        z = engine.rows(batch.anchors)
        c = z if batch.candidates is batch.anchors else engine.rows(batch.candidates)
        return engine.anchors(z), engine.candidates(c)


def _is_zero(batch: PairBatch) -> bool:
    positive, negative = batch.pairs.total()
    return min(positive, negative) == 0 or max(positive, negative) <= 1


def _describe(loss: Any) -> tuple[Any, ...]:
    """A loss's distance, reducer and other options, as what can be compared."""
    parts = [
        (type(part), {k: v for k, v in vars(part).items() if not k.startswith("_")}, dict(part.named_children()))
        for part in (loss.distance, loss.reducer)
    ]
    return (*parts, loss.embedding_regularizer, loss.embedding_reg_weight, loss.collect_stats)


class SupConLoss(_PairLoss, _base("SupConLoss")):  # type: ignore[misc]
    """SupCon, the mean over the anchors whose loss is above zero.

    Args:
        temperature: a number above 0, or a scalar tensor, which may be learned.
        options: pytorch-metric-learning's: ``distance`` (cosine similarity), ``reducer`` (``AvgNonZeroReducer``),
            ``embedding_regularizer``, ``embedding_reg_weight`` and ``collect_stats``; see the top of this module.

    Raises:
        ValueError: for a temperature out of range, and for options that need the package where it is not installed.

    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> SupConLoss(temperature=1.0)(z, torch.tensor([7, 7, 3]))  # log(e + 1) − 1; the third has no positive
    tensor(0.3133)
    """

    above_zero = True

    def __init__(self, temperature: float | Tensor = 0.1, **options: Any) -> None:
        super().__init__(temperature, **options)

    def _value(self, batch: PairBatch, engine: Space) -> Tensor:
        pairs = _check_disjoint(batch.pairs)
        if isinstance(pairs, LabelPairs) and not bool((pairs.num_positives == 1).any()):
            plain = self._plain(batch, pairs, engine)
            if plain is not None:
                return plain
        block = _SupConBlock(pairs, batch.anchors.new_zeros(()))
        return self._over_rows(batch, engine, block) / block.count.clamp(min=1)

    def _each(self, batch: PairBatch, engine: Space) -> tuple[Tensor, Any, str]:
        block = _SupConBlock(_check_disjoint(batch.pairs), batch.anchors.new_zeros(()), every=True)
        values = self._over_rows(batch, engine, block, each=True)
        return values, torch.arange(len(values), device=values.device), "element"


def _check_disjoint(pairs: Pairs) -> Pairs:
    if isinstance(pairs, IndexPairs) and bool(torch.isin(pairs.positive.place, pairs.negative.place).any()):
        raise ValueError("indices_tuple lists a pair both as positive and as negative: it can be one only")
    return pairs


class NTXentLoss(_PairLoss, _base("NTXentLoss")):  # type: ignore[misc]
    """NT-Xent, each positive pair against the anchor's negatives, the mean over the pairs.

    Args:
        temperature: a number above 0, or a scalar tensor, which may be learned.
        options: as `SupConLoss` has them; the default reducer is ``MeanReducer``.

    Raises:
        ValueError: as `SupConLoss` does.

    >>> z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> NTXentLoss(temperature=1.0)(z, torch.tensor([7, 7, 3]))  # log(e + 1) − 1
    tensor(0.3133)
    >>> NTXentLoss(temperature=1.0)(z, indices_tuple=([0, 1], [1, 0], [0, 0], [2, 2]))  # half log(e + 2) − 1
    tensor(0.2757)
    """

    above_zero = False

    def __init__(self, temperature: float | Tensor = 0.07, **options: Any) -> None:
        super().__init__(temperature, **options)

    def _value(self, batch: PairBatch, engine: Space) -> Tensor:
        pairs = batch.pairs
        if isinstance(pairs, LabelPairs) and int(pairs.num_positives.max()) == 1:
            plain = self._plain(batch, pairs, engine)
            if plain is not None:
                return plain
        return self._over_rows(batch, engine, partial(_nt_xent_block, pairs)) / pairs.total()[0]  # (4)

    def _each(self, batch: PairBatch, engine: Space) -> tuple[Tensor, Any, str]:
        z, c = self._embedded(batch, engine)
        row, column = _positive_pairs(batch)
        logits = (z.index_select(0, row) * c.index_select(0, column)).sum(1) / self.options.tau
        log_sums = self._over_rows(batch, engine, partial(_negatives_block, batch.pairs), each=True)  # λ_i
        gap = log_sums.index_select(0, row) - logits
        return torch.logaddexp(gap, torch.zeros_like(gap)), (row, column), "pos_pair"  # (3)


def _positive_pairs(batch: PairBatch) -> tuple[Tensor, Tensor]:
    """Each positive pair: as listed, or in the order of rows and columns."""
    pairs, n, m = batch.pairs, len(batch.anchors), len(batch.candidates)
    if isinstance(pairs, IndexPairs):
        return pairs.places
    rows_of_pairs, columns = [], []
    for r in spans(n, strip_height(m, 1, "auto")):
        places = pairs.positives(r, batch.anchors)
        rows_of_pairs.append(places.row + r.start)
        columns.append(places.column)
    return torch.cat(rows_of_pairs), torch.cat(columns)


@dataclass(frozen=True)
class _SupConBlock:
    """(1) and (2) on whole rows; ``count`` becomes the number of anchors with L_i > 0.

    An L_i that has rounded to 0 has no gradient, as it is left out of the mean; with ``every`` it has one.
    """

    pairs: Pairs
    count: Tensor
    every: bool = False

    def __call__(self, logits: Tensor, r: slice, grad: bool) -> Rows:
        positives = self.pairs.positives(r, logits)
        row, column, times = positives
        of_positives, top = logits[row, column], logits.amax(1)
        self.pairs.keep_pairs(logits, r, positives)
        shift = row_shift(logits)
        sums = logits.sub_(shift[:, None]).exp2_().sum(1)
        sums = torch.where(sums == 0, 1.0, sums)  # an anchor in no pair
        number = sums.new_zeros(len(sums)).index_add_(0, row, torch.ones_like(times))
        # Both terms of (1) are taken relative to the largest logit of all, as there: what rounds to 0 is the same.
        log_d = sums.log() + (shift - top) / LOG2E
        mean = sums.new_zeros(len(sums)).index_add_(0, row, (of_positives - top[row]) / LOG2E) / number.clamp(min=1)
        value = torch.where(number > 0, log_d - mean, 0.0)  # (1)
        above = value > 0
        self.count.add_(above.sum())
        if grad:
            logits.mul_(sums.reciprocal()[:, None])
            logits[row, column] -= number.reciprocal()[row]  # (2)
        return Rows(value, (number > 0 if self.every else above).to(value.dtype))


def _nt_xent_block(pairs: Pairs, logits: Tensor, r: slice, grad: bool) -> Rows:
    """Σ_p m_ip L_ip of (3), and (5), on whole rows."""
    positives = pairs.positives(r, logits)
    row, column, times = positives
    of_positives = logits[row, column]
    pairs.keep_negatives(logits, r, positives)
    shift = row_shift(logits)
    sums = logits.sub_(shift[:, None]).exp2_().sum(1)
    gap = ((sums.log2() + shift)[row] - of_positives) / LOG2E  # λ_i − l_ip; −∞ without negatives
    each = times * torch.logaddexp(gap, torch.zeros_like(gap))  # (3)
    value = sums.new_zeros(len(sums)).index_add_(0, row, each)
    if grad:
        pull = times * gap.sigmoid()
        push = sums.new_zeros(len(sums)).index_add_(0, row, pull) / torch.where(sums == 0, 1.0, sums)
        logits.mul_(push[:, None])
        logits[row, column] -= pull  # (5)
    return Rows(value, torch.ones_like(value))


def _negatives_block(pairs: Pairs, logits: Tensor, r: slice, grad: bool) -> Rows:
    """λ_i of (3) on whole rows; −∞ for an anchor without negatives."""
    pairs.keep_negatives(logits, r, pairs.positives(r, logits))
    shift = row_shift(logits)
    sums = logits.sub_(shift[:, None]).exp2_().sum(1)
    return Rows(sums.log() + shift / LOG2E, torch.where(sums == 0, 1.0, sums).reciprocal())
