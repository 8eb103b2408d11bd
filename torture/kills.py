"""SIGKILL, some hundreds of times: training runs, sweeps and the image cache end as if nothing had happened.

    python torture/kills.py                         200 kills of training runs, 24 each of sweeps and of the cache
    python torture/kills.py --minutes 4             stops after that time; called again it goes on from there
    python torture/kills.py --kills 30 --only bank sweep --folder /tmp/storm
    python torture/kills.py --page                  writes docs/reliability/kills.md anew from what is recorded, which
                                                    else is done when all kinds have their kills

A round: processes are started in an empty folder and killed again and again, at random moments (while they start, while
they work) and at chosen points of writing files (checkpoint, run.json, encoder and results, tables, cache), each time
started again at once; then they are let come to their end, and every file is compared with those of an undisturbed run:
bit for bit, but for what the clock says. Rounds are recorded in a folder (runs/kills), each kill as it happens, so the
storm itself can be stopped at any time. It works on a copy of the package made when it begins, so that nobody's editing
disturbs it; with other sources it begins anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from storm.kinds import KINDS, Kind
from storm.rounds import Storm

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability" / "kills.md"
BEGIN, END = "<!-- kills: written by python torture/kills.py -->\n", "<!-- end of kills -->\n"
SIDE = 0.12  # kills of sweeps, and of the cache, for each of training runs


def table(storm: Storm) -> str:
    """What is recorded: a row for each kind, and the sums."""
    rows = [
        "| killed | what it is | kills | in writing a file | rounds | differences |",
        "|---|---|---:|---:|---:|---:|",
    ]
    sums: Counter[str] = Counter()
    for kind in KINDS:
        found = storm.count(kind)
        sums += found
        rows.append(f"| {kind.name} | {kind.about} | {_cells(found)} |")
    rows.append(f"| **all** | | {_cells(sums)} |")
    moments = Counter(kill["moment"] for kill in storm.kills())
    points = Counter(kill["point"] for kill in storm.kills() if "file" in kill)
    trained = sum(storm.count(kind)["kills"] for kind in KINDS if kind.group == "training")
    told = [
        f"{trained} kills of training runs, {sums['kills']} in all. {sums['left']} of them left a temporary file, "
        f"which the next start cleared away; {sums['waited']} times a start found that another process still worked "
        "in the folder and said so.",
        "By moment: " + ", ".join(f"{name} {n}" for name, n in sorted(moments.items())) + ". By point of writing a "
        "file: " + ", ".join(f"{name} {n}" for name, n in sorted(points.items())) + ".",
        f"Sources {storm.digest}, torch {storm.versions['torch']}, Python {storm.versions['python']}.",
    ]
    return "\n".join(rows) + "\n\n" + "\n\n".join(told) + "\n"


def _cells(found: Counter[str]) -> str:
    return f"{found['kills']} | {found['aimed']} | {found['rounds']} | {found['differences']}"


def filled(page: str, storm: Storm) -> str:
    """The page with the table anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table(storm)}\n{END}{rest.partition(END)[2]}"


def wanted(kinds: list[Kind], kills: int) -> dict[str, int]:
    """How many kills each kind is to have: training runs share them all, sweeps and the cache have some beside.

    >>> wanted(list(KINDS), 200)["bank"], wanted(list(KINDS), 200)["sweep"]
    (31, 12)
    """
    asked = {}
    for kind in kinds:
        group = [k for k in kinds if k.group == kind.group]
        total = kills if kind.group == "training" else SIDE * kills
        asked[kind.name] = -int(-total * kind.share // sum(k.share for k in group))
    return asked


def main(arguments: list[str] | None = None) -> int:
    """The command line; the status is 1 if anything differed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="of training runs, those recorded before among them")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing after so many")
    parser.add_argument("--only", nargs="+", choices=[kind.name for kind in KINDS], help="these kinds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="rounds side by side")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "kills", help="where all is kept")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--no-page", action="store_true", help="do not write it")
    given = parser.parse_args(arguments)
    kinds = [kind for kind in KINDS if given.only is None or kind.name in given.only]
    storm = Storm.of(ROOT / "src", given.folder.absolute())
    asked = wanted(kinds, given.kills)
    failures: list[dict[str, Any]] = []
    if not given.page:
        failures = storm.rage(asked, jobs=given.jobs, until=time.monotonic() + 60 * given.minutes)
    complete = given.only is None and all(storm.count(kind)["kills"] >= asked[kind.name] for kind in kinds)
    if given.page and not any(storm.kills()):
        parser.error(f"nothing is recorded of these sources ({storm.digest}) in {given.folder}; run it without --page")
    if given.page or (complete and not given.no_page):
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), storm), encoding="utf-8")
    print(table(storm))
    for failure in failures:
        print(f"{failure['round']}: {failure['differences']}", file=sys.stderr)
    return 1 if any(storm.count(kind)["differences"] for kind in KINDS) else 0


if __name__ == "__main__":
    sys.exit(main())
