"""Keep what `kontrast reproduce` wrote under docs/results (a page, data and charts for each sweep); README's summary.

python docs/results.py runs/wl-table-1-cpu runs/tcl-table-1-cpu …    # copies these, then writes all pages
python docs/results.py                                               # writes all pages again, from their result.json
"""

from __future__ import annotations

import json
import os.path
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kontrast.experiments import find, tables
from kontrast.experiments.experiment import KINDS, kind_of

RESULTS = Path(__file__).parent / "results"
THEORY = Path(__file__).parent / "theory.md"
README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- results -->", "<!-- /results -->"
VERDICTS = {
    "holds": "hold",
    "does not hold": "do not hold",
    "not resolved at this scale": "are not resolved at this scale",
}
INTRODUCTION = """# Results

Results of `kontrast reproduce` on two CPU cores: small images, a small encoder, short runs. They test what the papers
say, not their numbers. Of {total} claims, by kind (a claim on two data sets counts twice):

{counts}

How a claim gets its [verdict](../experiments/claims.md). These runs have the presets of version 0.1 (most of ten
epochs); [longer runs](../experiments/plan.md) will replace them.

## Experiments

The first claim of each, and the verdicts of all (further sets on the same page).

| experiment | paper | data | seeds | hours | first claim | here | all claims |
|---|---|---|---|---|---|---|---|
"""
SEARCHES = """
## Searches

What `kontrast tune` tried on held-out rows of the training data, and chose; each record has every trial.

| search | recipe | settings tried | chosen, its score | stopped | any k1 below 5,000 beats SupCon |
|---|---|---|---|---|---|
"""
KIND_WORDS = {
    "theory": "theory (gradients, minimisers and bounds of a loss)",
    "geometry": "geometry (where trained embeddings lie)",
    "accuracy": "accuracy (of classifiers on embeddings)",
}
Counts = dict[str, dict[str, int]]  # of verdicts, by kind


def keep(sweep: Path) -> None:
    """Copy the sweep's summary, table and charts."""
    to = RESULTS / sweep.name
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for file in [*sweep.glob("*.svg"), sweep / "table.csv", sweep / "result.json"]:
        shutil.copy(file, to / file.name)


def page(folders: Sequence[Path]) -> str:
    """The page of an experiment: what it shows, charts, tables and claims of its sweep, and of sweeps on other sets."""
    first, *others = [(folder, load(folder)) for folder in folders]
    title, *sections = parts(*first, at=folders[0])
    for folder, summary in others:
        heading, *more = parts(folder, summary, at=folders[0])
        before = set("\n\n".join(sections).split("\n\n"))
        more = [without(before, section).replace("## ", "### ", 1) for section in more]
        sections += [f"## {heading}", *more]
    return f"# {title}\n\n" + "\n\n".join(sections) + "\n"


def without(before: set[str], section: str) -> str:
    """A section without the paragraphs on source, preset and cells that the page has already.

    >>> without({"Source: here", "x"}, "## Tables\\n\\nSource: here\\n\\nx")
    '## Tables\\n\\nx'
    """
    paragraphs = section.split("\n\n")
    common = ("Source: ", "Preset ", "Each cell: ")
    return "\n\n".join(text for text in paragraphs if not (text.startswith(common) and text in before))


def parts(folder: Path, summary: dict[str, Any], *, at: Path) -> list[str]:
    """Title and sections of a sweep: what it shows, charts (as linked from ``at``), tables, claims with statistics."""
    text, _, _ = tables.markdown(summary).partition("\n## Runs\n")  # run folders are in result.json and table.csv
    heading, _, rest = text.partition("\n")
    tabled, _, claims = rest.partition("\n## Claims\n")
    title = titled(heading.removeprefix("# "), summary)
    charts = [os.path.relpath(chart, at) for chart in sorted(folder.glob("*.svg"))]
    sections = [
        title,
        verdict_lines(summary),
        *(f"![{Path(chart).stem}]({chart})" for chart in charts),
        f"## Tables\n\n{tabled.strip()}",
    ]
    return [*sections, f"## Claims\n\n{claims.strip()}"] if claims.strip() else sections


