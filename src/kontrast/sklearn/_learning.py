"""The parts of `ContrastiveEncoder` that do not need scikit-learn's base classes.

Checks of its parameters; rows as a `DataSet` in memory, their standardisation and their views; the method that belongs
to a loss, with labels or without; and the training by kontrast's own loop in a temporary folder.
"""

from __future__ import annotations

import inspect
import signal
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from kontrast import augment, losses, methods, models
from kontrast.data import DataSet, Memory, Split, from_arrays
from kontrast.data.dataset import channel_statistics
from kontrast.evaluate.activations import rows_at_once
from kontrast.evaluate.features import checked, frozen
from kontrast.registry import nearest
from kontrast.train import Job, RunFolder, Stopped, Training, checkpoint, pick_device
from kontrast.train.job import held_out
from kontrast.train.metrics import read_metrics
from kontrast.train.stopping import Patience

JOINTLY = "jointly"
SWITCHES = ("normalize", "early_stopping")
OPTIONS = ("loss_params", "encoder_params", "augmentation_params")


def check_parameters(params: Mapping[str, Any]) -> None:
    """Raises ValueError for switches that are none, options that are no mapping, shapes that are no shape.

    >>> good = dict.fromkeys(OPTIONS) | dict.fromkeys(SWITCHES, False) | {"verbose": 0, "image_shape": (8, 8)}
    >>> check_parameters({**good, "standardize": True})
    >>> check_parameters({**good, "standardize": "no"})
    Traceback (most recent call last):
        ...
    ValueError: standardize is 'no'; expected True (each feature), 'jointly' (all by one mean and deviation) or False
    """
    for name in SWITCHES:
        if not isinstance(params[name], bool | np.bool_):
            raise ValueError(f"{name} is {params[name]!r}; expected True or False")
    if not isinstance(params["verbose"], int | np.bool_):  # a count, to other estimators
        raise ValueError(f"verbose is {params['verbose']!r}; expected True or False, or how much as a whole number")
    standardize = params["standardize"]
    if not isinstance(standardize, bool | np.bool_) and standardize != JOINTLY:
        raise ValueError(
            f"standardize is {standardize!r}; expected True (each feature), {JOINTLY!r} (all by one mean and "
            "deviation) or False"
        )
    for name in OPTIONS:
        if not isinstance(params[name], Mapping | None):
            raise ValueError(f"{name} is {params[name]!r}; expected options by name, such as {{'width': 32}}, or None")
    shape = params["image_shape"]
    if shape is not None:
        sides = list(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else []
        if len(sides) not in (2, 3) or not all(isinstance(side, int | np.integer) and side > 0 for side in sides):
            raise ValueError(
                f"image_shape is {shape!r}; expected two or three whole numbers, such as (28, 28) or (3, 32, 32)"
            )


def device_of(name: str) -> torch.device:
    """The device of this name, or of a GPU if there is one.

    >>> device_of("abacus")
    Traceback (most recent call last):
        ...
    ValueError: device is 'abacus': ...
    """
    try:
        return pick_device(name)
    except ValueError as error:  # as recipes say it
        raise ValueError(str(error).removeprefix("run.")) from error


def warn_of_equal_views(augmentation: Any, *, loss: str, labelled: bool) -> None:
    """A warning where two views of a row are the same and nothing else says what is alike."""
    if not labelled and isinstance(augmentation, str) and augmentation == "none":
        warnings.warn(
            f"augmentation='none' makes two equal views of each row, and loss {loss!r} without y learns from how they "
            "differ: it only pushes rows apart; take 'auto', or give y to a loss that learns from it",
            UserWarning,
            stacklevel=4,  # where fit was called
        )


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raises ValueError where no label is one that was fitted: numbers for names, most likely.

    >>> check_known(np.array([2, 3]), np.array([1, 2]))
    >>> check_known(np.array(["1", "2"]), np.array([1, 2]))
    Traceback (most recent call last):
        ...
    ValueError: no label of y is among classes_: y holds '1', '2'; the encoder was fitted on 1, 2
    """
    known = set(classes.tolist())
    given = list(dict.fromkeys(y.tolist()))
    if known.isdisjoint(given):
        seen, fitted = (", ".join(map(repr, few[:5])) + ", …" * (len(few) > 5) for few in (given, classes.tolist()))
        raise ValueError(f"no label of y is among classes_: y holds {seen}; the encoder was fitted on {fitted}")


NOISE = {"noise": 0.3, "dropout": 0.2}  # chosen on fashion-mini's pixels and their principal components

Statistics = tuple[tuple[float, ...], tuple[float, ...]]


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
    """What standardises vectors: feature by feature, all numbers as one feature, or nothing.

    >>> x = np.array([[0.0, 10.0], [2.0, 30.0]])
    >>> standardised(x, scaler_of(x, True)).tolist()
    [[-1.0, -1.0], [1.0, 1.0]]
    >>> standardised(x, scaler_of(x, "jointly")).round(2).tolist()
    [[-0.89, -0.04], [-0.72, 1.64]]
    """
    if not standardize:
        return None
    return StandardScaler().fit(x.reshape(-1, 1) if standardize == JOINTLY else x)


def standardised(x: NDArray[Any], scaler: StandardScaler | None) -> NDArray[Any]:
    """In the type that X has: float32 would swallow small deviations of large numbers."""
    return x if scaler is None else scaler.transform(x.reshape(-1, scaler.n_features_in_)).reshape(x.shape)


def vectors_of(x: NDArray[Any]) -> DataSet:
    """A matrix as data, in float32."""
    with np.errstate(over="ignore"):
        rows = torch.from_numpy(np.array(x, dtype=np.float32, order="C"))
    if not bool(rows.isfinite().all()):
        raise ValueError("X holds numbers beyond float32's range of 3.4e38, after standardising; expected less")
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
    """What makes one view of these rows, normalised as the encoder sees them."""
    options, vectors = dict(params or {}), data.kind == "vector"
    assert isinstance(data.train.inputs, Memory)
    rows = data.train.inputs
    statistics: dict[str, Any] = {} if vectors else {"mean": data.mean, "std": data.std}
    if augmentation == "auto":
        if vectors:
            augmentation = "vector-noise" if labelled else "corruption"
        else:
            augmentation = "crop-flip" if labelled else "strong"
        if augmentation == "vector-noise":
            options = {**NOISE, **options}
        if augmentation == "crop-flip":
            options.setdefault("padding", max(1, min(rows.shape[1:]) // 8))  # 4 of 32 pixels, as published
    if isinstance(augmentation, augment.Operation):
        if options:
            raise ValueError(f"augmentation_params {options} go with a preset's name; {augmentation!r} has its own")
        return augment.Compose([augmentation, *([] if vectors else [augment.Normalize(data.mean, data.std)])])
    if augmentation == "corruption":
        if not vectors:
            raise ValueError("augmentation 'corruption' is for vectors, and X are images; take 'strong' or 'weak'")
        return augment.Compose([augment.MarginalCorruption(rows.values, **options)])
    if vectors and augmentation not in ("none", "vector-noise"):
        augment.describe(augmentation)  # an unknown name is the first thing to say
        raise ValueError(f"preset {augmentation!r} is for images; vectors have 'vector-noise', 'corruption', 'none'")
    size = None if vectors else (rows.shape[1], rows.shape[2])
    return augment.preset(augmentation, size=size, **statistics, **options)


DRAWN = 512  # rows that random views are drawn for at once: other numbers would be other draws
SMALL = {"key_parts": 1}  # batches are small here: batch norm over an eighth of one would be noise


@dataclass(frozen=True)
class Learned:
    """A loss by name: the method that trains by it with labels, the one without, and the options it has here."""

    labelled: str | None
    unlabelled: str | None
    options: Mapping[str, Any]


LOSSES = {
    "supcon": Learned("supcon", "simclr", {}),  # two views without labels: NT-Xent is the same number
    "tcl": Learned("tcl", "tcl-self", {}),
    "cross-entropy": Learned("ce", None, {}),
    "simplex-cross-entropy": Learned("ce-fix", None, {}),
    "nt-xent": Learned(None, "simclr", {}),
    "hard-contrastive": Learned(None, "simclr", {"loss": "hard"}),
    "simple-contrastive": Learned(None, "simclr", {"loss": "simple"}),
    "info-nce": Learned(None, "moco", SMALL),
    "ressl": Learned(None, "ressl", SMALL),
    "sce": Learned(None, "sce", SMALL),
}


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
    ValueError: no loss 'subcon'; did you mean 'supcon'? Known: supcon, tcl, cross-entropy, ...
    """
    name = str(loss).replace("_", "-")
    if name not in LOSSES:
        raise ValueError(f"no loss {loss!r}{nearest(name, LOSSES)} Known: {', '.join(LOSSES)}")
    learned = LOSSES[name]
    method = learned.unlabelled if classes is None else learned.labelled or learned.unlabelled
    if method is None:
        free = ", ".join(name for name, other in LOSSES.items() if other.unlabelled)
        raise ValueError(
            f"loss {loss!r} requires y to be passed, but the target y is None; give y, or take one of {free}"
        )
    if classes == 1 and learned.labelled:
        raise ValueError(
            f"y has 1 class, and loss {loss!r} tells classes apart: give at least 2, or no y to learn from views alone"
        )
    options = {**learned.options, **(params or {})}
    known = methods.options_of(method)
    if "queue" in known:
        options.setdefault("queue", min(known["queue"], rows))  # a longer one would hold rows twice
    if temperature is not None:
        if "temperature" not in inspect.signature(losses.FAMILY[name]).parameters:
            raise ValueError(f"temperature is {temperature!r}, and loss {loss!r} has none; leave it None")
        options["temperature"] = temperature
    return method, options


def encoder_of(
    name: str, data: DataSet, *, n_components: int | None, params: Mapping[str, Any] | None, seed: int
) -> models.Encoder:
    """The encoder for these rows; ``auto`` is an MLP for vectors, a small ResNet for images."""
    options = dict(params or {})
    shape = data.train.inputs.shape
    assert shape is not None
    name = ("mlp" if data.kind == "vector" else "small-resnet") if name == "auto" else name
    if data.kind == "vector":
        if name != "mlp":
            if not (str(name).startswith("timm/") or str(name).replace("_", "-") in models.names()):
                raise ValueError(f"no encoder {name!r}{nearest(name, models.names())} X are vectors: take 'mlp'")
            raise ValueError(f"X are vectors of {shape[0]} numbers, and {name!r} takes images; take encoder='mlp'")
        made = models.encoder("mlp", in_features=shape[0], **{"features": n_components or 64, **options}, seed=seed)
    else:
        if n_components is not None and name == "mlp":
            options.setdefault("features", n_components)
        if n_components is not None and name == "small-resnet" and n_components % 4 == 0:
            options.setdefault("width", n_components // 4)
        made = models.encoder(name, in_channels=shape[0], image_size=(shape[1], shape[2]), **options, seed=seed)
    if n_components not in (None, made.feature_dim):
        raise ValueError(
            f"n_components is {n_components}, and encoder {name!r} gives {made.feature_dim} features here; leave it "
            "None, or set the encoder's own width in encoder_params (small-resnet: a multiple of 4)"
        )
    return made


def validation_of(rows: Split, fraction: float, seed: int) -> Tensor:
    """Which rows are held out, bool ``[N]``; a class of one row stays in training."""
    if fraction >= 1:
        raise ValueError(f"validation_fraction is {fraction:g}; expected a share of the rows, above 0 and below 1")
    held = held_out(rows, fraction, seed)
    if rows.labels is not None:
        held &= rows.labels.bincount()[rows.labels] > 1
    if not bool(held.any()):
        raise ValueError(f"no row of {len(rows)} can be held out: every class has one; fit with early_stopping=False")
    return held


@dataclass
class Tolerant(Patience):
    """Patience that a rise of less than ``tol`` does not renew, as in scikit-learn's networks; the best is still kept.

    >>> patience = Tolerant(2, tol=0.1)
    >>> [patience.better(value) for value in (0.5, 0.55, 0.58)], patience.best, patience.over
    ([True, True, True], 0.58, True)
    """

    tol: float = 0.0

    def better(self, value: float, step: int = 0) -> bool:
        """Whether this is the best so far."""
        best, waited = self.best, self.waited
        found = super().better(value, step)
        if found and value < best + self.tol:
            self.waited = waited + 1
        return found


def train(job: Job, folder: RunFolder, *, tol: float) -> list[dict[str, Any]]:
    """Trains the job's method to the end, or to its best validation; the lines of its log."""
    training = Training(job, folder)
    training.state.patience = Tolerant(job.recipe.train.patience, tol=tol)
    try:
        training.run()
    except Stopped as stopped:  # the loop catches signals to save first; here there is nothing to save for
        signal.raise_signal(stopped.signum)
        raise
    if job.recipe.train.patience is not None and folder.best.exists():
        job.method.load_state_dict(checkpoint.load(folder.best)["method"])
    return read_metrics(folder.metrics)


@torch.no_grad()
def encoded(
    encoder: nn.Module,
    rows: Tensor,
    view: augment.Operation,
    *,
    device: torch.device,
    draw: torch.Generator | None = None,
) -> Tensor:
    """``encoder(view(rows))``, a chunk at a time: float32 ``[N, feature_dim]`` on the CPU."""
    size, parts = augment.Operation.size_of(rows), []
    with frozen(encoder, device) as place:
        chunk = rows_at_once(encoder, view(rows[:1].to(place), torch.Generator()))
        for block in torch.split(rows, DRAWN):
            params = view.draw(len(block), size, draw)
            for start in range(0, len(block), chunk):
                part = block[start : start + chunk].to(place)
                h = encoder(view.apply(part, params[start : start + chunk]))
                parts.append(checked(h, len(part)).float().cpu())
    h = torch.cat(parts)
    if not bool(h.isfinite().all()):
        raise ValueError("the encoder gives NaN or infinity: are some of the rows far outside what it was fitted on?")
    return h
