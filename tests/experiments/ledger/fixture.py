"""The fixture ledger: smoke runs of several experiments, kept as text beside this file, and what is made of them.

    python -m tests.experiments.ledger.fixture           writes golden.json anew from the cells there are (seconds)
    python -m tests.experiments.ledger.fixture --run     runs the cells first (minutes), for a new format or new arrays;
                                                         --out FOLDER keeps their run folders, and goes on from them

The cells are stored, so nothing here depends on a machine's bits: tables, figures' data and verdicts are derived from
the same numbers everywhere. Whoever changes a claim, a measure or a chart on purpose runs the first command and reads
the difference in golden.json before it is committed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from kontrast import experiments
from kontrast.experiments import charts, tables
from kontrast.experiments.chart_records import records
from kontrast.experiments.engines.local import Local
from kontrast.experiments.ledger import Design, Entry, Ledger, entries_of
from kontrast.experiments.sweep import Sweep

HERE = Path(__file__).parent
LEDGER, GOLDEN = HERE / "cells", HERE / "golden.json"
SWEEPS: dict[str, list[str]] = {  # experiments, and which values of their axes
    "wl-table-1": [],
    "wl-separation": ["temperature=[0.1,1.0]"],
    "graf-geometry": ["method=[ce,ce-fix,sc]"],
    "graf-random-labels": ["method=[ce,sc]", "fraction=[0.0,1.0]"],
    "graf-toy": [],
    "tcl-gradients": [],
}
DIGITS = 9  # of a number in golden.json
MOST = 40  # records of a chart that golden.json has; of more, every so many


def derived(name: str) -> dict[str, Any]:
    """Table, verdicts and figures' data of an experiment's cells in the fixture."""
    experiment, design = experiments.find(name), Design(name, "smoke")
    rows = Ledger(LEDGER).rows(design)
    entries = [entry for entry in Ledger(LEDGER).entries(design) if entry.baseline is not None]
    summary = tables.summary(experiment, rows, preset="smoke")
    drawn = {chart.name: records(chart, rows) for chart in [*experiment.charts, *charts.learning(experiment, rows)]}
    found = {
        "axes": summary["axes"],
        "seeds": summary["seeds"],
        "places": [{"at": place["at"], "cells": place["cells"]} for place in summary["places"]],
        "findings": {claim["text"]: [_finding(f) for f in claim["findings"]] for claim in summary["claims"]},
        "baselines": tables.baselines(experiment, [str(e.baseline) for e in entries], [e.row() for e in entries]),
        "charts": {
            key: {"count": len(x), "records": x[:: -(-len(x) // MOST)] if x else []} for key, x in drawn.items()
        },
    }
    plain: dict[str, Any] = json.loads(json.dumps(_rounded(found)))
    return plain


def _finding(found: dict[str, Any]) -> dict[str, Any]:
    """What a claim came to, without its sentence."""
    return {key: found[key] for key in ("where", "verdict", "value", "half", "n")}


def _rounded(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: _rounded(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_rounded(value) for value in x]
    return float(f"{x:.{DIGITS}g}") if isinstance(x, float) else x


def run(out: str) -> None:
    """Make the cells anew."""
    made: list[Entry] = []
    for name, settings in SWEEPS.items():
        sweep = Sweep.of(experiments.find(name), "smoke", settings, out=out)
        sweep.run(Local(jobs=1, threads=1), lambda event: print(event.what, event.cell.name, event.error, flush=True))
        made += entries_of(sweep)
    for file in LEDGER.glob("*.jsonl"):
        file.unlink()
    Ledger(LEDGER).merge(made)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description="Write golden.json anew.")
    asked.add_argument("--run", action="store_true", help="Run the cells first.")
    asked.add_argument("--out", help="Where the run folders go.")
    given = asked.parse_args()
    if given.run:
        with tempfile.TemporaryDirectory() as aside:
            run(given.out or aside)
    golden = {name: derived(name) for name in SWEEPS}
    GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
