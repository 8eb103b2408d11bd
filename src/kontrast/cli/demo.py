"""``kontrast demo``: the main job on the bundled set, in a few minutes of a laptop."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from kontrast.cli._completion import complete_setting
from kontrast.cli._console import err, named, out, say_loading
from kontrast.cli._status import running, tell_failure
from kontrast.cli.train import checked_recipe

if TYPE_CHECKING:
    from kontrast.train import Run

RECIPES = ("tcl-fashion-mini", "sce-fashion-mini")
PROTOCOLS = {"knn20": "kNN, k = 20", "probe": "linear probe"}
MEASURES = {"uniformity, t = 2": "uniformity", "tolerance": "tolerance"}


def demo(
    to: Annotated[Path, typer.Option("--out", help="The folder that run folders lie in.")] = Path("runs"),
    settings: Annotated[
        list[str] | None, typer.Argument(help="Overrides for both runs, as for train.", autocompletion=complete_setting)
    ] = None,
) -> None:
    """Train TCL with labels and SCE without on fashion-mini, and compare them with raw pixels."""
    began = time.monotonic()
    chosen = [checked_recipe(name, settings or [], to) for name in RECIPES]
    say_loading(chosen[0].data.name)
    from kontrast import pipeline
    from kontrast.evaluate import baselines
    from kontrast.train.job import load_data

    runs: list[Run] = []
    pages: list[Path | None] = []
    for recipe in chosen:
        err.print(f"{recipe.name}: {recipe.about}", highlight=False, markup=False, soft_wrap=True)
        with running():
            run, page = pipeline.perform(recipe, failed=tell_failure)
        runs.append(run)
        pages.append(page)
    data, _, _ = load_data(chosen[0])
    err.print("raw pixels: kNN and linear probe", highlight=False)
    raw = [result.record() for result in baselines(data, list(PROTOCOLS), seed=chosen[0].seed)]
    table = Table(box=SIMPLE_HEAD)
    table.add_column("features")
    for column in (*PROTOCOLS.values(), *MEASURES.values()):
        table.add_column(column, justify="right")
    table.add_row("raw pixels", *(_percent(record) for record in raw), *("–" for _ in MEASURES))
    below: list[str] = []
    for run in runs:
        result = run.result
        found = {record["name"]: record for record in result["results"]}
        lines = {line["name"]: line["value"] for line in result["geometry"]["features"]}
        table.add_row(
            escape(result["recipe"]),
            *(_percent(found.get(name)) for name in PROTOCOLS),
            *(f"{lines[name]:.3f}" if name in lines else "–" for name in MEASURES),
        )
        below += worse_than_pixels(result["recipe"], result["results"], raw)
    out.print(escape(repr(data)), highlight=False, soft_wrap=True)
    out.print(table)
    out.print(
        f"Accuracy on the {raw[0]['test_rows']:,} test images (± one standard error), one seed. kNN: cosine, weights "
        "exp(s/0.07). Linear probe: chosen on a part held out of the training images, test read once. Uniformity and "
        "tolerance: of the encoder's features of the test images.",
        highlight=False,
    )
    for line in below:
        out.print(escape(line), highlight=False)
    for run in runs:
        out.print(f"run folder: {named(run.path)}", highlight=False, soft_wrap=True)
    pages.append(pipeline.write_report([run.path for run in runs], to / "report.html", failed=tell_failure))
    for page in pages:
        if page is not None:
            out.print(f"report: {named(page)}", highlight=False, soft_wrap=True)
    out.print(f"{time.monotonic() - began:.0f} s", highlight=False)


def worse_than_pixels(name: str, results: list[dict[str, Any]], raw: list[dict[str, Any]]) -> list[str]:
    """A sentence where a run's kNN or probe is below that of raw pixels; none where neither is.

    The error is that of two independent accuracies: √(error² + error²).

    >>> pixels = [{"name": "raw pixels: knn20", "value": 0.8, "error": 0.003}]
    >>> worse_than_pixels("mine", [{"name": "knn20", "value": 0.75, "error": 0.004}], pixels)
    ['mine is below raw pixels: kNN, k = 20 by 5.0 ± 0.5 points.']
    >>> worse_than_pixels("mine", [{"name": "knn20", "value": 0.85, "error": 0.004}], pixels)
    []
    """
    pixels = {record["name"].removeprefix("raw pixels: "): record for record in raw}
    lost = []
    for record in results:
        beside = pixels.get(record["name"])
        if beside is not None and record["name"] in PROTOCOLS and record["value"] < beside["value"]:
            error = math.hypot(record["error"], beside["error"])
            points = f"{100 * (beside['value'] - record['value']):.1f} ± {100 * error:.1f} points"
            lost.append(f"{PROTOCOLS[record['name']]} by {points}")
    return [f"{name} is below raw pixels: {', '.join(lost)}."] if lost else []


def _percent(record: dict[str, Any] | None) -> str:
    return "–" if record is None else f"{100 * record['value']:.1f} ± {100 * record['error']:.1f} %"
