"""What differs between recipes, and what groups are called."""

from __future__ import annotations

import pytest

from kontrast.recipe import Recipe
from kontrast.report.comparison import recipes


def flat(**changes: object) -> dict[str, str]:
    recipe = Recipe.of({"name": "mine", "method": {"name": "tcl", "k1": 4000.0}, "train": {"epochs": 2}})
    return recipes.flat(recipe.override(changes).model_dump(mode="json"))


def test_only_what_the_hash_holds_is_compared() -> None:
    assert (
        recipes.differing([flat(), flat(name="yours", about="other", **{"run.device": "cuda", "run.workers": 7})]) == []
    )
    for key, value in {"data.limit": 50, "method.k1": 1.0, "augment": ["crop-flip"], "seed": 3}.items():
        changed = recipes.differing([flat(), flat(**{key: value})])
        assert changed, key
        assert all(one.startswith(key) for one in changed), changed


def test_what_is_common_and_what_differs_is_everything() -> None:
    a, b = flat(), flat(**{"method.k1": 1.0, "data.noise": 0.5})
    assert recipes.differing([a, b]) == ["data.noise", "method.k1"]
    assert set(recipes.common([a, b])) | {"data.noise", "method.k1"} == set(a)


def test_views_are_told_in_words() -> None:
    assert recipes.flat({"augment": {"views": [{"name": "crop-flip", "padding": 4}, {"name": "none"}]}}) == {
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
    assert recipes.group_names(names, made) == expected


def test_many_differences_are_counted_and_names_stay_apart() -> None:
    keys = [f"k{i}" for i in range(6)]
    same, other = dict.fromkeys(keys, "1"), {**dict.fromkeys(keys[:3], "1"), **dict.fromkeys(keys[3:], "2")}
    third = {**other, "k5": "3"}
    found = recipes.group_names(["a", "a", "a"], [same, other, third])
    assert found == ["k3 1, k4 1, k5 1", "k3 2, k4 2, k5 2", "k3 2, k4 2, k5 3"]
    wide = [{f"k{i}": str(i + j * (i > 3)) for i in range(6)} | {f"l{i}": str(j) for i in range(3)} for j in range(2)]
    assert recipes.group_names(["a", "a"], wide)[0].endswith("2 more")
