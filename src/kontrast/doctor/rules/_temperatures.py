r"""Temperatures, by how they weigh two negatives: r(s)/r(s') = e^{(s−s')/τ}  (Wang & Liu eq. 5).

    (1)  sharpness(τ) = e^{0.1/τ}      between two negatives whose cosines differ by 0.1
    (2)  reach(τ)     = e^{2/τ}        between the nearest and the farthest that there can be

At τ = 0.1 they are 2.7 and 5·10⁸, at 0.02 148, at 1 (2) is 7.4.
"""

from __future__ import annotations

import math

from kontrast.doctor.record import Missing, Record

LARGEST = 700.0  # of an exponent: e^709 is the end of float64


def sharpness(tau: float) -> float:
    """(1).

    >>> round(sharpness(0.1), 4), round(sharpness(0.02), 1)
    (2.7183, 148.4)
    """
    return math.exp(min(0.1 / tau, LARGEST))


def reach(tau: float) -> float:
    """(2).

    >>> round(reach(1.0), 2)
    7.39
    """
    return math.exp(min(2 / tau, LARGEST))


def told_temperature(record: Record) -> float | None:
    """The loss's; None where it has none, `Missing` where a file of features came without being told."""
    if record.temperature is None and record.patient == "features":
        raise Missing("the temperature of the loss behind the features: pass it (--temperature 0.1)")
    return record.temperature


def shares_penalty(record: Record) -> bool:
    """Whether the loss's own negatives are what the entropy monitor looks at: all others, without their labels."""
    if record.patient == "features":
        return True
    return not record.method.needs_labels and record.options.get("loss", "ordinary") == "ordinary"
