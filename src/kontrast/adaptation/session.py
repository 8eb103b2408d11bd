"""A run of `kontrast adapt`: the main job, with a verdict between the training and the evaluation.

    train()       the frozen encoder is measured, then training as always, stopped by the held-out rows or by the clock
    evaluate()    the verdict; the encoder that ships takes its place in the job and is exported, and then evaluated
    analyse(), finish()       of the encoder that ships

Everything is a function of recipe and data, but for the clock: a run that is killed and resumed has the same verdict to
the bit, unless the time runs out in one of the two. The file of the adapted encoder's best epoch stays in the folder,
so that an encoder that was not judged can still be accepted later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from kontrast.adaptation import verdict as verdicts
from kontrast.adaptation.comparison import Comparison, compare
from kontrast.adaptation.rows import ENOUGH, cross_fit
from kontrast.adaptation.selection import Right, Selection
from kontrast.adaptation.verdict import MEASURES
from kontrast.data import DataSet, Split
from kontrast.recipe import Recipe
from kontrast.runs import MetricsLog, Run, Verdict
from kontrast.train import Job, NonFiniteLoss, Session, Training, evaluation
from kontrast.train.encoder_files import export
from kontrast.train.running import verify_finished_run
from kontrast.train.watching import MOST_VALIDATED

MOST_JUDGED = 10_000  # rows of V that are read: ± 0.6 at a tenth of rows that differ
Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `kontrast adapt` was asked for, beside the recipe.

    Attributes:
        key: A hash of encoder, data and settings, by which the same command finds its run again.
        minutes: The time that it was given.
        accept: Whether an adapted encoder that cannot be judged ships.
        deadline: When the training must have ended, by ``clock``.
        end: The seconds that are kept for what comes after it.
        clock: Seconds.
        frozen: The measurement of the frozen encoder, if it was made for the plan.
    """

    key: str
    minutes: float
    accept: bool = False
    deadline: float = float("inf")
    end: float = 0.0
    clock: Clock = time.monotonic
    frozen: Right | None = None


class Adaptation(Session):
    """One pass over a run of `kontrast adapt`.

    Args:
        recipe: The resolved recipe, with a pretrained encoder, ``data.validation`` and ``train.patience``.
        data: The data set, if it is loaded already.
        request: What was asked for.

    Attributes:
        verdict: What was decided, after `evaluate`.
    """

    def __init__(self, recipe: Recipe, data: DataSet | None = None, *, request: Request) -> None:
        self.request = request
        self.verdict: Verdict | None = None
        self.failure: str | None = None
        super().__init__(recipe, data)

    def is_done(self, status: str | None, *, verbose: bool = True) -> bool:
        """Whether the run is finished, and what was asked for does not change its verdict."""
        if status != "done" or not verify_finished_run(self.run, verbose=verbose):
            return False
        verdict = self.run.verdict
        return not (self.request.accept and verdict is not None and verdict.status == "not judged")

    # --------------------------------------------------------------------------------------------------------- training

    def make_training(self, job: Job) -> Training:
        """The training loop with the record of the held-out rows, and the clock."""
        self.start = {name: value.clone() for name, value in job.method.state_dict().items()}
        return _Adapting(job, self.run, self.request)

    def train(self) -> None:
        """Train; a loss that is no number ends the training, not the run."""
        try:
            super().train()
        except NonFiniteLoss as error:
            training = self.training
            assert training is not None
            self.failure, self.weights = str(error), "frozen"
            self.run.note("evaluating", step=training.state.step)

    def export_encoder(self, job: Job) -> None:
        """Nothing yet: the verdict says which encoder."""

    # ------------------------------------------------------------------------------------------------------- evaluation

    def evaluate(self) -> None:
        """Decide, export the encoder that ships, and evaluate it by the protocols of the recipe."""
        job = self._trained_job
        verdict = self.verdict = self._judge(job)
        evaluation.announce(self.recipe, verdict.sentence)
        if verdict.shipped == "frozen":
            job.method.load_state_dict(self.start)
            self.weights = "frozen, before the first step"
        record = verdict.model_dump(mode="json", exclude_none=True)
        self._record["verdict"] = record
        export(job, self.run, verdict=record)
        self.results, self.subject = evaluation.evaluate_job(job)
        if job.recipe.evaluate.head:
            self._record["head"] = self._records(evaluation.evaluate_head(job))

    def _judge(self, job: Job) -> Verdict:
        training = self.training
        assert isinstance(training, _Adapting)
        if self.failure is not None:
            return verdicts.after_divergence(self.failure)
        if not training.state.patience.best_step:
            return verdicts.without_epoch()
        epoch = {"epoch": training.state.patience.best_step / job.steps_per_epoch}
        selection = training.selection
        if selection is None:
            reason = "the training rows have no labels"
            return verdicts.without_labels(reason, accept=self.request.accept).model_copy(update=epoch)
        evaluation.announce(self.recipe, "judging")
        unseen = _unseen(job, selection)
        parts: list[tuple[Right, Right]] = []
        counts = {"learned": len(job.train), "chose": len(selection.labels), "cross-fitted": 0, "unseen": 0}
        if sum(map(len, unseen)) < ENOUGH:
            frozen, choices = selection.record_frozen(), selection.choices()
            pairs = {name: cross_fit(selection.right(name), frozen[name], selection.part, choices) for name in MEASURES}
            parts.append(({n: pair[0] for n, pair in pairs.items()}, {n: pair[1] for n, pair in pairs.items()}))
            counts["cross-fitted"] = len(next(iter(pairs.values()))[0])
        if unseen:
            assert job.start is not None
            parts.append((selection.measure(job.start, unseen), selection.measure(job.method.encoder, unseen)))
            counts["unseen"] = sum(map(len, unseen))
        comparisons = {name: self._compare(parts, name) for name in MEASURES}
        if not comparisons["knn20"]:
            return verdicts.without_labels("no labelled row is left to judge by", accept=self.request.accept)
        verdict = verdicts.judge(
            {name: comparison for name, comparison in comparisons.items() if comparison is not None},
            rows="images" if job.data.kind == "image" else "rows",
        )
        return verdict.model_copy(update={**epoch, "rows": counts, "protocol": _protocol(counts, selection)})

    def _compare(self, parts: list[tuple[Right, Right]], name: str) -> Comparison | None:
        if not parts:
            return None
        before, after = (torch.cat([part[side][name] for part in parts]) for side in (0, 1))
        return compare(before, after, seed=self.recipe.seed) if len(before) else None


