"""Whether what a claim says is the same in every part of the grid: "similar on all data sets"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kontrast.experiments.claims._verdict import FAILS, HOLDS, OPEN, opened
from kontrast.experiments.experiment import Claim, Finding, Row


def everywhere(text: str, claim: Claim, axis: str = "data") -> Claim:
    """``claim``, which has a finding for each value of ``axis``, holds for every one of them.

    It does not hold as soon as one part does not, and is open while one is; with a single part there is nothing to
    compare.

    >>> from kontrast.experiments.claims import rises
    >>> rows = [Row({"data": d, "tau": t, "seed": s}, "", "done", {"knn": sign * t + 0.01 * s * t})
    ...     for d, sign in (("cifar10", 1), ("svhn", 1)) for t in (0.1, 0.2, 0.4) for s in range(3)]
    >>> each = rises("it rises", "knn", "tau", within=("data",))
    >>> everywhere("it rises on all sets", each).test(rows)[0].says
    'holds on 2 of 2 (data=cifar10, data=svhn)'
    """

    def test(rows: Sequence[Row]) -> list[Finding]:
        found = claim.test(rows)
        parts = [finding for finding in found if finding.where.startswith(f"{axis}=")]
        if len(parts) < 2:
            return [opened("", f"{axis} has one value; expected two or more")]
        verdicts = [finding.verdict for finding in parts]
        verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS
        says = f"holds on {verdicts.count(HOLDS)} of {len(parts)} ({', '.join(f.where for f in parts)})"
        others = {FAILS: "does not hold on", OPEN: "open on"}
        for other, words in others.items():
            if other in verdicts:
                says += f"; {words} {', '.join(f.where for f in parts if f.verdict == other)}"
        return [Finding(verdict, says, "", n=len(parts))]

    statistic = f'the verdict of each value of {axis} on "{claim.text}": {claim.statistic}'
    return replace(claim, text=text, statistic=statistic, test=test)
