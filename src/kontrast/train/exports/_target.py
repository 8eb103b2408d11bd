"""What is exported, and what every target is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kontrast import models
from kontrast.models.encoders import resnet
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train.export import DIGEST, crop_of, in_lines, in_words, read_card, rebuild

TOLERANCE = 1e-4
"""Of the largest feature: how far a copy's features may be off. Rounding in float32 makes it about 1e-6 of it with a
dozen layers, where each library adds up in its own order; a layer that is wrong makes it far more than 1e-2."""
BATCHES = (1, 2, 5)  # a single row too, and more than one size


@dataclass(frozen=True)
class Source:
    """A finished run, as far as an export needs it."""

    path: Path
    card: dict[str, Any]  # model.json
    encoder: models.Encoder  # in eval mode, on the CPU, in ordinary memory layout
    recipe: Recipe | None
    result: dict[str, Any] | None

    @staticmethod
    def read(run: Run) -> Source:
        """Of a run folder; an export of safetensors will do too, which has no results."""
        record = read_card(run)
        crop = crop_of(run, record["input"])
        if crop is not None:  # of an older run, by its recipe
            record["input"]["crop"] = crop
        encoder = rebuild(run)
        record.pop(DIGEST, None)  # of the run's own file
        if isinstance(encoder, models.ImageEncoder):  # what others read is in the order that they expect
            encoder.channels_last = False
            encoder.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        recipe = run.recipe if run.has_recipe else None
        result = run.result if run.has_result else None
        return Source(run.path, record, encoder, recipe, result)

    @property
    def name(self) -> str:
        """The encoder's."""
        return str(self.card["encoder"]["name"])

    @property
    def options(self) -> dict[str, Any]:
        """The encoder's."""
        return {key: value for key, value in self.card["encoder"].items() if key != "name"}

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one input."""
        return tuple(self.card["input"]["shape"])

    @property
    def is_resnet(self) -> bool:
        """Whether it is one of torchvision's."""
        return self.name in resnet.ENTRIES

    @property
    def results(self) -> list[dict[str, Any]]:
        """The run's accuracies with their protocols, without the tables that go with them."""
        wanted = ("name", "protocol", "value", "error", "split", "train_rows", "test_rows", "epochs", "seed")
        every = (self.result or {}).get("results") or self.card.get("results") or []
        return [{key: result[key] for key in wanted} for result in every]

    def samples(self, rows: int) -> Tensor:
        """Normalised inputs to compare features on: what random pixels (of vectors: unit normals) become."""
        draws = torch.Generator().manual_seed(rows)
        if self.card["input"]["kind"] == "vector":
            return torch.randn(rows, *self.shape, generator=draws)
        return (torch.rand(rows, *self.shape, generator=draws) - self.statistic("mean")) / self.statistic("std")

    def statistic(self, which: str) -> Tensor:
        """``mean`` or ``std`` of the inputs, to be subtracted from or to divide a batch."""
        values = torch.tensor(self.card["input"][which], dtype=torch.float32)
        return values.view(1, -1, *[1] * (len(self.shape) - 1))

    def compare(self, other: nn.Module, what: str) -> None:
        """An error if a network gives other features than the encoder."""
        with torch.no_grad():
            for rows in BATCHES:
                x = self.samples(rows)
                agree(other(x), self.encoder(x), what)


class Target(ABC):
    """Base of the targets: one form that an encoder can be written in."""

    @abstractmethod
    def refusal(self, source: Source) -> str | None:
        """Why this encoder cannot be written so, or None."""

    @abstractmethod
    def write(self, source: Source, folder: Path) -> str:
        """Write the weights into an empty folder, checked; returns the lines of Python that load them from there."""

    def inputs(self, source: Source) -> str:
        """What the loaded model is to be given, in words."""
        if source.card["input"]["kind"] == "vector":
            return f"vectors of {source.shape[0]} numbers, {self.values(source)}"
        resized = in_words(source.card["input"])
        how = f"channels × height × width; {resized}" if resized else "channels × height × width"
        return f"images {'×'.join(map(str, source.shape))} ({how}), {self.values(source)}"

    def values(self, source: Source) -> str:
        """Which numbers the inputs are made of."""
        given = source.card["input"]
        statistics = f"mean {_few(given['mean'])}, std {_few(given['std'])}"
        first = "as" if given["kind"] == "vector" else "pixels / 255, then"
        return f"{first} (x − mean) / std: {statistics}"

    def preparing(self, source: Source) -> str | None:
        """The lines of Python that make an image file what the model is to be given; None where that is not known."""
        return in_lines(source.card["input"])


def agree(theirs: Tensor, mine: Tensor, what: str) -> None:
    """An error if features differ by more than `TOLERANCE` of the largest.

    >>> agree(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.1]]), "the copy")
    Traceback (most recent call last):
        ...
    ValueError: the copy gives features that differ from the run's by 4.8e-02 of the largest; expected at most 1e-04...
    """
    if theirs.shape != mine.shape:
        raise ValueError(
            f"{what} gives {list(theirs.shape)}, the run's encoder {list(mine.shape)}; nothing was written"
        )
    off = float((theirs - mine).abs().max() / mine.abs().max().clamp_min(torch.finfo(mine.dtype).tiny))
    if not off <= TOLERANCE:
        raise ValueError(
            f"{what} gives features that differ from the run's by {off:.1e} of the largest; expected at most "
            f"{TOLERANCE:.0e}. Nothing was written"
        )


def _few(values: list[float], most: int = 4) -> str:
    shown = ", ".join(f"{value:.4g}" for value in values[:most])
    return f"({shown}{', … (all in model.json)' if len(values) > most else ''})"
