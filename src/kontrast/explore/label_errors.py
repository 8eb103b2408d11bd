r"""Likely label errors: rows whose label a classifier that has not seen them does not believe.

K classes, y_i the label that is given, y* the right one:

    1  z(i): a linear classifier's scores (softmax) on standardised features, cross-fitted: the rows are in `FOLDS`
       folds, and each fold is judged by the classifier of the others. Copies of an image are in one fold, else a copy
       with the same wrong label would vouch for it. Learning rate and weight decay are those with the lowest
       cross-entropy on the first fold
    2  how often which label is given for which class, T(j|k). How often a label is wrong is read in the core of each
       class k, the `CORE` of the rows that are taken for k with the most certainty: wrong labels are as frequent there
       as elsewhere, confusion of classes is not (`kontrast.doctor.rules.label_noise`). With n_k rows there, w_k of
       them with another label, and ε the share over all classes:

           ε_k = (w_k + `PRIOR` ε)/(n_k + `PRIOR`),   T(k|k) = 1 − ε_k,   T(j|k) = ε_k q_k(j)

       q_k is where wrong labels go: counts of the core, and of confident rows (Northcutt et al. 2021), those labelled j
       whose most probable class k has at least the mean probability that it has over the rows labelled k
    3  p(k|i) = softmax(z/τ), with the temperature τ of the largest Σ_i log Σ_k p(k|i) T(y_i|k): what the classifier
       says of the class, if labels are as good as T says. τ and T need each other: two rounds
    4  by Bayes, from the classifier (what the image shows) and T (what labels are worth):

           (1)  e_i = P(y* ≠ y_i | i, y_i) = 1 − p(y_i|i) T(y_i|y_i) / Σ_k p(k|i) T(y_i|k)

    5  steps 1 to 4 once more without the rows with e_i ≥ `DOUBT`: wrong labels no longer teach the classifiers that
       judge the other rows

A row is listed if e_i ≥ `LISTED`, with the most probable class instead. Where classes overlap, confusion is not noise:
on raw pixels of Fashion-MNIST, where the classifier is right for 82 %, Northcutt's counts take most confusion for wrong
labels and list a quarter of all rows. What is found on photos: benchmarks/explore.py.

Rows of a class with fewer than `FEWEST` rows are not judged: they are a classifier's blind spot, not errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from kontrast.data import generator
from kontrast.evaluate import train_heads

FOLDS = 5
FEWEST = 5
CORE, PRIOR = 0.2, 20
DOUBT, LISTED = 0.3, 0.15
PAIRS = (
    (0.01, 0.01),
    (0.003, 0.1),
    (0.003, 0.001),
    (0.01, 0.1),
    (0.03, 0.01),
    (0.03, 0.1),
    (0.001, 0.1),
    (0.03, 0.001),
)
"""Learning rates and weight decays, the most likely first: of many classes only some are tried."""
TRIED_ROWS, TRIED_SCORES = 5000, 2000  # rows for the choice; heads × classes
MOST_SCORES = 4_000_000  # for the temperature: rows × classes
EPOCHS, STEPS = 30, 1000  # as many epochs, unless so many steps are fewer
BATCH = 512
ORDER = 120  # the stream of the folds


@dataclass(frozen=True)
class LabelErrors:
    """What the labels look like to classifiers that have not seen them.

    Args:
        probability: e (1), float32 ``[N]``; 0 for rows that are not judged.
        suggested: The most probable class, int64 ``[N]``; the label itself for rows that are not judged.
        classes: p, float32 ``[N, K]``.
        given: What label each row would be given: softmax(z/τ) of step 1 alone, fitted to the labels as they are.
        rows: The likely errors, the most probable first.
        judged: How many rows were judged.
    """

    probability: Tensor
    suggested: Tensor
    classes: Tensor
    given: Tensor
    rows: list[int]
    judged: int

    @property
    def expected(self) -> float:
        """How many of the listed labels are wrong, by their probabilities."""
        return float(self.probability[self.rows].sum())


@torch.no_grad()
def label_errors(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    groups: Tensor | None = None,
    *,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> LabelErrors | None:
    """Judge every label by classifiers that have not seen the row.

    Args:
        features: Float ``[N, D]``.
        labels: int64 ``[N]``, −1 for none.
        num_classes: K.
        groups: The number of each row's group of near-duplicates, −1 for none.
        seed: Of the folds.
        progress: Called with ``(done, of)``.

    Returns:
        The probabilities; None if fewer than two classes have `FEWEST` rows.

    >>> x = torch.randn(300, 8, generator=torch.Generator().manual_seed(0)) + 5 * torch.eye(3, 8).repeat(100, 1)
    >>> y = torch.arange(300) % 3
    >>> y[30] = 1
    >>> errors = label_errors(x, y, 3)
    >>> errors.rows, int(errors.suggested[30])
    ([30], 0)
    """
    sizes = torch.bincount(labels[labels >= 0], minlength=num_classes)
    large = sizes >= FEWEST
    if int(large.sum()) < 2:
        return None
    judged = ((labels >= 0) & large[labels.clamp_min(0)]).nonzero()[:, 0]
    number = large.cumsum(0) - 1  # of the classes that are judged
    y, known = number[labels[judged]], large.nonzero()[:, 0]
    x = _standardised(features[judged])
    folds = _folds(y, None if groups is None else groups[judged], seed)
    report = _Progress(progress, 2 * FOLDS + 1)
    pair = _choose(x, y, len(known), folds, seed)
    report()
    keep = torch.ones(len(y), dtype=torch.bool)
    scores = _cross_fitted(x, y, len(known), folds, keep, pair, seed, report)
    seen = (scores / _temperature(scores, y, torch.eye(len(known)))).softmax(1)
    _, error = _judged(scores, y)
    keep = error < DOUBT
    short = (
        torch.bincount(y[keep], minlength=len(known)) < FEWEST
    )  # nothing is learned of a class that is doubted whole
    keep |= short[y]
    p, error = _judged(_cross_fitted(x, y, len(known), folds, keep, pair, seed, report), y)
    probability, suggested = torch.zeros(len(labels)), labels.clone()
    probability[judged], suggested[judged] = error, known[p.argmax(1)]
    classes, given = torch.zeros(2, len(labels), num_classes)
    classes[judged[:, None], known], given[judged[:, None], known] = p, seen
    order = probability.argsort(descending=True, stable=True)
    likely = (probability >= LISTED) & (suggested != labels)
    return LabelErrors(probability, suggested, classes, given, order[likely[order]].tolist(), len(judged))


class _Progress:
    def __init__(self, progress: Callable[[int, int], object] | None, of: int) -> None:
        self.progress, self.done, self.of = progress, 0, of

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.of)


def _standardised(x: Tensor) -> Tensor:
    """Columns with mean 0 and deviation 1; constant ones are 0."""
    x = x.float()
    deviation, mean = torch.std_mean(x, 0)
    return (x - mean) / torch.where(deviation > 1e-6 * mean.abs().clamp_min(1e-6), deviation, torch.inf)


def _folds(y: Tensor, groups: Tensor | None, seed: int) -> Tensor:
    """The fold of each row, as many rows of each class in each; copies have that of their first row."""
    order = torch.randperm(len(y), generator=generator(seed, ORDER))
    order = order[y[order].argsort(stable=True)]
    folds = torch.empty_like(y)
    folds[order] = torch.arange(len(y)) % FOLDS
    if groups is not None and int(groups.max()) >= 0:
        copies = (groups >= 0).nonzero()[:, 0]
        first = torch.full((int(groups.max()) + 1,), len(y)).scatter_reduce(0, groups[copies], copies, "amin")
        folds[copies] = folds[first[groups[copies]]]
    return folds


def _choose(x: Tensor, y: Tensor, classes: int, folds: Tensor, seed: int) -> tuple[float, float]:
    """The learning rate and weight decay whose head fits the first fold best."""
    pairs = PAIRS[: max(1, min(len(PAIRS), TRIED_SCORES // classes))]
    train, test = (folds != 0).nonzero()[:, 0], (folds == 0).nonzero()[:, 0]
    some = torch.randperm(len(train), generator=generator(seed, ORDER, 1))[:TRIED_ROWS]
    train = train[some.sort().values]
    rates, decays = zip(*pairs, strict=True)
    heads = train_heads(
        x[train],
        y[train],
        classes,
        learning_rates=rates,
        weight_decays=decays,
        epochs=EPOCHS,
        batch_size=BATCH,
        seed=seed,
    )
    losses = [
        float(F.cross_entropy(heads.scores(x[test], g), y[test]).nan_to_num(torch.inf)) for g in range(len(pairs))
    ]
    return pairs[min(range(len(pairs)), key=losses.__getitem__)]


def _cross_fitted(
    x: Tensor,
    y: Tensor,
    classes: int,
    folds: Tensor,
    keep: Tensor,
    pair: tuple[float, float],
    seed: int,
    report: _Progress,
) -> Tensor:
    """Step 1: the scores of every row by the classifier of the other folds, ``[N, K]``."""
    scores = torch.empty(len(x), classes)
    for fold in range(FOLDS):
        train, test = ((folds != fold) & keep).nonzero()[:, 0], (folds == fold).nonzero()[:, 0]
        epochs = max(5, min(EPOCHS, STEPS * BATCH // len(train)))
        heads = train_heads(
            x[train], y[train], classes, learning_rates=pair[:1], weight_decays=pair[1:], epochs=epochs,
            batch_size=BATCH, seed=seed,
        )  # fmt: skip
        scores[test] = heads.scores(x[test], 0)
        report()
    return scores


def _judged(scores: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Steps 2 to 4: p ``[N, K]`` and e ``[N]``."""
    p = scores.softmax(1)
    for _ in range(2):
        given = _labelling(p, y)
        p = (scores / _temperature(scores, y, given)).softmax(1)
    own = p.gather(1, y[:, None])[:, 0]
    return p, 1 - own * given.diagonal()[y] / _likelihood(p, y, given)


