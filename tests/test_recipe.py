"""Recipes: typed, overridden, written and read back, hashed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kontrast.plain import from_yaml
from kontrast.recipe import Recipe

MINE: dict[str, Any] = {
    "name": "mine",
    "method": {"name": "tcl", "k1": 4000.0},
    "augment": ["weak", {"name": "simaugment", "blur": True}],
    "optim": {"name": "sgd", "lr": 0.1},
    "train": {"epochs": 5},
}


def mine() -> Recipe:
    return Recipe.of(MINE)


def test_yaml_there_and_back(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(mine().to_yaml())
    assert Recipe.read(tmp_path / "r.yaml") == mine()
    assert Recipe.read(tmp_path / "r.yaml").hash == mine().hash


def test_a_file_without_a_name_is_called_like_the_file(tmp_path: Path) -> None:
    (tmp_path / "short.yaml").write_text("method: supcon\ntrain: {epochs: 1}\n")
    assert Recipe.read(tmp_path / "short.yaml").name == "short"


def test_a_plain_word_is_a_sections_name() -> None:
    short = Recipe.of({"method": "supcon", "data": "digits", "encoder": "mlp", "train": {"epochs": 1}})
    assert (short.method.name, short.data.name, short.encoder.name) == ("supcon", "digits", "mlp")
    with pytest.raises(ValueError, match="train: input should be a valid dictionary"):
        Recipe.of({"method": "supcon", "train": "long"})


def test_overriding_leaves_what_was_given_as_it_was() -> None:
    changes = {"train": {"epochs": 3, "batch_size": 64}, "train.epochs": 8}
    assert mine().override(changes).train.epochs == 8
    assert changes == {"train": {"epochs": 3, "batch_size": 64}, "train.epochs": 8}


def test_overrides() -> None:
    changed = mine().override(
        ["optim.lr=1e-3", "train.epochs=2", "data=photos/", "augment.views.1.blur=false", "seed=7", "encoder=resnet18"]
    )
    assert changed.optim.options["lr"] == 0.001
    assert changed.train.epochs == 2
    assert changed.data.name == "photos/"
    assert changed.augment.views[1].options == {"blur": False}
    assert (changed.seed, changed.encoder.name) == (7, "resnet18")
    assert (
        mine().override(["augment=crop-flip"]).augment.views
        == mine().override(["augment.views=[crop-flip, crop-flip]"]).augment.views
    )
    assert mine().override(["augment=[weak, strong]"]).augment.views[1].name == "strong"
    assert mine().override(["evaluate.protocols=knn20", "run.loggers=tensorboard"]).run.loggers == ("tensorboard",)
    assert mine().override(["train.epochs=None", "train.steps=3"]).train.steps == 3
    assert mine().override({"train.epochs": None, "train.steps": 10}).train.steps == 10


def test_one_length_takes_the_place_of_the_other() -> None:
    asked = mine().override(["train.steps=3"])
    assert (asked.train.epochs, asked.train.steps) == (None, 3)
    assert asked.hash == mine().override(["train.epochs=null", "train.steps=3"]).hash
    assert asked.override({"train.epochs": 5}).hash == mine().hash, "and back again"
    assert mine().override({"train.steps": None}).train.epochs == 5
    for both in ({"train.epochs": 2, "train.steps": 3}, {"train": {"epochs": 2}, "train.steps": 3}):
        with pytest.raises(ValueError, match="give either epochs or steps; seen epochs=2, steps=3"):
            mine().override(both)


def test_protocols_are_names_or_parts() -> None:
    changed = mine().override(["evaluate.protocols=[knn20, {name: wang-liu, epochs: 5}]"])
    assert [protocol.name for protocol in changed.evaluate.protocols] == ["knn20", "wang-liu"]
    assert changed.evaluate.protocols[1].options == {"epochs": 5}
    assert [p.name for p in mine().override(["evaluate.protocols=knn20"]).evaluate.protocols] == ["knn20"]


def test_another_name_drops_the_options_of_the_old_one() -> None:
    assert mine().override(["method=supcon"]).method.options == {}
    assert mine().override(["method.name=tcl"]).method.options == {"k1": 4000.0}
    assert mine().override(["method.name=supcon", "method.temperature=0.2"]).method.options == {"temperature": 0.2}
    assert mine().override(["method.temperature=0.2", "method=supcon"]).method.options == {"temperature": 0.2}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("optm.lr=1", "the recipe has no key 'optm'; did you mean 'optim'"),
        ("train.epoch=1", "train has no key 'epoch'; did you mean 'epochs'"),
        ("train.epochs=0", "train.epochs: input should be greater than or equal to 1, seen 0"),
        ("train.epochs=many", "train.epochs: input should be a valid integer"),
        ("train.epochs=null", "give either epochs or steps; seen epochs=None, steps=None"),
        ("train.batch_size=.inf", "train.batch_size"),
        ("data.noise=1.5", "data.noise: input should be less than or equal to 1"),
        ("train.patience=2", "train.patience needs rows to validate on: set data.validation"),
        ("seed=-1", "seed: input should be greater than or equal to 0"),
        ("augment.views.7.blur=true", "expected a number from 0 to 1"),
        ("optim.lr", "is no setting; expected key=value"),
        ("=5", "is no setting"),
        ("seed.x=5", "has nothing inside"),
    ],
)
def test_errors_name_the_place(change: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        mine().override([change])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a\n- b\n", "holds list; expected a mapping"),
        ("method: {name: tcl\n", "is not YAML"),
        ("a: !!python/object:os.system x\n", "is not YAML"),
        ("method: supcon\n", "train: field required"),
        ("method: supcon\ntrain: {epochs: 1}\nfoo: 1\n", "the recipe has no key 'foo'"),
    ],
)
def test_files_that_are_no_recipes(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.yaml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(says)):
        Recipe.read(tmp_path / "r.yaml")


def test_the_hash_is_over_what_decides_the_result() -> None:
    same = ["name=other", "about=words", "run.workers=4", "run.device=cuda", "run.out=elsewhere", "run.log_every=3"]
    assert mine().override(same).hash == mine().hash
    others = [
        "seed=1",
        "optim.lr=0.2",
        "method.k1=1",
        "data.limit=10",
        "train.batch_size=8",
        "evaluate.protocols=[knn20]",
    ]
    hashes = {mine().override([change]).hash for change in others}
    assert len({mine().hash, *hashes}) == len(others) + 1
    assert mine().folder == f"mine-{mine().hash}"


def test_a_compiled_encoder_is_another_run() -> None:
    """Compiled kernels add up in another order; everything else of ``run`` leaves the hash alone."""
    assert mine().override(["run.compile=true"]).hash != mine().hash
    assert mine().override(["run.compile=false"]).hash == mine().hash


def test_the_hash_is_the_same_tomorrow() -> None:
    """Run folders are found by it: whoever changes what goes into it must mean to."""
    assert Recipe.of({"method": "supcon", "train": {"epochs": 1}}).hash == "5cc0a97b"


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_setting_is_a_recipe_or_a_value_error(text: str) -> None:
    try:
        changed = mine().override([text])
    except ValueError:
        return
    assert isinstance(changed, Recipe)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from([*Recipe.model_fields, "name", "epochs", "x"]), x),
        max_leaves=8,
    )
)
@settings(max_examples=200, deadline=None)
def test_any_mapping_is_a_recipe_or_a_value_error(value: Any) -> None:
    try:
        Recipe.of(value if isinstance(value, dict) else {"train": value})
    except ValueError:
        return


def test_rows_at_once_in_the_evaluation_are_no_part_of_the_hash() -> None:
    """A run whose evaluation did not fit memory is resumed with fewer."""
    plain = Recipe.of({"method": "supcon", "train": {"epochs": 1}})
    asked = plain.override(["evaluate.batch_size=4"])
    assert asked.hash == plain.hash
    assert asked.evaluate.batch_size == 4
    assert plain.override(["evaluate.protocols=knn20"]).hash != plain.hash
    assert plain.override(["train.micro_batch=4"]).hash != plain.hash, "batch norm sees it"
    with pytest.raises(ValueError, match=r"evaluate\.batch_size"):
        plain.override(["evaluate.batch_size=0"])


def test_automatic_baselines_keep_the_hash() -> None:
    """That of before, when they were off by default: old runs are found again."""
    recipe = Recipe.of({"method": "supcon", "train": {"epochs": 1}})
    assert recipe.evaluate.baselines is None
    assert recipe.hash == recipe.override(["evaluate.baselines=false"]).hash
    assert recipe.hash != recipe.override(["evaluate.baselines=true"]).hash
    assert recipe.override(["evaluate.baselines=true"]).override(["evaluate.baselines=null"]).hash == recipe.hash


def test_strengths_are_set_for_every_view() -> None:
    recipe = Recipe.of(
        {"method": "simclr", "train": {"epochs": 1}, "augment": ["weak", {"name": "strong", "blur": 0.1}]}
    )
    found = recipe.override(["augment.jitter=0", "augment.scale=[0.5, 1]"]).augment.described
    both = {"jitter": 0, "scale": [0.5, 1]}
    assert found == [{"name": "weak", **both}, {"name": "strong", "blur": 0.1, **both}]
    each = recipe.override(["augment.views={name: weak, flip: 0}"]).augment.described
    assert each == [{"name": "weak", "flip": 0}] * 2
    listed = recipe.override(["augment.views=[[{name: resized-crop, scale: [0.5, 1]}, flip], weak]"])
    assert listed.augment.described == [
        [{"name": "resized-crop", "scale": [0.5, 1]}, {"name": "flip"}],
        {"name": "weak"},
    ]
    assert Recipe.of(from_yaml(listed.to_yaml())) == listed
    deeper = listed.override(["augment.views.0.0.scale=0.3", "augment.views.0.1=grayscale"]).augment.described
    assert deeper[0] == [{"name": "resized-crop", "scale": 0.3}, {"name": "grayscale"}]
    with pytest.raises(ValueError, match=r"augment.views.0 is a list of operations"):
        listed.override(["augment.jitter=0"])
    with pytest.raises(ValueError, match="augment has no key 'jiter'; did you mean 'jitter'"):
        recipe.override(["augment.jiter=0"])
    with pytest.raises(ValueError, match="view 0 is 3; expected a preset"):
        recipe.override(["augment.views=[3, weak]"])
