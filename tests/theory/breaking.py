"""The tables of mistakes: with which formula of a module, made wrong in which way, each of its checks must fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Breaks = Mapping[str, tuple[str, Callable[..., Any]]]  # check: (formula, the wrong version of it)
