"""requirements-lowest.txt holds the lower bounds that pyproject.toml promises, neither more nor less."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def release(version: str) -> tuple[int, ...]:
    """1.11 as 1.11.0: what a bound means."""
    numbers = [int(part) for part in version.split(".")]
    return tuple(numbers + [0] * (3 - len(numbers)))


def test_the_lowest_versions_are_the_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(dependency.split(">=") for dependency in project["dependencies"])
    lines = (ROOT / "requirements-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert pinned.keys() - {"click"} == bounds.keys(), "typer's click stands there for the tests' sake"
    different = {
        name: (pinned[name], bounds[name]) for name in bounds if release(pinned[name]) != release(bounds[name])
    }
    assert not different, "raise the bound or lower the pin"
