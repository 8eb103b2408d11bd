"""Tuning: settings of a recipe chosen on rows held out of its training rows. ``kontrast tune`` is `tune`.

    search   search procedures: TCL's for k1 and k2, one for the temperature
    trials   one setting, one seed: trained and scored without test rows; stopped half-way if far below the others
    study    the Optuna side: storage, samplers, pruner (needs ``pip install 'kontrast[tune]'``)

`kontrast.experiments.ranges` reads ranges such as ``optim.lr=log:0.01..1``. A search and its trials write

<out>/tune-<recipe>-<hash8>/tune.json       every phase and trial, why it was tried, its score over the seeds, why the
                                            search stopped, the chosen setting and the command that trains with it
<out>/tune-<recipe>-<hash8>/optuna.jsonl    Optuna's journal of the search
<out>/trials/<recipe>-<hash8>/              the trials; searches share them: more seeds or another search train only
                                            what is new

A search that was interrupted is resumed by the same call: finished trials come from the journal, the running one
continues at its checkpoint. A finished search trains nothing and returns the same record.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from kontrast import evaluate, methods
from kontrast.experiments.ranges import Range, grid_of, split_ranges
from kontrast.experiments.tune.search import (
    MOST_K2,
    RANGE,
    Comparison,
    Course,
    Ending,
    Phase,
    Score,
    Search,
    Setting,
    Trials,
    check_remark,
    choose_k,
    choose_temperature,
    compare_scores,
    describe_setting,
    format_value,
)
from kontrast.experiments.tune.trials import HELD_OUT, Check, never_stop, run_trial
from kontrast.files import expanded
from kontrast.intervals import Interval, interval
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as find_recipe
from kontrast.registry import nearest
from kontrast.runs import TuneFolder
from kontrast.train import resolve
from kontrast.train.micro_batch import refuse_auto

if TYPE_CHECKING:
    import optuna


__all__ = ["Ending", "Phase", "Score", "Search", "Tuning", "choose_k", "choose_temperature", "tune"]

SAMPLERS = ("tpe", "random", "grid", "tcl", "temperature")
PRUNERS = ("median", "none")
PROCEDURES = {"tcl": "k", "temperature": "temperature"}  # samplers that need no ranges; what they search for
FRACTION = 0.2  # of the training rows is held out, unless the recipe says how many
TRIALS = 20

Log: TypeAlias = Callable[[str], None]


@dataclass(frozen=True)
class Tuning:
    """A search that can be run; `Tuning.of` checks the request and makes one.

    Args:
        recipe: The recipe of the trials: resolved, with held-out rows and one protocol.
        ranges: The settings to search; empty for TCL's procedure and the temperature search.
        sampler: One of `SAMPLERS`.
        seeds: The training seeds of every setting.
        trials: How many settings TPE and random sampling try.
        sampler_seed: The seed of TPE and random sampling.
        pruner: One of `PRUNERS`.
        command: The first words of the command that trains with the chosen setting.
        out: The folder of the search and of the folder ``trials``.
    """

    recipe: Recipe
    ranges: Mapping[str, Range]
    sampler: str
    seeds: tuple[int, ...]
    trials: int
    sampler_seed: int
    pruner: str
    command: tuple[str, ...]
    out: Path

    @classmethod
    def of(
        cls,
        source: str | Path | Recipe,
        settings: Sequence[str] = (),
        *,
        what: str | None = None,
        sampler: str | None = None,
        trials: int | None = None,
        seeds: int = 1,
        sampler_seed: int = 0,
        pruner: str = "median",
        protocol: str | None = None,
        source_name: str | None = None,
    ) -> Tuning:
        """Check a request; see `tune` for the arguments.

        Args:
            source_name: How the command that trains names the source.

        >>> Tuning.of("supcon-fashion-mini", ["optim.lr=log:0.01..1"], trials=5).sampler
        'tpe'
        """
        fixed, ranges = split_ranges(settings)
        base = resolve(find_recipe(source).override(fixed))
        refuse_auto(base, "a search")
        sampler = _choose_sampler(base, ranges, sampler, what, trials)
        _check_choice("pruner", pruner, PRUNERS)
        for name, count in (("seeds", seeds), ("trials", TRIALS if trials is None else trials)):
            if count < 1:
                raise ValueError(f"{name}={count}: must be 1 or more.")
        if sampler_seed < 0:
            raise ValueError(f"seed={sampler_seed}: must be 0 or more.")
        changes: dict[str, Any] = {"evaluate.baselines": False, "run.out": str(Path(base.run.out) / "trials")}
        if not base.data.validation:
            changes["data.validation"] = FRACTION
        changes["evaluate.protocols"] = [_choose_protocol(base, protocol)]
        words = [source_name or (source.name if isinstance(source, Recipe) else str(source))]
        # The final training has all rows, unless validation is what ends it.
        words += [s for s in fixed if not s.startswith("data.validation=") or base.train.patience is not None]
        recipe = resolve(base.override(changes))
        for key, range_of_key in ranges.items():
            for value in range_of_key.examples():
                resolve(recipe.override({key: value}))
        return cls(
            recipe,
            ranges,
            sampler,
            tuple(range(base.seed, base.seed + seeds)),
            TRIALS if trials is None else trials,
            sampler_seed,
            pruner,
            tuple(words),
            expanded(base.run.out),
        )

    @property
    def folder(self) -> Path:
        """The folder of tune.json. More trials are the same search; any other change is another one."""
        if self.sampler in PROCEDURES:
            decisive: list[Any] = [self.recipe.hash, PROCEDURES[self.sampler], self.seeds]
        else:
            texts = {key: range_of_key.text for key, range_of_key in self.ranges.items()}
            decisive = [self.recipe.hash, self.sampler, self.seeds, texts]
            decisive += [] if self.sampler == "grid" else [self.sampler_seed]
        decisive += [] if self.pruner == "median" else [self.pruner]
        return self.out / f"tune-{self.recipe.name}-{hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:8]}"

    def search(self) -> Search | None:
        """The procedure at its beginning; None for TPE and random sampling."""
        options = self.recipe.method.options
        if self.sampler == "temperature":
            return choose_temperature(options["temperature"], options.get("target_temperature"))
        if self.sampler == "tcl":
            return choose_k(supervised=methods.find(self.recipe.method.name).needs_labels)
        return _try_all(grid_of(self.ranges)) if self.sampler == "grid" else None

    def setting_of(self, values: Setting) -> dict[str, Any]:
        """The values in a recipe of what a sampler drew."""
        return {name: self.ranges[name].value(x) if name in self.ranges else x for name, x in values.items()}

    def trial_recipe(self, values: Setting, seed: int) -> Recipe:
        """The resolved recipe of a trial."""
        return resolve(self.recipe.override({**self._dotted(self.setting_of(values)), "seed": seed}))

    def run(self, log: Log = lambda line: None) -> dict[str, Any]:
        """Search to the end.

        Args:
            log: Receives a line about each phase and each trial.

        Returns:
            The content of tune.json.

        Raises:
            ModuleNotFoundError: Optuna is not installed.
            ValueError: It was started by torchrun, or no setting fits the data.
        """
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ValueError("WORLD_SIZE: must be 1, because a search runs in one process. Start it without torchrun.")
        return _Session(self, log).run()

    def _dotted(self, setting: Setting) -> dict[str, Any]:
        """The keys of a recipe: procedures name options of the method."""
        return {name if name in self.ranges else f"method.{name}": value for name, value in setting.items()}

    def train_command(self, values: Setting) -> str:
        """The command that trains with a setting on all training rows."""
        words = [f"{key}={format_value(value)}" for key, value in self._dotted(self.setting_of(values)).items()]
        out = [] if self.out == Path("runs") else ["--out", str(self.out)]
        return shlex.join(["kontrast", "train", *self.command, *words, *out])


def tune(
    source: str | Path | Recipe,
    settings: Sequence[str] = (),
    *,
    what: str | None = None,
    sampler: str | None = None,
    trials: int | None = None,
    seeds: int = 1,
    sampler_seed: int = 0,
    pruner: str = "median",
    protocol: str | None = None,
    log: Log = lambda line: None,
) -> dict[str, Any]:
    """Search for the settings of a recipe that score best on held-out training rows.

    The test rows are never used. The same call again resumes the search, or returns its record.

    Args:
        source: A recipe, its name, or a YAML file.
        settings: Overrides (``"train.epochs=5"``) and ranges (``"optim.lr=log:0.01..1"``,
            ``"train.batch_size=int:64..256"``, ``"method.temperature=0.05,0.1,0.2"``). Without ranges k1 and k2 or the
            temperature are searched.
        what: Without ranges: "k" or "temperature"; k by default where the method has it.
        sampler: "tpe", "random", "grid" (every combination of lists), or "tcl" (the same as ``what="k"``). By default
            "grid" where every range is a list and ``trials`` is left out, otherwise "tpe".
        trials: How many settings TPE and random sampling try; 20 by default.
        seeds: How many training seeds each setting is scored on, from the recipe's on.
        sampler_seed: The seed of TPE and random sampling.
        pruner: "median" stops trials that are far below the others half-way; "none" trains all to their end.
        protocol: The protocol that scores; the recipe's first by default.
        log: Receives a line about each phase and each trial.

    Returns:
        The content of tune.json: ``record["chosen"]`` is the best setting, ``record["command"]`` trains with it.

    Raises:
        ModuleNotFoundError: Optuna is not installed.
        ValueError: A range, a setting or an option is wrong; the message says what to do.

    >>> import tempfile
    >>> small = Recipe.of({
    ...     "name": "small", "method": "supcon", "augment": ["none"] * 2, "encoder": {"name": "mlp", "hidden": 16},
    ...     "data": {"name": "digits", "limit": 60}, "train": {"steps": 2, "batch_size": 30},
    ...     "evaluate": {"protocols": ["knn20"]}, "run": {"out": tempfile.mkdtemp(), "progress": False},
    ... })
    >>> record = tune(small, ["method.temperature=0.1,0.5"])
    >>> [trial["setting"] for phase in record["phases"] for trial in phase["trials"]]
    [{'method.temperature': 0.1}, {'method.temperature': 0.5}]
    """
    search = Tuning.of(
        source,
        settings,
        what=what,
        sampler=sampler,
        trials=trials,
        seeds=seeds,
        sampler_seed=sampler_seed,
        pruner=pruner,
        protocol=protocol,
    )
    return search.run(log)


class _Session:
    """One run of a search, from its beginning or from where it was interrupted."""

    def __init__(self, tuning: Tuning, log: Log) -> None:
        try:
            from kontrast.experiments.tune import study as side
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                f"kontrast tune needs Optuna ({error}). Install it with: pip install 'kontrast[tune]'", name=error.name
            ) from None
        self.side, self.tuning, self.log = side, tuning, log
        self.study = side.open_study(tuning.folder)
        self.pruner = side.HalfWayPruner()
        # Trials that a full disk or the like made fail in an earlier session do not count: they are tried again.
        self.ignore: frozenset[int] = frozenset()
        self.ignore = frozenset(trial.number for trial in self._finished_trials() if trial.user_attrs.get("retry"))
        self.logged = 0  # lines

    def run(self) -> dict[str, Any]:
        course = self._follow()
        while course.ending is None:
            number = self.side.next_number(self.study)
            self._score(self.side.next_trial(self.study, self._sampler(number), self._ranges()))
            course = self._follow()
            if course.ending is None:
                self._write(course, {"status": "running"})
        return self._end(course, course.ending)

    def _sampler(self, number: int) -> optuna.samplers.BaseSampler:
        t = self.tuning
        if t.search() is None:
            return self.side.seeded_sampler(t.sampler, t.sampler_seed, number)
        return self.side.ProcedureSampler(lambda: cast(Search, t.search()), self.ignore)

    def _ranges(self) -> Mapping[str, Range]:
        """The ranges; of a procedure those that its settings lie in."""
        if self.tuning.ranges:
            return self.tuning.ranges
        options = self.tuning.recipe.method.options
        if self.tuning.sampler == "tcl":
            return {"k1": Range("", low=0.0, high=max(RANGE)), "k2": Range("", low=1.0, high=MOST_K2)}
        names = [name for name in ("temperature", "target_temperature") if options.get(name) is not None]
        return {name: Range("", low=min(1e-4, options[name]), high=max(10.0, options[name])) for name in names}

    def _finished_trials(self) -> list[optuna.trial.FrozenTrial]:
        trials = self.study.get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state.is_finished() and trial.number not in self.ignore]

    def _follow(self) -> Course:
        """How far the search is; new phases and scores are logged."""
        t, trials = self.tuning, self._finished_trials()
        search = t.search()
        if search is not None:
            course = self.side.follow(search, trials)
        else:
            course = Course()
            for trial in trials:
                if all(trial.params != values for values, _ in course.scores):
                    course.scores.append((trial.params, self.side.score_of(trial)))
            method = "by TPE" if t.sampler == "tpe" else "at random"
            why = f"{t.trials} settings drawn {method}, seed {t.sampler_seed}"
            course.phases.append(Phase(t.sampler, why, tuple(values for values, _ in course.scores)))
            sizes = [range_of_key.grid() for range_of_key in t.ranges.values()]
            if len(trials) >= t.trials:
                course.ending = Ending(Trials(course.scores).best(), f"{t.trials} settings were tried")
            elif None not in sizes and len(course.scores) == math.prod(len(size or ()) for size in sizes):
                course.ending = Ending(Trials(course.scores).best(), "every setting was tried")
        lines = []
        scores = iter(course.scores)
        for phase in course.phases:
            lines.append(f"{phase.name}: {phase.why}")
            for values, score in itertools.islice(scores, len(phase.settings)):
                lines.append(f"  {describe_setting(t.setting_of(values))}: {_describe_score(score)}")
        for line in lines[self.logged :]:
            self.log(line)
        self.logged = len(lines)
        return course

    def _score(self, trial: optuna.Trial) -> None:
        """Run the trial on every seed; the first seed that fails or is stopped is the last."""
        t = self.tuning
        folders: list[str] = []
        values: list[float] = []
        attributes: dict[str, Any] = {"retry": False}
        score: Score | None = None
        for i, seed in enumerate(t.seeds):
            try:
                outcome = run_trial(t.trial_recipe(trial.params, seed), self._check(trial, i))
            except ValueError as error:
                if not t.ranges or not any(self.side.score_of(t).state == "done" for t in self._finished_trials()):
                    raise  # the recipe itself is wrong
                score = Score((), "failed", f"seed {seed}: {error}")
                break
            folders.append(str(outcome.folder))
            if outcome.half_way is not None:
                self._report(trial, i, outcome.half_way)
            if outcome.score is None:
                score = Score((), outcome.state, f"seed {seed}: {outcome.note}")
                attributes["retry"] = outcome.retry
                break
            values.append(outcome.score)
            attributes |= {"by": outcome.by, "accuracy": outcome.accuracy}
        score = score or Score(tuple(values))
        self.side.finish_trial(self.study, trial, score, {"folders": folders, **attributes})

    def _check(self, trial: optuna.Trial, position: int) -> Check:
        if self.tuning.pruner == "none":
            return never_stop

        def check(value: float, rows: int | None) -> str | None:
            trial.set_user_attr(self.side.ROWS, rows)
            self._report(trial, position, value)
            return self.pruner.reason(self.study, self.study.get_trials(deepcopy=False)[trial.number])

        return check

    def _report(self, trial: optuna.Trial, position: int, value: float) -> None:
        if position not in self.study.get_trials(deepcopy=False)[trial.number].intermediate_values:
            trial.report(value, position)

    def _end(self, course: Course, ending: Ending) -> dict[str, Any]:
        t = self.tuning
        more: dict[str, Any] = {"status": "done", "stopped": ending.why, "chosen": None, "command": None}
        if t.sampler == "tcl" and methods.find(t.recipe.method.name).needs_labels:  # without, SupCon is not tried
            words, each = check_remark(course.scores, t.seeds)
            verdicts = {f"{k1:g}": _comparison(comparison) for k1, comparison in each.items()}
            more["remark"] = {"words": words, "k1": verdicts}
            self.log(f"any k1 below 5000 beats SupCon: {words}")
        if ending.chosen is not None:
            more |= {"chosen": t.setting_of(ending.chosen), "command": t.train_command(ending.chosen)}
        self.log(f"stopped: {ending.why}")
        return self._write(course, more)

    def _write(self, course: Course, more: Mapping[str, Any]) -> dict[str, Any]:
        """Write tune.json, if it is not there already."""
        t = self.tuning
        trials = {self.side.key_of(trial.params): trial for trial in self._finished_trials()}
        phases = []
        scores = iter(course.scores)
        for phase in course.phases:
            records = []
            for values, score in itertools.islice(scores, len(phase.settings)):
                records.append(
                    {
                        "setting": t.setting_of(values),
                        "state": score.state,
                        "note": score.note,
                        "score": _interval(interval(score.values) if score.state == "done" else None),
                        "values": list(score.values),
                        "against_first": _comparison(compare_scores(score, course.scores[0][1], t.seeds)),
                        "folders": trials[self.side.key_of(values)].user_attrs["folders"],
                    }
                )
            phases.append({"name": phase.name, "why": phase.why, "trials": records})
        scored = [trial.user_attrs for trial in trials.values() if "by" in trial.user_attrs]
        record = {
            "recipe": t.recipe.name,
            "for": PROCEDURES.get(t.sampler, "settings"),
            "sampler": t.sampler,
            "pruner": t.pruner,
            "ranges": {key: range_of_key.text for key, range_of_key in t.ranges.items()},
            "seeds": list(t.seeds),
            "held_out": t.recipe.data.validation,
            "by": f"{scored[0]['by']}; {HELD_OUT}" if scored else None,
            "accuracy": scored[0]["accuracy"] if scored else None,
            "phases": phases,
            **more,
        }
        TuneFolder(t.folder).write_record(record)
        return record


def _try_all(points: Sequence[Setting]) -> Search:
    trials = Trials()
    yield from trials.ask("grid", f"every combination of the values, {len(points)} settings", points)
    return Ending(trials.best(), f"all {len(points)} settings were tried")


def _describe_score(score: Score) -> str:
    """Mean, interval and number of seeds; or why there is none."""
    return f"{score.state}, {score.note}" if math.isnan(score.mean) else f"{interval(score.values):.4f}"


def _interval(mean: Interval | None) -> dict[str, Any] | None:
    return None if mean is None else {"mean": mean.mean, "half": mean.half, "n": mean.n}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {"verdict": comparison.verdict, "difference": _interval(comparison.difference)}


def _choose_sampler(
    recipe: Recipe, ranges: Mapping[str, Range], sampler: str | None, what: str | None, trials: int | None
) -> str:
    """The sampler of a request; an error if it does not fit the ranges or the method."""
    name, options = recipe.method.name, recipe.method.options
    if what is not None:
        _check_choice("for", what, tuple(PROCEDURES.values()))
        procedure = next(each for each, searched in PROCEDURES.items() if searched == what)
        if ranges or sampler not in (None, procedure):
            raise ValueError(f"for={what}: must be left out with ranges or another sampler. Remove --for.")
        sampler = procedure
    if sampler is None and not ranges:
        sampler = "tcl" if "k1" in options else "temperature"
    if sampler is None:
        is_grid = trials is None and all(range_of_key.values for range_of_key in ranges.values())
        sampler = "grid" if is_grid else "tpe"
    _check_choice("sampler", sampler, SAMPLERS)
    if (sampler in PROCEDURES) == bool(ranges):
        if ranges:
            key = next(iter(ranges))
            raise ValueError(
                f"{key}={ranges[key].text}: must be one value when sampler={sampler}, which has its own settings to "
                "try. Use --sampler tpe for ranges."
            )
        raise ValueError(f"sampler={sampler}: must have ranges to search. Add one, such as optim.lr=log:0.01..1.")
    if trials is not None and sampler not in ("tpe", "random"):
        raise ValueError(f"trials={trials}: must be left out when sampler={sampler}, which ends by itself. Remove it.")
    if sampler == "grid":
        grid_of(ranges)
    if sampler == "tcl" and "k1" not in options:
        raise ValueError(
            f"method={name}: must have k1 and k2 to search for them. Use method=tcl or tcl-self, or --for temperature."
        )
    if sampler == "temperature" and methods.find(name).loss_temperature(options) is None:
        raise ValueError(
            f"method={name}: must have a temperature to search for it (its options: {', '.join(options) or 'none'}). "
            "Use another recipe, or name a range such as optim.lr=log:0.01..1."
        )
    return sampler


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value}: must be one of {', '.join(choices)}{nearest(value, choices)}")


def _choose_protocol(recipe: Recipe, name: str | None) -> dict[str, Any]:
    """The part of the recipe that scores."""
    if name is not None:
        parts = [part for part in recipe.evaluate.protocols if part.name == name]
        return parts[0].model_dump() if parts else {"name": name}
    if not recipe.evaluate.protocols:
        raise ValueError(
            "evaluate.protocols=[]: must have a protocol to score with. "
            f"Use --by with one of {', '.join(evaluate.names())}."
        )
    return recipe.evaluate.protocols[0].model_dump()
