r"""Linear classifiers that are trained as the papers do: on augmented images, through the frozen encoder.

    (1)  h = encoder(augmented x), no gradient;   z = W h + b
    (2)  v ← μ v + ∂ℓ/∂W + λ W,   W ← W − η_epoch v        (SGD with momentum as torch has it; b alike)

The encoder is a copy, so the user's stays as it is. Where a paper keeps the epoch that was best on the test rows, the
value here is the *last* epoch's, and the best one is in the details under its own name: it was chosen with the rows it
is measured on.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kontrast.augment import Compose, Normalize, Operation, at_decoding, preset
from kontrast.checks import number, whole_number
from kontrast.data import Crop, Loader, Shuffled, Split, Stream, generator, seed_of
from kontrast.evaluate.activations import rows_at_once
from kontrast.evaluate.features import check_output, device_of, extract
from kontrast.evaluate.protocol import Protocol
from kontrast.evaluate.result import Progress, Result
from kontrast.evaluate.subject import Subject
from kontrast.models import seeded

START = 103  # the stream of the classifier's first weights
BEST = "best test epoch (paper's choice, optimistic)"


@dataclass(frozen=True)
class Settings:
    """The settings of a protocol for one data set."""

    epochs: int
    batch_size: int
    rate: Callable[[int], float]  # of an epoch, counted from 0
    weight_decay: float
    augmentation: Operation
    words: str
    small_start: bool = True  # W ~ N(0, 0.01), b = 0; else as torch's Linear, uniform in ±1/√D
    moving_norms: bool = False  # the network in train mode, so that batch norm goes on counting
    drop_last: bool = False


@dataclass(frozen=True, kw_only=True)
class AugmentedProbe(Protocol):
    """Base of `wang-liu`, `tcl` and `sce`. ``augmentation`` (a preset's name, or an operation without normalisation)
    replaces the paper's; ``epochs`` and ``limit`` shorten it."""

    epochs: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None
    augmentation: str | Operation | None = None
    limit: int | None = None
    needs_encoder = True

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "limit"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), least=1)
        if self.learning_rate is not None:
            number("learning_rate", self.learning_rate, above=0)

    @abstractmethod
    def settings(self, subject: Subject) -> Settings:
        """The paper's settings for these data, with the options that replace them."""

    def run(self, subject: Subject, *, seed: int, progress: Progress | None) -> Result:
        """Train epoch after epoch, test at the end (and, where nothing moves in the encoder, after each)."""
        encoder, data = subject.encoder, subject.data
        assert encoder is not None
        assert data is not None
        assert data.test is not None
        if data.kind != "image":
            raise ValueError(f"{self.name} augments images, and {data.name!r} holds vectors; choose 'probe'")
        settings = self.settings(subject)
        network = copy.deepcopy(encoder).requires_grad_(False)
        place = subject.extraction["device"] or device_of(encoder)
        network.to(place).train(settings.moving_norms)
        split = data.train if self.limit is None else data.train.limited(self.limit, seed)
        crop, augmentation = _split_augmentation(settings.augmentation, split)
        mean, std = subject.extraction["mean"], subject.extraction["std"]
        views = Compose([augmentation, *([] if mean is None else [Normalize(mean, std)])])
        size = min(settings.batch_size, len(split))
        sampler = Shuffled(len(split), size, seed=seed, drop_last=settings.drop_last)
        loader = Loader(split, sampler, seed=seed, workers=subject.extraction["workers"], crop=crop)
        test = None if settings.moving_norms else subject.part("test", progress)
        head: _Head | None = None
        accuracies: list[float] = []
        with seeded(seed_of(seed, Stream.NETWORK)):  # dropout, in a network in train mode
            for epoch in range(settings.epochs):
                for batch in loader.epoch(epoch):
                    images = views(batch.inputs.to(place), batch.generator())
                    h = _features(network, images, whole=settings.moving_norms, rows=subject.extraction["batch_size"])
                    if head is None:
                        head = _Head(h.shape[1], subject.num_classes, settings, seed, h.device)
                    assert batch.labels is not None
                    head.step(h, batch.labels.to(h.device), settings.rate(epoch))
                assert head is not None
                head.check(self.name, epoch, settings.rate(epoch))
                if test is not None:
                    right = head.scores(test).argmax(1) == subject.test_labels
                    accuracies.append(float(right.double().mean()))
                if progress is not None:
                    progress(self.name, epoch + 1, settings.epochs)
        if test is None:
            test = extract(network, data.test, **subject.extraction)
        assert head is not None
        details: dict[str, Any] = {"learning rate": settings.rate(0), "weight decay": settings.weight_decay}
        if accuracies:
            best = max(range(len(accuracies)), key=accuracies.__getitem__)
            details[BEST] = {"epoch": best + 1, "accuracy": accuracies[best]}
        rows, epochs = len(split), settings.epochs
        about = self.about(subject, settings.words, seed=seed, train_rows=rows, epochs=epochs, details=details)
        return Result.of_scores(head.scores(test), subject.test_labels, **about)

    def select_augmentation(self, subject: Subject, default: Callable[[int | tuple[int, int]], Operation]) -> Operation:
        """The protocol's own option if set, else the paper's augmentation for images of this size."""
        if isinstance(self.augmentation, Operation):
            return self.augmentation
        size, how = size_of(subject), subject.extraction["interpolation"]
        return default(size) if self.augmentation is None else preset(self.augmentation, size=size, interpolation=how)

    def describe_augmentation(self, words: str) -> str:
        """The words for the augmentation: the paper's, unless the option replaces it."""
        return words if self.augmentation is None else f"augmentation {self.augmentation}"


