"""The verdict of `kontrast adapt`: which encoder is in the folder, the numbers that decided it, and on which rows."""

from __future__ import annotations

from kontrast.report.page import Mark, Part, Section, Table, Text
from kontrast.report.records import RunRecord
from kontrast.report.run.summary import percent
from kontrast.runs import MeasureVerdict

TONES = {"better": "good", "accepted": "watch", "not better": "plain", "not judged": "watch"}
ROWS = {
    "learned": "learned",
    "chose": "chose the epoch",
    "cross-fitted": "of those judged too, each an epoch that other rows had chosen before",
    "unseen": "judged alone, read once at the end",
}


def section(run: RunRecord) -> Section | None:
    """The sentence, a table of the measures and the rows; None for a run that is no adaptation."""
    verdict = run.contents.result.verdict
    if verdict is None:
        return None
    parts: list[Part] = [Text(verdict.sentence[:1].upper() + verdict.sentence[1:] + ".", _tone(verdict.status))]
    if verdict.measures:
        columns = ["measure", "frozen", "adapted", "difference", "95 % interval", "won", "lost", "p"]
        parts.append(Table(columns, [_row(measure) for measure in verdict.measures], _caption(verdict.protocol)))
        rows = [[f"{count:,}", ROWS.get(name, name)] for name, count in verdict.rows.items() if count]
        parts.append(Table(["rows", "what they did"], rows))
    shipped = f"encoder.safetensors is the {verdict.shipped} encoder"
    epoch = "" if verdict.epoch is None else f"; the adapted one is that of epoch {verdict.epoch:g}"
    parts.append(Text(f"{shipped}{epoch}. Curves and losses below are of the training, whichever ships.", "note"))
    return Section("Verdict", parts)


def _tone(status: str) -> str:
    return TONES.get(status, "bad")


def _row(measure: MeasureVerdict) -> list[str | Mark]:
    change, tone = points(measure.difference), "good" if measure.low > 0 else "bad" if measure.high < 0 else ""
    return [
        measure.title or measure.name,
        percent(measure.frozen),
        percent(measure.adapted),
        Mark(change, tone) if tone else change,
        f"{points(measure.low)} … {points(measure.high)}",
        f"{measure.won:,}",
        f"{measure.lost:,}",
        f"{measure.p:.2g}",
    ]


def points(value: float) -> str:
    """A difference of shares in points.

    >>> points(-0.0123)
    '−1.2'
    """
    return f"{100 * value:+.1f}".replace("-", "−")


def _caption(protocol: str) -> str:
    end = (
        "The first measure decides; another that is worse forbids. p: the chance of so many won if neither were better"
    )
    return f"{protocol[:1].upper()}{protocol[1:]}. {end}." if protocol else f"{end}."
