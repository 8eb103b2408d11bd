r"""A scikit-learn estimator over the same parts: rows or images in, embeddings out.

    (1)  x ← (x − mean)/std           of the training rows: feature by feature of vectors, channel by channel of images,
                                      or of all numbers ("jointly")
    (2)  f = argmin loss(f(views of x), y)                            f an encoder, the loss by its name
    (3)  transform:   z = f(x)/‖f(x)‖
    (4)  score(X, y): the share of rows that their 20 nearest training rows name right, weights e^{s/0.07}, s = cosine
         score(X):    minus the InfoNCE loss, τ = 0.1, between two views of each row; larger is better in both

>>> from sklearn.datasets import load_wine
>>> X, y = load_wine(return_X_y=True)
>>> encoder = ContrastiveEncoder(n_components=8, max_iter=20, random_state=0).fit(X[::2], y[::2])
>>> encoder.transform(X[1::2]).shape
(89, 8)
>>> bool(encoder.score(X[1::2], y[1::2]) > 0.9)
True

(2) is `kontrast.train.Training` on the arrays, in a temporary folder that is deleted afterwards. It costs a checkpoint
for each fit, and brings the check for NaN losses, early stopping that keeps the best weights, and a curve that means
the same as a run's.
"""

from __future__ import annotations

import inspect
import math
import signal
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from kontrast import augment, distributed, losses, methods, models
from kontrast.checks import number, whole_number
from kontrast.data import DataSet, Memory, Shuffled, Split, Stream, from_arrays, generator, seed_of
from kontrast.data.dataset import channel_statistics
from kontrast.evaluate import votes
from kontrast.evaluate.activations import rows_at_once
from kontrast.evaluate.features import check_output, eval_mode
from kontrast.recipe import Recipe
from kontrast.registry import nearest
from kontrast.sphere import directions
from kontrast.train import Job, Run, Stopped, Training, checkpoint, pick_device
from kontrast.train.job import held_out
from kontrast.train.monitors.knn import NEIGHBOURS
from kontrast.train.monitors.knn import TEMPERATURE as OF_VOTES
from kontrast.train.stopping import Patience
from kontrast.train.watching import TEMPERATURE

__all__ = ["LOSSES", "ContrastiveEncoder"]

JOINTLY = "jointly"
SWITCHES = ("normalize", "early_stopping")
OPTIONS = ("loss_params", "encoder_params", "augmentation_params")


AUGMENTATIONS: dict[tuple[str, bool], tuple[str, dict[str, Any]]] = {
    # chosen on fashion-mini's pixels and their principal components
    ("vector", True): ("vector-noise", {"noise": 0.3, "dropout": 0.2}),
    ("vector", False): ("corruption", {}),
    ("image", True): ("crop-flip", {}),
    ("image", False): ("strong", {}),
}
"""What "auto" is, with its options: by the kind of the data, and by whether there are labels."""

Statistics = tuple[tuple[float, ...], tuple[float, ...]]

ROWS_AT_ONCE = 512  # rows that random views are drawn for at once: other numbers would be other draws


class LossMethods(NamedTuple):
    """The methods that train by a loss: for data with labels, and for data without.

    >>> LOSSES["supcon"]
    LossMethods(labelled='supcon', unlabelled='simclr')
    """

    labelled: str | None = None
    unlabelled: str | None = None


def _loss_methods() -> dict[str, LossMethods]:
    table: dict[str, LossMethods] = {}
    for name, kind in methods.METHODS.items():
        for loss in kind.estimator_losses:
            entry = table.get(loss, LossMethods())
            table[loss] = entry._replace(**{"labelled" if kind.needs_labels else "unlabelled": name})
    return dict(sorted(table.items()))


LOSSES = _loss_methods()
"""Every loss by its name, as the methods declare it (`kontrast.methods.Method.estimator_losses`)."""

_ALONE = threading.Lock()
"""Networks draw from torch's one generator, which a fit borrows: two threads at once would mix their draws."""


class ContrastiveEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn an embedding with a contrastive loss: a transformer for pipelines, with a score for searches.

    ``X`` is vectors ``[N, D]``, or images ``[N, H, W]``, ``[N, H, W, C]``, ``[N, C, H, W]`` (uint8, or floats 0…1).
    ``y`` are classes, or None.

    Args:
        loss: A name of `LOSSES`. supcon and tcl learn from ``y`` if it is given, otherwise from views alone; the
            cross-entropies need ``y``; the others ignore it.
        n_components: Length of the embedding; None is 64 for vectors, and the encoder's own length for images.
        temperature: Of the loss; None is the default of the loss.
        loss_params: Other options of the loss.
        encoder: A name of `kontrast.models`; "auto" is an MLP for vectors and a small ResNet for images.
        encoder_params: Its options, such as ``{"hidden": 256, "depth": 2}`` for the MLP.
        head: Stands between embedding and loss during training; "auto" is none with labels, TCL's without.
        augmentation: How views are made: a preset's name, "corruption" (each feature from a random other row, as in
            SCARF), an operation of `kontrast.augment`, or "auto": for vectors noise and dropout with labels, corruption
            without; for images crop and flip with labels, SCE's strong view without.
        augmentation_params: Options of the preset.
        image_shape: The rows of a matrix are images of this shape, such as (28, 28) or (3, 32, 32).
        standardize: (1). True standardises each feature by its own mean and deviation. "jointly" uses one mean and
            deviation for all, for features with one unit (pixels, another model's embedding). False leaves the values.
        normalize: Whether rows are divided by their length (3).
        max_iter: Epochs.
        batch_size: At most so many rows in a batch; batches are of even size.
        optimizer: A name of `kontrast.optim`.
        learning_rate: Falls to 0 as ``schedule`` says.
        weight_decay: Of the optimizer.
        schedule: A name of `kontrast.optim`.
        early_stopping: Hold out rows, score them after each epoch (kNN with labels, minus InfoNCE without), stop when
            the score no longer rises, and keep the best weights.
        validation_fraction: The share of the rows held out.
        n_iter_no_change: Stop after so many epochs in which the score did not rise by ``tol``.
        tol: See ``n_iter_no_change``.
        random_state: The same number gives the same embedding; no global generator of torch changes.
        device: "auto", "cpu", "cuda", …
        verbose: Show a progress bar.

    Attributes:
        encoder_: The trained encoder, a module on the CPU.
        embedding_: The embedding of the training rows.
        classes_: The classes of ``y``, if it was given.
        n_iter_: Epochs trained.
        loss_curve_: The mean loss of each epoch.
        loss_: The last of them.
        validation_scores_: With ``early_stopping``, the score of each epoch.
        best_validation_score_: The largest of them.
        method_: The name of the method that trained.
        scaler_: The scaler of vectors.
        n_features_in_: The length of a row of X.
        feature_names_in_: The names of its features, if it has them.

    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> ContrastiveEncoder("nt-xent", n_components=3, max_iter=2, random_state=0).fit_transform(X).shape
    (40, 3)
    """

    def __init__(
        self,
        loss: str = "supcon",
        *,
        n_components: int | None = None,
        temperature: float | None = None,
        loss_params: Mapping[str, Any] | None = None,
        encoder: str = "auto",
        encoder_params: Mapping[str, Any] | None = None,
        head: str = "auto",
        augmentation: str | augment.Operation = "auto",
        augmentation_params: Mapping[str, Any] | None = None,
        image_shape: tuple[int, ...] | None = None,
        standardize: bool | str = True,
        normalize: bool = True,
        max_iter: int = 100,
        batch_size: int = 256,
        optimizer: str = "adamw",
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        schedule: str = "cosine",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.n_components = n_components
        self.temperature = temperature
        self.loss_params = loss_params
        self.encoder = encoder
        self.encoder_params = encoder_params
        self.head = head
        self.augmentation = augmentation
        self.augmentation_params = augmentation_params
        self.image_shape = image_shape
        self.standardize = standardize
        self.normalize = normalize
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from X (1), (2).

        Args:
            X: Vectors or images.
            y: Classes, or None.

        Returns:
            The estimator itself.

        Raises:
            ValueError: A parameter, X or y does not fit.
        """
        if distributed.world_size() > 1:
            raise ValueError("ContrastiveEncoder trains in one process; for many, `kontrast train` under torchrun")
        check_parameters(self.get_params(deep=False))
        data = self._data(X, reset=True)
        self.__dict__.pop("classes_", None)  # of an earlier fit
        self._labels = labels = None if y is None else self._encode_labels(y, len(data.train))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        cuda = range(torch.cuda.device_count())
        with _ALONE, torch.random.fork_rng(devices=cuda), tempfile.TemporaryDirectory(prefix="kontrast-") as folder:
            job = self._job(data, data.train.with_labels(labels), seed)
            lines = train(job, Run(folder), tol=number("tol", self.tol, least=0.0))
        self.method_ = job.recipe.method.name
        self.encoder_ = job.method.encoder.cpu().eval().requires_grad_(False)
        self.encoder_.zero_grad(set_to_none=True)
        self._n_features_out = self.encoder_.feature_dim
        self.loss_curve_ = [line["loss"] for line in lines if "loss" in line]
        self.loss_, self.n_iter_ = self.loss_curve_[-1], len(self.loss_curve_)
        scores = [line["validation"] for line in lines if "validation" in line]
        self.validation_scores_ = scores or None
        self.best_validation_score_ = max(scores, default=None)
        self.embedding_ = self._embed(data).numpy()
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """Compute the embedding (3).

        Args:
            X: Vectors or images, as `fit` had them.

        Returns:
            float32 ``[N, n_components]``.

        Raises:
            ValueError: X does not fit the training rows.
            NotFittedError: There was no `fit` before.
        """
        check_is_fitted(self)
        return self._embed(self._data(X, reset=False)).numpy()

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Score X (4). Without ``y``, compare two estimators only on the same rows and with the same augmentation.

        Args:
            X: Vectors or images, as `fit` had them.
            y: Their classes, or None.

        Returns:
            The score; larger is better.

        Raises:
            ValueError: X or y does not fit the training rows.
            NotFittedError: There was no `fit` before.
        """
        check_is_fitted(self)
        data = self._data(X, reset=False)
        if y is None:
            a, b = (self._embed(data, generator(0, Stream.HELD_OUT, i)) for i in range(2))
            return -float(losses.InfoNCELoss(TEMPERATURE)(a, b))
        if self._labels is None:
            raise ValueError("this encoder was fitted without y and knows no classes; score(X), or fit(X, y) first")
        check_consistent_length(range(len(data.train)), y)
        truth = column_or_1d(y)
        check_known(truth, self.classes_)
        keys = torch.from_numpy(self.embedding_)
        k = min(NEIGHBOURS, len(keys))
        counts = votes(self._embed(data), keys, self._labels, len(self.classes_), k=k, temperature=OF_VOTES)
        return float(np.mean(self.classes_[counts.argmax(1).numpy()] == truth))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not LOSSES[self.loss].unlabelled if self.loss in LOSSES else False
        tags.transformer_tags.preserves_dtype = ["float32"]  # whatever comes in, the embedding is of this type
        tags.input_tags.three_d_array = True
        return tags

    # ---------------------------------------------------------------------------------------- rows

    def _data(self, X: ArrayLike, *, reset: bool) -> DataSet:
        """The rows as the encoder's data, vectors standardised; ``reset`` learns shape and statistics from them."""
        few: dict[str, Any] = {"ensure_min_samples": 2 if reset else 1}
        if len(np.shape(X) if isinstance(X, list | tuple) else getattr(X, "shape", ())) > 2:
            x = check_array(X, dtype="numeric", allow_nd=True, ensure_2d=False, estimator=self, input_name="X", **few)
            validate_data(self, x.reshape(len(x), -1), reset=reset, skip_check_array=True)
        elif self.image_shape is not None:
            x = validate_data(self, X, dtype="numeric", reset=reset, **few)
            if math.prod(self.image_shape) != x.shape[1]:
                raise ValueError(f"X has {x.shape[1]} features, which are no images of image_shape={self.image_shape}")
            x = x.reshape(len(x), *self.image_shape)
        else:
            x = validate_data(self, X, dtype=[np.float64, np.float32], reset=reset, **few)
        if reset:
            self.scaler_ = scaler_of(x, self.standardize) if x.ndim == 2 else None
        data = vectors_of(standardise(x, self.scaler_)) if x.ndim == 2 else images_of(x)
        shape = data.train.inputs.shape
        if reset:
            self._shape, self._statistics = shape, statistics_of(data, self.standardize)
        elif shape != self._shape:
            raise ValueError(f"rows of X have shape {shape}; the encoder was fitted on {self._shape}")
        return replace(data, mean=self._statistics[0], std=self._statistics[1])

    def _encode_labels(self, y: ArrayLike, rows: int) -> Tensor:
        """Classes as 0, 1, 2, …; ``classes_`` keeps what they were."""
        check_consistent_length(range(rows), y)
        column = column_or_1d(y, warn=True)
        try:
            check_classification_targets(column)
            self.classes_, numbers = np.unique(column, return_inverse=True)
        except TypeError:
            raise ValueError("y holds values of several kinds: must be all numbers, or all strings") from None
        return torch.from_numpy(numbers.astype(np.int64))

    # ---------------------------------------------------------------------------------------- learning

    def _view(self, data: DataSet, method: str) -> augment.Compose:
        labelled = methods.find(method).needs_labels
        return view_of(self.augmentation, data, labelled=labelled, params=self.augmentation_params)

    def _embed(self, data: DataSet, draw: torch.Generator | None = None) -> Tensor:
        """(3) of the rows, or of a random view of each."""
        assert isinstance(data.train.inputs, Memory)
        plain = augment.preset("none", mean=data.mean, std=data.std)
        view = plain if draw is None else self._view(data, self.method_)
        device = device_of(self.device)
        h = encode(self.encoder_, data.train.inputs.values, view, device=device, draw=draw)
        return directions(h) if self.normalize else h

    def _job(self, data: DataSet, rows: Split, seed: int) -> Job:
        """The arguments of the training loop."""
        train_rows, validation = rows, None
        if self.early_stopping:
            is_held_out = validation_of(rows, number("validation_fraction", self.validation_fraction, above=0.0), seed)
            train_rows, validation = (rows.subset(is_in.nonzero()[:, 0]) for is_in in (~is_held_out, is_held_out))
        classes = None if rows.labels is None else len(self.classes_)
        method, options = method_of(
            self.loss, classes=classes, rows=len(train_rows), temperature=self.temperature, params=self.loss_params
        )
        supervised = methods.find(method).needs_labels
        warn_of_equal_views(self.augmentation, loss=self.loss, labelled=supervised)
        length = None if self.n_components is None else whole_number("n_components", self.n_components, least=1)
        start = seed_of(seed, Stream.NETWORK, 0)
        encoder = encoder_of(self.encoder, data, n_components=length, params=self.encoder_params, seed=start)
        name = ("none" if supervised else "tcl") if self.head == "auto" else self.head
        head = models.head(name, in_dim=encoder.feature_dim, seed=seed_of(seed, Stream.NETWORK, 1))
        epochs = whole_number("max_iter", self.max_iter, least=1)
        steps = math.ceil(len(train_rows) / whole_number("batch_size", self.batch_size, least=2))
        batch = max(2, len(train_rows) // steps)  # even batches: of 300 rows 150 and 150, not 256 and the rest left out
        sampler = Shuffled(len(train_rows), batch, seed=seed)
        setting = methods.Setting(len(train_rows), classes, epochs * sampler.steps, seed)
        network = methods.method(method, encoder, head, setting=setting, **options)
        rate = number("learning_rate", self.learning_rate, above=0.0)
        decay = number("weight_decay", self.weight_decay, least=0.0)
        patience = whole_number("n_iter_no_change", self.n_iter_no_change, least=1) if self.early_stopping else None
        recipe = Recipe.of(
            {
                "name": "contrastive-encoder",
                "seed": seed,
                "data": {"name": data.name, "validation": 0.0 if validation is None else self.validation_fraction},
                "method": method,
                "optim": {"name": self.optimizer, "lr": rate, "weight_decay": decay},
                "schedule": self.schedule,
                "train": {"epochs": epochs, "batch_size": batch, "patience": patience},
                "run": {"progress": bool(self.verbose), "monitor_every": 0, "log_every": sampler.steps},
            }
        )
        views = augment.Views([self._view(data, method)] * 2)
        device = device_of(self.device)
        return Job(recipe, data, train_rows, validation, views, None, network.to(device), sampler, None, device)


# ------------------------------------------------------------------------------------------------ its parts


def check_parameters(params: Mapping[str, Any]) -> None:
    """Check the types of parameters that nothing else checks.

    >>> good = dict.fromkeys(OPTIONS) | dict.fromkeys(SWITCHES, False) | {"verbose": 0, "image_shape": (8, 8)}
    >>> check_parameters({**good, "standardize": True})
    >>> check_parameters({**good, "standardize": "no"})
    Traceback (most recent call last):
        ...
    ValueError: standardize='no': must be True (each feature), 'jointly' (one mean and deviation for all) or False
    """
    for name in SWITCHES:
        if not isinstance(params[name], bool | np.bool_):
            raise ValueError(f"{name}={params[name]!r}: must be True or False")
    if not isinstance(params["verbose"], int | np.bool_):  # a count, to other estimators
        raise ValueError(f"verbose={params['verbose']!r}: must be True, False or a whole number")
    standardize = params["standardize"]
    if not isinstance(standardize, bool | np.bool_) and standardize != JOINTLY:
        raise ValueError(
            f"standardize={standardize!r}: must be True (each feature), {JOINTLY!r} (one mean and deviation for all) "
            "or False"
        )
    for name in OPTIONS:
        if not isinstance(params[name], Mapping | None):
            raise ValueError(f"{name}={params[name]!r}: must be a mapping of options, such as {{'width': 32}}, or None")
    shape = params["image_shape"]
    if shape is not None:
        sides = list(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else []
        if len(sides) not in (2, 3) or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
            raise ValueError(
                f"image_shape={shape!r}: must be two or three whole numbers, such as (28, 28) or (3, 32, 32)"
            )


def device_of(name: str) -> torch.device:
    """The device of this name, or of a GPU if there is one.

    >>> device_of("abacus")
    Traceback (most recent call last):
        ...
    ValueError: device='abacus': ...
    """
    try:
        return pick_device(name)
    except ValueError as error:  # as recipes say it
        raise ValueError(str(error).removeprefix("run.")) from error


def warn_of_equal_views(augmentation: Any, *, loss: str, labelled: bool) -> None:
    """Warn if the two views of a row are equal and there are no labels."""
    if not labelled and isinstance(augmentation, str) and augmentation == "none":
        warnings.warn(
            f"augmentation='none' makes two equal views of each row, and loss {loss!r} without y learns from how they "
            "differ: it only pushes rows apart; take 'auto', or give y to a loss that learns from it",
            UserWarning,
            stacklevel=4,  # where fit was called
        )


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise ValueError if no label is one of the fitted classes: most likely numbers instead of names.

    >>> check_known(np.array([2, 3]), np.array([1, 2]))
    >>> check_known(np.array(["1", "2"]), np.array([1, 2]))
    Traceback (most recent call last):
        ...
    ValueError: no label of y is among classes_: y holds '1', '2'; the encoder was fitted on 1, 2
    """
    labels = list(dict.fromkeys(y.tolist()))
    if set(classes.tolist()).isdisjoint(labels):
        mine, theirs = (", ".join(map(repr, few[:5])) + ", …" * (len(few) > 5) for few in (labels, classes.tolist()))
        raise ValueError(f"no label of y is among classes_: y holds {mine}; the encoder was fitted on {theirs}")


def statistics_of(data: DataSet, standardize: bool | str) -> Statistics:
    """Mean and deviation of images, channel by channel or of all channels together, or 0 and 1; vectors have theirs.

    >>> pixels = np.stack([np.zeros((2, 4, 4)), np.ones((2, 4, 4)), np.ones((2, 4, 4))], axis=3)
    >>> statistics_of(from_arrays(pixels), True)[0], statistics_of(from_arrays(pixels), False)
    ((0.0, 1.0, 1.0), ((0.0,), (1.0,)))
    >>> [round(number, 4) for (number,) in statistics_of(from_arrays(pixels), "jointly")]
    [0.6667, 0.4714]
    """
    if data.kind == "image" and not standardize:
        return (0.0,), (1.0,)
    if data.kind == "vector" or standardize != JOINTLY:
        return data.mean, data.std
    assert isinstance(data.train.inputs, Memory)
    return channel_statistics(Memory(data.train.inputs.values.flatten(1, 2)[:, None]))


def scaler_of(x: NDArray[Any], standardize: bool | str) -> StandardScaler | None:
    """The scaler of vectors: by feature, jointly, or None.

    >>> x = np.array([[0.0, 10.0], [2.0, 30.0]])
    >>> standardise(x, scaler_of(x, True)).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> standardise(x, scaler_of(x, "jointly")).round(2).tolist()
    [[-0.89, -0.04], [-0.72, 1.64]]
    """
    if not standardize:
        return None
    return StandardScaler().fit(x.reshape(-1, 1) if standardize == JOINTLY else x)


def standardise(x: NDArray[Any], scaler: StandardScaler | None) -> NDArray[Any]:
    """Scale rows in the type of X: float32 would lose small deviations of large numbers."""
    return x if scaler is None else scaler.transform(x.reshape(-1, scaler.n_features_in_)).reshape(x.shape)


def vectors_of(x: NDArray[Any]) -> DataSet:
    """A matrix as data, in float32."""
    with np.errstate(over="ignore"):
        rows = torch.from_numpy(np.array(x, dtype=np.float32, order="C"))
    if not bool(rows.isfinite().all()):
        raise ValueError("X holds numbers beyond float32 after standardising: must be below 3.4e38")
    return DataSet(name="X", train=Split(Memory(rows)), kind="vector", mean=(0.0,), std=(1.0,))


def images_of(x: NDArray[Any]) -> DataSet:
    """Images in any layout as data, with the statistics of their channels."""
    x = x.astype(np.float32) if x.dtype.kind == "f" else x  # a copy: the caller's pixels stay as they are
    try:
        return from_arrays(x, name="X")
    except ValueError as error:  # which calls X as data files do
        raise ValueError(str(error).replace("x_train", "X")) from None


def view_of(
    augmentation: str | augment.Operation, data: DataSet, *, labelled: bool, params: Mapping[str, Any] | None
) -> augment.Compose:
    """The operation that makes one view of these rows, normalised as the encoder expects."""
    options, vectors = dict(params or {}), data.kind == "vector"
    assert isinstance(data.train.inputs, Memory)
    rows = data.train.inputs
    if augmentation == "auto":
        augmentation, defaults = AUGMENTATIONS[data.kind, labelled]
        if augmentation == "crop-flip":
            defaults = {"padding": max(1, min(rows.shape[1:]) // 8)}  # 4 of 32 pixels, as published
        options = {**defaults, **options}
    if isinstance(augmentation, augment.Operation):
        if options:
            raise ValueError(f"augmentation_params {options} go with a preset's name; {augmentation!r} has its own")
        return augment.Compose([augmentation, *([] if vectors else [augment.Normalize(data.mean, data.std)])])
    if augmentation == "corruption":
        if not vectors:
            raise ValueError("augmentation='corruption': must be for images, as X are images. Use 'strong' or 'weak'")
        return augment.Compose([augment.MarginalCorruption(rows.values, **options)])
    if vectors:
        if augment.kind_of(augmentation) == "image":
            raise ValueError(
                f"preset {augmentation!r} is for images; vectors have 'vector-noise', 'corruption', 'none'"
            )
        return augment.preset(augmentation, **options)
    size = (rows.shape[1], rows.shape[2])
    return augment.preset(augmentation, size=size, mean=data.mean, std=data.std, **options)


def method_of(
    loss: str, *, classes: int | None, rows: int, temperature: float | None, params: Mapping[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    """The method that trains by a loss, and its options; ``classes`` is None without labels.

    >>> method_of("supcon", classes=3, rows=100, temperature=0.2, params=None)
    ('supcon', {'temperature': 0.2})
    >>> method_of("supcon", classes=None, rows=100, temperature=None, params=None)
    ('simclr', {})
    >>> method_of("subcon", classes=3, rows=100, temperature=None, params=None)
    Traceback (most recent call last):
        ...
    ValueError: no loss 'subcon'; did you mean 'supcon'? Known: cross-entropy, hard-contrastive, ...
    """
    name = str(loss).replace("_", "-")
    if name not in LOSSES:
        raise ValueError(f"no loss {loss!r}{nearest(name, LOSSES)} Known: {', '.join(LOSSES)}")
    labelled, unlabelled = LOSSES[name]
    method = unlabelled if classes is None else labelled or unlabelled
    if method is None:
        free = ", ".join(name for name, other in LOSSES.items() if other.unlabelled)
        raise ValueError(
            f"loss {loss!r} requires y to be passed, but the target y is None; give y, or take one of {free}"
        )
    if classes == 1 and labelled:
        raise ValueError(
            f"y has 1 class, and loss {loss!r} tells classes apart: give at least 2, or no y to learn from views alone"
        )
    options = {**methods.find(method).estimator_losses[name], **(params or {})}
    defaults = methods.options_of(method)
    if "queue" in defaults:
        options.setdefault("queue", min(defaults["queue"], rows))  # a longer one would hold rows twice
    if temperature is not None:
        if "temperature" not in inspect.signature(losses.FAMILY[name]).parameters:
            raise ValueError(f"temperature={temperature!r}: must be None, as loss {loss!r} has no temperature")
        options["temperature"] = temperature
    return method, options


def encoder_of(
    name: str, data: DataSet, *, n_components: int | None, params: Mapping[str, Any] | None, seed: int
) -> models.Encoder:
    """The encoder for these rows; ``auto`` is an MLP for vectors, a small ResNet for images."""
    shape, is_vector = data.train.inputs.shape, data.kind == "vector"
    assert shape is not None
    name = ("mlp" if is_vector else "small-resnet") if name == "auto" else name
    if is_vector and not models.takes_vectors(name):
        raise ValueError(
            f"encoder={name!r}: must be an encoder of vectors, as X are vectors of {shape[0]} numbers. Use 'mlp'"
        )
    of_rows = {"in_features": shape[0]} if is_vector else {"in_channels": shape[0], "image_size": tuple(shape[1:])}
    length = 64 if is_vector and n_components is None else n_components
    options = {} if length is None else models.FAMILY[name].options_for(length)
    encoder = models.encoder(name, **{**of_rows, **options, **(params or {})}, seed=seed)
    if n_components not in (None, encoder.feature_dim):
        raise ValueError(
            f"n_components={n_components}: must be {encoder.feature_dim}, the features of encoder {name!r}, or None. "
            "Or set the encoder's own width in encoder_params (small-resnet: a multiple of 4)"
        )
    return encoder


def validation_of(rows: Split, fraction: float, seed: int) -> Tensor:
    """Which rows are held out, bool ``[N]``; a class of one row stays in training."""
    if fraction >= 1:
        raise ValueError(f"validation_fraction={fraction:g}: must be above 0 and below 1")
    is_held_out = held_out(rows, fraction, seed)
    if rows.labels is not None:
        is_held_out &= rows.labels.bincount()[rows.labels] > 1
    if not bool(is_held_out.any()):
        raise ValueError(f"no row of {len(rows)} can be held out: every class has one; fit with early_stopping=False")
    return is_held_out


@dataclass
class TolerantPatience(Patience):
    """Patience that a rise of less than ``tol`` does not renew, as in scikit-learn's networks; the best is still kept.

    >>> patience = TolerantPatience(2, tol=0.1)
    >>> [patience.better(value) for value in (0.5, 0.55, 0.58)], patience.best, patience.over
    ([True, True, True], 0.58, True)
    """

    tol: float = 0.0

    def better(self, value: float, step: int = 0) -> bool:
        """Whether this is the best so far."""
        best, waited = self.best, self.waited
        is_better = super().better(value, step)
        if is_better and value < best + self.tol:
            self.waited = waited + 1
        return is_better


def train(job: Job, folder: Run, *, tol: float) -> list[dict[str, Any]]:
    """Train the job's method to the end, or to its best validation; return the lines of its log."""
    training = Training(job, folder)
    training.state.patience = TolerantPatience(job.recipe.train.patience, tol=tol)
    try:
        training.run()
    except Stopped as stopped:  # the loop catches signals to save first; here there is nothing to save for
        signal.raise_signal(stopped.signum)
        raise
    if job.recipe.train.patience is not None and folder.best_checkpoint.exists():
        job.method.load_state_dict(checkpoint.load(folder.best_checkpoint)["method"])
    return list(folder.metrics())


@torch.no_grad()
def encode(
    encoder: nn.Module,
    rows: Tensor,
    view: augment.Operation,
    *,
    device: torch.device,
    draw: torch.Generator | None = None,
) -> Tensor:
    """Compute ``encoder(view(rows))``, a chunk at a time: float32 ``[N, feature_dim]`` on the CPU."""
    size, parts = augment.Operation.size_of(rows), []
    with eval_mode(encoder, device) as place:
        chunk = rows_at_once(encoder, view(rows[:1].to(place), torch.Generator()))
        for block in torch.split(rows, ROWS_AT_ONCE):
            params = view.draw(len(block), size, draw)
            for start in range(0, len(block), chunk):
                part = block[start : start + chunk].to(place)
                h = encoder(view.apply(part, params[start : start + chunk]))
                parts.append(check_output(h, len(part)).float().cpu())
    h = torch.cat(parts)
    if not bool(h.isfinite().all()):
        raise ValueError("the encoder gives NaN or infinity: are some of the rows far outside what it was fitted on?")
    return h
