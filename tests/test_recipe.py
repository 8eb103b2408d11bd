"""Recipes: typed, overridden, written and read back, hashed."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from kontrast import data, recipes
from kontrast.recipe import (
    DEEPEST,
    MOST_BYTES,
    MOST_ERRORS,
    MOST_VALUES,
    PARTS,
    SYNONYMS,
    Recipe,
    check_plain,
    format_validation_error,
    from_yaml,
    parse,
    place,
    read_yaml,
    suggest,
    to_yaml,
    unknown_key,
)
from kontrast.registry import FAMILIES, STRENGTHS
from kontrast.train import resolve
from tests.train.small import recipe as small

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
    with pytest.raises(ValueError, match="train='long': must be a mapping"):
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
        with pytest.raises(ValueError, match="give either epochs or steps; got epochs=2, steps=3"):
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
        ("train.epochs=0", "train.epochs=0: must be greater than or equal to 1"),
        ("train.epochs=many", "train.epochs='many': must be a whole number"),
        ("train.epochs=null", "give either epochs or steps; got epochs=None, steps=None"),
        ("train.batch_size=.inf", "train.batch_size"),
        ("data.noise=1.5", "data.noise=1.5: must be less than or equal to 1"),
        ("train.patience=2", "train.patience needs rows to validate on: set data.validation"),
        ("seed=-1", "seed=-1: must be greater than or equal to 0"),
        ("augment.views.7.blur=true", "must be a number from 0 to 1"),
        ("optim.lr", "is not a setting; expected key=value"),
        ("=5", "is not a setting"),
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
        ("method: supcon\n", "train: is missing"),
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


# ------------------------------------------------------------------------------------------------ overrides


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
    with pytest.raises(ValueError, match="x: must be a number from 0 to 1; got '2'"):
        place([1, 2], "2", "x", new=True)
    with pytest.raises(ValueError, match="x is 3, which has nothing inside"):
        place(3, "y", "x", new=True)
    assert unknown_key("q", [], "x") == "x has no key 'q'. Known: none"


@pytest.mark.parametrize("key", SYNONYMS)
def test_what_is_suggested_exists(key: str) -> None:
    section, _, last = key.partition(".")
    assert section in Recipe.model_fields
    if last and section in PARTS:
        family = FAMILIES[PARTS[section]]
        known = {option for name in family for option in family.options(name)}
        assert last in known
        assert not known & set(SYNONYMS[key]) or key == "schedule.warmup_epochs"
    elif last and section == "augment":
        assert last in STRENGTHS
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
        ("train.freeze_backbone=true", "freeze"),
        ("grad_clip=1", "train.clip"),
        ("train.max_norm=1", "clip"),
        ("train.gradient_clip_val=1", "clip"),
        ("ema=0.99", "train.average"),
        ("gradient_checkpointing=true", "train.checkpoint_activations"),
        ("llrd=0.7", "optim.layer_decay"),
        ("backbone_lr=0.1", "optim.lr"),
        ("lr_head=0.1", "optim.head_lr"),
    ],
)
def test_other_tools_words_are_understood(setting: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"did you mean '{meant}'\?"):
        small("supcon").override([setting])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("optim.learning_rate=1", "optimiser 'sgd' has no option 'learning_rate'; did you mean 'lr'?"),
        ("optim.wd=1", "did you mean 'weight_decay'?"),
        ("method.tau=1", "method 'supcon' has no option 'tau'; did you mean 'temperature'?"),
        ("method.lr=1", "did you mean 'optim.lr'?"),
        ("encoder.arch=x", "did you mean encoder=…?"),
        ("method.k1=1", "method 'supcon' has no option 'k1'. It has temperature"),
    ],
)
def test_and_as_options_of_a_part(setting: str, says: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is compared)
        small("supcon").override([setting]).check_parts()
    assert says in str(caught.value)


def test_spelling_comes_after_meaning() -> None:
    assert suggest("epochz", ["epochs"], "train") == "; did you mean 'epochs'?"
    assert suggest("qqq", ["epochs"], "train") == "."


# ------------------------------------------------------------------------------------------------ names and options

WRONG: list[tuple[dict[str, object], str]] = [
    ({"method.name": "supcom"}, "no method 'supcom'; did you mean 'supcon'?"),
    ({"method.temprature": 0.1}, "method 'supcon' has no option 'temprature'; did you mean 'temperature'?"),
    ({"method.tau": 0.1}, "did you mean 'temperature'?"),
    ({"encoder": "resnet81"}, "no encoder 'resnet81'; did you mean 'resnet18'?"),
    ({"encoder": "timm/"}, "no encoder 'timm/'"),
    ({"encoder.widht": 3}, "encoder 'mlp' has no option 'widht'"),
    ({"head": "sec"}, "no head 'sec'; did you mean 'sce'?"),
    ({"head.outt": 3}, "did you mean 'out'?"),
    ({"optim": "sdg"}, "no optimiser 'sdg'; did you mean 'sgd'?"),
    ({"optim.learning_rate": 0.1}, "did you mean 'lr'?"),
    ({"optim.momentum": "much"}, "optim.momentum='much': must be a number"),
    ({"schedule": "cosin"}, "no schedule 'cosin'; did you mean 'cosine'?"),
    ({"augment": "crop-flop"}, "augment.views.0: no preset 'crop-flop'; did you mean 'crop-flip'?"),
    ({"augment.views.0.pading": 1}, "preset 'crop-flip' has no option 'pading'; did you mean 'padding'?"),
    ({"augment.views": ["flip", "crop-flip"]}, "a view of operations is a list: augment.views=[[flip, crop-flip], …]"),
    ({"augment.views": [["flop"], "crop-flip"]}, "no operation 'flop'; did you mean 'flip'?"),
    ({"augment.views": [["weak"], "crop-flip"]}, "that is a preset, which is a view of its own"),
    ({"augment.views": [[{"name": "resized-crop", "scales": 1}], "crop-flip"]}, "did you mean 'scale'?"),
    ({"augment.views": [[{"name": "resized-crop", "size": 8}], "crop-flip"]}, "the size is the data's"),
    ({"evaluate.protocols": ["knn21"]}, "no protocol 'knn21'; did you mean 'knn20'?"),
    ({"evaluate.protocols": [{"name": "probe", "epoch": 3}]}, "did you mean 'epochs'?"),
    ({"run.monitors": ["uniformty"]}, "no monitor 'uniformty'; did you mean 'uniformity'?"),
    ({"run.loggers": ["tensorbord"]}, "no logger 'tensorbord'; did you mean 'tensorboard'?"),
]


@pytest.mark.parametrize(("change", "error_text"), WRONG, ids=str)
def test_unknown_names_and_options_are_errors_before_anything_is_imported(
    change: dict[str, object], error_text: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(error_text)):
        small("supcon", **change).check_parts()


def test_what_exists_passes() -> None:
    for name in recipes.names():
        recipes.find(name).check_parts()
    small("supcon", encoder="timm/anything").check_parts()
    small("supcon", **{"schedule.name": "warmup_cosine", "augment": "crop_flip"}).check_parts()  # _ is -


def test_an_underscore_is_a_hyphen_in_the_hash_too() -> None:
    one, other = (resolve(small("supcon", **{"schedule.name": name})) for name in ("warmup_cosine", "warmup-cosine"))
    assert one.hash == other.hash


def test_the_data_are_a_set_or_a_path(tmp_path: Path) -> None:
    for good in ("fashion-mini", "fashion_mini", str(tmp_path)):
        small("supcon").override({"data.name": good}).check_data()
    for wrong in ("fashion-mny", str(tmp_path / "photos"), str(tmp_path / "rows.npz")):
        recipe = small("supcon").override({"data.name": wrong})
        with pytest.raises((ValueError, OSError)) as early:
            recipe.check_data()
        with pytest.raises((ValueError, OSError)) as late:
            data.load(wrong)
        assert (type(early.value), str(early.value)) == (type(late.value), str(late.value))


# ------------------------------------------------------------------------------------------------ plain values and YAML


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object/apply:os.system [true]",
        "!!int abc",
        "!!float x",
        "!!bool x",
        "!!timestamp x",
        "!!binary é",
        "a: 2024-99-99",
        "[" * 100_000,
        "9" * 5000,
        "*nobody",
        "{? [a] : b}",
        "a: \x00",
    ],
)
def test_what_is_no_yaml_is_a_value_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"it is not YAML: .") as caught:
        from_yaml(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_a_file_is_bounded_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\n".ljust(MOST_BYTES, b" "))
    assert read_yaml(path) == {"a": 1}
    path.write_bytes(b"a: 1\n".ljust(MOST_BYTES + 1, b" "))
    with pytest.raises(ValueError, match=r"x\.yaml has more than 1,000,000 bytes; expected a recipe"):
        read_yaml(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"x\.yaml is a pipe, not a file"):
        read_yaml(path)
    with pytest.raises(ValueError, match="/dev/zero is a device, not a file"):
        read_yaml(Path("/dev/zero"))


def test_anchors_are_taken() -> None:
    assert from_yaml("a: &x {k: 1}\nb: *x") == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(
    "text", ["a\x85b", "a\u2028b", "a\u2029b", "a\nb", " a ", "1e3", "ü 日本", "\udcff", "\t", "null"]
)
def test_any_text_comes_back(text: str) -> None:
    """A recipe with a line separator in a path had another hash when it was read again."""
    assert from_yaml(to_yaml({text: [text, {"a": text}]})) == {text: [text, {"a": text}]}


def laughs() -> dict[str, Any]:
    """Nine lines of YAML that unfold to 9⁹ words."""
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    return from_yaml("\n".join(lines))  # type: ignore[no-any-return]


def test_what_unfolds_without_end_is_refused_before_it_does() -> None:
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = 1
    for _ in range(DEEPEST + 1):
        deep = [deep]
    for value in (laughs(), {"about": endless}, {"about": deep}, {"about": list(range(MOST_VALUES))}):
        with pytest.raises(ValueError, match="expected a recipe"):
            check_plain(value)
    check_plain({"about": list(range(MOST_VALUES - 2))})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"k1": float("nan")}, "method.k1 is nan; expected a finite number"),
        ({"k1": [1, float("-inf")]}, "method.k1.1 is -inf"),
        ({"k1": b"\xff"}, "method.k1 is b'\\xff', a bytes; expected a number, a word"),
        ({"k1": datetime.date(2024, 1, 2)}, "a date; expected"),
        ({"k1": {1, 2}}, "a set; expected"),
        ({5: 1}, "method has the key 5; expected a word"),
        ({None: 1}, "method has the key None"),
        ({"a\nb": {1: 2}}, "method.a\\nb has the key 1"),
        ({"k1": object}, "a type; expected"),
    ],
)
def test_what_is_not_plain_is_said_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        check_plain({"method": value})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [None, 3, "words", [{"a": 1}]])
def test_a_recipe_is_a_mapping(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a mapping with data, method, train"):
        check_plain(value)


def test_many_wrong_values_are_one_paragraph() -> None:
    class Whole(BaseModel):
        values: list[int]

    with pytest.raises(ValidationError) as caught:
        Whole.model_validate({"values": ["x" * 10_000] * 50})
    text = format_validation_error(caught.value)
    assert text.count("must be a whole number") == MOST_ERRORS
    assert text.endswith(f"and {50 - MOST_ERRORS} more")
    assert len(text) < 1500


def test_another_method_drops_the_claim_of_the_recipe() -> None:
    made = Recipe.of({"about": "SimCLR: NT-Xent on two views.", "method": "simclr", "train": {"epochs": 1}})
    assert made.override(["method=tcl-self"]).about == made.override({"method": {"name": "sc"}}).about == ""
    assert made.override(["method.name=tcl_self"]).about == ""
    for kept in (["method=simclr"], ["method.temperature=0.2"], ["seed=1"]):
        assert made.override(kept).about == made.about
    assert made.override({"method": "sc", "about": "SC."}).about == "SC."
    assert made.override(["method=sc"]).hash == made.override({"method": "sc", "about": "SC."}).hash
