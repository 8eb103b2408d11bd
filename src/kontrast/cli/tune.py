"""``kontrast tune``: search for settings on rows held out of the training rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from kontrast.cli._arguments import AsJson
from kontrast.cli._completion import choices, complete_part, complete_recipe, complete_setting
from kontrast.cli._console import handle_signals, print_err, print_out, say_loading, table
from kontrast.cli.train import load_recipe
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
            help="Overrides for every trial, such as train.epochs=5, and ranges to search: optim.lr=log:0.01..1 "
            "train.batch_size=int:64..256 method.temperature=0.05,0.1,0.2",
            autocompletion=complete_setting,
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--out", help="The folder of the trials and the record; runs if left out.")
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="Without ranges: k (k1 and k2) or temperature; k if the method has it.",
            autocompletion=choices("k", "temperature"),
        ),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="How many settings tpe and random try; 20 if left out.", min=1)
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            "--sampler",
            help="tpe, random, grid (every combination) or tcl (the TCL paper's procedure for k1 and k2). If left out: "
            "grid where every range is a list, else tpe.",
            autocompletion=choices("tpe", "random", "grid", "tcl"),
        ),
    ] = None,
    pruner: Annotated[
        str,
        typer.Option(
            "--pruner",
            help="median stops a trial that is far below the others half-way; none trains every trial to its end.",
            autocompletion=choices("median", "none"),
        ),
    ] = "median",
    sampler_seed: Annotated[int, typer.Option("--seed", help="The seed of tpe and random.", min=0)] = 0,
    seeds: Annotated[
        int, typer.Option("--seeds", help="How many training seeds each setting is scored on.", min=1)
    ] = 1,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="The protocol that scores; the recipe's first if left out.",
            autocompletion=complete_part("protocol"),
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be tried first, and stop.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search for the best settings on rows held out of training; the same command again resumes the search.

    Without ranges: k1 and k2 as the TCL paper chooses them, or the temperature.
    """
    from kontrast.experiments.ranges import split_ranges

    words = settings or []
    say_loading(load_recipe(recipe, split_ranges(words)[0], to).data.name)
    from kontrast.experiments.tune import Tuning
    from kontrast.recipes import recipe as find

    plan = find(recipe) if to is None else find(recipe).override({"run.out": str(to)})
    search = Tuning.of(
        plan,
        words,
        what=what,
        sampler=sampler,
        trials=trials,
        seeds=seeds,
        sampler_seed=sampler_seed,
        pruner=pruner,
        protocol=protocol,
        source_name=recipe,
    )
    if dry_run:
        _print_plan(search)
        return
    with handle_signals():
        record = search.run(lambda line: print_err(line, markup=False))
    if as_json:
        print(dump(record))
    else:
        _print_record(search, record)
    if record["chosen"] is None:
        raise typer.Exit(1)


def _print_plan(search: Tuning) -> None:
    procedure = search.search()
    if procedure is None:
        ranges = ", ".join(f"{key}={values.text}" for key, values in search.ranges.items())
        _print(f"{search.sampler}: {search.trials} settings from {ranges}, seed {search.sampler_seed}")
        then = "each depends on the scores before it" if search.sampler == "tpe" else "drawn at random"
    else:
        phase = next(procedure)
        _print(f"{phase.name}: {phase.why}")
        for draw in phase.settings:
            words = ", ".join(f"{name}={_format_value(value)}" for name, value in search.setting_of(draw).items())
            for seed in search.seeds:
                _print(f"  {words} seed={seed}: trials/{search.trial_recipe(draw, seed).folder}")
        then = {"tcl": "the next settings depend on the scores", "temperature": "then closer to the best of these"}.get(
            search.sampler, "that is all"
        )
    _print(f"{then}; scored on {search.recipe.data.validation:.0%} of the training rows, held out")
    _print(f"# {search.folder / 'tune.json'}")


def _print_record(search: Tuning, record: dict[str, Any]) -> None:
    trials = [(phase["name"], trial) for phase in record["phases"] for trial in phase["trials"]]
    names = list(trials[0][1]["setting"])
    scale, unit = (100.0, " (%)") if record["accuracy"] else (1.0, "")
    columns = [name.replace("_", " ") for name in names]
    scores = (f"score{unit}", "against the first")
    settings = table(*columns, "phase", *scores, "", right=(*columns, *scores))
    for phase, trial in trials:
        settings.add_row(
            *(escape(_format_value(trial["setting"][name])) for name in names),
            escape(phase),
            _format_score(trial["score"], scale) if trial["score"] else trial["state"],
            _format_comparison(trial["against_first"], scale) if trial is not trials[0][1] else "–",
            "chosen" if trial["setting"] == record["chosen"] else "",
        )
    print_out(settings)
    lines = [f"score: {record['by']}, {record['held_out']:.0%}; the test rows were not used"]
    if len(record["seeds"]) > 1:
        lines.append("±: Student's 95 % interval over seeds; differences seed by seed")
    lines += [f"any k1 below 5000 beats SupCon: {record['remark']['words']}"] if "remark" in record else []
    lines.append(f"stopped: {record['stopped']}")
    lead = [trial["against_first"]["verdict"] for _, trial in trials[1:] if trial["setting"] == record["chosen"]]
    if lead and lead[0] != "above":
        lines.append("chosen by its mean alone: whether it is better than the first is not resolved")
    lines.append(f"train with it: {record['command']}" if record["command"] else "no setting has a score")
    lines.append(f"record: {search.folder / 'tune.json'}")
    for line in lines:
        _print(line)


def _print(line: str) -> None:
    print_out(line, markup=False)


def _format_value(value: Any) -> str:
    from kontrast.experiments.tune.search import format_value  # this loads torch

    return format_value(value)


def _format_score(score: dict[str, Any], scale: float, sign: str = "") -> str:
    interval = "" if score["half"] is None else f" ± {scale * score['half']:.2f}"
    return f"{scale * score['mean']:{sign}.2f}{interval}"


def _format_comparison(comparison: dict[str, Any], scale: float) -> str:
    difference = comparison["difference"]
    verdict: str = comparison["verdict"]
    return f"{_format_score(difference, scale, '+')}, {verdict}" if difference else verdict
