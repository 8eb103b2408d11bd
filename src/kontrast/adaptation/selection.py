r"""What is measured of the frozen encoder, and of the adapted one after every epoch: which rows each has right.

    kNN                  k = 20, weights e^{s/0.07}, among training rows           as the protocol knn20
    linear classifier    logistic regression on standardised features of those     as the protocol logistic
    retrieval            whether the nearest of those is of the row's class        as the protocol retrieval

kNN is the validation of `kontrast.train.watching`, so that a plain ``kontrast train`` of the recipe rolls back to the
same epoch. For each epoch selection.npz in the run folder keeps a bit for each measure and row, that of the frozen
encoder first (step 0), and `kontrast.adaptation.rows` chooses by them. A run that is resumed keeps those up to its
checkpoint and measures the later ones again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kontrast.adaptation.rows import Choices, choose, parts_of
from kontrast.adaptation.verdict import MEASURES
from kontrast.data import Split
from kontrast.evaluate import Subject, evaluate, votes
from kontrast.runs import Run
from kontrast.train import Job
from kontrast.train.checkpoint import State
from kontrast.train.controls import head_first_steps
from kontrast.train.monitors.knn import NEIGHBOURS, TEMPERATURE
from kontrast.train.watching import Validation, features

ITERATIONS = 100  # of the linear classifier, which is fitted after each epoch
Right = Mapping[str, Tensor]
"""By the measure's name, which rows are right: bool ``[rows]``."""


class Selection(Validation):
    """The validation of an adaptation with labels: kNN on the rows of H, and a record of all measures.

    Args:
        job: The job.
        run: Its folder.
        state: Of the training; its step names the records.

    Raises:
        ValueError: The training has begun, and selection.npz lacks what it had measured.
    """

    def __init__(self, job: Job, run: Run, state: State) -> None:
        super().__init__(job)
        self.run, self.state = run, state
        labels = self.split.require_labels("a verdict")
        self.labels, self.part = labels, parts_of(len(labels), job.recipe.seed)
        self.records: dict[int, Right] = {}
        arrays = run.read_selection()
        for place, step in enumerate(arrays.get("steps", [])):
            if step <= state.step:
                self.records[int(step)] = {name: torch.from_numpy(arrays[name][place]) for name in MEASURES}
        validated = [int(line["step"] or 0) for line in run.metrics() if line.get("validation") is not None]
        missing = [step for step in (0, *validated) if step <= state.step and step not in self.records]
        if state.step and missing:
            raise ValueError(
                f"{run.selection_file} lacks the measurements of step {missing[0]}; put back a copy, or remove the "
                f"folder {run.path}, and the adaptation begins again"
            )

    def __call__(self) -> float:
        """Measure the encoder as it is now; the share of rows that kNN has right. The method is left in train mode."""
        method = self.job.method
        method.eval()
        self._record(self.state.step, self.measure(method.encoder))
        method.train()
        return float(self.records[self.state.step]["knn20"].double().mean())

    def record_frozen(self, right: Right | None = None) -> Right:
        """Measure the frozen encoder, unless that is done; ``right`` is the result if it is known."""
        if 0 not in self.records:
            assert self.job.start is not None
            self._record(0, self.measure(self.job.start) if right is None else right)
        return self.records[0]

    def measure(self, encoder: nn.Module, splits: Sequence[Split] = ()) -> dict[str, Tensor]:
        """Which rows of some splits (by default those of H) an encoder has right, by each measure."""
        splits = splits or [self.split]
        return measure(
            torch.cat([features(self.job, split, encoder) for split in splits]),
            torch.cat([split.require_labels("a verdict") for split in splits]),
            features(self.job, self.reference, encoder),
            self.reference.require_labels("a verdict"),
            seed=self.job.recipe.seed,
        )

    def choices(self) -> Choices:
        """The epochs that the measurements so far choose; they are counted from 0, and `steps` are their steps."""
        patience = self.job.recipe.train.patience
        assert patience is not None
        return choose(self.right("knn20"), self.part, patience)

    @property
    def steps(self) -> list[int]:
        """The steps after which the adapted encoder was measured; it begins to learn after ``train.head_first``."""
        rests = head_first_steps(self.job.recipe.train, self.job.steps_per_epoch)
        return [step for step in sorted(self.records) if step > rests]

    def right(self, measure: str) -> Tensor:
        """Which rows each epoch has right, bool ``[epochs, rows]``."""
        rows = [self.records[step][measure] for step in self.steps]
        return torch.stack(rows) if rows else torch.zeros(0, len(self.labels), dtype=torch.bool)

    def _record(self, step: int, right: Right) -> None:
        self.records[step] = right
        steps = sorted(self.records)
        arrays: dict[str, Any] = {"steps": np.array(steps), "part": self.part.numpy(), "labels": self.labels.numpy()}
        arrays |= {name: torch.stack([self.records[step][name] for step in steps]).numpy() for name in MEASURES}
        self.run.write_selection(arrays)


@torch.no_grad()
def measure(
    x: Tensor, labels: Tensor, reference: Tensor, reference_labels: Tensor, *, seed: int = 0
) -> dict[str, Tensor]:
    """Which rows are right, by each measure of the module.

    Args:
        x: Features of the rows ``[M, D]``.
        labels: int64 ``[M]``.
        reference: Features of training rows ``[N, D]``.
        reference_labels: int64 ``[N]``.
        seed: Unused by the present measures, but for a limit.

    Returns:
        By the measure's name, bool ``[M]``.

    >>> corners = torch.eye(3).repeat_interleave(4, 0)
    >>> labels = torch.arange(3).repeat_interleave(4)
    >>> {name: right.all().item() for name, right in measure(corners, labels, corners, labels).items()}
    {'knn20': True, 'logistic': True, 'retrieval': True}
    """
    classes = int(reference_labels.max()) + 1
    k = min(NEIGHBOURS, len(reference))
    counts = votes(x, reference, reference_labels, classes, k=k, temperature=TEMPERATURE)
    most = max(classes, int(labels.max()) + 1)
    subject = Subject(reference_labels, labels, num_classes=most, features=(reference, x))
    linear = evaluate(subject, "logistic", seed=seed, iterations=ITERATIONS).predictions
    nearest = votes(x, reference, reference_labels, classes, k=1, temperature=TEMPERATURE).argmax(1)
    return {
        "knn20": counts.argmax(1) == labels,
        "logistic": linear == labels,
        "retrieval": nearest == labels,
    }
