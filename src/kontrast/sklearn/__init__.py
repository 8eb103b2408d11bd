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

(2) is `kontrast.train.Training` on the arrays, in a temporary folder that is gone afterwards: one training loop, never
forked. What it costs above a loop of its own is one checkpoint a fit; what it gives is the check for losses that are no
numbers, early stopping with the best weights kept, and a curve that means the same as a run's.
"""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from kontrast import augment, distributed, losses, methods, models
from kontrast.checks import number, whole_number
from kontrast.data import DataSet, Memory, Shuffled, Split, Stream, generator, seed_of
from kontrast.evaluate import votes
from kontrast.recipe import Recipe
from kontrast.sklearn._learning import (
    LOSSES,
    check_known,
    check_parameters,
    device_of,
    encoded,
    encoder_of,
    images_of,
    method_of,
    scaler_of,
    standardised,
    statistics_of,
    train,
    validation_of,
    vectors_of,
    view_of,
    warn_of_equal_views,
)
from kontrast.sphere import directions
from kontrast.train import Job, RunFolder
from kontrast.train.monitors.knn import NEIGHBOURS
from kontrast.train.monitors.knn import TEMPERATURE as OF_VOTES
from kontrast.train.watching import TEMPERATURE

__all__ = ["LOSSES", "ContrastiveEncoder"]

_ALONE = threading.Lock()
"""Networks draw from torch's one generator, which a fit borrows: two threads at once would mix their draws."""


class ContrastiveEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns an embedding by a contrastive loss; a transformer for pipelines, with a score for searches.

    ``X`` is vectors ``[N, D]``, or images ``[N, H, W]``, ``[N, H, W, C]``, ``[N, C, H, W]`` (uint8, or floats 0…1);
    with ``image_shape`` the rows of a matrix are images, such as (28, 28) or (3, 32, 32). ``y`` are classes, or None.

    - ``loss``: a name of `LOSSES`; supcon and tcl learn from ``y`` where it is given and else from views alone, the
      cross-entropies need it, the others pass it over. ``temperature`` (None: the loss's own) and ``loss_params`` are
      its options.
    - ``n_components``: length of the embedding; None is 64 for vectors, for images what the encoder gives.
    - ``encoder``: "auto" is an MLP for vectors and a small ResNet for images; ``encoder_params`` are its options:
      ``{"hidden": 256, "depth": 2}`` for the MLP. ``head`` stands between embedding and loss while training ("auto":
      none with labels, TCL's without).
    - ``augmentation``: how views are made. A preset's name, "corruption" (each feature from a random other row, as
      SCARF), an operation of `kontrast.augment`, or "auto": for vectors noise and dropout with labels and corruption
      without, for images crop and flip with labels and SCE's strong view without. ``augmentation_params`` its options.
    - ``standardize``: (1), each feature by its own; "jointly" all by one, where they share a unit (pixels, another
      model's embedding): what hardly varies then stays small; or False, the values as they are. ``normalize``: unit
      rows (3), or f(x) as it is.
    - ``max_iter`` epochs of even batches, at most ``batch_size`` rows each, by ``optimizer`` at ``learning_rate``,
      falling to 0 over them as ``schedule`` says, with ``weight_decay``.
    - ``early_stopping`` holds out ``validation_fraction`` of the rows, scores them after each epoch (kNN with labels,
      minus InfoNCE without), stops after ``n_iter_no_change`` epochs in which the score did not rise by ``tol``, and
      keeps the best weights.
    - ``random_state``: the same number gives the same embedding; no global generator of torch is changed.
    - ``device``: "auto", "cpu", "cuda", …; ``verbose`` shows a progress bar.

    Afterwards: ``encoder_`` (a module, on the CPU), ``embedding_`` of the training rows, ``classes_`` if there was a y,
    ``n_iter_``, ``loss_curve_`` (mean of each epoch), ``loss_``, ``validation_scores_``, ``best_validation_score_``,
    ``method_``, ``scaler_`` (vectors), ``n_features_in_``, ``feature_names_in_``.
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
        """(1) and (2)."""
        if distributed.world_size() > 1:
            raise ValueError("ContrastiveEncoder trains in one process; for many, `kontrast train` under torchrun")
        check_parameters(self.get_params(deep=False))
        data = self._data(X, reset=True)
        self.__dict__.pop("classes_", None)  # of an earlier fit
        self._labels = labels = None if y is None else self._numbered(y, len(data.train))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        cuda = range(torch.cuda.device_count())
        with _ALONE, torch.random.fork_rng(devices=cuda), tempfile.TemporaryDirectory(prefix="kontrast-") as folder:
            job = self._job(data, data.train.with_labels(labels), seed)
            lines = train(job, RunFolder(Path(folder)), tol=number("tol", self.tol, least=0.0))
        self.method_ = job.recipe.method.name
        self.encoder_ = job.method.encoder.cpu().eval().requires_grad_(False)
        self.encoder_.zero_grad(set_to_none=True)
        self._n_features_out = self.encoder_.feature_dim
        self.loss_curve_ = [line["loss"] for line in lines if "loss" in line]
        self.loss_, self.n_iter_ = self.loss_curve_[-1], len(self.loss_curve_)
        scores = [line["validation"] for line in lines if "validation" in line]
        self.validation_scores_ = scores or None
        self.best_validation_score_ = max(scores, default=None)
        self.embedding_ = self._embedded(data).numpy()
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.float32]:
        """(3), float32 ``[N, n_components]``."""
        check_is_fitted(self)
        return self._embedded(self._data(X, reset=False)).numpy()

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """(4). Without ``y`` two estimators' numbers compare only on the same rows, with the same augmentation."""
        check_is_fitted(self)
        data = self._data(X, reset=False)
        if y is None:
            a, b = (self._embedded(data, generator(0, Stream.HELD_OUT, i)) for i in range(2))
            return -float(losses.InfoNCELoss(TEMPERATURE)(a, b))
        if self._labels is None:
            raise ValueError("this encoder was fitted without y and knows no classes; score(X), or fit(X, y) first")
        check_consistent_length(range(len(data.train)), y)
        truth = column_or_1d(y)
        check_known(truth, self.classes_)
        keys = torch.from_numpy(self.embedding_)
        k = min(NEIGHBOURS, len(keys))
        found = votes(self._embedded(data), keys, self._labels, len(self.classes_), k=k, temperature=OF_VOTES)
        return float(np.mean(self.classes_[found.argmax(1).numpy()] == truth))

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
        data = vectors_of(standardised(x, self.scaler_)) if x.ndim == 2 else images_of(x)
        shape = data.train.inputs.shape
        if reset:
            self._shape, self._statistics = shape, statistics_of(data, self.standardize)
        elif shape != self._shape:
            raise ValueError(f"rows of X have shape {shape}; the encoder was fitted on {self._shape}")
        return replace(data, mean=self._statistics[0], std=self._statistics[1])

    def _numbered(self, y: ArrayLike, rows: int) -> Tensor:
        """Classes as 0, 1, 2, …; ``classes_`` keeps what they were."""
        check_consistent_length(range(rows), y)
        column = column_or_1d(y, warn=True)
        try:
            check_classification_targets(column)
            self.classes_, numbers = np.unique(column, return_inverse=True)
        except TypeError:
            raise ValueError("y holds values of several kinds; expected all numbers, or all strings") from None
        return torch.from_numpy(numbers.astype(np.int64))

    # ---------------------------------------------------------------------------------------- learning

    def _view(self, data: DataSet, method: str) -> augment.Compose:
        labelled = methods.find(method).needs_labels
        return view_of(self.augmentation, data, labelled=labelled, params=self.augmentation_params)

    def _embedded(self, data: DataSet, draw: torch.Generator | None = None) -> Tensor:
        """(3) of the rows, or of a random view of each."""
        assert isinstance(data.train.inputs, Memory)
        plain = augment.preset("none", mean=data.mean, std=data.std)
        view = plain if draw is None else self._view(data, self.method_)
        device = device_of(self.device)
        h = encoded(self.encoder_, data.train.inputs.values, view, device=device, draw=draw)
        return directions(h) if self.normalize else h

    def _job(self, data: DataSet, rows: Split, seed: int) -> Job:
        """Everything that the loop needs, made from the parameters."""
        held = None
        if self.early_stopping:
            held = validation_of(rows, number("validation_fraction", self.validation_fraction, above=0.0), seed)
        learned = rows if held is None else rows.subset((~held).nonzero()[:, 0])
        classes = None if rows.labels is None else len(self.classes_)
        method, options = method_of(
            self.loss, classes=classes, rows=len(learned), temperature=self.temperature, params=self.loss_params
        )
        supervised = methods.find(method).needs_labels
        warn_of_equal_views(self.augmentation, loss=self.loss, labelled=supervised)
        wanted = None if self.n_components is None else whole_number("n_components", self.n_components, least=1)
        start = seed_of(seed, Stream.NETWORK, 0)
        encoder = encoder_of(self.encoder, data, n_components=wanted, params=self.encoder_params, seed=start)
        name = ("none" if supervised else "tcl") if self.head == "auto" else self.head
        head = models.head(name, in_dim=encoder.feature_dim, seed=seed_of(seed, Stream.NETWORK, 1))
        epochs = whole_number("max_iter", self.max_iter, least=1)
        steps = math.ceil(len(learned) / whole_number("batch_size", self.batch_size, least=2))
        batch = max(2, len(learned) // steps)  # even batches: of 300 rows 150 and 150, not 256 and the rest left out
        sampler = Shuffled(len(learned), batch, seed=seed)
        setting = methods.Setting(len(learned), classes, epochs * sampler.steps, seed)
        made = methods.method(method, encoder, head, setting=setting, **options)
        rate = number("learning_rate", self.learning_rate, above=0.0)
        decay = number("weight_decay", self.weight_decay, least=0.0)
        patience = whole_number("n_iter_no_change", self.n_iter_no_change, least=1) if self.early_stopping else None
        recipe = Recipe.of(
            {
                "name": "contrastive-encoder",
                "seed": seed,
                "data": {"name": data.name, "validation": 0.0 if held is None else self.validation_fraction},
                "method": method,
                "optim": {"name": self.optimizer, "lr": rate, "weight_decay": decay},
                "schedule": self.schedule,
                "train": {"epochs": epochs, "batch_size": batch, "patience": patience},
                "run": {"progress": bool(self.verbose), "monitor_every": 0, "log_every": sampler.steps},
            }
        )
        views = augment.Views([self._view(data, method)] * 2)
        device = device_of(self.device)
        validation = None if held is None else rows.subset(held.nonzero()[:, 0])
        return Job(recipe, data, learned, validation, views, None, made.to(device), sampler, None, device)
