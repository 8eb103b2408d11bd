"""``kontrast verify``: the papers' statements, checked."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from kontrast.cli._console import out, say_loading
from kontrast.files import dump

if TYPE_CHECKING:
    from kontrast.theory import Outcome


def verify(
    only: Annotated[
        list[str] | None, typer.Option(help="A check's name or pattern (sce-*); may be given again.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="The seed of the random inputs.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of objects instead of lines.")] = False,
) -> None:
    """Check every lemma, theorem and identity of the papers; status 1 if one fails or none ran."""
    say_loading("the checks")
    from kontrast.theory import verify as outcomes

    results: list[Outcome] = []
    for outcome in outcomes(only or (), seed=seed):
        results.append(outcome)
        if not as_json:
            _print_outcome(outcome)
    failed = [outcome for outcome in results if not outcome.holds]
    if as_json:
        print(dump([dataclasses.asdict(outcome) for outcome in results]))
    else:
        seconds = sum(outcome.seconds for outcome in results)
        verdict = f"[red]{len(failed)} fail" if failed else "[green]all hold"
        out.print(f"{len(results)} checks in {seconds:.0f} s, seed {seed}: {verdict}[/]")
        for outcome in failed:
            out.print(f"  [red]fails[/] {outcome.name}", highlight=False)
    if failed or not results:
        raise typer.Exit(1)


def _print_outcome(outcome: Outcome) -> None:
    verdict = "[green]holds[/]" if outcome.holds else "[bold red]FAILS[/]"
    error = f"{outcome.error:.1e}" if math.isfinite(outcome.error) else str(outcome.error)
    out.print(
        f"{verdict}  {error:>7}  [bold]{outcome.name}[/]  {escape(outcome.statement)}", highlight=False, soft_wrap=True
    )
    details = [outcome.source, outcome.conditions and f"if {outcome.conditions}", outcome.failure]
    out.print(f"                [dim]{escape('; '.join(d for d in details if d))}[/]", highlight=False, soft_wrap=True)
