"""``kontrast demo``: the main job on the bundled set, in a few minutes of a laptop."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from kontrast.cli._arguments import Out, Settings
from kontrast.cli._console import handle_signals, print_err, print_failure, print_out, print_path, say_loading, table
from kontrast.cli.train import load_recipe

if TYPE_CHECKING:
    from kontrast.runs import Run

RECIPES = ("tcl-fashion-mini", "simclr-fashion-mini")
PROTOCOLS = {"knn20": "kNN, k = 20", "probe": "linear probe"}
MEASURES = {"uniformity, t = 2": "uniformity", "tolerance": "tolerance"}


def demo(
    to: Out = Path("runs"),
    settings: Settings = None,
) -> None:
    """Train TCL with labels and SimCLR without on fashion-mini, and compare them with raw pixels."""
    start = time.monotonic()
    recipes = [load_recipe(name, settings or [], to) for name in RECIPES]
    say_loading(recipes[0].data.name)
    from kontrast import pipeline
    from kontrast.evaluate import baselines
    from kontrast.methods import find
    from kontrast.train import Session, resolve
    from kontrast.train.job import load_data

    runs: list[Run] = []
    pages: list[Path | None] = []
    for recipe in recipes:
        print_err(f"{recipe.name}: {recipe.about}", markup=False)
        with handle_signals():
            session = Session(resolve(recipe))
            pages.append(pipeline.perform(session, on_error=print_failure))
        runs.append(session.run)
    data, _, _ = load_data(recipes[0])
    print_err("raw pixels: kNN and linear probe")
    raw = [result.record() for result in baselines(data, list(PROTOCOLS), seed=recipes[0].seed)]
    columns = (*PROTOCOLS.values(), *MEASURES.values())
    comparison = table("features", *columns, right=columns)
    comparison.add_row("raw pixels", *(_percent(record) for record in raw), *("–" for _ in MEASURES))
    for run in runs:
        result = run.result
        accuracies = {record["name"]: record for record in result["results"]}
        lines = {line["name"]: line["value"] for line in result["geometry"]["features"]}
        comparison.add_row(
            escape(result["recipe"]),
            *(_percent(accuracies.get(name)) for name in PROTOCOLS),
            *(f"{lines[name]:.3f}" if name in lines else "–" for name in MEASURES),
        )
    print_out(escape(repr(data)))
    print_out(comparison)
    print_out(
        f"Accuracy on the {raw[0]['test_rows']:,} test images (± one standard error), one seed. kNN: cosine, weights "
        "exp(s/0.07). Linear probe: chosen on a part held out of the training images, test read once. Uniformity and "
        "tolerance: of the encoder's features of the test images.",
        wrap=True,
    )
    comparisons = [
        (run.result["recipe"], find(recipe.method.name).needs_labels, run.result["results"])
        for run, recipe in zip(runs, recipes, strict=True)
    ]
    print_out(escape(what_to_see(comparisons, raw)), wrap=True)
    for run in runs:
        print_path("run folder", run.path)
    pages.append(pipeline.write_report([run.path for run in runs], to / "report.html", on_error=print_failure))
    for page in pages:
        print_path("report", page)
    print_out(f"{time.monotonic() - start:.0f} s")


def what_to_see(runs: list[tuple[str, bool, list[dict[str, Any]]]], raw: list[dict[str, Any]]) -> str:
    """One sentence: by how many points each run is above or below raw pixels.

    Args:
        runs: Of each run its name, whether it was trained with labels, and the records of its result.
        raw: The records of raw pixels.

    Returns:
        The sentence. A difference has the error of two independent accuracies, √(error² + error²).

    >>> pixels = [{"name": "raw pixels: knn20", "value": 0.8, "error": 0.003}]
    >>> with_labels = ("mine", True, [{"name": "knn20", "value": 0.85, "error": 0.004}])
    >>> without = ("other", False, [{"name": "knn20", "value": 0.75, "error": 0.004}])
    >>> print(what_to_see([with_labels, without], pixels))
    What to see, against raw pixels: mine, with labels, is above (kNN, k = 20: +5.0 ± 0.5 points); other, without labels, is below (kNN, k = 20: -5.0 ± 0.5 points).
    """  # noqa: E501
    pixels = {record["name"].removeprefix("raw pixels: "): record for record in raw}
    sentences = []
    for name, labelled, results in runs:
        gains = []
        for record in results:
            baseline = pixels.get(record["name"])
            if baseline is not None and record["name"] in PROTOCOLS:
                error = math.hypot(record["error"], baseline["error"])
                gains.append((PROTOCOLS[record["name"]], record["value"] - baseline["value"], error))
        sides = {"below" if gain < 0 else "above" for _, gain, _ in gains}
        points = ", ".join(f"{title}: {100 * gain:+.1f} ± {100 * error:.1f} points" for title, gain, error in gains)
        side = " and ".join(sorted(sides)) or "not compared"
        sentences.append(f"{name}, {'with' if labelled else 'without'} labels, is {side} ({points})")
    return f"What to see, against raw pixels: {'; '.join(sentences)}."


def _percent(record: dict[str, Any] | None) -> str:
    return "–" if record is None else f"{100 * record['value']:.1f} ± {100 * record['error']:.1f} %"
