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
from kontrast.cli._console import err, out, print_failure, printable, running, say_loading
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.recipe import Recipe
    from kontrast.runs import Run


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
    source = checked_recipe(recipe, settings or [], to)
    if source.run.progress:
        say_loading(source.data.name)
    from kontrast import distributed, models, pipeline
    from kontrast.runs import Run
    from kontrast.train import resolve
    from kontrast.train.micro_batch import AUTO, as_begun

    resolved = as_begun(resolve(source))
    run = Run.of(resolved)
    if dry_run:
        models.refuse_tag(resolved.encoder.name)
        print(resolved.to_yaml(), end="")
        if resolved.train.micro_batch == AUTO:  # a part of the hash, and so of the folder's name
            out.print("# train.micro_batch is chosen when it is run", highlight=False, soft_wrap=True)
        else:
            out.print(f"# {printable(run.path)}", highlight=False, soft_wrap=True)
        return
    run.check(resolved)
    before, first = run.state, distributed.launched_rank() == 0
    if first and before.status == "done" and not run.changed_files():
        err.print(f"already done: {printable(run.path)}", highlight=False, soft_wrap=True)
    elif first and before.status != "done" and run.last_checkpoint.exists():
        err.print(f"resumes at step {before.step or 0}: {printable(run.path)}", highlight=False, soft_wrap=True)
    with running():
        try:
            run, page = pipeline.perform(resolved, failed=print_failure)
        except Exception:
            failed = Run.of(as_begun(resolved))
            is_new = failed.status == "failed" and failed.state != before
            if first and not as_json and is_new and failed.report_file.exists():
                out.print(f"report: {printable(failed.report_file)}", highlight=False, soft_wrap=True)
            raise
    if not first or not run.has_result:
        return
    if as_json:
        print(dump(run.result))
        return
    out.print(results_table([run]))
    out.print(f"run folder: {printable(run.path)}", highlight=False, soft_wrap=True)
    if page is not None:
        out.print(f"report: {printable(page)}", highlight=False, soft_wrap=True)


def checked_recipe(source: str, settings: list[str], to: Path | None = None) -> Recipe:
    """The recipe with its settings, checked before torch is imported, so that a typing error is reported at once.

    Data that do not exist are an error too, unless there are runs of the recipe, which may be done without them.
    """
    from kontrast import recipes, vocabulary
    from kontrast.files import expanded

    recipe = recipes.recipe(source).override(settings)
    recipe = recipe if to is None else recipe.override({"run.out": str(to)})
    vocabulary.check(recipe)
    if not any(expanded(recipe.run.out).glob(f"{glob.escape(recipe.name)}-????????")):
        vocabulary.check_data(recipe)
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
