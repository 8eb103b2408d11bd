"""Numbers as a sentence has them."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share of 1, readable whatever its size.

    >>> [percent(share) for share in (1.0, 0.9999, 0.123, 0.0123, 1e-7, 0.0, -0.001)]
    ['100 %', '100 %', '12 %', '1.2 %', 'below 0.01 %', '0 %', '-0.1 %']
    """
    value = 100 * share
    if 0 < abs(value) < 0.01:
        return "below 0.01 %"
    return f"{value:.0f} %" if abs(value) >= 9.95 or value == 0 else f"{value:.2g} %"


def counted(number: int, noun: str) -> str:
    """So many of them.

    >>> counted(1, "line"), counted(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def few(number: float) -> str:
    """A number in three digits, written out below a million.

    >>> few(1.4567), few(2998.6), few(4.8e8)
    ('1.46', '2,999', '4.8e+08')
    """
    return f"{number:,.0f}" if 100 <= number < 1e6 else f"{number:.3g}"
