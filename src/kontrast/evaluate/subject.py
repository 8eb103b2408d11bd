"""The subject of an evaluation: features with labels, or an encoder and data, whose features are extracted when needed.

Also here: checks of features, the hash that says whether stored features are still valid, and `hold_out`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kontrast import runs
from kontrast.augment import Operation
from kontrast.checks import is_finite, unmasked, whole_number
from kontrast.data import DataSet, Split, Stream, generator
from kontrast.data.arrays import number_labels
from kontrast.data.identity import identity, raw
from kontrast.evaluate.features import extract, fraction_of
from kontrast.evaluate.result import Progress
from kontrast.registry import quoted

CHUNK, NUMBERS = 8192, 2**24  # rows of a chunk, and the most numbers in it


class Subject:
    """Training and test features with labels; from `from_encoder`, also the encoder and its data.

    Args:
        train_labels: int64 ``[N]``, counted from 0.
        test_labels: int64 ``[M]``.
        num_classes: The number of classes; a class may have no row.
        class_names: A name for each class.
        features: Training and test features, float32 ``[N, D]`` and ``[M, D]``.
        name: The name of the data.
        split: The name of the second part in results.

    >>> subject = Subject.from_features(torch.eye(4), ["a", "a", "b", "b"], torch.eye(4)[:2], ["a", "a"])
    >>> subject
    Subject: 4 + 2 rows of features [4] in 2 classes
    >>> subject.train_labels, subject.class_names
    (tensor([0, 0, 1, 1]), ['a', 'b'])
    """

    encoder: nn.Module | None = None
    data: DataSet | None = None

    def __init__(
        self,
        train_labels: Tensor,
        test_labels: Tensor,
        *,
        num_classes: int,
        class_names: list[str] | None = None,
        features: tuple[Tensor, Tensor] | None = None,
        name: str = "",
        split: str = "test",
    ) -> None:
        self.train_labels, self.test_labels = train_labels, test_labels
        self.num_classes, self.class_names = num_classes, class_names
        self.name, self.split = name, split
        self._features: dict[str, Tensor] = {} if features is None else {"train": features[0], "test": features[1]}
        self._extraction: dict[str, Any] = {}
        self._cache: Path | None = None
        self.augmentation: str | Operation | None = None

    @classmethod
    def from_features(
        cls,
        train: Any,
        train_labels: Any,
        test: Any,
        test_labels: Any,
        *,
        class_names: list[str] | None = None,
        split: str = "test",
    ) -> Subject:
        """Evaluate features that exist already.

        Args:
            train: Training features ``[N, D]``, a tensor or an array.
            train_labels: A label for each row: whole numbers or strings.
            test: Test features ``[M, D]``.
            test_labels: A label for each row.
            class_names: A name for each class, where labels are numbers.
            split: The name of the second part in results.

        Raises:
            ValueError: Features that are not finite numbers ``[N, D]``, or labels that do not fit them.
        """
        x, x_test = feature_pair(train, test)
        if x.shape[1] != x_test.shape[1]:
            raise ValueError(f"train features are {list(x.shape)} and test {list(x_test.shape)}; expected one length")
        for key, labels in (("train", train_labels), ("test", test_labels)):
            if labels is None:
                raise ValueError(f"{key}_labels=None: must be a label for each of the {key} rows")
        y, y_test, names = number_labels(train_labels, test_labels, class_names)
        assert y is not None
        assert y_test is not None
        for key, numbers, rows in (("train", y, x), ("test", y_test, x_test)):
            if len(numbers) != len(rows):
                raise ValueError(f"{key}_labels has {len(numbers)} labels for {len(rows)} rows; expected one a row")
        count = len(names) if names else int(y.max()) + 1
        return cls(y, y_test, num_classes=count, class_names=names, features=(x, x_test), split=split)

    @classmethod
    def from_encoder(
        cls,
        encoder: nn.Module,
        data: DataSet,
        *,
        device: torch.device | str | None = None,
        batch_size: int | None = None,
        workers: int = 0,
        size: int | None = None,
        normalize: bool = True,
        cache: str | os.PathLike[str] | None = None,
        augmentation: str | Operation | None = None,
    ) -> Subject:
        """Evaluate an encoder on data; features are extracted when they are first needed, and kept.

        Args:
            encoder: Maps a batch of inputs to features ``[n, D]``.
            data: Training and test rows with labels.
            device: Where the encoder runs; its own device by default.
            batch_size: Rows that go through the encoder at once; None measures it (`extract`).
            workers: Processes that read images.
            size: Pixels of the side, for images of several sizes.
            normalize: Whether images are normalised with the mean and std of the data, and vectors standardised.
            cache: An .npz file that keeps the features. It is written again when the encoder's weights or the data
                change.
            augmentation: The augmentation of the training (a preset's name or an operation without normalisation),
                which some protocols repeat.

        Raises:
            ValueError: The data have no test rows, or no labels.

        >>> from kontrast import data
        >>> Subject.from_encoder(nn.Flatten(), data.load("digits"))
        Subject: 1,437 + 360 rows of Flatten in 10 classes
        """
        labels = _labels(data.train, data, "an evaluation")
        if data.test is None:
            raise ValueError(
                f"{data.name!r} has no test rows; expected some. Load it with test=…, a folder named test or val, or "
                "hold rows out with kontrast.evaluate.hold_out and Split.subset"
            )
        test_labels = _labels(data.test, data, "an evaluation on the test rows")
        subject = cls(
            labels,
            test_labels,
            num_classes=max(data.num_classes, int(test_labels.max()) + 1),
            class_names=data.class_names,
            name=data.name,
        )
        subject.encoder, subject.data, subject.augmentation = encoder, data, augmentation
        mean, std = (data.mean, data.std) if normalize else (None, None)
        subject._extraction = {
            "mean": mean,
            "std": std,
            "batch_size": None if batch_size is None else whole_number("batch_size", batch_size, least=1),
            "device": device,
            "size": size,
            "fraction": None if size is None else fraction_of(data),
            "interpolation": data.interpolation,
            "workers": workers,
        }
        subject._cache = None if cache is None else Path(cache)
        return subject

    def __repr__(self) -> str:
        what = f"features [{self.train.shape[1]}]" if self.encoder is None else f"{type(self.encoder).__name__}"
        rows = f"{len(self.train_labels):,} + {len(self.test_labels):,} rows"
        return f"Subject: {rows} of {what} in {self.num_classes} classes"

    @property
    def train(self) -> Tensor:
        """Training features, float32 ``[N, D]``."""
        return self.part("train")

    @property
    def test(self) -> Tensor:
        """Test features, float32 ``[M, D]``."""
        return self.part("test")

    @property
    def extraction(self) -> dict[str, Any]:
        """The keyword arguments of `extract` for this subject."""
        return dict(self._extraction)

    def features(self, progress: Progress | None = None) -> tuple[Tensor, Tensor]:
        """Training and test features; extracted (or read from the cache) at the first call."""
        return self.part("train", progress), self.part("test", progress)

    def part(self, which: str, progress: Progress | None = None) -> Tensor:
        """The features of "train" or "test"; without a cache file only that part is extracted."""
        if which not in self._features:
            assert self.encoder is not None
            assert self.data is not None
            assert self.data.test is not None
            splits = {"train": self.data.train, "test": self.data.test}
            if self._cache is None:
                self._features[which] = extract(self.encoder, splits[which], **self._extraction, progress=progress)
                return self._features[which]
            options = [self._extraction[k] for k in ("mean", "std", "size")]
            if self.data.crop is not None or self.data.interpolation != "bilinear":  # else the key is what it was
                options += [self._extraction["fraction"], self.data.interpolation]
            key = _features_key(self.encoder, self.data, *options)
            arrays = runs.read_features(self._cache, key)
            if arrays is None:
                train, test = (extract(self.encoder, s, **self._extraction, progress=progress) for s in splits.values())
                runs.write_features(self._cache, key, train.numpy(), test.numpy())
            else:
                train, test = map(torch.from_numpy, arrays)
            self._features = {"train": train, "test": test}
        return self._features[which]


def _labels(split: Split, data: DataSet, what: str) -> Tensor:
    if split.labels is None:
        raise ValueError(
            f"{what} needs labels and these {len(split):,} rows have none: without them there are no accuracies. Give "
            f"{data.name!r} some (a subfolder a class, or y_train and y_test), or look at what needs none: kontrast "
            "geometry, doctor and report"
        )
    return split.labels


def _features_key(encoder: nn.Module, data: DataSet, *options: object) -> str:
    """Hash the encoder's structure and weights, the data (name, statistics, rows, labels), and the options of `extract`
    that change features."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((repr(encoder), data.name, data.mean, data.std, options)).encode())
    for name, tensor in encoder.state_dict().items():
        if isinstance(tensor, Tensor):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(raw(tensor))
    for split in (data.train, data.test):
        if split is not None:
            digest.update(identity(split, times=True).encode())
    return digest.hexdigest()


# ------------------------------------------------------------------------------------------------ features as arguments


def feature_rows(name: str, features: Any) -> Tensor:
    """Check features; float64 features that float32 cannot hold are divided by their largest entry.

    Args:
        name: The name of the argument in errors.
        features: A tensor or an array of numbers ``[N, D]``, N and D at least 1.

    Returns:
        float32 ``[N, D]`` on the CPU; float32 on the CPU is not copied.

    Raises:
        ValueError: Another shape or type, NaN or infinity.

    >>> feature_rows("features", np.array([[1e60, 5e59]]))
    tensor([[1.0000, 0.5000]])
    """
    x = _tensor(name, features)
    return _rows(name, x, _scale(x))


def feature_pair(train: Any, test: Any) -> tuple[Tensor, Tensor]:
    """Validate train and test features together; rescale both by one factor if float32 would overflow."""
    x, x_test = _tensor("train", train), _tensor("test", test)
    scale = _scale(x, x_test)
    return _rows("train", x, scale), _rows("test", x_test, scale)


def _tensor(name: str, features: Any) -> Tensor:
    if isinstance(features, np.ndarray):
        unmasked(name, features)
        if features.dtype.kind not in "fiub":
            raise ValueError(f"{name} is an array of {features.dtype}; expected numbers [N, D]")
        is_double = features.dtype.kind == "f" and features.dtype.itemsize > 4
        native = np.ascontiguousarray(features, dtype=np.float64 if is_double else np.float32)
        features = torch.from_numpy(native if native.flags.writeable else native.copy())  # torch warns of read-only
    try:
        x: Tensor = features.detach() if isinstance(features, Tensor) else torch.as_tensor(features)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {quoted(features)}; expected an array or a tensor of numbers [N, D]") from None
    if x.ndim != 2 or x.is_complex() or 0 in x.shape:
        raise ValueError(f"{name} has shape {list(x.shape)} of {x.dtype}; expected features [N, D], at least one row")
    return x


def _scale(*features: Tensor) -> float:
    """The largest entry of float64 features, if float32 cannot hold it; else 1."""
    entries = [float(v.abs()) for x in features if x.dtype == torch.float64 for v in x.aminmax()]
    largest = max(entries, default=1.0)
    return 1.0 if largest == 0 or not is_finite(largest) or 1e-30 <= largest <= 1e30 else largest


def _rows(name: str, x: Tensor, scale: float) -> Tensor:
    x = (x if scale == 1 else x.double() / scale).to("cpu", torch.float32)
    bad = sum(int((~part.isfinite()).any(1).sum()) for part in chunks(x))
    if bad:
        raise ValueError(
            f"{name} holds NaN or infinity in {bad} of {len(x)} rows; expected finite numbers. Leave those rows out, "
            "or find out why the encoder makes them"
        )
    return x


def chunks(x: Tensor) -> Iterator[Tensor]:
    """The rows in chunks; fewer rows in one where they are long (raw pixels of large images)."""
    return iter(torch.split(x, max(1, min(CHUNK, NUMBERS // x.shape[1]))))


# ------------------------------------------------------------------------------------------------ held-out rows


def hold_out(labels: Tensor, fraction: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Hold out the same share of every class: ``fraction`` of its rows, rounded, at least one.

    A class with one row keeps it.

    Args:
        labels: int64 ``[N]``.
        fraction: The share held out, above 0 and below 1.
        seed: Of the draw.

    Returns:
        The indices of the rows that stay, and of those held out; both ascending.

    Raises:
        ValueError: Another ``fraction``, or no class with two rows.

    >>> rest, held_out = hold_out(torch.tensor([0] * 10 + [1] * 5 + [2]), 0.2)
    >>> len(rest), torch.tensor([0] * 10 + [1] * 5 + [2])[held_out]
    (13, tensor([0, 0, 1]))
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction={fraction}: must be a share of the rows between 0 and 1")
    order = torch.randperm(len(labels), generator=generator(seed, Stream.HELD_OUT))
    is_held_out = torch.zeros(len(labels), dtype=torch.bool)
    for label in torch.unique(labels).tolist():
        members = order[labels[order] == label]
        count = min(max(1, round(fraction * len(members))), len(members) - 1)
        is_held_out[members[:count]] = True
    if not bool(is_held_out.any()):
        raise ValueError(
            f"no class of these {len(labels)} rows has two, so none can be held out; expected some. Give more rows, or "
            "a set for testing"
        )
    return (~is_held_out).nonzero()[:, 0], is_held_out.nonzero()[:, 0]
