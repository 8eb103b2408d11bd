"""`Source`, the run that is exported, and `Target`, the base of the targets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from kontrast import models
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train.encoder_files import DIGEST, crop_of, describe_resize, load, preparing_code, read_card
from kontrast.train.exports._head import RESULT, Head

TOLERANCE = 1e-4
"""The largest difference between the features of a copy and the run's, relative to the largest feature. Rounding in
float32 gives about 1e-6 with a dozen layers, as each library adds in its own order; a wrong layer gives over 1e-2."""
BATCHES = (1, 2, 5)  # rows of the batches that features are compared on


@dataclass(frozen=True)
class Source:
    """What an export reads of a finished run.

    Attributes:
        path: The run folder.
        card: The content of model.json.
        encoder: The encoder in eval mode, on the CPU, in ordinary memory layout.
        recipe: The recipe; None if the folder has none.
        result: The content of result.json; None if the folder has none.
        head: The classifier to put behind the encoder; None to export the encoder alone.
    """

    path: Path
    card: dict[str, Any]
    encoder: models.Encoder
    recipe: Recipe | None
    result: dict[str, Any] | None
    head: Head | None = None

    @staticmethod
    def read(run: Run) -> Source:
        """Read a run folder, or an export of safetensors."""
        record = read_card(run)
        crop = crop_of(run, record["input"])
        if crop is not None:  # the card of an older run lacks it
            record["input"]["crop"] = crop
        encoder = load(run)
        record.pop(DIGEST, None)  # the digest of the run's own file
        if isinstance(encoder, models.ImageEncoder):
            encoder.channels_last = False
            encoder.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        recipe = run.recipe if run.has_recipe else None
        result = run.result if run.has_result else None
        return Source(run.path, record, encoder, recipe, result)

    @property
    def name(self) -> str:
        """The encoder's name."""
        return str(self.card["encoder"]["name"])

    @property
    def options(self) -> dict[str, Any]:
        """The encoder's options."""
        return {key: value for key, value in self.card["encoder"].items() if key != "name"}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.card["input"]["shape"])

    @property
    def results(self) -> list[dict[str, Any]]:
        """The run's accuracies with their protocols, without confusion tables and the like."""
        every = (self.result or {}).get("results") or self.card.get("results") or []
        return [{key: result[key] for key in RESULT} for result in every]

    def samples(self, rows: int) -> Tensor:
        """Inputs to compare features on: normalised random pixels, or vectors from the standard normal."""
        draws = torch.Generator().manual_seed(rows)
        if self.card["input"]["kind"] == "vector":
            return torch.randn(rows, *self.shape, generator=draws)
        return (torch.rand(rows, *self.shape, generator=draws) - self.statistic("mean")) / self.statistic("std")

    def statistic(self, which: str) -> Tensor:
        """``mean`` or ``std`` of the inputs, in a shape that broadcasts over a batch."""
        values = torch.tensor(self.card["input"][which], dtype=torch.float32)
        return values.view(1, -1, *[1] * (len(self.shape) - 1))

    def check_features(self, other: nn.Module, what: str) -> None:
        """Compare the features of a network with the encoder's.

        Args:
            other: The network.
            what: Its name, for the error.

        Raises:
            ValueError: They differ by more than rounding.
        """
        with torch.no_grad():
            for rows in BATCHES:
                x = self.samples(rows)
                check_agreement(other(x), self.encoder(x), what)

    def check_predictions(self, other: Callable[[Tensor], Tensor], what: str, *, normalised: bool = True) -> None:
        """Compare the logits of a classifier with those of the encoder and its head, on real rows of the data.

        Logits that agree give the same class, but for rows where two classes are as near as rounding.

        Args:
            other: Gives logits ``[n, K]`` of inputs.
            what: Its name, for the error.
            normalised: Whether it takes normalised inputs.

        Raises:
            ValueError: They differ by more than rounding.
        """
        assert self.head is not None
        x = (self.head.rows - self.statistic("mean")) / self.statistic("std")
        with torch.no_grad():
            mine = self.head.classifier.logits(self.encoder(x))
            check_agreement(other(x if normalised else self.head.rows), mine, what, "logits")


class Target(ABC):
    """Base of the targets: a format that an encoder can be exported to. A new target needs `write`.

    Attributes:
        library: The library that loads the format, as model hubs name it.
        takes_classifier: Whether the format has a place for a classifier behind the encoder.
    """

    library: ClassVar[str] = "pytorch"
    takes_classifier: ClassVar[bool] = False

    def refusal(self, source: Source) -> str | None:
        """Why this encoder cannot be exported to the format; None (the default) if it can."""
        return None

    def classifier_refusal(self, source: Source) -> str | None:
        """Why a classifier cannot be exported behind this encoder; None if it can (the default: `takes_classifier`)."""
        return None if self.takes_classifier else "the format has no place for a classifier"

    @abstractmethod
    def write(self, source: Source, folder: Path) -> str:
        """Write the weights into an empty folder and check them.

        Args:
            source: The run that is exported.
            folder: The folder.

        Returns:
            The lines of Python that load them from there.

        Raises:
            ValueError: The features of the copy differ from the run's (`Source.check_features`).
        """

    def describe_inputs(self, source: Source) -> str:
        """The inputs of the loaded model, in words."""
        if source.card["input"]["kind"] == "vector":
            return f"vectors of {source.shape[0]} numbers, {self.describe_values(source)}"
        resized = describe_resize(source.card["input"])
        how = f"channels × height × width; {resized}" if resized else "channels × height × width"
        return f"images {'×'.join(map(str, source.shape))} ({how}), {self.describe_values(source)}"

    def describe_values(self, source: Source) -> str:
        """How the numbers of the inputs are computed, in words."""
        inputs = source.card["input"]
        statistics = f"mean {_few(inputs['mean'])}, std {_few(inputs['std'])}"
        first = "as" if inputs["kind"] == "vector" else "pixels / 255, then"
        return f"{first} (x − mean) / std: {statistics}"

    def preparing_code(self, source: Source) -> str | None:
        """The lines of Python that turn an image file into an input; None if that is not known."""
        return preparing_code(source.card["input"])


def check_agreement(theirs: Tensor, mine: Tensor, what: str, values: str = "features") -> None:
    """Raise ValueError if features (or other ``values``) differ by more than `TOLERANCE` of the largest.

    >>> check_agreement(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 2.1]]), "the copy")
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
            f"{what} gives {values} that differ from the run's by {off:.1e} of the largest; expected at most "
            f"{TOLERANCE:.0e}. Nothing was written"
        )


def _few(values: list[float], most: int = 4) -> str:
    first = ", ".join(f"{value:.4g}" for value in values[:most])
    return f"({first}{', … (all in model.json)' if len(values) > most else ''})"
