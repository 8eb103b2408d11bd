"""The runs of an experiment: what became of each, why some failed, links to those that have a page."""

from __future__ import annotations

from collections.abc import Sequence

from kontrast.report.experiment.collect import Ran, Record
from kontrast.report.page import Mark, Table, Widget

TONES = {"failed": "bad", "done": ""}

# Names go in as text, and into the address encoded: no folder's name can be anything else than a folder's name.
LINKS = """
const list = root.querySelector("ul");
for (const { label, folder } of data) {
  const link = document.createElement("a");
  link.textContent = label;
  link.href = `../${encodeURIComponent(folder)}/report.html`;
  const item = document.createElement("li");
  item.append(link);
  list.append(item);
}
"""
STYLE = "<style>.run-links { columns: 20rem; padding-left: 1.2rem; font-size: .9rem; }</style>"


def runs(record: Record) -> Table:
    """Every run."""
    rows: list[list[str | Mark]] = [
        [run.place, _word(run.seed), run.folder, _status(run), "–" if run.seconds is None else f"{run.seconds:.0f} s"]
        for run in record.runs
    ]
    return Table(["place", "seed", "run folder", "status", "time"], rows)


def failures(record: Record) -> Table:
    """Those with an error."""
    rows: list[list[str | Mark]] = [
        [run.place, _word(run.seed), run.folder, Mark(run.error, "bad")] for run in record.runs if run.error
    ]
    return Table(["place", "seed", "run folder", "error"], rows)


def links(record: Record) -> Sequence[Widget]:
    """To the pages of the runs that have one."""
    have = [{"label": f"{run.place}, seed {run.seed}", "folder": run.folder} for run in record.runs if run.has_report]
    return (
        [Widget("run-links", f'{STYLE}<ul class="run-links"></ul>', LINKS, have, "Pages of the runs")] if have else []
    )


def _status(run: Ran) -> str | Mark:
    tone = TONES.get(run.status, "watch")
    return Mark(run.status, tone) if tone else run.status


def _word(seed: object) -> str:
    return "–" if seed is None else str(seed)
