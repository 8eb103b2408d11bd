"""A benchmark's script as a module, for one test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = str(Path(__file__).parents[2] / "benchmarks")


@contextmanager
def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """``benchmarks/<name>.py``, imported anew and forgotten afterwards; it finds its neighbours in its folder."""
    monkeypatch.syspath_prepend(FOLDER)
    for module in (name, "measure"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    yield importlib.import_module(name)
    sys.modules.pop(name, None)
