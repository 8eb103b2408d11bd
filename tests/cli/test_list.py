"""``kontrast list``: every kind, every name of it, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from typer.testing import CliRunner

from kontrast import augment, evaluate, experiments, losses, methods, models, optim, recipes
from kontrast.cli import app
from kontrast.cli.list import Kind
from kontrast.data.loading import SETS
from kontrast.registry import Family
from kontrast.train import loggers, monitors

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
    done = runner.invoke(app, ["list", kind])
    assert done.exit_code == 0, done.output
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert sorted(line[0] for line in lines) == sorted(KNOWN[kind]())
    assert all(len(line) == 2 for line in lines), "each says what it is"


def test_an_unknown_kind_names_the_known() -> None:
    done = runner.invoke(app, ["list", "recipe"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "'recipes'" in done.stderr
    assert "Traceback" not in done.stderr
