"""Reading run folders: whole, unfinished, damaged, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kontrast.recipe import Recipe
from kontrast.report.comparison.collect import collect, common, differing, group_names
from kontrast.report.comparison.collect import flat as flat_keys
from tests.report.comparison.made_up import write_run


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / "1", seed=0, method={"temperature": 0.1}),
        write_run(tmp_path / "2", seed=1, method={"temperature": 0.1}),
        write_run(tmp_path / "3", seed=0, method={"temperature": 0.5}),
    ]
    runs = collect(made)
    assert [run.label for run in runs] == [
        "temperature 0.1, seed 0",
        "temperature 0.1, seed 1",
        "temperature 0.5, seed 0",
    ]
    assert [run.group for run in runs] == ["temperature 0.1", "temperature 0.1", "temperature 0.5"]


def test_copies_of_one_run_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    runs = collect([write_run(tmp_path / "here" / "x"), write_run(tmp_path / "there" / "x")])
    assert len({run.label for run in runs}) == 2


def test_a_run_that_did_not_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    cut = write_run(tmp_path / "cut", name="cut", status="failed", why="RuntimeError: no")
    with (cut / "metrics.jsonl").open("a") as file:
        file.write('{"step": 21, "lo')
    run, _ = collect([cut, write_run(tmp_path / "whole")])
    assert run.status == "failed"
    assert run.results == []
    assert run.steps[-1]["step"] == 20
    assert run.arrays == {}


def test_twice_the_same_folder_is_one_run(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one")
    with pytest.raises(ValueError, match="needs at least 2 runs"):
        collect([one, tmp_path / "." / "one"])


def test_what_is_no_run_says_so(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one")
    task = tmp_path / "toy-1"
    task.mkdir()
    (task / "task.json").write_text("{}")
    with pytest.raises(ValueError, match=r"toy-1 is a task's folder.*Use a folder that `kontrast train` wrote"):
        collect([one, task])
    broken = write_run(tmp_path / "broken")
    (broken / "result.json").write_text("{")
    assert "result.json is damaged" in collect([one, broken])[1].messages[0], "the rest of the run is shown"


def flat(**changes: object) -> dict[str, str]:
    recipe = Recipe.of({"name": "mine", "method": {"name": "tcl", "k1": 4000.0}, "train": {"epochs": 2}})
    return flat_keys(recipe.override(changes).model_dump(mode="json"))


def test_only_what_the_hash_holds_is_compared() -> None:
    assert differing([flat(), flat(name="yours", about="other", **{"run.device": "cuda", "run.workers": 7})]) == []
    for key, value in {"data.limit": 50, "method.k1": 1.0, "augment": ["crop-flip"], "seed": 3}.items():
        changed = differing([flat(), flat(**{key: value})])
        assert changed, key
        assert all(one.startswith(key) for one in changed), changed


def test_what_is_common_and_what_differs_is_everything() -> None:
    a, b = flat(), flat(**{"method.k1": 1.0, "data.noise": 0.5})
    assert differing([a, b]) == ["data.noise", "method.k1"]
    assert set(common([a, b])) | {"data.noise", "method.k1"} == set(a)


def test_views_are_told_in_words() -> None:
    assert flat_keys({"augment": {"views": [{"name": "crop-flip", "padding": 4}, {"name": "none"}]}}) == {
        "augment.views": "crop-flip (padding 4), none"
    }


@pytest.mark.parametrize(
    ("names", "made", "expected"),
    [
        (["a", "b"], [{"seed": "0", "x": "1"}, {"seed": "1", "x": "2"}], ["a", "b"]),
        (["a", "a"], [{"seed": "0", "x": "1"}, {"seed": "1", "x": "1"}], ["a", "a"]),
        (["a", "other"], [{"seed": "0", "x": "1"}, {"seed": "1", "x": "1"}], ["a", "a"]),  # one recipe, two names
        (["a", "a", "b"], [{"m.x": "1"}, {"m.x": "2"}, {"m.x": "3"}], ["a, x 1", "a, x 2", "b"]),
        (["a", "a"], [{"encoder.name": "r18"}, {"encoder.name": "r50"}], ["encoder r18", "encoder r50"]),
    ],
)
def test_groups_have_short_names_that_tell_them_apart(
    names: list[str], made: list[dict[str, str]], expected: list[str]
) -> None:
    assert group_names(names, made) == expected


def test_many_differences_are_counted_and_names_stay_apart() -> None:
    keys = [f"k{i}" for i in range(6)]
    same, other = dict.fromkeys(keys, "1"), {**dict.fromkeys(keys[:3], "1"), **dict.fromkeys(keys[3:], "2")}
    third = {**other, "k5": "3"}
    found = group_names(["a", "a", "a"], [same, other, third])
    assert found == ["k3 1, k4 1, k5 1", "k3 2, k4 2, k5 2", "k3 2, k4 2, k5 3"]
    wide = [{f"k{i}": str(i + j * (i > 3)) for i in range(6)} | {f"l{i}": str(j) for i in range(3)} for j in range(2)]
    assert group_names(["a", "a"], wide)[0].endswith("2 more")
