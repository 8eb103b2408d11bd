"""A page for every method: its options and defaults are the code's, what it says of recipes is theirs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import yaml

from kontrast import methods, recipes
from kontrast.losses import SupConLoss, TCLLoss
from kontrast.train import monitors
from tests.docs.loading import DOCS
from tests.methods.samples import batch, made

FOLDER = DOCS / "methods"
SECTIONS = ["Options", "Run it", "Watch", "Cost", "Source"]
ALL = methods.names()


def text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def section(name: str, title: str) -> str:
    return text(name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def options(name: str) -> Iterator[list[str]]:
    """The rows of a page's table: option, default, meaning, what recipes set."""
    for line in section(name, "Options").splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def words(x: str) -> str:
    return " ".join(x.split())


def test_every_method_has_a_page_and_every_page_a_method() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {*ALL, "README"}


@pytest.mark.parametrize("name", ALL)
def test_pages_have_the_same_parts_and_a_diagram(name: str) -> None:
    assert re.findall(r"^## (.+)$", text(name), flags=re.MULTILINE) == SECTIONS
    assert "```text" in text(name).partition("\n## ")[0]
    assert re.search(r"\]\(\.\./losses/\w+\.md\)", text(name).partition("\n## ")[0]), "which loss, by its page"
    assert f"../../src/kontrast/methods/{name.replace('-', '_')}.py" in section(name, "Source")


@pytest.mark.parametrize("name", ALL)
def test_options_and_defaults_are_the_codes(name: str) -> None:
    assert {row[0].strip("`"): row[1].strip("`") for row in options(name)} == {
        option: repr(default) for option, default in methods.options_of(name).items()
    }


@pytest.mark.parametrize("name", ALL)
def test_what_recipes_set_is_what_they_set(name: str) -> None:
    for option, default, _, said in options(name):
        pairs = re.findall(r"(\S+) in `([a-z0-9-]+)`", said)
        assert bool(pairs) == (said != "–"), f"{option}: {said}"
        for value, recipe in pairs:
            part = recipes.find(recipe).method
            assert part.name == name
            found: Any = part.options.get(option.strip("`"), default)
            assert found == yaml.safe_load(value), f"{option} of {recipe}"


@pytest.mark.parametrize("name", ALL)
def test_the_first_command_is_the_methods_own_recipe(name: str) -> None:
    command = section(name, "Run it").partition("```\n")[2].splitlines()[0]
    assert command == f"kontrast train {name}-fashion-mini"
    assert recipes.find(command.split()[2]).method.name == name


@pytest.mark.parametrize("name", ALL)
def test_what_to_watch_is_there_to_be_watched(name: str) -> None:
    """Names of monitors' values and of the method's own scalars; other code names stand in other sections."""
    draw = torch.Generator().manual_seed(0)
    rows, labels = torch.randn(64, 2, 8, generator=draw), torch.arange(64) % 4
    tuned = {"k1": 5000.0, "k2": 1.0} if name.startswith("tcl") else {}
    snapshot = monitors.Snapshot(
        features=rows[:, 0],
        embeddings=rows,
        labels=labels,
        reference=rows[:, 1],
        reference_labels=labels,
        temperature=0.1,
        **tuned,
    )
    method = made(name)
    method.step(batch(name))
    default = monitors.default(
        labels=True,
        views=batch(name).views.shape[1],
        temperature=hasattr(method.loss, "temperature"),
        response=isinstance(method.loss, SupConLoss | TCLLoss),
    )
    known = {value.removeprefix("monitor/") for value in monitors.measure(default, snapshot)}
    known |= {*method.report(), "loss", "chance", "bound", "collapsed"}
    named = {n for n in re.findall(r"`([^`]+)`", section(name, "Watch")) if n not in ALL and "." not in n}
    assert named <= known
    assert named or "(ce.md#watch)" in section(name, "Watch")


@pytest.mark.parametrize("name", ALL)
def test_what_the_source_says_of_deviations_is_on_the_page(name: str) -> None:
    source = inspect.getdoc(inspect.getmodule(methods.find(name))) or ""
    _, found, rest = source.partition("Deviates:")
    if found:
        assert words(found + rest.partition("\n\n")[0]) in words(section(name, "Source"))


@pytest.mark.parametrize("name", ALL)
def test_the_index_has_it_with_its_views_and_labels(name: str) -> None:
    row = next(line for line in text("README").splitlines() if line.startswith(f"| [`{name}`]({name}.md) |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    kind = methods.find(name)
    assert cells[2].split(",")[0] == f"{kind.fewest_views}" + (" or more" if kind.most_views is None else "")
    assert cells[-1] == ("yes" if kind.needs_labels else "no")
