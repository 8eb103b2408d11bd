"""Options that several models share: whole numbers, and a random start that can be fixed."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Iterator

import torch

from kontrast.registry import quoted

MOST_LAYERS = 1000  # of a network: one of a million would be made for hours


def positive(name: str, value: int, most: int = 2**31 - 1) -> int:
    """A whole number from 1 to ``most`` (numpy's too), as an int, or an error that names the option."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, not {quoted(value)}")
    if value > most:
        raise ValueError(f"{name} must be a whole number of at most {most:,}, not {quoted(value)}")
    return int(value)


def fraction(name: str, value: float) -> float:
    """A number from 0 to 1, or an error that names the option."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, not {quoted(value)}")
    return value


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Torch's CPU generator starts from ``seed`` inside and is as before afterwards; None leaves it alone.

    Modules draw their first weights on the CPU, so this fixes them whatever device they go to later.

    >>> with seeded(3):
    ...     a = torch.rand(2)
    >>> with seeded(3):
    ...     b = torch.rand(2)
    >>> torch.equal(a, b)
    True
    """
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(seed))
        yield
