"""What is wrong, and what next: the doctor's findings (doctor.json), the ill first, and the commands that follow."""

from __future__ import annotations

from typing import Any

from kontrast.report.page import Fold, Part, Section, Table, Text
from kontrast.report.run.collect import Run

ORDER = ("problem", "warning", "unknown", "ok")


def section(run: Run) -> Section:
    """Diseases with their evidence and cures; what is healthy is folded."""
    parts: list[Part] = []
    if run.findings is None:
        parts.append(Text(f"This run has not been examined yet: kontrast doctor {run.shown_path}", "note"))
    else:
        found = sorted(run.findings, key=lambda finding: _rank(finding.get("status")))
        parts += [_told(finding) for finding in found if finding.get("status") in ("problem", "warning")]
        rest = [finding for finding in found if finding.get("status") not in ("problem", "warning")]
        healthy = sum(finding.get("status") == "ok" for finding in rest)
        if not parts:
            parts.append(Text(f"No problem found: {healthy} of {len(found)} rules are ok.", "good"))
        if rest:
            rows = [[str(finding.get(key, "")) for key in ("title", "status", "evidence")] for finding in rest]
            title = f"{healthy} ok, {len(rest) - healthy} could not be examined"
            parts.append(Fold(title, [Table(["examined", "finding", "evidence"], rows)]))
    return Section("Health, and what next", [*parts, *_next(run)])


def _rank(status: Any) -> int:
    return ORDER.index(status) if status in ORDER else len(ORDER)


def _told(finding: dict[str, Any]) -> Text:
    disease, evidence, cure = (str(finding.get(key, "")) for key in ("title", "evidence", "advice"))
    sign = "✗" if finding.get("status") == "problem" else "!"
    told = f"{sign} {disease[:1].upper()}{disease[1:]}\n{evidence}" + (f"\nWhat to do: {cure}" if cure else "")
    return Text(told, "bad" if finding.get("status") == "problem" else "watch")


def _next(run: Run) -> list[Part]:
    """Commands, for this run."""
    if run.status != "done":
        return []
    path = run.shown_path
    other = "seed=1" if run.recipe.get("seed") != 1 else "seed=2"
    commands = {
        f"kontrast train {path} {other}": "does it hold with another seed?",
        f"kontrast report {path} OTHER-RUN": "beside another run",
        f"kontrast evaluate {path}": "by further protocols",
        f"kontrast embed {path} DATA -o embeddings.npz": "use it",
    }
    wide = max(map(len, commands))
    lines = [f"{command:<{wide}}  # {why}" for command, why in commands.items()]
    return [Text("What next:", "note"), Text("\n".join(lines), "code")]
