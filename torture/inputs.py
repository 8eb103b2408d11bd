"""Try bad input of every kind: each case must give a correct result, or an error of one paragraph that says what to do.

    python torture/inputs.py --examples 2000            all kinds, and docs/reliability/inputs.md anew
    python torture/inputs.py --kind settings --shrink   one kind; the first fault is made as small as possible; no page

Hypothesis draws the cases from a seed, so the same call tries the same cases. `bad_input/judging.py` says what a fault
is; the other files there say what is tried. The status is 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from bad_input import arrays, computing, folders, recipes
from bad_input.judging import Kind, Outcome, bounded, judged
from page import setting, write_part

KINDS = [*recipes.KINDS, *folders.KINDS, *arrays.KINDS, *computing.KINDS]


@dataclass
class Tally:
    """The outcomes of the cases of a kind."""

    kind: Kind
    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[str, tuple[str, Any]] = field(default_factory=dict)  # the shortest case of each different text
    seconds: float = 0.0

    def add(self, case: Any, outcome: Outcome) -> None:
        """Count a case."""
        self.counts[outcome.verdict] += 1
        if outcome.verdict == "fault":
            text = re.sub(r"/tmp/\S+?/|0x\w+|\d+", "…", outcome.says)[:70]
            known = self.faults.get(text)
            if known is None or len(repr(case)) < len(repr(known[1])):
                self.faults[text] = (outcome.says, case)


def try_cases(kind: Kind, examples: int, *, seed: int = 0, shrink: bool = False) -> Tally:
    """Draw and try so many cases; with ``shrink``, raise the first fault, made as small as possible."""
    tally = Tally(kind)
    start = time.monotonic()

    @seeded(seed)
    @settings(
        max_examples=max(1, examples // kind.cost),
        database=None,
        deadline=None,
        phases=[Phase.generate, *([Phase.shrink] if shrink else [])],
        suppress_health_check=list(HealthCheck),
    )
    @given(kind.cases)
    def try_one(case: Any) -> None:
        with bounded():
            outcome = judged(kind.attempt, case)
        tally.add(case, outcome)
        assert not shrink or outcome.verdict != "fault", outcome.says

    try_one()
    tally.seconds = time.monotonic() - start
    return tally


def table(tallies: list[Tally]) -> str:
    """A row for each kind, and the sums."""
    rows = ["| input | what is varied | cases | results | errors | faults |", "|---|---|---:|---:|---:|---:|"]
    total: Counter[str] = Counter()
    for tally in tallies:
        total += tally.counts
    for name, about, counts in [*((t.kind.name, t.kind.about, t.counts) for t in tallies), ("**all**", "", total)]:
        numbers = (counts.total(), counts["result"], counts["error"], counts["fault"])
        rows.append(f"| {name} | {about} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Run the command line; return its status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200, help="cases of each kind; slow kinds take a part of it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], action="append", help="only these; no page")
    parser.add_argument("--shrink", action="store_true", help="stop at a fault and make it small")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tallies = []
    for kind in KINDS:
        if arguments.kind is None or kind.name in arguments.kind:
            tally = try_cases(kind, arguments.examples, seed=arguments.seed, shrink=arguments.shrink)
            tallies.append(tally)
            print(f"{kind.name}: {dict(tally.counts)}, {tally.seconds:.0f} s", flush=True)
            for text, case in tally.faults.values():
                print(f"  fault: {text!a:.400}\n     case: {case!a:.400}", flush=True)
    minutes = sum(tally.seconds for tally in tallies) / 60
    call = f"`python torture/inputs.py --examples {arguments.examples} --seed {arguments.seed}`, {minutes:.0f} minutes."
    text = f"{table(tallies)}\n{call} {setting()}\n"
    print(text)
    if arguments.kind is None and not arguments.shrink:
        write_part("counts", "inputs.py", text)
    return int(any(tally.faults for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
