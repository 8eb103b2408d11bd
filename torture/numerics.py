r"""The numerics of every loss on inputs that break losses: the errors of `grid`, by loss, recorded.

    python torture/numerics.py               every loss, and docs/reliability/numerics.md anew
    python torture/numerics.py --only tcl    this one anew, the others as they are recorded
    python torture/numerics.py --print       from the record alone

Figures are kept in docs/reliability/numerics.json, and the page is written from them. An evaluation that is not finite
where its twin is, or is beyond `grid.LIMIT` units, ends with status 1, and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from tests.losses.cases import CASES  # noqa: E402

import grid  # noqa: E402
from kontrast.losses import FAMILY  # noqa: E402
from measure import markdown, setting  # noqa: E402

PAGE = ROOT / "docs" / "reliability" / "numerics.md"
UNBOUNDED = ("cross-entropy", "simplex-cross-entropy")
NOTES = {
    "value": "Absolute below 1, relative above; of all losses on unit rows, on all inputs.",
    "gradient": "As a part of the bound G. At small τ float32 similarities have few digits left, whoever uses them.",
}


def summary(errors: Iterable[grid.Error]) -> dict[str, Any]:
    """What is recorded of a loss: its worst, and the largest errors by dtype and temperature."""
    found: dict[str, Any] = {"evaluations": 0, "not finite": 0, "value": {}, "gradient": {}, "worst": {}}
    for e in errors:
        found["evaluations"] += 1
        found["not finite"] += not e.finite
        place = f"{str(e.dtype)[6:]} {e.temperature:.3g}"
        for what, units in (("value", e.value_units), ("gradient", e.gradient_units)):
            found[what][place] = max(found[what].get(place, 0.0), getattr(e, what))
            if units >= found["worst"].get(what, {"units": -1.0})["units"]:
                at = f"{str(e.dtype)[6:]}, τ = {e.temperature:.3g}, {e.kind}"
                found["worst"][what] = {"units": units, "at": at, "where": e.where}
    return found


def tables(by_loss: dict[str, dict[str, Any]]) -> list[str]:
    """By loss, and by dtype and temperature."""
    rows = []
    for key, found in by_loss.items():
        worst = [found["worst"][what] for what in ("value", "gradient")]
        cells = [cell for one in worst for cell in (f"{one['units']:.1f}", one["at"])]
        rows.append((f"`{key}`", f"{found['evaluations']:,}", str(found["not finite"]), *cells))
    total, bad = (sum(found[what] for found in by_loss.values()) for what in ("evaluations", "not finite"))
    rows.append(("**all**", f"{total:,}", str(bad), "", "", "", ""))
    head = ("loss", "evaluations", "not finite", "value, units (1)", "where", "gradient, units (2), (3)", "where")
    sections = ["## By loss", markdown(head, rows)]
    for what in ("value", "gradient"):
        bounded = [found[what] for key, found in by_loss.items() if key not in UNBOUNDED]
        lines = []
        for dtype in (str(dtype)[6:] for dtype in grid.DTYPES):
            cells = [max(found.get(f"{dtype} {t:.3g}", 0.0) for found in bounded) for t in grid.TEMPERATURES]
            lines.append((dtype, *(f"{cell:.0e}" for cell in cells)))
        header = ("dtype", *(f"τ = {t:g}" for t in grid.TEMPERATURES))
        sections += [f"## Largest error of a {what}", NOTES[what], markdown(header, lines)]
    return sections


def page(record: dict[str, Any]) -> str:
    """docs/reliability/numerics.md."""
    missing = sorted(set(FAMILY) - set(record["grid"]))
    if missing:
        raise SystemExit(f"nothing is recorded of {', '.join(missing)}: measure it with --only")
    by_loss = {key: record["grid"][key] for key in FAMILY}
    total = sum(found["evaluations"] for found in by_loss.values())
    said = f"{total:,} evaluations, all finite and within {grid.LIMIT} units; {record['setting']}."
    parts = [
        "# Numerics",
        f"Written by `python torture/numerics.py`: {said}",
        (grid.__doc__ or "").split("\n\n", 1)[1].strip(),
        *tables(by_loss),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, record, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=sorted(FAMILY), action="append", help="of these losses; the others stay")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    kept = PAGE.with_suffix(".json")
    record = json.loads(kept.read_text()) if kept.exists() else {"grid": {}}
    for key in () if chosen.print else chosen.only or sorted(FAMILY):
        errors = list(grid.grid(case for case in CASES if case.key == key))
        bad = [e for e in errors if e.beyond()]
        record["grid"][key], record["setting"] = summary(errors), setting()
        print(json.dumps({key: record["grid"][key]["worst"]}, ensure_ascii=False), flush=True)
        if bad:
            raise SystemExit(f"{len(bad)} of {len(errors)} not finite or beyond {grid.LIMIT} units, first {bad[0]}")
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(record), encoding="utf-8")


if __name__ == "__main__":
    main()
