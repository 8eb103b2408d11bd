"""The sections in words and numbers: how the run ended, what the doctor found, how to make the run again."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from typing import Any, Literal

from kontrast.registry import FAMILIES, PartError
from kontrast.report.page import Fold, Number, Numbers, Part, Section, Table, Text
from kontrast.report.records import RunRecord
from kontrast.runs import Finding, ProtocolResult
from kontrast.runs.schemas import STATUSES

COMMANDS = ("train", "adapt", "reproduce", "demo", "tune")  # those that leave runs


# ------------------------------------------------------------------------------------------------- words for numbers


def percent(value: float, digits: int = 1) -> str:
    """A share as a percentage.

    >>> percent(0.8575)
    '85.8 %'
    """
    return f"{100 * value:.{digits}f} %"


def count_words(count: float | None) -> str:
    """A count with separators.

    >>> count_words(10_000), count_words(None)
    ('10,000', '–')
    """
    return "–" if count is None else f"{count:,}"


def duration(seconds: float) -> str:
    """A duration in a readable unit.

    >>> duration(89.2), duration(1800), duration(9000)
    ('89 s', '30 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def rows_of(result: ProtocolResult) -> str:
    """How many rows of which split a protocol's number is about.

    >>> rows_of(ProtocolResult(name="knn20", protocol="kNN", test_rows=2000, split="test"))
    '2,000 test rows'
    """
    return f"{count_words(result.test_rows)} {result.split or 'test'} rows"


def chance(run: RunRecord) -> float | None:
    """The accuracy of guessing: the share of the largest class among the test rows."""
    for result in run.results:
        rows = [sum(row) for row in result.confusion or []]
        if sum(rows):
            return float(max(rows) / sum(rows))
    return None


def _minus(text: str) -> str:
    return text.replace("-", "−")


# ------------------------------------------------------------------------------------------------------------- result


def result(run: RunRecord) -> Section:
    """How the run ended, the numbers that matter with their protocols, and what could not be read."""
    numbers = [*map(_accuracy, run.results), *_start(run), *_loss(run), *_geometry(run), *_time(run)]
    parts: list[Part] = [*_ending(run), *_verdict(run), *([Numbers(numbers)] if numbers else [])]
    return Section("Result", [*parts, *(Text(message, "bad") for message in run.messages)])


def _ending(run: RunRecord) -> list[Part]:
    if run.status == "done":
        return []
    last = next((line["step"] for line in reversed(run.contents.metrics) if line.get("step") is not None), None)
    step, total = run.state.step or last, run.state.total_steps
    place = f" at step {step:,} of {total:,}" if step and total else ""
    if run.status == "failed":
        return [Text(f"This run failed{place}.\n{run.state.error or 'It left no reason.'}", "bad")]
    words = {
        "interrupted": "was interrupted",
        "training": "is training, or was killed while it was",  # the files are the same
        "evaluating": "is being evaluated, or was killed while it was",
    }
    status = words.get(run.status, f"has the status {run.status!r}")
    resume = typed_command(run) if run.state.adapt is not None else f"kontrast train {run.shown_path}"
    command = f"The same command continues it: {resume}"
    return [Text(f"This run {status}{place}; the page shows what there is. {command}", "watch")]


def _verdict(run: RunRecord) -> list[Part]:
    """How good the best protocol is, beside raw pixels by the same protocol if there are any, else beside chance."""
    guess, raw = chance(run), _raw_results(run)
    results = [result for result in run.results if result not in raw.values()]
    candidates = [result for result in results if result.name in raw] or results
    best = max(candidates, key=lambda result: result.value or 0.0, default=None)
    if best is not None and best.value is not None and (raw or guess is not None):
        text = f"The class of {percent(best.value)} of {rows_of(best)} is found by {_in_words(best.name, 'phrase')}; "
        end = ". ± is one standard error over the rows; other seeds may differ by more."
        baseline = raw.get(best.name)
        if baseline is not None and baseline.value is not None:
            name = baseline.name.partition(": ")[0]
            text += f"{name} alone, by the same protocol, give {percent(baseline.value)}"
            if best.value <= baseline.value:
                return [Text(f"The encoder is no better than {name}.\n{text}{end}", "watch")]
            return [Text(f"{text}{end}")]
        if guess is not None:
            return [Text(f"{text}guessing the most frequent would find {percent(guess)}{end}")]
    note = run.contents.result.note
    return [Text(note.capitalize() + ".", "note")] if note else []


def _raw_results(run: RunRecord) -> dict[str, ProtocolResult]:
    """The results of raw pixels or vectors, by the name of their protocol: theirs are ``raw pixels: knn20``."""
    parts = ((result.name.partition(": "), result) for result in run.results)
    return {protocol: result for (_, _, protocol), result in parts if protocol}


def _in_words(protocol: str, attribute: Literal["title", "phrase"]) -> str:
    """What a protocol says of itself (`kontrast.evaluate.protocol.Protocol`), else its name."""
    with contextlib.suppress(PartError):  # of a protocol's file that cannot be read
        if protocol in FAMILIES["protocol"]:
            return str(FAMILIES["protocol"].declared(protocol, attribute) or protocol)
    return protocol


def _accuracy(result: ProtocolResult) -> Number:
    spread = "" if result.error is None else f" ± {100 * result.error:.1f}"
    subject, colon, name = result.name.rpartition(": ")
    about = f"{_first_clauses(result.protocol)}; {rows_of(result)}"
    return Number(
        f"{subject.capitalize()}{colon}{_in_words(name, 'title')}",
        f"{100 * (result.value or 0.0):.1f}{spread} %",
        about,
    )


def _first_clauses(protocol: str, most: int = 60) -> str:
    """The beginning of a protocol; the table of all protocols has the rest."""
    first, *rest = protocol.split(", ")
    for clause in rest:
        if len(first) + len(clause) > most:
            return f"{first} …"
        first += f", {clause}"
    return first


def _start(run: RunRecord) -> list[Number]:
    """The accuracy of the pretrained weights before training, and what training changed."""
    start = run.contents.result.start
    if start is None or start.result.value is None:
        return []
    number = _accuracy(start.result.model_copy(update={"name": f"before training: {start.result.name}"}))
    change = _minus(f"{100 * start.difference.value:+.1f} ± {100 * start.difference.error:.1f}")
    return [replace(number, about=f"{number.about}; training changed it by {change} points on the same rows")]


def _loss(run: RunRecord) -> list[Number]:
    if not run.steps:
        return []
    line = run.steps[-1]
    about = f"mean of the last steps logged, to step {line['step']:,}"
    if (high := line.get("chance")) is not None:
        about += f"; chance {high:.2f}"
    if (bound := line.get("bound")) is not None:
        about += f", cannot be below {bound:.2f}" if bound >= 0.01 else f", cannot be below {bound:.1e}"
    return [Number("Training loss", f"{line['loss']:.3f}", about)]


def _geometry(run: RunRecord) -> list[Number]:
    labels = {"uniformity": "Uniformity", "tolerance": "Tolerance", "effective rank": "Effective rank"}
    numbers: list[Number] = []
    for name, label in labels.items():
        line = run.measure("features", name)
        if line is not None:
            about = "of the features" + (
                ", about the origin" if name == "effective rank" else ""
            )  # the doctor's: centred
            if line.theory is not None:
                about += f"; {line.meaning or 'theory'}: " + _minus(f"{line.theory:.3g}")
            numbers.append(Number(label, _minus(f"{line.value:.3g}"), about))
    return numbers


def _time(run: RunRecord) -> list[Number]:
    if run.state.seconds is None:
        return []
    about = f"training and evaluation on {run.state.machine.get('device', 'an unknown device')}"
    return [Number("Time", duration(float(run.state.seconds)), about)]


# ------------------------------------------------------------------------------------------------------------- health


def health(run: RunRecord) -> Section:
    """The doctor's findings, problems first, with what is ok folded; and the commands that may follow."""
    findings = run.contents.findings
    if findings is None:
        note = Text(f"This run has not been examined yet: kontrast doctor {run.shown_path}", "note")
        return Section("Health, and what next", [note, *_next(run)])
    findings = sorted(findings, key=lambda finding: STATUSES.index(finding.status))
    parts: list[Part] = [_finding(finding) for finding in findings if finding.status in ("problem", "warning")]
    rest = [finding for finding in findings if finding.status not in ("problem", "warning")]
    ok = sum(finding.status == "ok" for finding in rest)
    if not parts:
        parts.append(Text(f"No problem found: {ok} of {len(findings)} rules are ok.", "good"))
    if rest:
        rows = [[finding.title, finding.status, finding.evidence] for finding in rest]
        parts.append(Fold(f"{ok} ok, {len(rest) - ok} unknown", [Table(["rule", "status", "evidence"], rows)]))
    return Section("Health, and what next", [*parts, *_next(run)])


def _finding(finding: Finding) -> Text:
    sign, tone = ("✗", "bad") if finding.status == "problem" else ("!", "watch")
    advice = f"\nWhat to do: {finding.advice}" if finding.advice else ""
    return Text(f"{sign} {finding.title[:1].upper()}{finding.title[1:]}\n{finding.evidence}{advice}", tone)


def _next(run: RunRecord) -> list[Part]:
    if run.status != "done":
        return []
    path = run.shown_path
    commands = {
        f"kontrast train {path} seed={2 if run.seed == 1 else 1}": "does it hold with another seed?",
        f"kontrast report {path} OTHER-RUN": "compare with another run",
        f"kontrast evaluate {path}": "evaluate by more protocols",
        f"kontrast embed {path} DATA -o embeddings.npz": "use the encoder",
    }
    width = max(map(len, commands))
    lines = [f"{command:<{width}}  # {reason}" for command, reason in commands.items()]
    return [Text("What next:", "note"), Text("\n".join(lines), "code")]


# ---------------------------------------------------------------------------------------------------------- reproduce


def reproduce(run: RunRecord) -> Section:
    """The command that makes the run again, versions and machine, and the recipe."""
    command = f"kontrast train {shlex.quote(run.shown_path)} --out again"
    parts: list[Part] = [
        Text("The same run again, in another folder; on the same machine and versions the same to the bit:", "note"),
        Text(command, "code"),
    ]
    if started := typed_command(run):
        parts += [Text("How it was started:", "note"), Text(started, "code")]
    parts.append(Table(["", ""], _origin(run)))
    if run.contents.recipe_text:
        parts.append(Fold("The recipe, resolved", [Text(run.contents.recipe_text.rstrip(), "code")]))
    return Section("Reproduce", parts)


def typed_command(run: RunRecord) -> str:
    """What was typed; empty if the run was not started from the command line."""
    words = [str(word) for word in run.state.command]
    is_ours = words[:1] in (["kontrast"], ["__main__.py"]) and any(word in COMMANDS for word in words[1:3])
    return shlex.join(["kontrast", *words[1:]]) if is_ours else ""


def _origin(run: RunRecord) -> list[list[str]]:
    state = run.state
    rows: dict[str, Any] = {
        "run": run.path.resolve().name,
        "hash of the recipe": state.hash,
        "seed": run.seed,
        "weights": run.contents.result.weights,
        "started": state.started,
        "finished": state.finished,
        "steps": state.step,
        "versions": ", ".join(f"{name} {value}" for name, value in state.versions.items() if value),
        # Without the folder: the page may be shared.
        "machine": ", ".join(f"{name} {value}" for name, value in state.machine.items() if name != "folder"),
    }
    return [[name, str(value)] for name, value in rows.items() if value not in (None, "")]
