"""The page of the plan, docs/experiments/plan.md, from plan.toml, the experiments' presets and what pilots measured.

python docs/plan.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "scripts"))

import designs  # noqa: E402
import plan_entries  # noqa: E402

PAGE = DOCS / "experiments" / "plan.md"
INTRODUCTION = """# The plan of the long runs

These runs will replace the short ones of the [results](../results/README.md). `scripts/results` runs them in this order
([background](background.md)). Seeds and thresholds are fixed before their results are seen. The source is
[plan.toml](plan.toml).

A cell is one run; *new* are the cells that no entry above has. Sets have 10,000 training and 10,000 test images, but
for cifar10-50k. Core-seconds are CPU time of one thread, evaluation included, the mean of the cells that a pilot ran
(`docs/experiments/pilots`). Written by `python docs/plan.py`.
"""
CHANGED = """## What the pilots changed

Pilots (`python scripts/pilots.py`, a few cells of each entry with one seed, in `docs/experiments/pilots`) show whether
an effect can appear and what a cell costs. Their results, test accuracy included, were seen before these designs were
fixed; finished cells of pilots whose recipe is the same stay in the ledger.

- `sce-collapse`: at τ_m = τ ReSSL's embeddings are at one point and SCE's are not: the effect is there.
- `wl-table-1`, `wl-separation`: the memory bank learns, small temperatures more than large ones; at small ones the
  positive lies above the nearest negative, at 1 below it.
- `graf-random-labels`: CE and SC both fit all labels in time, and both take longer where all are random, SC by far the
  more: nothing is censored.
- `graf-table`, `graf-geometry` and the open questions: in 4,000 batches of 128 at the paper's 0.1·((T−i)/T)⁵ SC had
  hardly left chance on CIFAR-100. They now have the paper's batches of 256, and for all methods a rate of 0.4 that
  falls as a cosine, chosen on held-out rows ([trials](trials.md)), and more steps. The paper's classifier has a fixed
  rate, which is low for features of length 1 that are not yet spread out, as SC's: a probe with a chosen rate stands
  beside it.
- `tcl-batch-sizes`: 60 epochs of 10,000 images are 600 steps at 1,024, in which little is learnt at any rate that was
  tried ([trials](trials.md)). Batches of 512 and 1,024 now have as many steps as those of 256.
"""
FACTS = ["order", "entry", "data", "width", "batch", "length", "seeds"]
COLUMNS = [*FACTS, "cells", "new", "core-seconds a cell", "core-hours"]
HEAD = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"


def page() -> str:
    """The whole page."""
    entries = plan_entries.read_plan(ROOT / plan_entries.PLAN)
    lines = design_lines(entries)
    whole = [line for entry, line in zip(entries, lines, strict=True) if entry.whole]
    rest = [line for entry, line in zip(entries, lines, strict=True) if not entry.whole]
    tables = [_table("Whole", whole), _table("As far as they come", rest)]
    parts = [INTRODUCTION, *tables, CHANGED]
    return "\n".join(part for part in parts if part)


def _table(title: str, lines: Sequence[tuple[str, float | None]]) -> str:
    if not lines:
        return ""
    known = sum(hours for _, hours in lines if hours is not None)
    unknown = sum(hours is None for _, hours in lines)
    total = f"In all {known:.1f} core-hours" if known else "No entry is measured"
    more = f", and {unknown} that {'is' if unknown == 1 else 'are'} not measured" if known and unknown else ""
    return f"## {title}\n\n{HEAD}" + "".join(line for line, _ in lines) + f"\n{total}{more}.\n"


def design_lines(entries: Sequence[plan_entries.Entry]) -> list[tuple[str, float | None]]:
    """A line of the table and its core-hours for each entry."""
    earlier: set[str] = set()
    lines = []
    for order, entry in enumerate(entries, 1):
        design = designs.describe(entry)
        if "error" in design:
            raise ValueError(f"{plan_entries.PLAN}: {entry.name}: {design['error']}")
        new = [folder for folder in design["folders"] if folder not in earlier]
        earlier.update(new)
        pilot = read_pilot(entry)
        cost = None if pilot is None else plan_entries.core_seconds(pilot)
        hours = 0.0 if not new else None if cost is None else cost * len(new) / 3600
        cells = "1 search" if entry.tune else str(len(design["folders"]))
        facts = [str(order), f"`{entry.name}`", *(design[key] for key in ("data", "width", "batch", "length"))]
        facts += [design["seeds"], cells, "" if entry.tune else str(len(new))]
        facts += [f"{cost:,.0f}" if cost is not None else "not measured" if new else "–"]
        facts += ["not measured" if hours is None else f"{hours:.1f}"]
        lines.append(("| " + " | ".join(facts) + " |\n", hours))
    return lines


def read_pilot(entry: plan_entries.Entry) -> dict[str, Any] | None:
    """What the entry's pilot measured; None before it was run."""
    file = ROOT / plan_entries.PILOTS / f"{entry.name}.json"
    if not file.exists():
        return None
    pilot: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return pilot


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
