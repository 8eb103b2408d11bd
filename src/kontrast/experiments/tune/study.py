"""The Optuna side of a search: its storage, its samplers and its rule for stopping trials.

Optuna stores every trial as it goes (a journal, one JSON line for each event, in the folder of the search), proposes
settings (TPE, random) and knows which trial was running when the process ended. A journal and not SQLite, because
clusters keep such folders on network file systems, where SQLite's locks fail.

What is ours: `ProcedureSampler` (the procedures of `kontrast.experiments.tune.search` and the grid), because Optuna has
no sampler that follows a published procedure and says why; `HalfWayPruner`, because Optuna's median rule has no margin
for the error of an accuracy on few rows; and the seed of each trial's draw, which depends on the trial's number alone,
so that a search that was killed draws what an undisturbed one draws (Optuna's samplers start again at their seed).

Importing this module needs Optuna: ``pip install 'kontrast[tune]'``.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from kontrast.experiments.ranges import Range
from kontrast.experiments.tune.search import Course, Score, Search, Setting, replay
from kontrast.experiments.tune.trials import reason_to_stop
from kontrast.runs import TuneFolder

NAME = "tune"  # of the study in its journal
ROWS = "held_out"  # the attribute of a trial with the number of its held-out rows


class ProcedureSampler(BaseSampler):
    """An Optuna sampler that follows a search procedure.

    It works in every Optuna study that maximises: the setting of a trial follows from the finished trials before it,
    and ``study.optimize`` stops at the end of the procedure. A trial that failed or was pruned has no score.

    Args:
        procedure: Starts the procedure, for example `choose_k`.
        ignore: Numbers of trials that count as not tried.

    >>> from kontrast.experiments.tune import choose_k
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> study = optuna.create_study(direction="maximize", sampler=ProcedureSampler(choose_k))
    >>> def score(trial):
    ...     return min(trial.suggest_float("k1", 0, 8000), 5000) / 1e4 - abs(trial.suggest_float("k2", 1, 3) - 1.4)
    >>> study.optimize(score)
    >>> len(study.trials), study.best_params
    (8, {'k1': 5000.0, 'k2': 1.4})
    """

    def __init__(self, procedure: Callable[[], Search], ignore: Collection[int] = ()) -> None:
        self.procedure, self.ignore = procedure, ignore

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Nothing is sampled jointly: `sample_independent` is asked for each name."""
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing; see `infer_relative_search_space`."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """The value of this name in the next setting of the procedure."""
        setting = self._follow(study.get_trials(deepcopy=False)).missing
        if setting is None:
            raise ValueError("the procedure has ended; there is no next setting")
        return setting[param_name]

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Stop ``study.optimize`` at the end of the procedure."""
        ended = copy.copy(trial)  # as the storage will have it in a moment
        ended.state, ended.values = state, None if values is None else list(values)
        others = [each for each in study.get_trials(deepcopy=False) if each.number != trial.number]
        if self._follow([*others, ended]).ending is not None:
            with contextlib.suppress(RuntimeError):  # outside of study.optimize there is nothing to stop
                study.stop()

    def _follow(self, trials: Sequence[FrozenTrial]) -> Course:
        trials_of_procedure = [each for each in trials if each.state.is_finished() and each.number not in self.ignore]
        return follow(self.procedure(), trials_of_procedure)


class HalfWayPruner(BasePruner):
    """Stops a trial by the rule of `kontrast.experiments.tune.trials`: well below the median of those before it.

    A trial reports its validation half-way, with the position of its seed as the step.
    """

    def reason(self, study: optuna.Study, trial: FrozenTrial) -> str | None:
        """Why the trial is stopped; None if it goes on."""
        step = trial.last_step
        if step is None:
            return None
        before = [each for each in study.get_trials(deepcopy=False) if each.number < trial.number]
        others = [each.intermediate_values[step] for each in before if step in each.intermediate_values]
        return reason_to_stop(trial.intermediate_values[step], others, trial.user_attrs.get(ROWS))

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the trial is stopped."""
        return self.reason(study, trial) is not None


def open_study(folder: Path) -> optuna.Study:
    """Open the study of a search, or create it.

    Args:
        folder: The folder of the search.

    Raises:
        ValueError: The journal is damaged.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = TuneFolder(folder).journal_file
    _drop_unfinished_line(file)
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = JournalStorage(JournalFileBackend(str(file)))
        if not storage.get_all_studies():  # a look, because create_study(load_if_exists=True) writes every time
            return optuna.create_study(storage=storage, study_name=NAME, direction="maximize")
        return optuna.load_study(storage=storage, study_name=NAME)
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise ValueError(
            f"{file}: must be Optuna's journal of this search, and cannot be read ({error}). "
            "Remove it: the trials in their run folders are found again."
        ) from None
    finally:
        optuna.logging.set_verbosity(verbosity)


def next_trial(study: optuna.Study, sampler: BaseSampler, ranges: Mapping[str, Range]) -> Trial:
    """The trial that was running when the process ended, or a new one, with a value for each range."""
    study.sampler = sampler
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    trial = Trial(study, running[0]._trial_id) if running else study.ask()
    for name, values in ranges.items():
        if values.values:
            trial.suggest_categorical(name, values.values)
        elif values.whole:
            trial.suggest_int(name, int(values.low), int(values.high), step=int(values.step or 1))
        else:
            trial.suggest_float(name, values.low, values.high, step=values.step, log=values.log)
    return trial


def next_number(study: optuna.Study) -> int:
    """The number of the trial that `next_trial` returns."""
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return running[0].number if running else len(study.get_trials(deepcopy=False))


def seeded_sampler(name: str, seed: int, number: int) -> BaseSampler:
    """TPE or random sampling for one trial, seeded by the search's seed and the trial's number."""
    trial_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    return TPESampler(seed=trial_seed) if name == "tpe" else RandomSampler(seed=trial_seed)


def finish_trial(study: optuna.Study, trial: Trial, score: Score, attributes: Mapping[str, Any]) -> None:
    """Store the score of a trial, and end the trial."""
    record = {"values": list(score.values), "state": score.state, "note": score.note}
    for name, value in {"score": record, **attributes}.items():
        trial.set_user_attr(name, value)
    if score.state == "done":
        study.tell(trial, score.mean)
    else:
        study.tell(trial, state=TrialState.PRUNED if score.state == "stopped early" else TrialState.FAIL)


def score_of(trial: FrozenTrial) -> Score:
    """The score of a finished trial; of one that kontrast did not run, its value."""
    record = trial.user_attrs.get("score")
    if record is not None:
        return Score(tuple(record["values"]), record["state"], record["note"])
    if trial.state == TrialState.COMPLETE:
        return Score(tuple(trial.values))
    return Score((), "stopped early" if trial.state == TrialState.PRUNED else "failed")


def follow(search: Search, trials: Iterable[FrozenTrial]) -> Course:
    """How far a procedure comes with these trials; of two with the same setting the later counts."""
    scores = {key_of(trial.params): score_of(trial) for trial in trials}
    return replay(search, lambda setting: scores.get(key_of(setting)))


def key_of(setting: Setting) -> str:
    """A setting as a key of a dictionary."""
    return json.dumps(dict(setting), sort_keys=True)


def _drop_unfinished_line(file: Path) -> None:
    """Cut off a last line without its end: what a kill or a full disk left of an event."""
    if not file.exists():
        return
    content = file.read_bytes()
    if content and not content.endswith(b"\n"):
        with file.open("r+b") as journal:
            journal.truncate(content.rfind(b"\n") + 1)
