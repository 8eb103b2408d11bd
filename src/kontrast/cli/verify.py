"""``kontrast verify``: checks of the papers' statements."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kontrast.cli._arguments import AsJson, Seed
from kontrast.cli._console import print_out, say_loading
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.theory import Outcome


def verify(
    only: Annotated[
        list[str] | None, typer.Option(help="A check's name, or a pattern such as sce-*; may be repeated.")
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Check every lemma, theorem and identity of the papers. Exit code 1 if one fails, or none was run."""
    say_loading("the checks")
    from kontrast.theory import verify as outcomes

    results: list[Outcome] = []
    for outcome in outcomes(only or (), seed=seed):
        results.append(outcome)
        if not as_json:
            _print_outcome(outcome)
    failures = [outcome for outcome in results if not outcome.holds]
    if as_json:
        print(dump([dataclasses.asdict(outcome) for outcome in results]))
    else:
        seconds = sum(outcome.seconds for outcome in results)
        verdict = f"[red]{len(failures)} fail" if failures else "[green]all hold"
        print_out(f"{len(results)} checks in {seconds:.0f} s, seed {seed}: {verdict}[/]")
        for outcome in failures:
            print_out(f"  [red]fails[/] {outcome.name}")
    if failures or not results:
        raise typer.Exit(1)


def _print_outcome(outcome: Outcome) -> None:
    verdict = "[green]holds[/]" if outcome.holds else "[bold red]FAILS[/]"
    error = f"{outcome.error:.1e}" if math.isfinite(outcome.error) else str(outcome.error)
    print_out(f"{verdict}  {error:>7}  [bold]{outcome.name}[/]  {escape(outcome.statement)}")
    details = [outcome.source, outcome.conditions and f"if {outcome.conditions}", outcome.failure]
    print_out(f"                [dim]{escape('; '.join(d for d in details if d))}[/]")