def size_of(subject: Subject) -> int | tuple[int, int]:
    """The pixels of the images that go into the encoder."""
    assert subject.data is not None
    shape, size = subject.data.train.inputs.shape, subject.extraction["size"]
    if size is not None:
        return int(size)
    if shape is None:
        raise ValueError("these images differ in size; give Subject.from_encoder size=…, what the encoder takes")
    return int(shape[1]), int(shape[2])


def side_of(subject: Subject) -> int:
    """The longer side of the images; the size of those that differ."""
    size = size_of(subject)
    return size if isinstance(size, int) else max(size)


class _Head:
    """(2): a linear classifier and its momentum."""

    def __init__(self, dim: int, num_classes: int, settings: Settings, seed: int, device: torch.device) -> None:
        draw, bound = generator(seed, START), dim**-0.5
        weight = torch.empty(num_classes, dim + 1)  # the last column is the bias
        if settings.small_start:
            weight.normal_(0.0, 0.01, generator=draw)[:, -1] = 0.0
        else:
            weight.uniform_(-bound, bound, generator=draw)
        self.weight = weight.to(device)
        self.velocity = torch.zeros_like(self.weight)
        self.decay = settings.weight_decay

    def step(self, h: Tensor, labels: Tensor, rate: float, momentum: float = 0.9) -> None:
        inputs = F.pad(h, (0, 1), value=1.0)
        p = (inputs @ self.weight.T).softmax(1)
        p[torch.arange(len(p), device=p.device), labels] -= 1.0
        gradient = (p.T @ inputs).div_(len(p)).add_(self.weight, alpha=self.decay)
        self.velocity.mul_(momentum).add_(gradient)
        self.weight.sub_(self.velocity, alpha=rate)

    def scores(self, h: Tensor) -> Tensor:
        """Logits ``[M, K]`` on the CPU."""
        weight = self.weight.cpu()
        return torch.addmm(weight[:, -1], h, weight[:, :-1].T)

    def check(self, name: str, epoch: int, rate: float) -> None:
        """Raise a ValueError if a weight is not finite."""
        if not bool(self.weight.isfinite().all()):
            raise ValueError(
                f"the classifier of {name} diverged in epoch {epoch + 1} at learning rate {rate:g}; expected finite "
                "weights. Are the features very large? Give a smaller learning_rate=…, or choose 'probe', which "
                "standardises them"
            )


@torch.no_grad()
def _features(network: nn.Module, images: Tensor, *, whole: bool, rows: int | None) -> Tensor:
    """(1), in chunks of ``rows`` (None: measured); ``whole`` in one, where batch norm counts the batch."""
    if whole:
        return check_output(network(images), len(images)).float()
    rows = rows or rows_at_once(network, images[:1])
    return torch.cat([check_output(network(part), len(part)).float() for part in torch.split(images, rows)])


def _split_augmentation(augmentation: Operation, split: Split) -> tuple[Crop | None, Operation]:
    """Split an augmentation into the crop at decoding, which images of several sizes need, and the rest."""
    if split.inputs.shape is not None:
        return None, augmentation
    crop, rest = at_decoding(augmentation)
    assert isinstance(rest, Operation)  # views are what several augmentations give
    return crop, rest


def cosine(start: float, end: float, part: float) -> float:
    """From ``start`` to ``end`` along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * part)) / 2