def _labelling(p: Tensor, y: Tensor) -> Tensor:
    """Step 2: T ``[K, K]``, the label given down, the class across."""
    classes = p.shape[1]
    certainty, best = p.max(1)
    core = torch.zeros(classes, classes)
    for k in range(classes):
        rows = (best == k).nonzero()[:, 0]
        rows = rows[certainty[rows].argsort(descending=True, stable=True)[: math.ceil(CORE * len(rows))]]
        core[:, k] = torch.bincount(y[rows], minlength=classes)
    right, count = core.diagonal(), core.sum(0)
    share = (core.sum() - right.sum() + 0.5) / (core.sum() + 1)
    wrong = (count - right + PRIOR * share) / (count + PRIOR)
    sizes = torch.bincount(y, minlength=classes)
    mean = torch.zeros(classes).index_add_(0, y, p.gather(1, y[:, None])[:, 0]) / sizes.clamp_min(1)
    value, confident = torch.where(p >= mean, p, torch.zeros(())).max(1)
    counts = torch.bincount((y * classes + confident)[value > 0], minlength=classes**2).view(classes, classes) + core
    others = (counts + 0.5 / (classes - 1)) * (1 - torch.eye(classes))
    return others / others.sum(0) * wrong + torch.diag(1 - wrong)


def _temperature(scores: Tensor, y: Tensor, given: Tensor) -> float:
    """Step 3, to 5 %, by rows at even distances where classes are many."""
    step = math.ceil(scores.numel() / MOST_SCORES)
    scores, y = scores[::step], y[::step]

    def fit(power: float) -> float:
        return float(_likelihood((scores * math.exp(-power)).softmax(1), y, given).log().mean())

    coarse = max((0.25 * i for i in range(-12, 9)), key=fit)
    return math.exp(max((coarse + 0.05 * i for i in range(-4, 5)), key=fit))


def _likelihood(p: Tensor, y: Tensor, given: Tensor) -> Tensor:
    """Σ_k p(k|i) T(y_i|k)."""
    return (p * given[y]).sum(1).clamp_min(1e-12)
