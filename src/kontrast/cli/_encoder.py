"""ENCODER of the commands that take one: a run's folder, or an encoder's name with ``--weights``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kontrast.cli._completion import complete_encoder_or_run
from kontrast.cli._console import say_loading

if TYPE_CHECKING:
    from kontrast.models import Encoder
    from kontrast.runs import Run

HELP = "The folder of a finished run, or an encoder's name with --weights: timm/resnet50, resnet50 …"
AnyEncoder = Annotated[str, typer.Argument(help=HELP, autocompletion=complete_encoder_or_run)]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="Of an encoder by name: true for those of timm or torchvision (of the name and tag), a name of theirs "
        "(IMAGENET1K_V2), a file, or a run's folder.",
    ),
]
Size = Annotated[
    int | None,
    typer.Option(
        "--size", min=1, help="Pixels of the side that it sees, of an encoder by name; its weights' own if left out."
    ),
]


def open_encoder(encoder: str, weights: str | None, size: int | None = None) -> Encoder | Run:
    """The run, or the encoder by name with its weights; what is wrong with a name is said before torch is imported."""
    from kontrast.files import expanded
    from kontrast.registry import FAMILIES

    if not expanded(encoder).exists():
        try:
            FAMILIES["encoder"].canonical(encoder)
        except ValueError as error:
            raise ValueError(
                f"ENCODER={encoder}: is neither the folder of a run nor an encoder's name; {error}"
            ) from None
        if weights is None:
            raise ValueError(
                f"ENCODER={encoder}: is an encoder's name, and its weights must be named: --weights true (those of its "
                "library, from its cache or the network), --weights FILE, or the folder of a run in place of the name"
            )
    say_loading(encoder)
    from kontrast.runs import Run
    from kontrast.train import is_run, load

    options: dict[str, Any] = {} if size is None else {"image_size": size}
    if is_run(encoder) and not options and weights is None:
        return Run(encoder)
    return load(encoder, pretrained=weights, **options)
