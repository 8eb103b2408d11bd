"""Measures of few rows warn; a rule says it in its evidence instead, or asks for more rows itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kontrast.geometry import TooFewSamples


@contextmanager
def ignoring_few() -> Iterator[None]:
    """No `TooFewSamples` from within."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewSamples)
        yield
