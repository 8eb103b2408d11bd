"""``kontrast list``: every kind, every name of it, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from typer.testing import CliRunner

from kontrast import augment, evaluate, experiments, losses, methods, models, optim, recipes, vocabulary
from kontrast.cli import app
from kontrast.cli.list import Kind, find_kind
from kontrast.data.loading import SETS
from kontrast.registry import Family
from kontrast.train import loggers, monitors
from tests.cli.asking import START, process

runner = CliRunner()


def dashed(names: Iterable[str]) -> list[str]:
    return [name.replace("_", "-") for name in names]


KNOWN: dict[Kind, Callable[[], Iterable[str]]] = {
    Kind.recipes: recipes.names,
    Kind.experiments: experiments.names,
    Kind.losses: lambda: dashed(Family(losses.__name__).names()),
    Kind.methods: methods.names,
    Kind.datasets: lambda: dashed(SETS.names()),
    Kind.encoders: models.names,
    Kind.heads: lambda: models.HEADS,
    Kind.augmentations: lambda: [*augment.NAMES, *(f"[{name}]" for name in augment.OPERATIONS)],
    Kind.optimizers: optim.optimizer_names,
    Kind.schedules: optim.schedule_names,
    Kind.protocols: evaluate.names,
    Kind.monitors: lambda: monitors.default(labels=True, views=2, temperature=True, response=True),
    Kind.loggers: loggers.names,
}


@pytest.mark.parametrize("kind", Kind)
def test_every_name_and_a_line_about_it(kind: Kind) -> None:
    done = runner.invoke(app, ["list", kind, "--all"])
    assert done.exit_code == 0, done.output
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert sorted(line[0] for line in lines) == sorted(KNOWN[kind]())
    assert all(len(line) == 2 for line in lines), "each says what it is"


def test_recipes_are_grouped_those_to_begin_with_first() -> None:
    done = runner.invoke(app, ["list", "recipes"])
    lines = done.stdout.splitlines()
    assert len(lines) < 30 < len(recipes.names())
    quick, *papers = recipes.BOOKS
    first = [line.split()[0] for line in lines if line.split()[0] in recipes.names()]
    assert first == list(quick.RECIPES)
    counts = [int(line.split()[0]) for line in lines if line.split()[0].isdigit()]
    assert counts == [len(book.RECIPES) for book in papers]
    assert sum(counts) + len(first) == len(recipes.names())
    assert "--all" in done.stdout


def test_what_is_listed_in_other_kinds_is_the_same_with_all_and_without() -> None:
    assert runner.invoke(app, ["list", "methods"]).stdout == runner.invoke(app, ["list", "methods", "--all"]).stdout


@pytest.mark.parametrize(
    ("name", "kind"),
    [("optimisers", "optimizers"), ("optimiser", "optimizers"), ("method", "methods"), ("loss", "losses"),
     ("sets", "datasets"), ("presets", "augmentations"), ("scheduler", "schedules"), ("data_set", "datasets")],
)  # fmt: skip
def test_other_names_of_a_kind(name: str, kind: str) -> None:
    assert find_kind(name) is Kind(kind)


def test_every_family_that_a_message_names_is_listed() -> None:
    """``no optimiser 'sdg'`` leads to ``kontrast list optimisers``."""
    for family in (*vocabulary.FOLDERS, *vocabulary.TABLES):
        if family != "export":
            assert find_kind(family) in Kind


def test_an_unknown_kind_names_the_nearest_and_the_known() -> None:
    done = runner.invoke(app, ["list", "recpies"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "did you mean 'recipes'?" in done.stderr
    assert all(kind in done.stderr for kind in ("schedules", "loggers"))
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("kind", ["recipes", "methods", "optimisers", "experiments"])
def test_no_torch_for_it(kind: str) -> None:
    code = f"import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); {START}"
    answer = process("list", kind, python=code)
    assert (answer.status, answer.out.splitlines()[-1]) == (0, "False"), answer.err
