"""``kontrast train``: a recipe, trained, evaluated and analysed."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from kontrast.cli._completion import complete_recipe_or_run, complete_setting
from kontrast.cli._console import err, handle_signals, out, print_failure, printable, say_loading
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.recipe import Recipe
    from kontrast.runs import Run
    from kontrast.train import Session


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe's name (`kontrast list recipes`), a YAML file, or a run's folder.",
            autocompletion=complete_recipe_or_run,
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            help="Overrides: optim.lr=0.2 train.epochs=1 data=photos/ encoder=resnet18 run.device=cuda",
            autocompletion=complete_setting,
        ),
    ] = None,
    to: Annotated[Path | None, typer.Option("--out", help="The folder of the run folders; runs if left out.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of a table.")] = False,
) -> None:
    """Train a recipe, evaluate it, and write a run folder with a report; the same command resumes an unfinished run."""
    source = load_recipe(recipe, settings or [], to)
    if source.run.progress:
        say_loading(source.data.name)
    from kontrast import distributed, pipeline
    from kontrast.train import Session, resolve

    resolved = resolve(source)
    if dry_run:
        _print_recipe(resolved)
        return
    is_first = distributed.launched_rank() == 0
    with handle_signals():
        session = Session(resolved)
        if is_first:
            _announce(session)
        try:
            page = pipeline.perform(session, on_error=print_failure)
        except Exception:
            if is_first and not as_json and session.has_failed:
                _print_page(session.run.report_file)
            raise
    run = session.run
    if not is_first or not run.has_result:
        return
    if as_json:
        print(dump(run.result))
        return
    out.print(results_table([run]))
    out.print(f"run folder: {printable(run.path)}", highlight=False, soft_wrap=True)
    _print_page(page)


def _print_recipe(recipe: Recipe) -> None:
    """The resolved recipe, and the folder that its run has."""
    from kontrast import models
    from kontrast.runs import Run
    from kontrast.train.micro_batch import AUTO, with_size_of_run

    recipe = with_size_of_run(recipe)
    models.refuse_tag(recipe.encoder.name)
    print(recipe.to_yaml(), end="")
    if recipe.train.micro_batch == AUTO:  # a part of the hash, and so of the folder's name
        out.print("# train.micro_batch is chosen when it is run", highlight=False, soft_wrap=True)
    else:
        out.print(f"# {printable(Run.of(recipe).path)}", highlight=False, soft_wrap=True)


def _announce(session: Session) -> None:
    run = session.run
    if not session.has_work:
        err.print(f"already done: {printable(run.path)}", highlight=False, soft_wrap=True)
    elif run.status != "done" and run.last_checkpoint.exists():
        step = run.state.step or 0
        err.print(f"resumes at step {step}: {printable(run.path)}", highlight=False, soft_wrap=True)


def _print_page(page: Path | None) -> None:
    if page is not None and page.exists():
        out.print(f"report: {printable(page)}", highlight=False, soft_wrap=True)


def load_recipe(source: str, settings: list[str], to: Path | None = None) -> Recipe:
    """The recipe with its settings, checked before torch is imported, so that a typing error is reported at once.

    Data that do not exist are an error too, unless there are runs of the recipe, which may be done without them.
    """
    from kontrast import recipes
    from kontrast.files import expanded

    recipe = recipes.recipe(source).override(settings)
    recipe = recipe if to is None else recipe.override({"run.out": str(to)})
    recipe.check_parts()
    if not any(expanded(recipe.run.out).glob(f"{glob.escape(recipe.name)}-????????")):
        recipe.check_data()
    return recipe


def results_table(runs: list[Run]) -> Table:
    """A table of all results of the runs: a line for each number, with its protocol."""
    table = Table(box=SIMPLE_HEAD)
    for column, justify in (("run", "left"), ("protocol", "left"), ("top-1", "right"), ("± error", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for run in runs:
        result = run.result
        for record in result["results"]:
            table.add_row(*_row(result["recipe"], record))
        if "start" in result:
            start = result["start"]["result"]
            table.add_row(*_row(result["recipe"], {**start, "protocol": f"before the first step: {start['protocol']}"}))
        if "note" in result:
            table.add_row(escape(result["recipe"]), escape(result["note"]), "–", "–")
    return table


def _row(name: str, record: dict[str, Any]) -> tuple[str, ...]:
    value, error = record["value"], record.get("error")
    return (
        escape(name),
        escape(record["protocol"]),
        f"{100 * value:.2f} %",
        "–" if error is None else f"{100 * error:.2f}",
    )
