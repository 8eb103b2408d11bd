"""``kontrast doctor``: what is wrong with a run, features or a recipe, and what to do about it.

Exit code 0: no problem; 1: a problem; 2: a wrong argument.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kontrast.cli._arguments import AsJson
from kontrast.cli._completion import complete_recipe_or_run, complete_setting
from kontrast.cli._console import print_err, print_out, printable, say_loading, table
from kontrast.files import dump, expanded

if TYPE_CHECKING:
    from kontrast.doctor import Finding

COLOURS = {"problem": "bold red", "warning": "yellow", "unknown": "dim", "ok": "green"}


def doctor(
    patient: Annotated[
        str,
        typer.Argument(
            help="A run's folder, features.npy or .npz, or a recipe (its name, or a YAML file).",
            autocompletion=complete_recipe_or_run,
        ),
    ],
    more: Annotated[
        list[str] | None,
        typer.Argument(
            help="labels.npy of features, or settings of a recipe: method.temperature=0.2 …",
            autocompletion=complete_setting,
        ),
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="The temperature of the loss that the features were trained with.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find problems, with evidence and advice. Exit code 1 if there is one. For a run, doctor.json is written too."""
    kind, findings = _examine(patient, more or [], temperature)
    from kontrast.doctor import to_json
    from kontrast.runs import Run

    if kind == "run":
        try:
            Run(patient).write_findings(to_json(findings))
        except OSError as error:
            print_err(f"doctor.json is not written: {printable(error)}")
    if as_json:
        print(dump({"patient": patient, "kind": kind, **to_json(findings)}))
    else:
        _print(patient, kind, findings)
    if any(finding.status == "problem" for finding in findings):
        raise typer.Exit(1)


def _examine(patient: str, more: list[str], temperature: float | None) -> tuple[str, list[Finding]]:
    """What the patient is, and the findings; arguments are checked before torch is imported."""
    from kontrast import recipes
    from kontrast.registry import nearest

    path, names = expanded(patient), recipes.names()
    is_folder = path.is_dir() and patient not in names
    kind = "features" if path.suffix in (".npy", ".npz") else "run" if is_folder else "recipe"
    if kind != "features" and temperature is not None:
        raise ValueError(
            f"--temperature={temperature:g}: must be left out for {patient}, which has its own (method.temperature)"
        )
    if kind == "features" and len(more) > 1:
        raise ValueError(f"MORE={' '.join(more)}: must be one file of labels at most")
    if kind == "run" and more:
        raise ValueError(
            f"{patient} is a folder, and a run is examined as it is; to change its recipe, pass "
            f"{path / 'recipe.yaml'} with {' '.join(more)}"
        )
    if kind == "recipe" and not path.exists() and patient not in names:
        near = nearest(patient, names, cutoff=0.7)
        raise ValueError(
            f"there is no folder or file {patient}, and no recipe of that name{near} Expected the folder of a run, "
            "features in a .npy or .npz file, a recipe in YAML, or its name (`kontrast list recipes`)"
        )
    recipe = recipes.recipe(patient).override(more).check_parts() if kind == "recipe" else None
    say_loading(patient)
    from kontrast import doctor as stage

    if recipe is not None:
        return kind, stage.examine_recipe(recipe)
    if kind == "run":
        return kind, stage.examine_run(path)
    from kontrast.cli._files import load_features

    x, y = load_features(path, expanded(more[0]) if more else None)
    return kind, stage.examine_features(x, y, temperature=temperature)


def _print(patient: str, kind: str, findings: list[Finding]) -> None:
    signs = [finding for finding in findings if finding.status in ("problem", "warning")]
    problems = table("", "", title=f"{patient} ({kind})")
    problems.show_header = False
    problems.columns[0].no_wrap = True
    for finding in signs:
        colour = COLOURS[finding.status]
        words = f"[bold]{escape(finding.title)}[/]\n{escape(finding.evidence)}"
        problems.add_row(f"[{colour}]{finding.status}[/]", f"{words}\n[{COLOURS['ok']}]→[/] {escape(finding.advice)}")
    if signs:
        print_out(problems)
    else:
        print_out(f"{escape(patient)} ({kind}): no problem found")
    for finding in findings:
        if finding.status == "unknown":
            words = escape(f"{finding.title}: {finding.evidence}")
            print_out(f"[{COLOURS['unknown']}]unknown[/]  {words}")
    ok_rules = ", ".join(finding.rule for finding in findings if finding.status == "ok")
    if ok_rules:
        print_out(f"[{COLOURS['ok']}]ok[/]  {ok_rules}")
