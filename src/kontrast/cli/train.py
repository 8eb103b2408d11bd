"""``kontrast train``: train, evaluate and analyse a recipe."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from kontrast.cli._arguments import AnyRecipe, AsJson, Settings
from kontrast.cli._console import (
    handle_signals,
    print_err,
    print_failure,
    print_out,
    print_path,
    printable,
    say_loading,
    table,
)
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.recipe import Recipe
    from kontrast.runs import Run
    from kontrast.train import Session


def train(
    recipe: AnyRecipe,
    settings: Settings = None,
    to: Annotated[Path | None, typer.Option("--out", help="The folder of the run folders; runs if left out.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and stop.")] = False,
    as_json: AsJson = False,
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
            if is_first and not as_json and session.has_failed and session.run.report_file.exists():
                print_path("report", session.run.report_file)
            raise
    run = session.run
    if not is_first or not run.has_result:
        return
    if as_json:
        print(dump(run.result))
        return
    print_out(results_table([run]))
    print_path("run folder", run.path)
    print_path("report", page)


def _print_recipe(recipe: Recipe) -> None:
    """The resolved recipe, and the folder that its run has."""
    from kontrast import models
    from kontrast.runs import Run
    from kontrast.train.micro_batch import AUTO, with_size_of_run

    recipe = with_size_of_run(recipe)
    models.refuse_tag(recipe.encoder.name, recipe.encoder.options.get("pretrained"))
    print(recipe.to_yaml(), end="")
    if recipe.train.micro_batch == AUTO:  # a part of the hash, and so of the folder's name
        print_out("# train.micro_batch is chosen when it is run")
    else:
        print_out(f"# {printable(Run.of(recipe).path)}")


def _announce(session: Session) -> None:
    run = session.run
    if not session.has_work:
        print_err(f"already done: {printable(run.path)}")
    elif run.status != "done" and run.last_checkpoint.exists():
        step = run.state.step or 0
        print_err(f"resumes at step {step}: {printable(run.path)}")


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
    results = table("run", "protocol", "top-1", "± error", right=("top-1", "± error"))
    for run in runs:
        result = run.result
        for record in result["results"]:
            results.add_row(*_row(result["recipe"], record))
        if "start" in result:
            start = result["start"]["result"]
            line = {**start, "protocol": f"before the first step: {start['protocol']}"}
            results.add_row(*_row(result["recipe"], line))
        if "note" in result:
            results.add_row(escape(result["recipe"]), escape(result["note"]), "–", "–")
    return results


def _row(name: str, record: dict[str, Any]) -> tuple[str, ...]:
    value, error = record["value"], record.get("error")
    return (
        escape(name),
        escape(record["protocol"]),
        f"{100 * value:.2f} %",
        "–" if error is None else f"{100 * error:.2f}",
    )
