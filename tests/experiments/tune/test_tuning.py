"""Whole searches: made-up trials for what they decide, small real ones for what they leave; stopped and run again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kontrast.experiments.tune import Tuning, tune, tuning
from kontrast.experiments.tune.trials import Outcome, run_trial
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as find
from kontrast.train import resolve
from tests.train.small import recipe

QUICK = {"train.epochs": 2, "data.validation": 0.2, "run.monitor_every": 0}


def made_up(
    monkeypatch: pytest.MonkeyPatch, score: Callable[[Recipe], float | None]
) -> list[tuple[Recipe, list[float]]]:
    """Trials that train nothing; those asked for, with what they were compared with."""
    asked: list[tuple[Recipe, list[float]]] = []

    def trial(made: Recipe, others: list[float]) -> Outcome:
        asked.append((made, list(others)))
        value = score(made)
        folder = Path(made.run.out) / made.folder
        if value is None:
            return Outcome("failed", folder, None, 0.1, "NonFiniteLoss: the loss is nan")
        return Outcome("done", folder, value, value / 2, by="made up")

    monkeypatch.setattr(tuning, "run_trial", trial)
    return asked


def trials(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial for phase in record["phases"] for trial in phase["trials"]]


# ------------------------------------------------------------------------------------------------ what a search decides


def test_k_on_three_seeds_with_the_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gain = {0: 0.0, 4000: 0.01, 5000: 0.02}
    asked = made_up(monkeypatch, lambda made: 0.5 + made.seed / 10 + gain[made.method.options["k1"]] + made.seed / 1000)
    lines: list[str] = []
    record = tune(recipe("tcl", tmp_path), ["seed=5"], seeds=3, told=lines.append)
    assert {made.seed for made, _ in asked} == {5, 6, 7}
    assert record["chosen"] == {"k1": 5000, "k2": 1}
    assert record["seeds"] == [5, 6, 7]
    assert record["remark"]["words"] == "holds: every k1 below 5000 that was tried (4000) is above SupCon"
    assert record["remark"]["k1"]["4000"]["verdict"] == "above"
    assert trials(record)[1]["score"]["n"] == 3
    assert trials(record)[1]["against_first"]["difference"]["mean"] == pytest.approx(0.01, abs=1e-12)  # of doubles
    assert lines[0].startswith("start: k1 = 4000 and 5000 almost always worked")
    assert lines[-1] == f"stopped: {record['stopped']}"
    assert any(line.startswith("  k1 = 4000, k2 = 1: 1.1") for line in lines)
    assert (
        json.loads((Tuning.of(recipe("tcl", tmp_path), ["seed=5"], seeds=3).folder / "tune.json").read_text()) == record
    )


def test_trials_are_compared_with_those_before_them_on_the_same_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = made_up(monkeypatch, lambda made: made.seed + made.method.options["k1"] / 1e5)
    tune(recipe("tcl", tmp_path), seeds=2)
    assert [others for _, others in asked[:6]] == [[], [], [0.0], [0.5], [0.0, 0.02], [0.5, 0.52]]


def test_a_seed_that_fails_ends_the_setting_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(made: Recipe) -> float | None:
        k1 = made.method.options["k1"]
        return None if (k1, made.seed) == (4000.0, 0) else k1

    asked = made_up(monkeypatch, score)
    record = tune(recipe("tcl", tmp_path), seeds=2)
    assert sum(made.method.options["k1"] == 4000.0 for made, _ in asked) == 1
    failed = trials(record)[1]
    assert (failed["state"], failed["score"]) == ("failed", None)
    assert failed["note"] == "seed 0: NonFiniteLoss: the loss is nan"
    assert failed["against_first"] == {"verdict": "not measured", "difference": None}
    assert record["chosen"] == {"k1": 5000, "k2": 1}
    assert record["remark"]["k1"]["4000"]["verdict"] == "not measured"


def test_nothing_has_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, lambda made: None)
    record = tune(recipe("sce", tmp_path))
    assert (record["status"], record["chosen"], record["command"], record["by"]) == ("done", None, None, None)


# ------------------------------------------------------------------------------------------------ what is asked for


def test_what_is_searched_depends_on_the_method(tmp_path: Path) -> None:
    assert [Tuning.of(recipe(m, tmp_path)).what for m in ("tcl", "tcl-self", "supcon")] == ["k", "k", "temperature"]
    assert Tuning.of(recipe("tcl", tmp_path), what="temperature").what == "temperature"
    first = next(Tuning.of(recipe("ressl", tmp_path)).search()).settings[0]
    assert first == {"temperature": 0.1, "target_temperature": 0.04}
    assert next(Tuning.of(recipe("tcl-self", tmp_path)).search()).settings == ({"k1": 1.0, "k2": 1.0},)


@pytest.mark.parametrize(
    ("method", "changes", "asked", "says"),
    [
        ("supcon", {}, {"what": "k"}, "method 'supcon' has no k1 and k2; take method=tcl or tcl-self"),
        ("ce", {}, {}, "method 'ce' has no temperature here"),
        ("instance", {"method.loss": "simple"}, {}, "method 'instance' has no temperature here"),
        ("tcl", {}, {"what": "lr"}, "there is no search for 'lr'; there is k and temperature"),
        ("tcl", {}, {"seeds": 0}, "seeds is 0; expected 1 or more"),
        ("tcl", {}, {"protocol": "knn21"}, "no protocol 'knn21'"),
        ("tcl", {"evaluate.protocols": []}, {}, "the recipe has no evaluate.protocols to score with"),
    ],
)
def test_mistakes(tmp_path: Path, method: str, changes: dict[str, Any], asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Tuning.of(recipe(method, tmp_path, **changes), **asked)


def test_torchrun_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="a search runs in one process"):
        tune(recipe("tcl", tmp_path))


def test_rows_are_held_out_as_the_recipe_says_or_a_fifth(tmp_path: Path) -> None:
    assert Tuning.of(recipe("tcl", tmp_path)).recipe.data.validation == 0.2
    assert Tuning.of(recipe("tcl", tmp_path), ["data.validation=0.1"]).recipe.data.validation == 0.1


def test_the_protocol_is_the_recipe_s_first_with_its_options_or_the_one_named(tmp_path: Path) -> None:
    both = recipe("tcl", tmp_path, **{"evaluate.protocols": ["probe", {"name": "tcl", "epochs": 3}]})
    assert [part.name for part in Tuning.of(both).recipe.evaluate.protocols] == ["probe"]
    (part,) = Tuning.of(both, protocol="tcl").recipe.evaluate.protocols
    assert (part.name, part.options) == ("tcl", {"epochs": 3})


def test_another_search_is_another_folder_and_the_same_trials(tmp_path: Path) -> None:
    one, three = (Tuning.of(recipe("tcl", tmp_path), seeds=n) for n in (1, 3))
    assert one.folder != three.folder
    phase = next(one.search())
    assert [made[0].folder for _, made in one.trials(phase)] == [made[0].folder for _, made in three.trials(phase)]


# ------------------------------------------------------------------------------------------------ real, small ones


@pytest.mark.parametrize("method", ["tcl", "tcl-self", "supcon"])
def test_a_search_is_done_once_and_its_command_trains(tmp_path: Path, method: str) -> None:
    made = recipe(method, tmp_path, **QUICK)
    path = tmp_path / "small.yaml"
    path.write_text(made.to_yaml())
    record = tune(str(path))
    assert record["status"] == "done"
    assert record["by"] == "kNN, k = 20, weights exp(s/0.07), cosine; held out of the training rows"
    ran = {folder for trial in trials(record) for folder in trial["folders"]}
    assert {str(p) for p in (tmp_path / "trials").iterdir()} == ran
    assert len(ran) == len(trials(record))
    (file,) = tmp_path.glob("tune-*/tune.json")
    assert json.loads(file.read_text()) == record
    scores = [trial["score"]["mean"] for trial in trials(record) if trial["score"]]
    (chosen,) = [trial for trial in trials(record) if trial["setting"] == record["chosen"]]
    assert chosen["score"]["mean"] == max(scores)
    assert ("remark" in record) == (method == "tcl")

    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    assert tune(str(path)) == record
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before, "nothing is written again"

    words = shlex.split(record["command"])
    assert words[:3] == ["kontrast", "train", str(path)]
    assert words[-2:] == ["--out", str(tmp_path)]
    trained = resolve(find(words[2]).override(words[3:-2])).method.options
    assert {name: trained[name] for name in record["chosen"]} == record["chosen"]


def test_stopped_anywhere_it_goes_on_to_the_same_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the third trial, then run again: the two done are not trained anew."""
    trained: list[str] = []

    def counted(stop_at: int | None) -> Callable[..., Outcome]:
        def trial(made: Recipe, others: list[float]) -> Outcome:
            if len(trained) == stop_at:
                raise KeyboardInterrupt
            begun = (Path(made.run.out) / made.folder).exists()
            trained.extend([] if begun else [made.folder])
            return run_trial(made, others)

        return trial

    monkeypatch.setattr(tuning, "run_trial", counted(2))
    made = recipe("tcl-self", tmp_path / "a", **QUICK)
    with pytest.raises(KeyboardInterrupt):
        tune(made)
    (file,) = (tmp_path / "a").glob("tune-*/tune.json")
    partial = json.loads(file.read_text())
    assert (partial["status"], len(trials(partial)), len(trained)) == ("running", 2, 2)
    monkeypatch.setattr(tuning, "run_trial", counted(None))
    record = tune(made)
    assert trials(record)[:2] == trials(partial)
    assert len(trained) == len(set(trained)) == len(trials(record))
    straight = tune(recipe("tcl-self", tmp_path / "b", **QUICK))
    values = [[(trial["setting"], trial["values"]) for trial in trials(found)] for found in (record, straight)]
    assert values[0] == values[1]
    assert (record["chosen"], record["stopped"]) == (straight["chosen"], straight["stopped"])
