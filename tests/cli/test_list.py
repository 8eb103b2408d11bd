"""``kontrast list``: every kind, every name of it, a line each."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kontrast import recipes
from kontrast.cli import app
from kontrast.cli.list import KINDS
from kontrast.registry import families
from tests.cli.asking import START, process

runner = CliRunner()


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_and_a_line_about_it(kind: str) -> None:
    done = runner.invoke(app, ["list", kind, "--all"])
    assert done.exit_code == 0, done.output
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [family.shown.format(name) for family in families(kind) for name in family]
    assert all(len(line) == 2 for line in lines), "each says what it is"


def test_without_a_kind_the_kinds_are_listed() -> None:
    done = runner.invoke(app, ["list"])
    assert done.exit_code == 0
    assert tuple(done.stdout.splitlines()[1:]) == KINDS


def test_options_stand_behind_with_their_defaults() -> None:
    assert "Options: temperature=0.1, k1=5000.0, k2=1.0" in runner.invoke(app, ["list", "methods"]).stdout
    augmentations = runner.invoke(app, ["list", "augmentations"]).stdout
    assert "padding=4, scale=own, jitter=own" in augmentations
    assert "[flip]" in augmentations


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
