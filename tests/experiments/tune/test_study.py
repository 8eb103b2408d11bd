"""The Optuna side: procedures as samplers, draws that depend on the trial's number, a journal that survives a kill."""

from __future__ import annotations

import sys
from pathlib import Path

import optuna
import pytest

from kontrast.experiments.ranges import split_ranges
from kontrast.experiments.tune import Tuning, choose_k
from kontrast.experiments.tune.search import Score
from kontrast.experiments.tune.study import (
    HalfWayPruner,
    ProcedureSampler,
    finish_trial,
    next_number,
    next_trial,
    open_study,
    score_of,
    seeded_sampler,
)
from kontrast.runs import TuneFolder
from tests.experiments.tune.made_up import run, settings
from tests.train.small import recipe

RANGES = split_ranges(["optim.lr=log:0.01..1", "method.temperature=0.05,0.1,0.2", "train.batch_size=int:64..256"])[1]


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.mark.parametrize("supervised", [True, False])
def test_a_study_follows_the_procedure_and_stops_at_its_end(supervised: bool) -> None:
    def score(at: dict[str, float]) -> float:
        return min(at["k1"], 5000) / 1e4 - abs(at["k2"] - 1.4)

    study = optuna.create_study(direction="maximize", sampler=ProcedureSampler(lambda: choose_k(supervised=supervised)))
    study.optimize(lambda t: score({"k1": t.suggest_float("k1", 0, 8000), "k2": t.suggest_float("k2", 1, 3)}))
    phases, ending = run(choose_k(supervised=supervised), lambda at: score(dict(at)))
    assert [tuple(trial.params.values()) for trial in study.trials] == settings(phases, "k1", "k2")
    assert study.best_params == ending.chosen


def test_failed_and_pruned_trials_have_no_score() -> None:
    def objective(trial: optuna.Trial) -> float:
        k1, k2 = trial.suggest_float("k1", 0, 8000), trial.suggest_float("k2", 1, 3)
        if k1 == 5000:
            raise optuna.TrialPruned
        return float("nan") if k2 == 1.2 else k1

    study = optuna.create_study(direction="maximize", sampler=ProcedureSampler(choose_k))
    study.optimize(objective)
    assert [tuple(trial.params.values()) for trial in study.trials] == [
        *((0, 1), (4000, 1), (5000, 1), (4000, 1.2), (4000, 1.1))
    ]
    assert [score_of(trial).state for trial in study.trials][2:4] == ["stopped early", "failed"]


def draw(folder: Path, name: str, *, seed: int = 0, trials: int = 14, reopen: bool = False) -> list[dict[str, object]]:
    study = open_study(folder)
    for _ in range(trials):
        if reopen:
            study = open_study(folder)
        trial = next_trial(study, seeded_sampler(name, seed, next_number(study)), RANGES)
        finish_trial(study, trial, Score((trial.params["optim.lr"],)), {"folders": []})
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("name", ["tpe", "random"])
def test_draws_depend_on_the_seed_and_not_on_interruptions(tmp_path: Path, name: str) -> None:
    straight = draw(tmp_path / "a", name)
    assert draw(tmp_path / "b", name, reopen=True) == straight
    assert draw(tmp_path / "c", name, seed=1) != straight
    assert len({str(params) for params in straight}) == 14, "no trial draws what another drew"


def test_a_running_trial_is_taken_up_again(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    begun = next_trial(study, seeded_sampler("random", 0, 0), RANGES)
    again = open_study(tmp_path)
    assert next_number(again) == 0
    resumed = next_trial(again, seeded_sampler("random", 0, 0), RANGES)
    assert (resumed.number, resumed.params) == (0, begun.params)
    finish_trial(again, resumed, Score((), "failed", "why"), {"retry": True})
    (trial,) = open_study(tmp_path).trials
    assert (trial.state, score_of(trial)) == (optuna.trial.TrialState.FAIL, Score((), "failed", "why"))


def test_the_pruner_compares_with_the_trials_before_at_the_same_seed(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    for value in (0.8, 0.7, 0.1):
        trial = study.ask()
        trial.set_user_attr("held_out", 400)
        trial.report(value, 0)
    trials = study.trials
    assert [HalfWayPruner().prune(study, each) for each in trials] == [False, False, True]
    assert "below the median of 2 trials before it, 0.7500" in str(HalfWayPruner().reason(study, trials[2]))
    study.ask().report(0.0, 1)
    assert not HalfWayPruner().prune(study, study.trials[3])


def test_half_a_line_at_the_end_of_the_journal_is_dropped(tmp_path: Path) -> None:
    draw(tmp_path, "random", trials=2)
    file = TuneFolder(tmp_path).journal_file
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"op_code":4,"wor')
    assert len(open_study(tmp_path).trials) == 2
    assert file.read_bytes() == whole


def test_a_damaged_journal_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    draw(tmp_path, "random", trials=2)
    file = TuneFolder(tmp_path).journal_file
    file.write_bytes(b"nonsense\n" + file.read_bytes())
    with pytest.raises(ValueError, match=r"optuna\.jsonl: must be Optuna's journal .* Remove it"):
        open_study(tmp_path)


def test_opening_writes_nothing(tmp_path: Path) -> None:
    draw(tmp_path, "random", trials=2)
    before = (TuneFolder(tmp_path).journal_file).stat().st_mtime_ns
    open_study(tmp_path)
    assert (TuneFolder(tmp_path).journal_file).stat().st_mtime_ns == before


def test_without_optuna_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "kontrast.experiments.tune.study")
    monkeypatch.delattr("kontrast.experiments.tune.study")
    search = Tuning.of(recipe("tcl", tmp_path))
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'kontrast\[tune\]'"):
        search.run()
    assert not search.folder.exists()
