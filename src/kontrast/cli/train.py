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
from kontrast.cli._console import err, named, out, say_loading
from kontrast.cli._status import running, tell_failure
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.recipe import Recipe
    from kontrast.train import Run


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
    to: Annotated[
        Path | None, typer.Option("--out", help="The folder that run folders lie in; runs if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved recipe and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print result.json instead of a table.")] = False,
) -> None:
    """Train a recipe, evaluate it, and leave a run folder with its report; the same again continues or is done."""
    asked = checked_recipe(recipe, settings or [], to)
    if asked.run.progress:
        say_loading(asked.data.name)
    from kontrast import distributed, models, pipeline, report
    from kontrast.train import RunFolder, resolve
    from kontrast.train.micro_batch import AUTO, as_begun

    chosen = as_begun(resolve(asked))
    folder = RunFolder.of(chosen)
    if dry_run:
        models.refuse_tag(chosen.encoder.name)
        print(chosen.to_yaml(), end="")
        if chosen.train.micro_batch == AUTO:  # a part of the hash, and so of the folder's name
            out.print("# train.micro_batch is worked out when it is run", highlight=False, soft_wrap=True)
        else:
            out.print(f"# {named(folder.path)}", highlight=False, soft_wrap=True)
        return
    folder.check(chosen)
    before, first = folder.read(), distributed.launched_rank() == 0
    if first and folder.status == "done" and not folder.changed():
        err.print(f"already done: {named(folder.path)}", highlight=False, soft_wrap=True)
    elif first and folder.status != "done" and folder.last.exists():
        at = folder.read().get("step", 0)
        err.print(f"continues at step {at}: {named(folder.path)}", highlight=False, soft_wrap=True)
    with running():
        try:
            done, page = pipeline.perform(chosen, failed=tell_failure)
        except Exception:
            folder = RunFolder.of(as_begun(chosen))
            page, failed_now = folder.path / report.NAME, folder.status == "failed" and folder.read() != before
            if first and not as_json and failed_now and page.exists():
                out.print(f"report: {named(page)}", highlight=False, soft_wrap=True)
            raise
    if not first or not (done.path / "result.json").exists():
        return
    if as_json:
        print(dump(done.result))
        return
    out.print(results_table([done]))
    out.print(f"run folder: {named(done.path)}", highlight=False, soft_wrap=True)
    if page is not None:
        out.print(f"report: {named(page)}", highlight=False, soft_wrap=True)


def checked_recipe(source: str, settings: list[str], to: Path | None = None) -> Recipe:
    """The recipe that was asked for, its words checked before torch is imported: a typing error is told at once.

    Data that are not there are refused here too, unless there are runs of the recipe, which may be done without them.
    """
    from kontrast import recipes, vocabulary
    from kontrast.files import expanded

    asked = recipes.recipe(source).override(settings)
    asked = asked if to is None else asked.override({"run.out": str(to)})
    vocabulary.check(asked)
    if not any(expanded(asked.run.out).glob(f"{glob.escape(asked.name)}-????????")):
        vocabulary.check_data(asked)
    return asked


def results_table(runs: list[Run]) -> Table:
    """Every number of the runs with its protocol, a line each."""
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
