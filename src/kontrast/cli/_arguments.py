"""Arguments and options that several commands take, with their help and their completion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kontrast.cli._completion import complete_recipe_or_run, complete_run, complete_setting

AnyRecipe = Annotated[
    str,
    typer.Argument(
        help="A recipe's name (`kontrast list recipes`), a YAML file, or a run's folder.",
        autocompletion=complete_recipe_or_run,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Argument(
        help="Overrides: optim.lr=0.2 train.epochs=1 data=photos/ encoder=resnet18 run.device=cuda",
        autocompletion=complete_setting,
    ),
]
FinishedRun = Annotated[Path, typer.Argument(help="The folder of a finished run.", autocompletion=complete_run)]
Features = Annotated[
    Path,
    typer.Argument(
        help="features.npy [N, D]; an .npz with features and labels, or with x_train, y_train …; or a run's folder; "
        "with --encoder: data.",
        autocompletion=complete_run,
    ),
]
Labels = Annotated[Path | None, typer.Argument(help="labels.npy [N], whole numbers or strings.")]
Out = Annotated[Path, typer.Option("--out", help="The folder of the run folders.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="The seed of everything random.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
