"""Kill training runs, sweeps and cache writers by SIGKILL; each must end as an undisturbed run does.

    python torture/kills.py                              200 kills of training runs, 24 each of sweeps and of the cache
    python torture/kills.py --kills 30 --only bank sweep      fewer, of these kinds; the page stays as it is

A round starts processes in an empty folder and kills them again and again: at random moments (while they start, while
they work) and at chosen points of writing a file (checkpoint, run.json, results, tables, cache). After each kill they
are started again at once. Then they run to their end, and every file is compared with that of an undisturbed run, bit
for bit except for times. The status is 1 if a file differs; the folder of such a round is kept.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from page import ROOT, setting, write_part
from storm.kinds import KINDS, Kind

SIDE = 0.12  # kills of sweeps, and of the cache, for each kill of a training run


@dataclass
class Tally:
    """The recorded kills of one kind."""

    kind: Kind
    rounds: int = 0
    waited: int = 0
    kills: list[dict[str, Any]] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Killed processes, including those killed beside the target."""
        return sum(1 + kill.get("others", 0) for kill in self.kills)

    @property
    def in_writing(self) -> int:
        """Kills at a chosen point of writing a file."""
        return sum("file" in kill for kill in self.kills)


def required_kills(kinds: Iterable[Kind], kills: int) -> dict[str, int]:
    """Kills of each kind: training runs share ``kills``, sweeps and the cache get a part beside.

    >>> required_kills(KINDS, 200)["bank"], required_kills(KINDS, 200)["sweep"]
    (31, 12)
    """
    kinds = list(kinds)
    required = {}
    for kind in kinds:
        group = [k for k in kinds if k.group == kind.group]
        total = kills if kind.group == "training" else SIDE * kills
        required[kind.name] = -int(-total * kind.share // sum(k.share for k in group))
    return required


def run_rounds(kind: Kind, kills: int, folder: Path) -> Tally:
    """Run rounds of a kind until it has its kills, or a round ends differently."""
    tally, inputs = Tally(kind), folder / "inputs"
    whole = folder / "whole"
    for path in (inputs, whole, folder / "printed"):
        path.mkdir(parents=True)
    kind.prepare(inputs)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    crew = kind.crew_of(inputs, whole, folder / "printed", environment)
    crew.size = 1
    crew.finish()
    while tally.count < kills and not tally.differences and tally.rounds < 10 + kills:
        _run_round(tally, whole, inputs, folder / f"round-{tally.rounds}", environment)
        result = "DIFFERS: " + "; ".join(tally.differences)[:3000] if tally.differences else "the same"
        print(f"{time.strftime('%H:%M:%S')} {kind.name}, round {tally.rounds}: {result}", flush=True)
    return tally


def _run_round(tally: Tally, whole: Path, inputs: Path, folder: Path, environment: dict[str, str]) -> None:
    kind, out = tally.kind, folder / "out"
    folder.mkdir()
    crew = kind.crew_of(inputs, out, folder, environment)
    try:
        for number, moment in enumerate(kind.plan):
            for attempt in range(3):  # the processes may end before the kill comes
                kill = crew.kill(moment, random.Random(f"{kind.name} {tally.rounds} {number} {attempt}"))
                if kill is not None:
                    tally.kills.append(kill)
                    break
            else:
                break
        crew.finish()
        tally.differences += kind.differences(whole, out)
    except Exception as error:
        tally.differences.append(f"{type(error).__name__}: {error}")
    finally:
        crew.stop()
    tally.rounds += 1
    tally.waited += crew.waited
    if not tally.differences:
        shutil.rmtree(folder)


def run_storm(kills: dict[str, int], kinds: Iterable[Kind], folder: Path, jobs: int = 2) -> list[Tally]:
    """Run all kinds, ``jobs`` of them at once."""
    chosen = [kind for kind in kinds if kind.name in kills]
    places = [folder / kind.name.replace(" ", "-") for kind in chosen]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(run_rounds, chosen, [kills[kind.name] for kind in chosen], places))


def table(tallies: list[Tally]) -> str:
    """A row for each kind, the sums, and the kills by moment and by point."""
    rows = [
        "| killed | what it is | kills | in writing a file | rounds | differences |",
        "|---|---|---:|---:|---:|---:|",
    ]
    sums = [0, 0, 0, 0]
    for t in tallies:
        cells = [t.count, t.in_writing, t.rounds, len(t.differences)]
        sums = [a + b for a, b in zip(sums, cells, strict=True)]
        rows.append(f"| {t.kind.name} | {t.kind.about} | {' | '.join(map(str, cells))} |")
    rows.append(f"| **all** | | {' | '.join(map(str, sums))} |")
    kills = [kill for t in tallies for kill in t.kills]
    moments = Counter(kill["moment"] for kill in kills)
    points = Counter(kill["point"] for kill in kills if "file" in kill)
    lines = [
        f"{sum(t.count for t in tallies if t.kind.group == 'training')} kills of training runs, {sums[0]} in all. "
        f"{sum(kill['left'] > 0 for kill in kills)} of them left a temporary file, which the next start removed; "
        f"{sum(t.waited for t in tallies)} times a start waited because another process still used the folder.",
        "By moment: " + ", ".join(f"{name} {n}" for name, n in sorted(moments.items())) + ". By point of writing a "
        "file: " + ", ".join(f"{name} {n}" for name, n in sorted(points.items())) + ".",
        setting(),
    ]
    return "\n".join(rows) + "\n\n" + "\n\n".join(lines) + "\n"


def main() -> int:
    """Run the command line; return its status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="of training runs")
    parser.add_argument("--only", nargs="+", choices=[kind.name for kind in KINDS], help="kinds; the page stays")
    parser.add_argument("--jobs", type=int, default=2, help="kinds at once")
    arguments = parser.parse_args()
    kinds = [kind for kind in KINDS if arguments.only is None or kind.name in arguments.only]
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    tallies = run_storm(required_kills(kinds, arguments.kills), kinds, folder, arguments.jobs)
    text = table(tallies)
    print(text)
    differences = [f"{t.kind.name}: {difference}" for t in tallies for difference in t.differences]
    if differences:
        print(*differences, f"see {folder}", sep="\n", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    if arguments.only is None:
        write_part("kills", "kills.py", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
