"""Copy what `kontrast reproduce` wrote into docs/results: a page and its charts for each sweep, and the list of them.

python docs/results.py runs/wl-table-1-cpu runs/tcl-table-1-cpu …
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def record(sweep: Path) -> None:
    """The table as the command wrote it, with its charts under it."""
    to = RESULTS / sweep.name
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    charts = sorted(sweep.glob("*.svg"))
    page = (sweep / "table.md").read_text(encoding="utf-8").rstrip()
    page += "\n\n## Charts\n\n" + "\n\n".join(f"![{chart.stem}]({chart.name})" for chart in charts) + "\n"
    (to / "README.md").write_text(page, encoding="utf-8")
    for file in [*charts, sweep / "table.csv", sweep / "result.json"]:
        shutil.copy(file, to / file.name)


def index() -> None:
    """A line a sweep: what it is, on what, how many seeds, how long, and how its claims came out."""
    lines = [
        "# Results",
        "",
        "What came out of `kontrast reproduce` on two CPU cores, as the command wrote it; each page has data, seeds,",
        "commit (of the code that read the runs), command and hours. These are small runs: they are held against what",
        "the papers say, not against their numbers.",
        "",
        "| experiment | data | seeds | hours | claims |",
        "|---|---|---|---|---|",
    ]
    for file in sorted(RESULTS.glob("*/result.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        verdicts = [finding["verdict"] for claim in found["claims"] for finding in claim["findings"]]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        data = ", ".join(map(str, found["axes"].get("data", ["–"])))
        name, hours = file.parent.name, found["seconds"] / 3600
        lines.append(
            f"| [{found['title']}]({name}/README.md) | {data} | {len(found['seeds'])} | {hours:.1f} | {counts} |"
        )
    (RESULTS / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        record(Path(folder))
    index()
