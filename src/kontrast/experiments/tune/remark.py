"""The supplement's remark, checked on the way: "any value less than 5 × 10³ always gave improvements … over SupCon".

For each k1 tried at k2 = 1 the difference to SupCon (k1 = 0, k2 = 1, all else the same) is taken seed by seed; it is
resolved if Student's 95 % interval of its mean does not contain 0. The remark then

    holds             if every k1 below 5,000 that was tried is resolved above SupCon
    does not hold     if one of them is resolved below it
    is not resolved   otherwise; with one seed always

The procedure itself (`kontrast.experiments.tune.k`) asks less of what beats SupCon: there the mean is above, no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kontrast.experiments.intervals import Interval, paired
from kontrast.experiments.tune.k import REMARK, SUPCON
from kontrast.experiments.tune.search import Score, Setting

NOT_RESOLVED = "not resolved"


@dataclass(frozen=True)
class Against:
    """A setting against another, on the same seeds: ``above``, ``below``, ``not resolved`` or ``not measured``."""

    verdict: str
    difference: Interval | None = None


def against(score: Score, reference: Score, seeds: Sequence[int]) -> Against:
    """The paired difference of two scores over the seeds.

    >>> against(Score((0.82, 0.84, 0.83)), Score((0.80, 0.82, 0.81)), [0, 1, 2]).verdict
    'above'
    >>> against(Score((0.82,)), Score((0.80,)), [0]).verdict, against(Score((), "failed"), Score((0.8,)), [0]).verdict
    ('not resolved', 'not measured')
    """
    if score.state != "done" or reference.state != "done":
        return Against("not measured")
    one, other = (dict(zip(seeds, found.values, strict=True)) for found in (score, reference))
    d = paired(one, other)
    if d.half is None or abs(d.mean) <= d.half:
        return Against(NOT_RESOLVED, d)
    return Against("above" if d.mean > 0 else "below", d)


def remark(tried: Sequence[tuple[Setting, Score]], seeds: Sequence[int]) -> tuple[str, Mapping[float, Against]]:
    """The verdict in words, and each k1 of k2 = 1 against SupCon.

    >>> scores = [(SUPCON, Score((0.8, 0.81))), ({"k1": 4000.0, "k2": 1.0}, Score((0.82, 0.8305)))]
    >>> remark(scores, [0, 1])[0]
    'holds: every k1 below 5000 that was tried (4000) is above SupCon'
    """
    reference = next((score for setting, score in tried if setting == SUPCON), Score((), "failed"))
    found = {s["k1"]: against(score, reference, seeds) for s, score in tried if s["k2"] == 1.0 and s != SUPCON}
    below = {k1: each.verdict for k1, each in found.items() if k1 < REMARK}
    words = ", ".join(f"{k1:g}" for k1 in below)
    if "below" in below.values():
        worse = ", ".join(f"{k1:g}" for k1, verdict in below.items() if verdict == "below")
        return f"does not hold: k1 = {worse} is below SupCon", found
    if below and all(verdict == "above" for verdict in below.values()):
        return f"holds: every k1 below 5000 that was tried ({words}) is above SupCon", found
    if len(seeds) == 1:
        return f"{NOT_RESOLVED}: one seed has no interval", found
    return (
        f"{NOT_RESOLVED}: not every k1 below 5000 that was tried ({words}) differs from SupCon by its interval",
        found,
    )
