"""The fixture ledger gives the same tables, verdicts and figures' data through all changes of the code."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.experiments.ledger.fixture import GOLDEN, LEDGER, SWEEPS, derived

ANEW = "if the change is meant: python -m tests.experiments.ledger.fixture, and read the difference"


def golden(name: str) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found[name]


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Where two records differ: structure and words exactly, numbers beyond the rounding of a sum in another order."""
    if isinstance(expected, dict) and isinstance(found, dict):
        lost = [f"{where}.{key}: only in one" for key in expected.keys() ^ found.keys()]
        return lost + [
            line
            for key in expected.keys() & found.keys()
            for line in differences(expected[key], found[key], f"{where}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return [f"{where}: {len(expected)} became {len(found)}"]
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f"{where}.{i}")]
    number = isinstance(expected, int | float) and not isinstance(expected, bool) and isinstance(found, int | float)
    same = found == pytest.approx(expected, rel=1e-7, abs=1e-9) if number else expected == found
    return [] if same else [f"{where}: {expected} became {found}"]


@pytest.mark.parametrize("name", SWEEPS)
def test_the_fixture_gives_what_it_gave(name: str) -> None:
    assert differences(golden(name), derived(name)) == [], ANEW


def test_the_comparison_sees_a_difference() -> None:
    found = golden("wl-table-1")
    assert differences(found, json.loads(json.dumps(found))) == []
    moved = json.loads(json.dumps(found))
    moved["places"][0]["cells"]["linear"]["mean"] *= 1 + 1e-6
    assert len(differences(found, moved)) == 1
    del moved["places"][1]
    assert any("became" in line for line in differences(found, moved))


def test_the_fixture_is_small() -> None:
    lines = [line for file in LEDGER.glob("*.jsonl") for line in file.read_bytes().splitlines()]
    assert max(map(len, lines)) <= 50_000
    assert sum(map(len, lines)) <= 1_000_000
