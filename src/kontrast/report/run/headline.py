"""Did it work: the numbers that matter with their protocols, and how the run ended."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from kontrast.report.page import Number, Numbers, Part, Section, Text
from kontrast.report.run.collect import Run

RAW = ("raw pixels", "raw vectors")


def section(run: Run) -> Section:
    """The first thing a reader sees."""
    parts: list[Part] = [*_ending(run), *_said(run)]
    numbers = [*map(_accuracy, run.results), *_start(run), *_loss(run), *_geometry(run), *_time(run)]
    if numbers:
        parts.append(Numbers(numbers))
    parts += [Text(trouble, "bad") for trouble in run.troubles]
    return Section("Result", parts)


def percent(value: float, digits: int = 1) -> str:
    """A share in words.

    >>> percent(0.8575)
    '85.8 %'
    """
    return f"{100 * value:.{digits}f} %"


def counted(count: float | None) -> str:
    """A count in words.

    >>> counted(10_000), counted(None)
    ('10,000', '–')
    """
    return "–" if count is None else f"{count:,}"


def tested(record: dict[str, Any]) -> str:
    """Which rows a protocol's number is of.

    >>> tested({"test_rows": 2000, "split": "test"})
    '2,000 test rows'
    """
    return f"{counted(record.get('test_rows'))} {record.get('split') or 'test'} rows"


def chance(run: Run) -> float | None:
    """The accuracy of guessing: the share of the largest class among the test rows."""
    for record in run.results:
        rows = [sum(row) for row in record.get("confusion") or []]
        if sum(rows):
            return float(max(rows) / sum(rows))
    return None


def duration(seconds: float) -> str:
    """In words.

    >>> duration(89.2), duration(1800), duration(9000)
    ('89 s', '30 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _ending(run: Run) -> list[Part]:
    if run.status == "done":
        return []
    at = run.state.get("step") or next((line["step"] for line in reversed(run.lines) if "step" in line), None)
    where = f" at step {at:,} of {run.state['total_steps']:,}" if at and run.state.get("total_steps") else ""
    if run.status == "failed":
        return [Text(f"This run failed{where}.\n{run.state.get('error') or 'It left no reason.'}", "bad")]
    said = {
        "interrupted": "was interrupted",
        "training": "is training, or was killed while it was",  # the files are the same
        "evaluating": "is being evaluated, or was killed while it was",
    }
    what = said.get(run.status, f"has the status {run.status!r}")
    again = f"The same command continues it: kontrast train {run.shown_path}"
    return [Text(f"This run {what}{where}; the page shows what there is. {again}", "watch")]


def _accuracy(record: dict[str, Any]) -> Number:
    error = record.get("error")
    about = f"{_short(record['protocol'])}; {tested(record)}"
    spread = "" if error is None else f" ± {100 * error:.1f}"
    what, colon, name = record["name"].rpartition(": ")
    label = {"knn20": "kNN accuracy", "probe": "Linear probe"}.get(name, name)
    return Number(f"{what.capitalize()}{colon}{label}", f"{100 * record['value']:.1f}{spread} %", about)


def _start(run: Run) -> list[Number]:
    """The accuracy of the pretrained weights that the run began with, and what training changed."""
    start = run.result.get("start") or {}
    record, difference = start.get("result") or {}, start.get("difference") or {}
    if not _number(record.get("value")):
        return []
    found = _accuracy({**record, "name": f"before training: {record['name']}"})
    if not (_number(difference.get("value")) and _number(difference.get("error"))):
        return [found]
    change = f"{100 * difference['value']:+.1f} ± {100 * difference['error']:.1f}".replace("-", "−")
    return [replace(found, about=f"{found.about}; training changed it by {change} points on the same rows")]


def _short(protocol: str, most: int = 60) -> str:
    """Its first clauses; the table of all protocols has the rest."""
    first, *rest = protocol.split(", ")
    for clause in rest:
        if len(first) + len(clause) > most:
            return f"{first} …"
        first += f", {clause}"
    return first


def _loss(run: Run) -> list[Number]:
    last = next((line for line in reversed(run.steps) if _number(line.get("loss"))), None)
    if last is None:
        return []
    about = f"mean of the last steps logged, to step {last['step']:,}"
    if _number(last.get("chance")):
        about += f"; chance {last['chance']:.2f}"
    if _number(last.get("bound")):
        bound = float(last["bound"])
        about += f", cannot be below {bound:.2f}" if bound >= 0.01 else f", cannot be below {bound:.1e}"
    return [Number("Training loss", f"{last['loss']:.3f}", about)]


def _geometry(run: Run) -> list[Number]:
    words = {"uniformity": "Uniformity", "tolerance": "Tolerance", "effective rank": "Effective rank"}
    about = {"effective rank": ", about the origin"}  # the doctor's is about their mean
    found: list[Number] = []
    for name, label in words.items():
        line = run.measure("features", name)
        if line is not None:
            best = (
                f"; {line.get('meaning') or 'theory'}: {line['theory']:.3g}".replace("-", "−")
                if _number(line.get("theory"))
                else ""
            )
            found.append(
                Number(label, f"{line['value']:.3g}".replace("-", "−"), f"of the features{about.get(name, '')}{best}")
            )
    return found


def _time(run: Run) -> list[Number]:
    seconds = run.state.get("seconds")
    if not isinstance(seconds, int | float):
        return []
    machine = run.state.get("machine") or {}
    about = f"training and evaluation on {machine.get('device', 'an unknown device')}"
    return [Number("Time", duration(float(seconds)), about)]


def raw_records(run: Run) -> dict[str, dict[str, Any]]:
    """The records of raw pixels or vectors, by the name of their protocol."""
    parts = ((record["name"].partition(": "), record) for record in run.results)
    return {protocol: record for (what, _, protocol), record in parts if protocol and what in RAW}


def _by(protocol: str) -> str:
    return {"knn20": "kNN", "probe": "a linear probe"}.get(protocol, protocol)


def _said(run: Run) -> list[Part]:
    """How good the best protocol is, beside raw pixels by the same protocol if they are there, else beside guessing."""
    guess, raw = chance(run), raw_records(run)
    own = [record for record in run.results if record not in raw.values()]
    best = max(
        [record for record in own if record["name"] in raw] or own,
        key=lambda record: float(record["value"]),
        default=None,
    )
    if best is not None and (raw or guess is not None):
        said = f"The class of {percent(best['value'])} of {tested(best)} is found by {_by(best['name'])}; "
        end = ". ± is one standard error over the rows: it says nothing of other seeds."
        beside = raw.get(best["name"])
        if beside is not None:
            what = beside["name"].partition(": ")[0]
            said += f"{what} alone, by the same protocol, give {percent(beside['value'])}"
            if best["value"] <= beside["value"]:
                return [Text(f"The encoder is no better than {what}.\n{said}{end}", "watch")]
            return [Text(f"{said}{end}")]
        if guess is not None:
            return [Text(f"{said}guessing the most frequent would find {percent(guess)}{end}")]
    if run.result.get("note"):
        return [Text(str(run.result["note"]).capitalize() + ".", "note")]
    return []


def _number(x: Any) -> bool:
    return isinstance(x, int | float) and math.isfinite(x)