def verdict_lines(summary: dict[str, Any]) -> str:
    """What a sweep shows: a line for each verdict, with its claims.

    >>> finding = {"verdict": "holds", "where": "data=a", "n": 3}
    >>> claims = [{"text": "TCL is better", "findings": [finding]}]
    >>> print(verdict_lines({"claims": claims, "seeds": [0, 1, 2], "seconds": 3600}))
    - **holds**: TCL is better (data=a)
    - 3 seeds, 1.0 hours of runs
    """
    lines = []
    for verdict in VERDICTS:
        claims = [
            claim["text"] + (f" ({finding['where']})" if finding["where"] else "")
            for claim in summary["claims"]
            for finding in claim["findings"]
            if finding["verdict"] == verdict
        ]
        if claims:
            lines.append(f"- **{verdict}**: " + "; ".join(claims).replace("_", "\\_"))
    number = len(summary["seeds"])
    return "\n".join(
        [*lines, f"- {number} seed{'s' if number != 1 else ''}, {summary['seconds'] / 3600:.1f} hours of runs"]
    )


def pages() -> dict[Path, list[Path]]:
    """The page of each experiment and preset, and the folders of its sweeps: on the preset's own data first."""
    sweeps_of: dict[Path, list[Path]] = {}
    for folder in folders():
        summary = load(folder)
        own = RESULTS / f"{summary['experiment']}-{summary['preset']}"
        sweeps_of.setdefault((own if own in folders() else folder) / "README.md", []).append(folder)
    return {page: sorted(sweeps, key=lambda folder: folder != page.parent) for page, sweeps in sweeps_of.items()}


def titled(title: str, summary: dict[str, Any]) -> str:
    """A sweep's title and the sets it was on.

    >>> titled("Error", {"axes": {"data": ["fashion-mini"]}}), titled("Toy", {"axes": {}})
    ('Error (fashion-mini)', 'Toy')
    """
    sets = ", ".join(map(str, summary["axes"].get("data", [])))
    return f"{title} ({sets})" if sets else title


def index() -> str:
    """The page of all experiments: counts of verdicts and a line for each."""
    lines = []
    for page, sweeps in pages().items():
        summaries = [load(folder) for folder in sweeps]
        verdicts = [finding["verdict"] for s in summaries for claim in s["claims"] for finding in claim["findings"]]
        first = summaries[0]["claims"][0]
        finding = first["findings"][0]
        says, _, _ = finding["says"].partition(":")
        lines.append(
            _row(
                f"[`{summaries[0]['experiment']}`]({page.parent.name}/README.md)",
                summaries[0]["source"].partition(",")[0],
                "; ".join(", ".join(map(str, s["axes"].get("data", ["–"]))) for s in summaries),
                "; ".join(str(len(s["seeds"])) for s in summaries),
                f"{sum(s['seconds'] for s in summaries) / 3600:.1f}",
                first["text"],
                f"{says}: **{finding['verdict']}**",
                ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts),
            )
        )
    counts = counts_of(records())
    total = sum(sum(of_kind.values()) for of_kind in counts.values())
    head = INTRODUCTION.replace("{counts}", counted(counts)).replace("{total}", str(total))
    return head + "\n".join(lines) + "\n" + searches()


def searches() -> str:
    """A line a search that `scripts/results collect` kept: what was tried, what was chosen, what it says of k1."""
    lines = []
    for file in sorted((RESULTS / "tune").glob("*.json")):
        search = json.loads(file.read_text(encoding="utf-8"))
        trials = [trial for phase in search["phases"] for trial in phase["trials"]]
        chosen = [trial for trial in trials if trial["setting"] == search.get("chosen")]
        score = f", {_score(chosen[0], search['accuracy'])}" if chosen else ""
        setting = ", ".join(f"{name} = {value:g}" for name, value in (search.get("chosen") or {}).items())
        ended = search.get("stopped", "not ended yet")
        remark = search.get("remark", {}).get("words", "–")
        cells = (search["recipe"], str(len(trials)), (setting or "–") + score, ended, remark)
        lines.append(f"| [{file.stem}](tune/{file.name}) {_row(*cells)}\n")
    return SEARCHES + "".join(lines) if lines else ""


