"""Recipes: files of any text, mappings of any values, settings, and options that only show when the run is made."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml
from hypothesis import strategies as st

from bad_input.judging import Kind
from kontrast import augment, evaluate, methods, models, optim
from kontrast.recipe import Augment as Views
from kontrast.recipe import Data, Evaluate, Recipe, Run, Section, Train
from kontrast.train import resolve
from kontrast.train.job import make_job

BASE: dict[str, Any] = {
    "name": "small",
    "data": {"name": "digits", "limit": 60, "test_limit": 30},
    "augment": {"views": [{"name": "crop-flip", "padding": 1}, {"name": "none"}]},
    "encoder": {"name": "mlp", "hidden": 8, "features": 8, "depth": 2},
    "head": {"name": "wang-liu", "out": 4},
    "method": {"name": "supcon", "temperature": 0.1},
    "optim": {"name": "sgd", "lr": 0.05},
    "train": {"epochs": 1, "batch_size": 20},
    "evaluate": {"protocols": ["knn20"]},
    "run": {"device": "cpu", "progress": False},
}
SECTIONS: dict[str, type[Section]] = {"data": Data, "augment": Views, "train": Train, "evaluate": Evaluate, "run": Run}
ENCODERS = ("mlp", "resnet18", "small-resnet")  # the others are resnet18 with more layers
OPTIONS: dict[str, dict[str, list[str]]] = {
    "method": {name: list(methods.options_of(name)) for name in methods.names()},
    "encoder": {name: ["hidden", "features", "depth", "width", "stem", "pretrained"] for name in ENCODERS},
    "head": {name: ["out", "hidden", "layers", "batch_norm"] for name in models.HEADS},
    "optim": {name: list(optim.OPTIMIZERS.options(name)) for name in optim.OPTIMIZERS},
    "schedule": {name: list(optim.SCHEDULES.options(name)) for name in optim.SCHEDULES},
}

numbers = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([2**31, 2**63, 2**64, -(2**63), 10**30, 10**400, 10**9, 1e-300, 1e308, -0.0, 5e-324]),
    st.floats(),
)
words = st.one_of(
    st.sampled_from(
        ["", "auto", "none", "None", "nan", "1e3", "true", "~", "0x10", "2024-01-01", "..", "/", "a\nb", "\x1b[2J"]
    ),
    st.text(max_size=12),
    st.text(min_size=1, max_size=3).map(lambda text: text * 4000),
)
leaves = st.one_of(st.none(), st.booleans(), numbers, words, st.dates(), st.binary(max_size=4))
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.one_of(words, numbers, st.none()), inner, max_size=3)
    ),
    max_leaves=6,
)

plausible = st.one_of(
    st.integers(1, 40), st.floats(0.01, 0.9), st.booleans(), st.sampled_from(["digits", "none", "weak", "cpu"])
)

# ---------------------------------------------------------------------------------------------------- files of text

HOSTILE = (
    "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ),
    "method: supcon\ntrain: {epochs: 1}\nabout: &x [*x]\n",
    "&x method: *x\n",
    "method: !!python/object/apply:os.system ['true']\ntrain: {epochs: 1}\n",
    "method: !!python/name:os.system\n",
    "train: !!timestamp 2024-99-99\n",
    "train: !!int abc\nmethod: supcon\n",
    "train: !!float x\n",
    "seed: !!binary not-base64!\n",
    "? [a, b]\n: 1\n",
    "? {a: b}\n: 1\n",
    "<<: {method: supcon}\ntrain: {epochs: 1}\n",
    "<<: 1\n",
    "method: supcon\nmethod: tcl\ntrain: {epochs: 1}\n",
    "--- {}\n--- {}\n",
    "{" * 3000,
    "[" * 100000,
    "a: " + "9" * 5000 + "\n",
    "seed: " + "1_" * 3000 + "\n",
    "train: {epochs: 1:30:00:00:00}\nmethod: supcon\n",
    "%YAML 9.9\n---\nmethod: supcon\n",
    "\ufeffmethod: supcon\ntrain: {epochs: 1}\n",
    "method: supcon\x00\n",
    "method: 'sup\\ud800con'\ntrain: {epochs: 1}\n",
    'name: "\\ud800"\nmethod: supcon\ntrain: {epochs: 1}\n',
    'name: "a/../../b"\nmethod: supcon\ntrain: {epochs: 1}\n',
    "name: " + "x" * 5000 + "\nmethod: supcon\ntrain: {epochs: 1}\n",
    "",
    "\t",
    "null\n",
)
GOOD = Recipe.of(BASE).to_yaml()
PIECES = (
    *(
        "&a ",
        "*a",
        "!!set ",
        "!!omap ",
        "!!python/none ",
        "!x ",
        "<<: ",
        "{",
        "}",
        "[",
        "]",
        ": ",
        "- ",
        "| ",
        "> ",
        "? ",
    ),
    *("'", '"', "#", "%", "@", "`", "\t", "\n\n", "\x85", "\u2028"),
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A recipe's file with something put in, left out or doubled; or a mapping of anything; or any bytes."""
    how = draw(st.sampled_from(["hostile", "mutated", "mapping", "bytes"]))
    if how == "hostile":
        return draw(st.sampled_from(HOSTILE)).encode("utf-8", "surrogatepass")
    if how == "bytes":
        return draw(st.binary(max_size=60))
    if how == "mapping":
        return yaml.safe_dump(draw(mappings())).encode("utf-8", "surrogatepass")
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
        put = draw(st.sampled_from(PIECES) | st.text(max_size=5) | numbers.map(str))
        text = text[:at] + put + text[at + length :]
    return text.encode("utf-8", "surrogatepass")


