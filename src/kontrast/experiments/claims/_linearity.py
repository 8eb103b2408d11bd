r"""A measure grows about linearly along an axis: its curve bends little against what it rises.

With the least-squares line and quadratic of `_trends` on an axis of length R = max x − min x,

    (1)  rise = β R           β the slope of the line
    (2)  bend = γ R²/4        γ the curvature: how far the quadratic lies below its chord, in the middle
    (3)  |bend| ≤ θ · rise    "about linear"; y = x² from 0 has bend = rise/4, so θ = 1/8 is half of a square's bend

(3) is tested as equivalence is: θ·rise − bend and θ·rise + bend, both linear in y, must both lie above 0 by their 95 %
intervals over seeds, which also says that the measure rises. One of them below 0 decides against it. A ratio of each
seed would have no mean where a seed hardly rises.
"""

from __future__ import annotations

from collections.abc import Sequence

from kontrast.experiments.claims._parts import Number, Where, at, by_part
from kontrast.experiments.claims._trends import (
    Curve,
    axis_of,
    curves_of,
    of_each_seed,
    too_few,
    weighted_sum,
    weights_of,
)
from kontrast.experiments.claims._verdict import FAILS, HOLDS, OPEN, opened, sign_over_seeds
from kontrast.experiments.experiment import Claim, Finding, Row
from kontrast.intervals import interval

SHARE = 1 / 8


def about_linear(
    text: str,
    measure: str,
    along: str,
    where: Where | None = None,
    within: Sequence[str] = (),
    *,
    share: float = SHARE,
    scale: str = "linear",
) -> Claim:
    """``measure`` rises about linearly along the axis: (3), with θ = ``share``, over seeds.

    >>> rows = [Row({"fraction": x / 4, "seed": s}, "", "done", {"steps": 100 + 80 * x + s * (x % 2)})
    ...     for x in range(5) for s in range(3)]
    >>> [found] = about_linear("linear", "steps", "fraction").test(rows)
    >>> found.verdict, found.says
    ('holds', 'rise 320, bend -0.571; 0.125·rise − bend = +40.6 ± 1.4 (n = 3), above 0; the smallest ...')
    >>> squares = [Row(r.at, "", "done", {"steps": 100 + 320 * r.at["fraction"] ** 2 + r.at["seed"]}) for r in rows]
    >>> about_linear("linear", "steps", "fraction").test(squares)[0].verdict
    'does not hold'
    """
    where = where or {}
    if not share > 0:
        raise ValueError(f"the share is {share:g}; expected a number above 0")
    statistic = (
        f"each seed's least-squares line and quadratic of {measure} against {axis_of(along, scale)}{at(where)}: the "
        f"bend (a quarter of curvature × range²) is at most {share:g} of the rise (slope × range), either way; 95 % "
        "Student-t intervals over seeds of both differences above 0"
    )

    def one(rows: Sequence[Row], part: str) -> Finding:
        curves, lacking = curves_of(rows, measure, along, where, scale)
        if few := too_few(curves, along, 3):
            return opened(part, lacking or few)
        found = []
        for sign, mark in ((-1.0, "−"), (1.0, "+")):
            numbers = of_each_seed(curves, lambda curve, sign=sign: _contrast(curve, share, sign))  # type: ignore[misc]
            name = f"{share:g}·rise {mark} bend"
            found.append(sign_over_seeds(name, numbers, 1, where=part, lacking=lacking))
        rise, bend = (
            interval(n.value for n in of_each_seed(curves, lambda curve, which=which: _contrast(curve, *which)))  # type: ignore[misc]
            for which in ((1.0, 0.0), (0.0, 1.0))
        )
        verdicts = {finding.verdict for finding in found}
        verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS
        says = f"rise {rise.mean:.3g}, bend {bend.mean:.3g}; " + "; ".join(finding.says for finding in found)
        nearest = min(found, key=lambda finding: finding.value if finding.value is not None else 0.0)
        return Finding(verdict, says, part, nearest.value, nearest.half, nearest.n, nearest.error, nearest.visible)

    return Claim(text, statistic, by_part(one, within, along, *where), (measure,))


def _contrast(curve: Curve, share: float, sign: float) -> Number:
    """``share`` · (1) + ``sign`` · (2) of a seed's curve."""
    length = curve[-1][0] - curve[0][0]
    rise, bend = length * weights_of(curve, 1)[1], length**2 / 4 * weights_of(curve, 2)[2]
    return weighted_sum(curve, share * rise + sign * bend)
