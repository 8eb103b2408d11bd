"""What is evaluated: features with labels, given as such or taken from an encoder when first asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.augment import Operation
from kontrast.data import DataSet, Split
from kontrast.data.arrays import number_labels
from kontrast.evaluate import _stored
from kontrast.evaluate._inputs import both_rows, whole
from kontrast.evaluate.features import extract, fraction_of
from kontrast.evaluate.result import Progress


class Subject:
    """Training and test features with labels; with `from_encoder` also the encoder and its data.

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
        self.train_labels, self.test_labels = train_labels, test_labels  # int64 [N], [M], counted from 0
        self.num_classes, self.class_names = num_classes, class_names
        self.name, self.split = name, split
        self._features: dict[str, Tensor] = {} if features is None else {"train": features[0], "test": features[1]}
        self._about: dict[str, Any] = {}
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
        """Features ``[N, D]`` and ``[M, D]``, tensors or arrays, and a label a row: whole numbers or strings.

        ``split`` is what the second part is called in results.
        """
        x, x_test = both_rows(train, test)
        if x.shape[1] != x_test.shape[1]:
            raise ValueError(f"train features are {list(x.shape)} and test {list(x_test.shape)}; expected one length")
        for key, labels in (("train", train_labels), ("test", test_labels)):
            if labels is None:
                raise ValueError(f"{key}_labels is None; an evaluation needs a label for each of the {key} rows")
        y, y_test, names = number_labels(train_labels, test_labels, class_names)
        assert y is not None
        assert y_test is not None
        for key, found, rows in (("train", y, x), ("test", y_test, x_test)):
            if len(found) != len(rows):
                raise ValueError(f"{key}_labels has {len(found)} labels for {len(rows)} rows; expected one a row")
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
        """An encoder and the data it is judged on: features are extracted when first asked for, and kept.

        Images are normalised with the data's mean and std, vectors standardised with them (``normalize=False``: not).
        ``batch_size`` is how many rows go through the encoder at once; None measures it (`extract`). ``size`` goes with
        images of several sizes. ``cache`` is an .npz file that keeps the features; it is made anew
        when the encoder's weights or the data have changed. ``augmentation`` is that of the training (a preset's name
        or an operation without normalisation), which some protocols repeat.
        """
        labels = _labels(data.train, data, "an evaluation")
        if data.test is None:
            raise ValueError(
                f"{data.name!r} has no test rows; expected some. Load it with test=…, a folder named test or val, or "
                "hold rows out with kontrast.evaluate.hold_out and Split.subset"
            )
        test_labels = _labels(data.test, data, "an evaluation on the test rows")
        made = cls(
            labels,
            test_labels,
            num_classes=max(data.num_classes, int(test_labels.max()) + 1),
            class_names=data.class_names,
            name=data.name,
        )
        made.encoder, made.data, made.augmentation = encoder, data, augmentation
        mean, std = (data.mean, data.std) if normalize else (None, None)
        made._about = {
            "mean": mean,
            "std": std,
            "batch_size": None if batch_size is None else whole("batch_size", batch_size),
            "device": device,
            "size": size,
            "fraction": None if size is None else fraction_of(data),
            "workers": workers,
        }
        made._cache = None if cache is None else Path(cache)
        return made

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
        """How features are taken: the keywords of `extract`."""
        return dict(self._about)

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
                self._features[which] = extract(self.encoder, splits[which], **self._about, progress=progress)
                return self._features[which]
            key = _stored.key_of(self.encoder, self.data, *(self._about[k] for k in ("mean", "std", "size")))
            found = _stored.read(self._cache, key)
            if found is None:
                train, test = (extract(self.encoder, s, **self._about, progress=progress) for s in splits.values())
                _stored.write(self._cache, key, train, test)
                found = train, test
            self._features = dict(zip(splits, found, strict=True))
        return self._features[which]


def _labels(split: Split, data: DataSet, what: str) -> Tensor:
    """The labels of a split; without them there is no accuracy to speak of, whatever the method was."""
    if split.labels is None:
        raise ValueError(
            f"{what} needs labels and these {len(split):,} rows have none: without them there are no accuracies. Give "
            f"{data.name!r} some (a subfolder a class, or y_train and y_test), or look at what needs none: kontrast "
            "geometry, doctor and report"
        )
    return split.labels
