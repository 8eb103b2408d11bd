"""A search with its trials: what is tried, what came of it, and the record of both.

<out>/tune-<recipe>-<hash8>/tune.json     every phase and trial, why it was tried, its score over the seeds, why the
                                          search stopped, the setting chosen and the command that trains with it
<out>/trials/<recipe>-<hash8>/            the trials (`kontrast.experiments.tune.trials`); searches share them, so that
                                          more seeds or the other search do again nothing that is there

A search that was stopped is begun anew and finds what was done; one that is done does nothing, and says the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kontrast import evaluate, methods
from kontrast.experiments.tune._record import Record, in_words
from kontrast.experiments.tune.k import choose_k
from kontrast.experiments.tune.search import Phase, Score, Search, Setting, said
from kontrast.experiments.tune.temperature import choose_temperature
from kontrast.experiments.tune.trials import Outcome, run_trial, trial_recipe
from kontrast.files import expanded
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as find_recipe
from kontrast.train import resolve
from kontrast.train.micro_batch import refuse_auto

WHAT = ("k", "temperature")
FRACTION = 0.2  # of the training rows, unless the recipe says how many

Told = Callable[[str], None]


@dataclass(frozen=True)
class Tuning:
    """A recipe to be tuned; `tune` makes one and runs it.

    ``recipe`` is that of the trials: resolved, with rows held out and one protocol. ``asked`` are the words that a
    command for the final training begins with.
    """

    recipe: Recipe
    what: str
    seeds: tuple[int, ...]
    asked: tuple[str, ...]
    out: Path

    @classmethod
    def of(
        cls,
        source: str | Path | Recipe,
        settings: Sequence[str] = (),
        *,
        what: str | None = None,
        seeds: int = 1,
        protocol: str | None = None,
        called: str | None = None,
    ) -> Tuning:
        """Checks what is asked for.

        ``what`` is "k" or "temperature"; left out, k for a method that has them. ``protocol`` is the one that scores;
        left out, the recipe's first. ``called`` is how a command names the source.
        """
        asked = resolve(find_recipe(source).override(settings))
        refuse_auto(asked, "a search")
        what = _what(asked, what)
        if seeds < 1:
            raise ValueError(f"seeds is {seeds}; expected 1 or more")
        changes: dict[str, Any] = {"evaluate.baselines": False, "run.out": str(Path(asked.run.out) / "trials")}
        if not asked.data.validation:
            changes["data.validation"] = FRACTION
        changes["evaluate.protocols"] = [_protocol(asked, protocol)]
        words = [called or (source.name if isinstance(source, Recipe) else str(source))]
        # The final training has all rows, unless validation is what ends it.
        words += [s for s in settings if not s.startswith("data.validation=") or asked.train.patience is not None]
        return cls(
            resolve(asked.override(changes)),
            what,
            tuple(range(asked.seed, asked.seed + seeds)),
            tuple(words),
            expanded(asked.run.out),
        )

    @property
    def folder(self) -> Path:
        """Where tune.json lies."""
        decisive = json.dumps([self.recipe.hash, self.what, self.seeds])
        return self.out / f"tune-{self.recipe.name}-{hashlib.sha256(decisive.encode()).hexdigest()[:8]}"

    def search(self) -> Search:
        """The search, at its beginning."""
        options = self.recipe.method.options
        if self.what == "temperature":
            return choose_temperature(options["temperature"], options.get("target_temperature"))
        return choose_k(supervised=methods.find(self.recipe.method.name).needs_labels)

    def trials(self, phase: Phase) -> list[tuple[Setting, list[Recipe]]]:
        """The recipes of a phase, a seed each."""
        return [(s, [trial_recipe(self.recipe, s, seed) for seed in self.seeds]) for s in phase.settings]

    def run(self, told: Told = lambda line: None) -> dict[str, Any]:
        """Searches to the end; what tune.json holds. ``told`` is given a line about each thing that happens."""
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ValueError("a search runs in one process, and torchrun started several; call it without torchrun")
        record = Record(self)
        search = self.search()
        phase = next(search)
        while True:
            told(f"{phase.name}: {phase.why}")
            record.begin(phase)
            for setting in phase.settings:
                score, outcomes = self._tried(setting, record.outcomes)
                record.add(setting, score, outcomes)
                told(f"  {said(setting)}: {in_words(score)}")
            try:
                phase = search.send([score for _, score in record.tried[-len(phase.settings) :]])
            except StopIteration as stop:
                return record.end(stop.value, told)

    def _tried(self, setting: Setting, before: Sequence[Sequence[Outcome]]) -> tuple[Score, list[Outcome]]:
        """A setting on every seed; the first that fails or is hopeless is the last."""
        outcomes: list[Outcome] = []
        for i, seed in enumerate(self.seeds):
            others = [found[i].half_way for found in before if i < len(found)]
            known = [value for value in others if value is not None]
            outcome = run_trial(trial_recipe(self.recipe, setting, seed), known)
            outcomes.append(outcome)
            if outcome.score is None:
                return Score((), outcome.state, f"seed {seed}: {outcome.note}"), outcomes
        return Score(tuple(o.score for o in outcomes if o.score is not None)), outcomes


def tune(
    source: str | Path | Recipe,
    settings: Sequence[str] = (),
    *,
    what: str | None = None,
    seeds: int = 1,
    protocol: str | None = None,
    told: Told = lambda line: None,
) -> dict[str, Any]:
    """Tunes a recipe: what tune.json holds. ``record["chosen"]`` are the method's options, ``["command"]`` trains."""
    return Tuning.of(source, settings, what=what, seeds=seeds, protocol=protocol).run(told)


def _what(recipe: Recipe, what: str | None) -> str:
    """Which search; an error if the method has nothing to search."""
    name, options = recipe.method.name, recipe.method.options
    found = what or ("k" if "k1" in options else "temperature")
    if found not in WHAT:
        raise ValueError(f"there is no search for {found!r}; there is {' and '.join(WHAT)}, choose one")
    if found == "k" and "k1" not in options:
        raise ValueError(f"method {name!r} has no k1 and k2; take method=tcl or tcl-self, or search for temperature")
    if found == "temperature" and ("temperature" not in options or "simple" in str(options.get("loss"))):
        has = ", ".join(options) or "none"
        raise ValueError(f"method {name!r} has no temperature here; its options: {has}. Take another recipe")
    return found


def _protocol(recipe: Recipe, name: str | None) -> dict[str, Any]:
    """The part of the recipe that scores."""
    if name is not None:
        parts = [part for part in recipe.evaluate.protocols if part.name == name]
        return parts[0].model_dump() if parts else {"name": name}
    if not recipe.evaluate.protocols:
        raise ValueError(
            f"the recipe has no evaluate.protocols to score with; name one of {', '.join(evaluate.names())}"
        )
    return recipe.evaluate.protocols[0].model_dump()