class _Adapting(Training):
    """The loop, with the rows of H recorded after each epoch, stopped by them or by the clock."""

    def __init__(self, job: Job, folder: Run, request: Request) -> None:
        super().__init__(job, folder)
        self.request, self.selection = request, None
        self.epoch_began = request.clock()
        if job.validation is not None and job.validation.labels is not None and job.train.labels is not None:
            self.selection = self.validation = Selection(job, folder, self.state)

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        def start() -> None:
            on_start()
            request = self.request
            self.folder.note("training", adapt={"request": request.key, "minutes": request.minutes, "end": request.end})
            if self.selection is not None:
                self.selection.record_frozen(self.request.frozen)
            self.epoch_began = self.request.clock()

        super().run(start)

    def after_validation(self, metrics: MetricsLog | None) -> None:
        """Go on until every part of the held-out rows has chosen; stop where another epoch would be too long."""
        if self.selection is not None:
            self.state.stopped_early = self.state.patience.over and self.selection.choices().over
        now = self.request.clock()
        if now + (now - self.epoch_began) > self.request.deadline and not self.is_finished:
            self.state.stopped_early, self.state.reason = True, self._out_of_time()
        self.epoch_began = now

    def reason_to_stop(self) -> str | None:
        """The time is up in the middle of an epoch, which took longer than those before it."""
        return self._out_of_time() if self.request.clock() > self.request.deadline else None

    def _out_of_time(self) -> str:
        return f"the {self.request.minutes:g} minutes leave no time for another epoch (step {self.state.step})"


def _unseen(job: Job, selection: Selection) -> list[Split]:
    """V: labelled test rows, and held-out rows that no epoch is measured on; at most `MOST_JUDGED`."""
    splits: list[Split] = []
    if job.data.test is not None and job.data.test.labels is not None:
        splits.append(job.data.test.limited(MOST_JUDGED, job.recipe.seed))
    assert job.validation is not None
    rest = torch.ones(len(job.validation), dtype=torch.bool)
    rest[job.validation.limited_rows(MOST_VALIDATED, job.recipe.seed)] = False
    more = MOST_JUDGED - sum(map(len, splits))
    if bool(rest.any()) and more > 0:
        splits.append(job.validation.subset(rest.nonzero()[:, 0]).limited(more, job.recipe.seed))
    return splits


def _protocol(counts: dict[str, int], selection: Selection) -> str:
    parts = []
    if counts["cross-fitted"]:
        parts.append(f"{counts['cross-fitted']:,} held-out rows, each by the epoch that other rows had chosen before")
    if counts["unseen"]:
        parts.append(f"{counts['unseen']:,} rows that no epoch was measured on, read once at the end")
    return (
        f"against {len(selection.reference):,} training rows; {' and '.join(parts)}; 95 % paired bootstrap, "
        "and exact McNemar test"
    )