def read(text: bytes) -> None:
    """`Recipe.read`, then all that is asked of a recipe before anything is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "given.yaml"
        path.write_bytes(text)
        whole(Recipe.read(path))


def whole(recipe: Recipe) -> None:
    """A recipe that was taken: written and read back it is the same, resolved it stays so, its folder is one folder."""
    again = Recipe.of(yaml.safe_load(recipe.to_yaml()))
    assert again.hash == recipe.hash, "another hash after YAML"
    made = resolve(recipe)
    assert resolve(made).hash == made.hash, "another hash when resolved twice"
    assert Path(made.folder).name == made.folder, "its folder is not one folder"
    assert len(made.folder.encode()) < 256, "a longer name than file systems take"


# ---------------------------------------------------------------------------------------------- mappings and settings


@st.composite
def mappings(draw: st.DrawFn) -> dict[Any, Any]:
    """The small recipe with a few of its values, or keys, replaced by anything."""
    made: dict[Any, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in BASE.items()}
    for _ in range(draw(st.integers(1, 3))):
        section = draw(st.sampled_from([*Recipe.model_fields, "x"]))
        inside = made.get(section)
        if not isinstance(inside, dict) or draw(st.booleans()):
            made[section] = draw(plausible | values)
        else:
            known = [*SECTIONS[section].model_fields] if section in SECTIONS else ["name", "lr", "temperature", "out"]
            inside[draw(st.sampled_from(known) if draw(st.integers(0, 5)) else words)] = draw(plausible | values)
    return made


def mapping(case: dict[Any, Any]) -> None:
    """`Recipe.of`."""
    whole(Recipe.of(case))


KEYS = [f"{section}.{key}" for section, model in SECTIONS.items() for key in model.model_fields]
ODD_KEYS = (
    *("method.temperature", "augment.views.0.padding", "augment.views.-1", "augment.views.0x1", "augment.views.²"),
    *("augment.views.99999999999999999999", "train.", ".", "..", "method.name.x", "a b", "seed.x", "[0]", "", " "),
)
ODD_VALUES = (
    *(
        "[",
        "{a: *b}",
        "!!python/none",
        "{",
        "[weak, strong]",
        "!!int x",
        "!!bool x",
        "!!timestamp x",
        "1:60",
        "=",
        "- ",
    ),
    *("&a [*a]", "0o8", "2024-13-45", "&a {b: *a}", "{? [a] : b}", "[" * 2000, "9" * 5000, "*", "@x", "%"),
)
TAKEN = (
    *(
        "train.epochs=2",
        "train.steps=3",
        "train.batch_size=10",
        "optim.lr=0.2",
        "optim=adamw",
        "seed=7",
        "data.limit=50",
    ),
    *("encoder.hidden=4", "encoder=resnet18", "augment=none", "augment=[weak, strong]", "method=tcl", "method.k1=40"),
    *("evaluate.protocols=[]", "run.workers=1", "name=two words", "about=Ü", "train.epochs=None", "data.noise=.5"),
)
settings = st.sampled_from(TAKEN) | st.builds(
    lambda key, equals, value: f"{key}{equals}{value}",
    st.one_of(st.sampled_from(KEYS), st.sampled_from(list(Recipe.model_fields)), st.sampled_from(ODD_KEYS), words),
    st.sampled_from(["="] * 8 + ["", "==", " = ", "=&a "]),
    st.one_of(plausible.map(str), values.map(str), words, st.sampled_from(ODD_VALUES)),
)


def setting(case: list[str]) -> None:
    """``kontrast train small key=value``."""
    whole(Recipe.of(BASE).override(case))


# ------------------------------------------------------------------------------------------------- options, made


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    """One part of the small recipe with options of any value, most of them options that it has."""
    part = draw(st.sampled_from([*OPTIONS, "augment", "protocol"]))
    if part == "augment":
        name = draw(st.sampled_from(augment.NAMES))
        known = list(augment.options_of(name))
    elif part == "protocol":
        name = draw(st.sampled_from(evaluate.names()))
        known = ["neighbours", "epochs", "lr", "batch_size", "limit", "momentum", "normalize", "weight_decay", "seed"]
    else:
        name = draw(st.sampled_from(list(OPTIONS[part])))
        known = OPTIONS[part][name]
    chosen = draw(st.lists(st.sampled_from(known), max_size=2, unique=True)) if known else []
    made = {"name": name, **{key: draw(numbers | values) for key in chosen}}
    if part == "optim":
        made.setdefault("lr", 0.05)
    if part == "augment":
        return {"augment": {"views": [made, {"name": "none"}]}}
    return {"evaluate": {"protocols": [made]}} if part == "protocol" else {part: made}


def job(case: dict[str, Any]) -> None:
    """The recipe resolved, its parts made, one step of it taken: the loss of finite views is a number."""
    recipe = resolve(Recipe.of({**BASE, **case}))
    made = make_job(recipe, torch.device("cpu"))
    optimiser = optim.optimizer(recipe.optim.name, made.method, **recipe.optim.options)
    optim.schedule(
        recipe.schedule.name,
        total_steps=made.total_steps,
        steps_per_epoch=made.steps_per_epoch,
        **recipe.schedule.options,
    )(0)
    batch = made.augment(next(iter(made.loader().epoch(0))))
    loss = made.method.step(batch)["loss"]
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    made.method.after_step()
    assert not math.isnan(float(loss)) or not torch.isfinite(batch.views).all(), "the loss is NaN"


KINDS = [
    Kind("recipe files", "random bytes and YAML, tags, anchors, deep and endless nesting", texts(), read),
    Kind("recipe mappings", "wrong types, huge and negative numbers, unknown keys", mappings(), mapping),
    Kind("settings", "`key=value` words of any kind", st.lists(settings, min_size=1, max_size=3), setting),
    Kind("options of parts", "any value for every option of methods, encoders, heads, optimisers", options(), job, 4),
]
