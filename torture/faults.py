"""Faults of disk and files: flipped bits, cut and vanished files, full and read-only disks, missing permission.

    python torture/faults.py                     all of it, and docs/reliability/faults.md anew; some ten minutes
    python torture/faults.py --cases 40 --no-page
    python torture/faults.py --only costs        what the checks cost; on a machine that does nothing else

Every case must end in an error that names the file, in the same content, or in a run that goes on and ends as an
undisturbed one does, bit for bit (`broken/outcome.py` says what counts as what). Status 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

from broken import costs, disks, reading, runs
from broken.outcome import VERDICTS, Row

PAGE = Path(__file__).parents[1] / "docs" / "reliability" / "faults.md"
MARKS = {
    part: (f"<!-- {part}: written by python torture/faults.py -->\n", f"<!-- end of {part} -->\n")
    for part in ("faults", "costs")
}
GROUPS = ("reading", "checkpoints", "refusals", "finished", "data", "disks")


def tried(folder: Path, cases: int, only: list[str], tell: Callable[[str], object] = print) -> list[Row]:
    """Every group that is asked for; ``cases`` is how many flips of each file, and a fifteenth of it runs a row."""
    lab, draw = runs.Lab(folder), random.Random(0)
    few = max(1, cases // 15)
    rows: list[Row] = []
    for group in GROUPS:
        if group not in only:
            continue
        if group == "reading":
            files = folder / "files"
            files.mkdir()
            done = next(lab.whole(lab.recipe()).glob("*/run.json")).parent
            found = reading.all_tried(files, done, cases)
        elif group == "checkpoints":
            found = runs.checkpoints(lab, few, draw)
        elif group == "disks":
            found = [disks.permission(lab)]
            if disks.possible(folder):
                found = [*disks.outside(Path(__file__), folder / "disks", few), *found]
        else:
            found = {"refusals": runs.refusals, "finished": runs.finished, "data": runs.data}[group](lab, draw)
        for row in found:
            tell(row.line())
        rows += found
    return rows


def table(rows: list[Row]) -> str:
    """A line for each file and fault, and the sums."""
    sums = Row("**all**", "")
    for row in rows:
        sums.counts.update(row.counts)
    head = ["file", "what befell it", "cases", *VERDICTS]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    return "\n".join([*lines, *(row.line() for row in [*rows, sums])]) + "\n"


def prices(rows: list[tuple[str, str, str, str]]) -> str:
    """What the checks cost."""
    lines = ["| what | with the check | without | more |", "|---|---:|---:|---:|"]
    used = f"Quickest of 7 taken in turns, {torch.get_num_threads()} thread, torch {torch.__version__}."
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + f"\n\n{used}\n"


def filled(page: str, part: str, text: str) -> str:
    """The page with what stands between the marks of a part anew."""
    begin, end = MARKS[part]
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


def main(arguments: list[str] | None = None) -> int:
    """The command line; the status is 1 if a case was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=400, help="flips of each file")
    parser.add_argument("--only", nargs="+", choices=[*GROUPS, "costs"], default=[*GROUPS, "costs"])
    parser.add_argument("--no-page", action="store_true", help="do not write the page")
    parser.add_argument("--disk", type=Path, help=argparse.SUPPRESS)  # inside a name space of its own
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if given.disk is not None:
        given.disk.mkdir(parents=True, exist_ok=True)
        found = disks.inside(given.disk, given.cases)
        print(json.dumps([{**vars(row), "counts": dict(row.counts)} for row in found]))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    folder.chmod(0o755)  # nobody must be able to look into it, to find that he may not write
    try:
        rows = tried(folder, given.cases, given.only)
        texts = {"faults": table(rows)} if rows else {}
        if "costs" in given.only:
            place = folder / "costs"
            place.mkdir()
            texts["costs"] = prices(costs.measured(place))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for part, text in texts.items():
        print(text)
        if not given.no_page:
            PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), part, text), encoding="utf-8")
    for row in rows:
        for fault in row.faults:
            print(f"{row.what}, {row.fault}: {fault}", file=sys.stderr)
    return int(any(row.faults for row in rows))


if __name__ == "__main__":
    sys.exit(main())
