"""Bad input of every kind: each case must end in a right result or in one paragraph that says what to do.

    python torture/inputs.py --examples 2000            all kinds, and docs/reliability/inputs.md anew
    python torture/inputs.py --kind settings --shrink   one kind, the first fault made as small as it gets; no page

Cases are drawn by hypothesis from a seed, so that a count can be had again. What a fault is, `bad_input/judging.py`
says; what is tried with each kind stands in the other files there. Status 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from bad_input import arrays, command_line, computing, folders, recipes
from bad_input.judging import Kind, Outcome, bounded, judged

PAGE = Path(__file__).parents[1] / "docs" / "reliability" / "inputs.md"
BEGIN, END = "<!-- counts: written by python torture/inputs.py -->\n", "<!-- end of counts -->\n"
KINDS = [*recipes.KINDS, *command_line.KINDS, *folders.KINDS, *arrays.KINDS, *computing.KINDS]


@dataclass
class Tally:
    """What came of the cases of a kind."""

    kind: Kind
    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, tuple[str, Any]] = field(
        default_factory=dict
    )  # of each kind what was said, and the shortest case
    seconds: float = 0.0

    def add(self, case: Any, outcome: Outcome) -> None:
        """Counts it."""
        self.counts[outcome.verdict] += 1
        if outcome.verdict == "fault":
            kind = re.sub(r"/tmp/\S+?/|0x\w+|\d+", "…", outcome.says)[:70]
            known = self.faults.get(kind)
            if known is None or len(repr(case)) < len(repr(known[1])):
                self.faults[kind] = (outcome.says, case)


def tried(kind: Kind, examples: int, *, seed: int = 0, shrink: bool = False) -> Tally:
    """Draws and tries so many cases; with ``shrink`` the first fault is raised, made as small as it gets."""
    tally = Tally(kind)
    began = time.monotonic()

    @seeded(seed)
    @settings(
        max_examples=max(1, examples // kind.cost),
        database=None,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.cases)
    def one(case: Any) -> None:
        with bounded():
            outcome = judged(kind.attempt, case)
        tally.add(case, outcome)
        assert not shrink or outcome.verdict != "fault", outcome.says

    one()
    tally.seconds = time.monotonic() - began
    return tally


def table(tallies: list[Tally]) -> str:
    """A row for each kind."""
    rows = ["| input | what is varied | cases | results | errors | faults |", "|---|---|---:|---:|---:|---:|"]
    total: Counter[str] = Counter()
    for tally in tallies:
        total += tally.counts
        rows.append(_row(tally.kind.name, tally.kind.about, tally.counts))
    rows.append(_row("**all**", "", total))
    return "\n".join(rows) + "\n"


def _row(name: str, about: str, counts: Counter[str]) -> str:
    numbers = (counts.total(), counts["result"], counts["error"], counts["fault"])
    return f"| {name} | {about} | " + " | ".join(f"{number:,}" for number in numbers) + " |"


def page(text: str, tallies: list[Tally], examples: int, seed: int) -> str:
    """The page with the counts anew."""
    before, _, rest = text.partition(BEGIN)
    minutes = sum(tally.seconds for tally in tallies) / 60
    said = (
        f"`python torture/inputs.py --examples {examples} --seed {seed}`, {minutes:.0f} minutes; Python "
        f"{platform.python_version()}, torch {torch.__version__}.\n"
    )
    return f"{before}{BEGIN}\n{table(tallies)}\n{said}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Tries what was asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--examples", type=int, default=200, help="cases of each kind; slow kinds take a part of it")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--kind", choices=[kind.name for kind in KINDS], action="append", help="only these; no page")
    asked.add_argument("--shrink", action="store_true", help="stop at a fault and make it small")
    given_ = asked.parse_args()
    torch.set_num_threads(1)
    tallies = []
    for kind in KINDS:
        if given_.kind is None or kind.name in given_.kind:
            tallies.append(tried(kind, given_.examples, seed=given_.seed, shrink=given_.shrink))
            print(f"{kind.name}: {dict(tallies[-1].counts)}, {tallies[-1].seconds:.0f} s", flush=True)
            for says, case in tallies[-1].faults.values():
                print(f"  fault: {says!a:.400}\n     case: {case!a:.400}", flush=True)
    print(table(tallies))
    if given_.kind is None and not given_.shrink:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), tallies, given_.examples, given_.seed), encoding="utf-8")
    return int(any(tally.counts["fault"] for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