def _score(trial: dict[str, Any], accuracy: bool) -> str:
    """Mean and half-width over seeds; accuracies in percent.

    >>> _score({"score": {"mean": 0.8, "half": 0.01}}, True), _score({"score": {"mean": 2.0, "half": None}}, False)
    ('80.00 ± 1.00', '2.00')
    """
    scale, score = 100 if accuracy else 1, trial["score"]
    return f"{scale * score['mean']:.2f}" + ("" if score["half"] is None else f" ± {scale * score['half']:.2f}")


def load(folder: Path) -> dict[str, Any]:
    """The result.json of a sweep."""
    summary: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return summary


def records() -> list[dict[str, Any]]:
    """The result.json of every sweep."""
    return [load(folder) for folder in folders()]


def counts_of(summaries: list[dict[str, Any]]) -> Counts:
    """How many verdicts of each kind: one for each claim and part of the grid that has runs.

    What speaks of all parts together is not counted beside them.

    >>> claim = {"text": "", "kind": "accuracy", "statistic": ""}
    >>> findings = [{"verdict": "holds", "where": where, "n": 3} for where in ("data=a", "all 2 together")]
    >>> counts_of([{"experiment": "wl-table-1", "claims": [{**claim, "findings": findings}]}])["accuracy"]["holds"]
    1
    """
    counts: Counts = {kind: dict.fromkeys(VERDICTS, 0) for kind in KINDS}
    for record in summaries:
        for claim in record["claims"]:
            for finding in claim["findings"]:
                together = re.fullmatch(r"all \d+ together", finding["where"]) is not None
                if finding["n"] and not together:
                    counts[kind_in(record, claim)][finding["verdict"]] += 1
    return counts


def kind_in(record: dict[str, Any], claim: dict[str, Any]) -> str:
    """A recorded claim's kind; of records that do not have it, by the measure that its statistic names."""
    if "kind" in claim:
        return str(claim["kind"])
    experiment = find(record["experiment"])
    for known in experiment.claims:
        if known.text == claim["text"]:
            return kind_of(known, experiment.measures)
    named = [m for m in experiment.measures if re.search(rf"\b{re.escape(m.name)}\b", claim["statistic"])]
    kinds = {m.kind or ("accuracy" if m.protocols else "geometry") for m in named}
    return next((kind for kind in reversed(KINDS) if kind in kinds), "geometry")


def counted(counts: Counts) -> str:
    """The counts, a line for each kind.

    >>> print(counted({"accuracy": {"holds": 1, "does not hold": 0, "not resolved at this scale": 2}}))
    - accuracy (of classifiers on embeddings): 1 of 3 hold, 0 do not hold, 2 are not resolved at this scale
    """
    lines = []
    for kind, of_kind in counts.items():
        (verdict, first), *others = of_kind.items()
        tally = [f"{first} of {sum(of_kind.values())} {VERDICTS[verdict]}"]
        tally += [f"{count} {VERDICTS[other]}" for other, count in others]
        lines.append(f"- {KIND_WORDS[kind]}: {', '.join(tally)}")
    return "\n".join(lines)


def summary_lines() -> str:
    """README's three lines of results: theory (with the checks of `kontrast verify`), geometry, accuracy."""
    theory, *others = counted(counts_of(records())).splitlines()
    checks = len(re.findall(r"^\| `", THEORY.read_text(encoding="utf-8"), flags=re.MULTILINE))
    theory += f"; `kontrast verify` checks [{checks} statements](docs/theory.md), all hold"
    return "\n".join([BEGIN, "", theory, *others, "", END])


def with_summary(readme: str) -> str:
    """README with these lines between its marks."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return before + summary_lines() + after


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("_", "\\_") for cell in cells) + " |"


def folders() -> list[Path]:
    """The sweeps in docs/results."""
    return sorted(file.parent for file in RESULTS.glob("*/result.json"))


def main(sweeps: Sequence[str]) -> None:
    """Copy these sweeps, then write every page."""
    for sweep in sweeps:
        keep(Path(sweep))
    for page_file, sources in pages().items():
        page_file.write_text(page(sources), encoding="utf-8")
    (RESULTS / "README.md").write_text(index(), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
