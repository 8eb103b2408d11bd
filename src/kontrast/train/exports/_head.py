"""`Head`: the linear classifier that an export puts behind the encoder, and real rows to compare its answers on.

It is the one of the evaluation's linear probe, with the recipe's seed and options: where the recipe has that protocol,
its accuracy is the run's own. The probe chooses its weight decay on held-out rows. Logistic regression with a fixed
penalty is as accurate, but sure of what it does not know: with the 512 features of a hardly trained encoder and 600
rows, its largest probability was 0.68 on the average test row, and 29 % were right (the probe: 0.35, and 34 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.data import DataSet
from kontrast.evaluate import Classifier, Progress, fit_classifier
from kontrast.evaluate.features import middle, normalisation
from kontrast.runs import Run
from kontrast.train.evaluation import SEEN, labelled_subject, protocol_defaults

PROTOCOL = "probe"
ROWS = 32  # real rows that answers are compared on
RESULT = ("name", "protocol", "value", "error", "split", "train_rows", "test_rows", "epochs", "seed")
"""What a card says of a result: without confusion tables and the like."""


@dataclass(frozen=True, eq=False)
class Head:
    """A classifier for an export.

    Attributes:
        classifier: The classifier of the encoder's features.
        rows: Inputs of test rows, read as the evaluation reads them: images in 0…1, vectors as they are.
        data: The name of the data that it learned from.
    """

    classifier: Classifier
    rows: Tensor
    data: str = ""

    @property
    def classes(self) -> list[str]:
        """The names of the classes."""
        return self.classifier.class_names

    @property
    def was_seen(self) -> bool:
        """Whether the encoder learned from the rows that the accuracy is of."""
        return self.classifier.result.split == SEEN

    @property
    def result(self) -> dict[str, Any]:
        """The accuracy with its protocol, for a card."""
        record = self.classifier.result.record()
        return {key: record[key] for key in RESULT}

    def linear(self) -> nn.Linear:
        """The classifier as a layer."""
        classes, features = self.classifier.weight.shape
        with torch.random.fork_rng(devices=[]):  # a layer's first weights are drawn
            layer = nn.Linear(features, classes)
        layer.load_state_dict(self.tensors())
        return layer.requires_grad_(False)

    def tensors(self, prefix: str = "") -> dict[str, Tensor]:
        """``weight [K, D]`` and ``bias [K]``, with a prefix to their names."""
        return {f"{prefix}weight": self.classifier.weight.clone(), f"{prefix}bias": self.classifier.bias.clone()}


def fit_head(run: Run, *, data: Any = None, device: str = "auto", progress: Progress | None = None) -> Head:
    """Fit the classifier of a finished run.

    Args:
        run: The run.
        data: Labelled data; the run's own if left out.
        device: Where the encoder runs.
        progress: Called with ``(what, done, of)``.

    Returns:
        The classifier, with some real rows.

    Raises:
        ValueError: The data have no labels, or are not there.
    """
    recipe = run.recipe
    subject = labelled_subject(run, device=device, data=data)
    named = [part.options for part in recipe.evaluate.protocols if part.name == PROTOCOL]
    options = {**protocol_defaults(recipe, PROTOCOL), **(named[0] if named else {})}
    classifier = fit_classifier(subject, PROTOCOL, seed=recipe.seed, progress=progress, **options)
    assert subject.data is not None
    return Head(classifier, _some_rows(subject.data, subject.extraction), subject.name)


def _some_rows(data: DataSet, extraction: dict[str, Any]) -> Tensor:
    """Test rows at even distances, as `kontrast.evaluate.features.extract` reads them, not normalised."""
    split = data.test
    assert split is not None
    count = min(ROWS, len(split))
    crop = middle(split, extraction["size"], extraction["fraction"], extraction["interpolation"])
    inputs = split.inputs.read(torch.arange(count) * len(split) // count, crop, [0] * count if crop else None)
    return normalisation(None, None)(inputs)
