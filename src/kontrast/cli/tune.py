"""``kontrast tune``: k1 and k2 as the TCL supplement chooses them, or a temperature, on rows held out of training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from kontrast.cli._completion import choices, complete_part, complete_recipe, complete_setting
from kontrast.cli._console import err, out, say_loading
from kontrast.cli._status import running
from kontrast.cli.train import checked_recipe
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.experiments.tune import Tuning


def tune(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe's name (`kontrast list recipes`), or a YAML file.", autocompletion=complete_recipe
        ),
    ],
    settings: Annotated[
        list[str] | None,
        typer.Argument(
            help="Overrides for every trial: train.epochs=5 data.validation=0.1", autocompletion=complete_setting
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="The folder that trials and the record lie in; runs if left out.")
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="k (k1 and k2) or temperature; k if the method has it.",
            autocompletion=choices("k", "temperature"),
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds of each setting, from the recipe's on.", min=1)] = 1,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="The protocol that scores; the recipe's first if left out.",
            autocompletion=complete_part("protocol"),
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be tried first, and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print tune.json instead of a table.")] = False,
) -> None:
    """Choose k1 and k2, or a temperature, on rows held out of training; the same command again goes on."""
    words = settings or []
    say_loading(checked_recipe(recipe, words, to).data.name)
    from kontrast.experiments.tune import Tuning
    from kontrast.recipes import recipe as find

    chosen = find(recipe) if to is None else find(recipe).override({"run.out": str(to)})
    asked = Tuning.of(chosen, words, what=what, seeds=seeds, protocol=protocol, called=recipe)
    if dry_run:
        _plan(asked)
        return
    with running():
        record = asked.run(lambda line: err.print(line, highlight=False, markup=False, soft_wrap=True))
    if as_json:
        print(dump(record))
    else:
        _report(asked, record)
    if record["chosen"] is None:
        raise typer.Exit(1)


def _plan(asked: Tuning) -> None:
    phase = next(asked.search())
    out.print(f"{phase.name}: {phase.why}", highlight=False, markup=False, soft_wrap=True)
    for setting, recipes in asked.trials(phase):
        words = ", ".join(f"{name}={value:g}" for name, value in setting.items())
        for recipe in recipes:
            out.print(f"  {words} seed={recipe.seed}: trials/{recipe.folder}", highlight=False, markup=False)
    then = "what comes then depends on the scores" if asked.what == "k" else "then closer to the best of these"
    held = asked.recipe.data.validation
    out.print(f"{then}; scored on {held:.0%} of the training rows, held out", highlight=False)
    out.print(f"# {asked.folder / 'tune.json'}", highlight=False, markup=False, soft_wrap=True)


def _report(asked: Tuning, record: dict[str, Any]) -> None:
    table = Table(box=SIMPLE_HEAD)
    trials = [(phase["name"], trial) for phase in record["phases"] for trial in phase["trials"]]
    names = list(trials[0][1]["setting"])
    scale, unit = (100.0, " (%)") if record["accuracy"] else (1.0, "")
    for column in (*(name.replace("_", " ") for name in names), "phase", f"score{unit}", "against the first", ""):
        table.add_column(column, justify="left" if column in ("phase", "") else "right")
    for phase, trial in trials:
        table.add_row(
            *(f"{trial['setting'][name]:g}" for name in names),
            escape(phase),
            _shown(trial["score"], scale) if trial["score"] else trial["state"],
            _against(trial["against_first"], scale) if trial is not trials[0][1] else "–",
            "chosen" if trial["setting"] == record["chosen"] else "",
        )
    out.print(table)
    lines = [f"score: {record['by']}, {record['held_out']:.0%}; the test rows were not looked at"]
    if len(record["seeds"]) > 1:
        lines.append("±: Student's 95 % interval over seeds; differences seed by seed")
    lines += [f"any k1 below 5000 beats SupCon: {record['remark']['words']}"] if "remark" in record else []
    lines.append(f"stopped: {record['stopped']}")
    lead = [trial["against_first"]["verdict"] for _, trial in trials[1:] if trial["setting"] == record["chosen"]]
    if lead and lead[0] != "above":
        lines.append("chosen for its mean alone: that it is better than the first is not resolved")
    lines.append(f"train with it: {record['command']}" if record["command"] else "nothing tried has a score")
    lines.append(f"record: {asked.folder / 'tune.json'}")
    for line in lines:
        out.print(line, highlight=False, markup=False, soft_wrap=True)


def _shown(found: dict[str, Any], scale: float, sign: str = "") -> str:
    spread = "" if found["half"] is None else f" ± {scale * found['half']:.2f}"
    return f"{scale * found['mean']:{sign}.2f}{spread}"


def _against(found: dict[str, Any], scale: float) -> str:
    return f"{_shown(found['difference'], scale, '+')}, {found['verdict']}" if found["difference"] else found["verdict"]
