"""Keep what `kontrast reproduce` wrote under docs/results (a page, data and charts for each sweep); README's summary.

python docs/results.py runs/wl-table-1-cpu runs/tcl-table-1-cpu …    # copies these, then writes all pages
python docs/results.py                                               # writes all pages again, from their result.json
"""

from __future__ import annotations

import json
import re
import shutil
import sys
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

What came out of `kontrast reproduce` on two CPU cores, as the command wrote it; each page has data, seeds, commit (of
the code that read the runs), command and hours. These are small runs: they are held against what the papers say, not
against their numbers. Verdicts are by [stated statistics](../experiments/claims.md); "not resolved" is one of them.

**Pages of presets of version 0.1**: these runs were short (ten epochs, most of them) and are being replaced. The
presets have changed since: the [plan](../experiments/plan.md) has what runs now, trained until an effect can show. Its
cells go into the [ledger](../experiments/background.md#the-ledger), from which the pages will be made.

{counts}

## First claims

One line for each experiment with its own settings: its first claim and what came out.

{headlines}

## All experiments

| experiment | data | seeds | hours | claims |
|---|---|---|---|---|
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
    """The sweep's summary, table and charts."""
    to = RESULTS / sweep.name
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for file in [*sweep.glob("*.svg"), sweep / "table.csv", sweep / "result.json"]:
        shutil.copy(file, to / file.name)


def page(folder: Path) -> str:
    """The table as the command writes it, and the charts under it."""
    summary = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    told = tables.markdown(summary).rstrip()
    heading, _, rest = told.partition("\n")  # pages of one experiment on two sets would have one title
    charts = "\n\n".join(f"![{chart.stem}]({chart.name})" for chart in sorted(folder.glob("*.svg")))
    return f"{titled(heading, summary)}\n{rest}\n\n## Charts\n\n{charts}\n"


def titled(title: str, summary: dict[str, Any]) -> str:
    """A sweep's title and the sets it was on.

    >>> titled("Error", {"axes": {"data": ["fashion-mini"]}}), titled("Toy", {"axes": {}})
    ('Error (fashion-mini)', 'Toy')
    """
    sets = ", ".join(map(str, summary["axes"].get("data", [])))
    return f"{title} ({sets})" if sets else title


def index() -> str:
    """A line a sweep: what it is, on what, how many seeds, how long, and how its claims came out."""
    lines = []
    for folder in folders():
        found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        verdicts = [finding["verdict"] for claim in found["claims"] for finding in claim["findings"]]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        data = ", ".join(map(str, found["axes"].get("data", ["–"])))
        hours = f"{found['seconds'] / 3600:.1f}"
        link = f"[{found['title']}]({folder.name}/README.md)"
        lines.append(f"| {link} | {data} | {len(found['seeds'])} | {hours} | {counts} |\n")
    head = INTRODUCTION.replace("{counts}", counted(counts_of(records()))).replace("{headlines}", headlines())
    return head + "".join(lines) + searches()


def searches() -> str:
    """A line a search that `scripts/results collect` kept: what was tried, what was chosen, what it says of k1."""
    lines = []
    for file in sorted((RESULTS / "tune").glob("*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        trials = [trial for phase in found["phases"] for trial in phase["trials"]]
        chosen = [trial for trial in trials if trial["setting"] == found.get("chosen")]
        score = f", {_score(chosen[0], found['accuracy'])}" if chosen else ""
        setting = ", ".join(f"{name} = {value:g}" for name, value in (found.get("chosen") or {}).items())
        ended = found.get("stopped", "not ended yet")
        remark = found.get("remark", {}).get("words", "–")
        cells = (found["recipe"], str(len(trials)), (setting or "–") + score, ended, remark)
        lines.append(f"| [{file.stem}](tune/{file.name}) {_row(*cells)}\n")
    return SEARCHES + "".join(lines) if lines else ""


def _score(trial: dict[str, Any], accuracy: bool) -> str:
    """Mean and half-width over seeds; accuracies in percent.

    >>> _score({"score": {"mean": 0.8, "half": 0.01}}, True), _score({"score": {"mean": 2.0, "half": None}}, False)
    ('80.00 ± 1.00', '2.00')
    """
    scale, score = 100 if accuracy else 1, trial["score"]
    return f"{scale * score['mean']:.2f}" + ("" if score["half"] is None else f" ± {scale * score['half']:.2f}")


def records() -> list[dict[str, Any]]:
    """The result.json of every page, of one seed or many, with settings of one's own or without."""
    return [json.loads((folder / "result.json").read_text(encoding="utf-8")) for folder in folders()]


def counts_of(found: list[dict[str, Any]]) -> Counts:
    """How many verdicts of each kind: one for each claim and part of the grid that has runs.

    What speaks of all parts together is not counted beside them.

    >>> claim = {"text": "", "kind": "accuracy", "statistic": ""}
    >>> findings = [{"verdict": "holds", "where": where, "n": 3} for where in ("data=a", "all 2 together")]
    >>> counts_of([{"experiment": "wl-table-1", "claims": [{**claim, "findings": findings}]}])["accuracy"]["holds"]
    1
    """
    counts: Counts = {kind: dict.fromkeys(VERDICTS, 0) for kind in KINDS}
    for record in found:
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
    """The counts, a line a kind.

    >>> print(counted({"accuracy": {"holds": 1, "does not hold": 0, "not resolved at this scale": 2}}))
    Of all 3 claims that were put to the test, by kind (a claim on two data sets is two):
    <BLANKLINE>
    - accuracy (of classifiers on embeddings): 1 of 3 hold, 0 do not hold, 2 are not resolved at this scale
    """
    total = sum(sum(of_kind.values()) for of_kind in counts.values())
    lines = []
    for kind, of_kind in counts.items():
        (verdict, first), *others = of_kind.items()
        tally = [f"{first} of {sum(of_kind.values())} {VERDICTS[verdict]}"]
        tally += [f"{count} {VERDICTS[other]}" for other, count in others]
        lines.append(f"- {KIND_WORDS[kind]}: {', '.join(tally)}")
    head = f"Of all {total} claims that were put to the test, by kind (a claim on two data sets is two):"
    return "\n".join([head, "", *lines])


def headlines() -> str:
    """A table with one line for each experiment that ran with its own settings: its first claim and the verdict."""
    lines = []
    for folder in folders():
        found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        if folder.name != f"{found['experiment']}-{found['preset']}":
            continue
        first = found["claims"][0]
        finding = first["findings"][0]
        says, _, _ = finding["says"].partition(":")
        name = f"[`{found['experiment']}`]({folder.name}/README.md)"
        lines.append(_row(name, found["source"].partition(",")[0], first["text"], says, finding["verdict"]))
    head = ["| experiment | paper | its first claim | here | verdict |", "|---|---|---|---|---|"]
    return "\n".join([*head, *lines])


def summary_lines() -> str:
    """README's three lines of results: theory (with the checks of `kontrast verify`), geometry, accuracy."""
    _, _, theory, *others = counted(counts_of(records())).splitlines()
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
    """Those that are kept."""
    return sorted(file.parent for file in RESULTS.glob("*/result.json"))


if __name__ == "__main__":
    for given in sys.argv[1:]:
        keep(Path(given))
    for folder in folders():
        (folder / "README.md").write_text(page(folder), encoding="utf-8")
    (RESULTS / "README.md").write_text(index(), encoding="utf-8")
    README.write_text(with_summary(README.read_text(encoding="utf-8")), encoding="utf-8")
