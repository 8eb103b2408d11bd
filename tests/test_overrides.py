"""Settings by dotted keys."""

from __future__ import annotations

import pytest

from kontrast import vocabulary
from kontrast.overrides import SYNONYMS, parse, place, suggest, unknown_key
from kontrast.recipe import Recipe
from tests.train.small import recipe


def test_values_as_yaml_has_them() -> None:
    assert parse("a=[1, x]") == ("a", [1, "x"])
    assert parse("a=null") == ("a", None)
    assert parse("a=1e-3") == ("a", 0.001)
    assert parse("a=b=c") == ("a", "b=c")
    assert parse("a={") == ("a", "{")


def test_places_in_lists_and_mappings() -> None:
    assert place({"a": 1}, "a", "x", new=False) == "a"
    assert place({"a": 1}, "b", "x", new=True) == "b"
    with pytest.raises(ValueError, match="x has no key 'aa'; did you mean 'a'"):
        place({"a": 1}, "aa", "x", new=False)
    with pytest.raises(ValueError, match="x: expected a number from 0 to 1, seen '2'"):
        place([1, 2], "2", "x", new=True)
    with pytest.raises(ValueError, match="x is 3, which has nothing inside"):
        place(3, "y", "x", new=True)
    assert unknown_key("q", [], "x") == "x has no key 'q'. Known: none"


@pytest.mark.parametrize("key", SYNONYMS)
def test_what_is_suggested_exists(key: str) -> None:
    section, _, last = key.partition(".")
    assert section in Recipe.model_fields
    families = {"encoder": "encoder", "head": "head", "method": "method", "optim": "optimiser", "schedule": "schedule"}
    if last and section in families:
        family = families[section]
        known = {option for name in vocabulary.names(family) for option in vocabulary.options(family, name) or ()}
        assert last in known
        assert not known & set(SYNONYMS[key]) or key == "schedule.warmup_epochs"
    elif last and section == "augment":
        assert last in vocabulary.STRENGTHS
    elif last:
        assert last in Recipe.model_fields[section].annotation.model_fields  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("setting", "meant"),
    [
        ("learning_rate=0.1", "optim.lr"),
        ("lr=0.1", "optim.lr"),
        ("train.lr=0.1", "optim.lr"),
        ("batch_size=64", "train.batch_size"),
        ("epochs=5", "train.epochs"),
        ("train.max_epochs=5", "epochs"),
        ("augment.colour=0", "jitter"),
        ("tau=0.1", "method.temperature"),
        ("temperature=0.1", "method.temperature"),
        ("momentum=0.9", "optim.momentum"),
        ("wd=0", "optim.weight_decay"),
        ("weight_decay=0", "optim.weight_decay"),
        ("k1=1", "method.k1"),
        ("dataset=x", "data"),
        ("data_dir=x", "data"),
        ("model=x", "encoder"),
        ("backbone=x", "encoder"),
        ("arch=x", "encoder"),
        ("num_workers=2", "run.workers"),
        ("device=cpu", "run.device"),
        ("gpu=0", "run.device"),
        ("save_dir=x", "run.out"),
        ("Output-Dir=x", "run.out"),
    ],
)
def test_other_tools_words_are_understood(setting: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"did you mean '{meant}'\?"):
        recipe("supcon").override([setting])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("optim.learning_rate=1", "optim 'sgd' has no option 'learning_rate'; did you mean 'lr'?"),
        ("optim.wd=1", "did you mean 'weight_decay'?"),
        ("method.tau=1", "method 'supcon' has no option 'tau'; did you mean 'temperature'?"),
        ("method.lr=1", "did you mean 'optim.lr'?"),
        ("encoder.arch=x", "did you mean encoder=…?"),
        ("method.k1=1", "method 'supcon' has no option 'k1'. It has temperature"),
    ],
)
def test_and_as_options_of_a_part(setting: str, says: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
        vocabulary.check(recipe("supcon").override([setting]))
    assert says in str(caught.value)


def test_spelling_comes_after_meaning() -> None:
    assert suggest("epochz", ["epochs"], "train") == "; did you mean 'epochs'?"
    assert suggest("qqq", ["epochs"], "train") == "."
