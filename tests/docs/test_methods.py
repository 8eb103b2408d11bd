"""docs/methods/README.md: a section for every method, whose options and defaults are the code's."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest
import torch

from kontrast import methods, recipes
from kontrast.losses import SupConLoss, TCLLoss
from kontrast.train import monitors
from tests.docs.loading import DOCS
from tests.methods.samples import batch, made

PAGE = (DOCS / "methods" / "README.md").read_text(encoding="utf-8")
MOMENTUM = ("moco", "ressl", "sce")  # they share a table of options
PARTS = ["Watch", "Cost", "Source"]
ALL = methods.names()


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def part(name: str, title: str) -> str:
    """A paragraph of a method's section."""
    return section(name).partition(f"\n**{title}**")[2].partition("\n\n")[0]


def options(name: str) -> Iterator[list[str]]:
    """The rows of a method's table: option, default, meaning."""
    for line in (section(name) + (section("Momentum methods") if name in MOMENTUM else "")).splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def words(x: str) -> str:
    return " ".join(x.split())


def test_every_method_has_a_section_and_every_section_a_method() -> None:
    titles = re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    wanted = sorted([*ALL, "In your own loop", "Momentum methods"])
    assert sorted(titles) == wanted, "each method must have a section in docs/methods/README.md"


@pytest.mark.parametrize("name", ALL)
def test_sections_have_the_same_parts_and_a_diagram(name: str) -> None:
    assert re.findall(r"^\*\*(\w+)\*\*", section(name), flags=re.MULTILINE) == PARTS
    before, diagram, _ = section(name).partition("```text")
    assert diagram
    assert re.search(r"\]\(\.\./losses/\w+\.md#[\w-]+\)", before), "which loss, by its page"
    assert f"../../src/kontrast/methods/{name.replace('-', '_')}.py" in part(name, "Source")


@pytest.mark.parametrize("name", ALL)
def test_options_and_defaults_are_the_codes(name: str) -> None:
    assert {row[0].strip("`"): row[1].strip("`") for row in options(name)} == {
        option: repr(default) for option, default in methods.options_of(name).items()
    }


@pytest.mark.parametrize("name", ALL)
def test_the_first_command_is_the_methods_own_recipe(name: str) -> None:
    command = section(name).partition("\n\n```\n")[2].splitlines()[0]
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
    named = {n for n in re.findall(r"`([^`]+)`", part(name, "Watch")) if n not in ALL and "." not in n}
    assert named <= known
    assert named or "(#ce)" in part(name, "Watch")


@pytest.mark.parametrize("name", ALL)
def test_what_the_source_says_of_deviations_is_in_its_section(name: str) -> None:
    source = inspect.getdoc(inspect.getmodule(methods.find(name))) or ""
    _, found, rest = source.partition("Deviates:")
    if found:
        assert words(found + rest.partition("\n\n")[0]) in words(part(name, "Source"))


@pytest.mark.parametrize("name", ALL)
def test_the_index_has_it_with_its_views_and_labels(name: str) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| [`{name}`](#{name}) |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    kind = methods.find(name)
    assert cells[2].split(",")[0] == f"{kind.fewest_views}" + (" or more" if kind.most_views is None else "")
    assert cells[-1] == ("yes" if kind.needs_labels else "no")
