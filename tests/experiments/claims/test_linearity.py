"""About linear: (4)–(6) of `kontrast.experiments.claims.trends`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kontrast.experiments import claims
from kontrast.experiments.experiment import Finding, Row

FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def judged(curve: Callable[[float], float], noise: float = 1.0, seeds: int = 4, censored: bool = False) -> Finding:
    """Seeds lie ``noise`` apart at every second point; the last point may be a lower bound."""
    rows = [
        Row(
            {"fraction": x, "seed": s},
            "",
            "done",
            {"steps": curve(x) + noise * s * (-1) ** k, "censored": float(censored and x == 1.0)},
        )
        for k, x in enumerate(FRACTIONS)
        for s in range(seeds)
    ]
    [found] = claims.about_linear("linear", "steps", "fraction").test(rows)
    return found


@pytest.mark.parametrize(
    ("curve", "verdict"),
    [
        (lambda x: 100 + 300 * x, claims.HOLDS),
        (lambda x: 100 + 300 * (0.8 * x + 0.2 * x**2), claims.HOLDS),  # bend/rise = 0.05
        (lambda x: 100 + 300 * x**2, claims.FAILS),  # 0.25
        (lambda x: 100 + 300 * x**0.25, claims.FAILS),  # bends as much the other way
        (lambda x: 400 - 300 * x, claims.FAILS),  # linear, but it falls
    ],
)
def test_eq_3(curve: Callable[[float], float], verdict: str) -> None:
    assert judged(curve).verdict == verdict


def test_a_square_bends_by_a_quarter_of_its_rise() -> None:
    assert judged(lambda x: 300 * x**2, noise=0.0).says.startswith("rise 300, bend 75;")


def test_what_leaves_it_open() -> None:
    """Seeds that spread more than the curve rises, one seed, and an end that is only a lower bound."""
    assert judged(lambda x: 100 + 30 * x, noise=40.0).verdict == claims.OPEN
    assert judged(lambda x: 100 + 300 * x, seeds=1).verdict == claims.OPEN
    assert judged(lambda x: 100 + 300 * x, censored=True).verdict == claims.OPEN


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="share=0: must be above 0"):
        claims.about_linear("linear", "steps", "fraction", share=0.0)
