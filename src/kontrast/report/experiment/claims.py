"""The paper's claims, and what our runs say of each: holds, does not hold, or not resolved at this scale.

A verdict is told by word, sign and colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kontrast.report.page import Mark, Number, Table

SIGNS = {"holds": ("✓", "good"), "does not hold": ("✗", "bad"), "not resolved at this scale": ("?", "watch")}


def mark(verdict: str) -> Mark:
    r"""A verdict as a cell.

    >>> mark("holds")
    Mark(text='✓\xa0holds', tone='good')
    """
    sign, tone = SIGNS.get(verdict, ("?", "watch"))
    return Mark(f"{sign}\N{NO-BREAK SPACE}{verdict}", tone)


def counts(summary: Mapping[str, Any]) -> list[Number]:
    """A card for each verdict that a claim has."""
    verdicts = [finding["verdict"] for claim in summary["claims"] for finding in claim["findings"]]
    about = {
        "holds": "the 95 % interval, or every run, is on the claim's side",
        "does not hold": "it is on the other side",
        "not resolved at this scale": "our runs leave it open",
    }
    return [
        Number(mark(verdict).text, f"{verdicts.count(verdict)} of {len(verdicts)}", why, SIGNS[verdict][1])
        for verdict, why in about.items()
        if verdict in verdicts
    ]


def table(summary: Mapping[str, Any]) -> Table:
    """A row for each finding: verdict, claim, the statistic's value, how it is decided."""
    rows = []
    for claim in summary["claims"]:
        for finding in claim["findings"]:
            said = ": ".join(filter(None, [finding.get("where", ""), finding["says"]]))
            rows.append([mark(finding["verdict"]), claim["text"], said, claim["statistic"]])
    return Table(["verdict", "the claim", "what our runs say", "decided by"], rows)
