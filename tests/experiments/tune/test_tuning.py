"""Whole searches: made-up trials for what they decide, small real ones for what they leave; stopped and run again."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kontrast.experiments import tune as tuning
from kontrast.experiments.tune import Tuning, choose_k, study, tune
from kontrast.experiments.tune.trials import Check, Outcome, run_trial
from kontrast.recipe import Recipe
from kontrast.recipes import recipe as find
from kontrast.train import resolve
from tests.train.small import recipe

QUICK = {"train.epochs": 2, "data.validation": 0.2, "run.monitor_every": 0}


def made_up(
    monkeypatch: pytest.MonkeyPatch, score: Callable[[Recipe], float | None]
) -> list[tuple[Recipe, list[float]]]:
    """Trials that train nothing; their recipes, with the values that each was compared with."""
    asked: list[tuple[Recipe, list[float]]] = []
    compared: list[float] = []

    def reason(value: float, others: list[float], rows: int | None) -> None:
        compared[:] = others

    def trial(made: Recipe, check: Check) -> Outcome:
        value = score(made)
        check((0.2 if value is None else value) / 2, None)
        asked.append((made, list(compared)))
        folder = Path(made.run.out) / made.folder
        if value is None:
            return Outcome("failed", folder, None, 0.1, "NonFiniteLoss: the loss is nan")
        return Outcome("done", folder, value, value / 2, by="made up")

    monkeypatch.setattr(study, "reason_to_stop", reason)
    monkeypatch.setattr(tuning, "run_trial", trial)
    return asked


def trials(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial for phase in record["phases"] for trial in phase["trials"]]


# ------------------------------------------------------------------------------------------------ what a search decides


def test_k_on_three_seeds_with_the_remark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gain = {0: 0.0, 4000: 0.01, 5000: 0.02}
    asked = made_up(monkeypatch, lambda made: 0.5 + made.seed / 10 + gain[made.method.options["k1"]] + made.seed / 1000)
    lines: list[str] = []
    record = tune(recipe("tcl", tmp_path), ["seed=5"], seeds=3, log=lines.append)
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
    samplers = [Tuning.of(recipe(m, tmp_path)).sampler for m in ("tcl", "tcl-self", "supcon")]
    assert samplers == ["tcl", "tcl", "temperature"]
    assert Tuning.of(recipe("tcl", tmp_path), what="temperature").sampler == "temperature"
    temperature, self_supervised = (Tuning.of(recipe(m, tmp_path)).search() for m in ("ressl", "tcl-self"))
    assert temperature is not None
    assert next(temperature).settings[0] == {"temperature": 0.1, "target_temperature": 0.04}
    assert self_supervised is not None
    assert next(self_supervised).settings == ({"k1": 1.0, "k2": 1.0},)


@pytest.mark.parametrize(
    ("method", "changes", "asked", "says"),
    [
        (
            "supcon",
            {},
            {"what": "k"},
            "method=supcon: must have k1 and k2 to search for them. Use method=tcl or tcl-self",
        ),
        ("ce", {}, {}, "method=ce: must have a temperature"),
        ("instance", {"method.loss": "simple"}, {}, "method=instance: must have a temperature"),
        ("tcl", {}, {"what": "lr"}, "for=lr: must be one of k, temperature"),
        ("tcl", {}, {"seeds": 0}, "seeds=0: must be 1 or more"),
        ("tcl", {}, {"protocol": "knn21"}, "no protocol 'knn21'"),
        ("tcl", {"evaluate.protocols": []}, {}, "evaluate.protocols=\\[\\]: must have a protocol to score with"),
    ],
)
def test_mistakes(tmp_path: Path, method: str, changes: dict[str, Any], asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Tuning.of(recipe(method, tmp_path, **changes), **asked)


def test_torchrun_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="WORLD_SIZE: must be 1"):
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
    search = one.search()
    assert search is not None
    folders = [[each.trial_recipe(drawn, 0).folder for drawn in next(search).settings] for each in (one,)]
    assert folders == [[three.trial_recipe(drawn, 0).folder for drawn in next(choose_k()).settings]]


def test_a_trial_is_a_setting_and_a_seed(tmp_path: Path) -> None:
    made = Tuning.of(recipe("tcl", tmp_path)).trial_recipe({"k1": 4000.0, "k2": 1.2}, 3)
    assert (made.seed, made.method.options) == (3, {"temperature": 0.1, "k1": 4000.0, "k2": 1.2})


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
        def trial(made: Recipe, check: Check) -> Outcome:
            if len(trained) == stop_at:
                raise KeyboardInterrupt
            begun = (Path(made.run.out) / made.folder).exists()
            trained.extend([] if begun else [made.folder])
            return run_trial(made, check)

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


# ------------------------------------------------------------------------------------------------ ranges


LR = "optim.lr=log:0.01..1"
TAU = "method.temperature=0.05,0.1,0.2"
SIZE = "train.batch_size=int:20..40:20"


def drawn(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [trial["setting"] for trial in trials(record)]


def test_a_grid_tries_every_combination_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = made_up(monkeypatch, lambda made: made.method.options["temperature"] - made.train.batch_size / 1e3)
    record = tune(recipe("supcon", tmp_path), [TAU, SIZE, "train.epochs=1"], sampler="grid", seeds=2)
    expected = [{"method.temperature": tau, "train.batch_size": size} for tau in (0.05, 0.1, 0.2) for size in (20, 40)]
    assert drawn(record) == expected
    assert len(asked) == 12
    assert {made.train.epochs for made, _ in asked} == {1}
    assert (record["for"], record["sampler"], record["stopped"]) == ("settings", "grid", "all 6 settings were tried")
    assert record["chosen"] == {"method.temperature": 0.2, "train.batch_size": 20}
    assert record["command"].startswith(
        "kontrast train supcon-digits train.epochs=1 method.temperature=0.2 train.batch_size=20 --out "
    )


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_a_seed_decides_what_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str) -> None:
    made_up(monkeypatch, lambda made: -abs(made.optim.options["lr"] - 0.3))
    found = [
        tune(recipe("supcon", tmp_path / name), [LR, TAU], sampler=sampler, trials=12, sampler_seed=seed)
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]
    assert drawn(found[0]) == drawn(found[1]) != drawn(found[2])
    assert len(trials(found[0])) == 12
    assert all(0.01 <= setting["optim.lr"] <= 1 for setting in drawn(found[0]))
    best = min(drawn(found[0]), key=lambda setting: abs(setting["optim.lr"] - 0.3))
    assert found[0]["chosen"] == best
    assert f"optim.lr={best['optim.lr']:g}" in found[0]["command"]


def test_more_trials_go_on_with_the_same_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = made_up(monkeypatch, lambda made: made.optim.options["lr"])
    small = recipe("supcon", tmp_path)
    first = tune(small, [LR], trials=4)
    second = tune(small, [LR], trials=6)
    assert drawn(second)[:4] == drawn(first)
    assert len(asked) == len(drawn(second)) == 6
    assert len(list(tmp_path.glob("tune-*"))) == 1
    straight = tune(recipe("supcon", tmp_path / "straight"), [LR], trials=6)
    assert drawn(straight) == drawn(second)


def test_a_list_is_drawn_from_until_every_setting_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, lambda made: made.method.options["temperature"])
    record = tune(recipe("supcon", tmp_path), [TAU], sampler="random", trials=50)
    assert sorted(setting["method.temperature"] for setting in drawn(record)) == [0.05, 0.1, 0.2]
    assert record["stopped"] == "every setting was tried"


def test_a_setting_that_does_not_fit_the_data_fails_and_the_search_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def score(made: Recipe) -> float:
        if made.train.batch_size == 40:
            raise ValueError("train.batch_size=40: must be smaller")
        return 0.5

    made_up(monkeypatch, score)
    record = tune(recipe("supcon", tmp_path), [SIZE], sampler="grid")
    assert [trial["state"] for trial in trials(record)] == ["done", "failed"]
    assert trials(record)[1]["note"] == "seed 0: train.batch_size=40: must be smaller"
    with pytest.raises(ValueError, match="must be smaller"):  # the first one: the recipe itself is wrong
        tune(recipe("supcon", tmp_path), ["train.batch_size=40,20"])


@pytest.mark.parametrize(
    ("settings", "asked", "says"),
    [
        ([], {"sampler": "tpe"}, "sampler=tpe: must have ranges to search. Add one, such as optim.lr=log:0.01..1"),
        ([LR], {"sampler": "tcl"}, "optim.lr=log:0.01..1: must be one value when sampler=tcl"),
        ([LR], {"sampler": "grid"}, "optim.lr=log:0.01..1: must be a list of values or have a step when sampler=grid"),
        ([LR], {"what": "temperature"}, "for=temperature: must be left out with ranges"),
        ([LR], {"sampler": "tpee"}, "sampler=tpee: must be one of tpe, random, grid, tcl, temperature; did you mean"),
        ([LR], {"pruner": "hyperband"}, "pruner=hyperband: must be one of median, none"),
        ([TAU], {"sampler": "grid", "trials": 2}, "trials=2: must be left out when sampler=grid"),
        ([], {"trials": 2}, "trials=2: must be left out when sampler=tcl"),
        ([LR], {"trials": 0}, "trials=0: must be 1 or more"),
        ([LR], {"sampler_seed": -1}, "seed=-1: must be 0 or more"),
        (["optim.lr=-1..1"], {}, "optim.lr"),
        (["method.temprature=0.1,0.2"], {}, "did you mean 'temperature'"),
        (["method.temperature=0.1,high"], {}, "temperature"),
        (["seed=0,1"], {}, "seed=0,1: must be one value"),
    ],
)
def test_mistakes_with_ranges(tmp_path: Path, settings: list[str], asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        Tuning.of(recipe("tcl", tmp_path), settings, **asked)


def test_the_default_sampler_is_a_grid_for_lists_and_else_tpe(tmp_path: Path) -> None:
    def chosen(*settings: str, **asked: Any) -> str:
        return Tuning.of(recipe("supcon", tmp_path), settings, **asked).sampler

    assert (chosen(TAU), chosen(LR), chosen(TAU, LR), chosen(TAU, trials=2)) == ("grid", "tpe", "tpe", "tpe")


def test_every_request_has_its_own_folder(tmp_path: Path) -> None:
    small = recipe("supcon", tmp_path)
    requests: list[dict[str, Any]] = [
        *({}, {"sampler": "random"}, {"sampler_seed": 1}, {"pruner": "none"}, {"seeds": 2}, {"sampler": "grid"})
    ]
    folders = [
        Tuning.of(small, ["method.temperature=0.1,0.2", SIZE], **{"sampler": "tpe"} | each).folder for each in requests
    ]
    assert len(set(folders)) == len(requests)
    assert Tuning.of(small, [LR], trials=3).folder == Tuning.of(small, [LR], trials=30).folder


def test_procedures_keep_the_folders_of_earlier_versions(tmp_path: Path) -> None:
    tuning_k = Tuning.of("tcl-fashion-mini", ["train.epochs=2"], seeds=3)
    decisive = json.dumps([tuning_k.recipe.hash, "k", [0, 1, 2]])
    assert tuning_k.folder.name == f"tune-tcl-fashion-mini-{hashlib.sha256(decisive.encode()).hexdigest()[:8]}"


def test_with_pruner_none_nothing_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: list[str | None] = []

    def trial(made: Recipe, check: Check) -> Outcome:
        lr = made.optim.options["lr"]
        reasons.append(check(0.0 if lr == 0.3 else 0.9, 1000))
        state = "done" if reasons[-1] is None else "stopped early"
        return Outcome(state, tmp_path, lr if state == "done" else None, None, reasons[-1] or "", by="invented")

    monkeypatch.setattr(tuning, "run_trial", trial)
    for pruner in ("median", "none"):
        record = tune(recipe("supcon", tmp_path), ["optim.lr=0.1,0.2,0.3"], pruner=pruner)
        states = [each["state"] for each in trials(record)]
        assert states == ["done", "done", "stopped early" if pruner == "median" else "done"]


def test_a_real_search_killed_between_seeds_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted in the third trial of TPE; the same call comes to what an undisturbed one has."""
    calls: list[str] = []

    def counted(stop_at: int | None) -> Callable[..., Outcome]:
        def trial(made: Recipe, check: Check) -> Outcome:
            if len(calls) == stop_at:
                raise KeyboardInterrupt
            calls.append(made.folder)
            return run_trial(made, check)

        return trial

    monkeypatch.setattr(tuning, "run_trial", counted(5))
    small, ask = recipe("supcon", tmp_path / "a", **QUICK), {"trials": 4, "seeds": 2, "sampler_seed": 1}
    with pytest.raises(KeyboardInterrupt):
        tune(small, [LR, TAU], sampler="tpe", **ask)
    monkeypatch.setattr(tuning, "run_trial", counted(None))
    record = tune(small, [LR, TAU], sampler="tpe", **ask)
    assert len(calls) == 5 + 4, "two trials were finished; of the third, one seed"
    straight = tune(recipe("supcon", tmp_path / "b", **QUICK), [LR, TAU], sampler="tpe", **ask)
    assert [(t["setting"], t["values"]) for t in trials(record)] == [
        (t["setting"], t["values"]) for t in trials(straight)
    ]
    assert record["chosen"] == straight["chosen"]


def test_what_failed_for_a_passing_reason_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [True]

    def trial(made: Recipe, check: Check) -> Outcome:
        lr = made.optim.options["lr"]
        if lr == 0.2 and broken[0]:
            return Outcome("failed", tmp_path, None, None, "OSError: no space left on device", retry=True)
        return Outcome("done", tmp_path, lr, by="invented")

    monkeypatch.setattr(tuning, "run_trial", trial)
    small = recipe("supcon", tmp_path)
    assert tune(small, ["optim.lr=0.1,0.2"])["chosen"] == {"optim.lr": 0.1}
    broken[0] = False
    record = tune(small, ["optim.lr=0.1,0.2"])
    assert record["chosen"] == {"optim.lr": 0.2}
    assert [each["state"] for each in trials(record)] == ["done", "done"]
