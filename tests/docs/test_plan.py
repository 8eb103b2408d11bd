"""docs/experiments/plan.md is what docs/plan.py writes, and every entry of the plan is one that kontrast can run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docs.loading import script

page = script("plan")
ENTRIES = page.plan_entries.read_plan(page.ROOT / page.plan_entries.PLAN)


def test_the_page_is_what_the_script_writes() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python docs/plan.py"


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if not entry.tune], ids=lambda entry: entry.name)
def test_a_pilot_is_a_part_of_its_entry(entry: object) -> None:
    whole = {cell.path for cell in page.designs.sweep_of(entry).cells}
    pilot = {cell.path for cell in page.designs.sweep_of(entry, pilot=True).cells}
    assert pilot <= whole
    assert len(pilot) <= 6, "a pilot is a few cells"


def test_costs_come_from_pilots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = tmp_path / page.plan_entries.PLAN
    plan.parent.mkdir(parents=True)
    toy = 'experiment = "graf-toy"\npreset = "smoke"\nsettings = ["setting=sc"]\nseeds = 2\n'
    plan.write_text(f'[[entry]]\n{toy}\n[[entry]]\nname = "again"\nwhole = false\n{toy}', encoding="utf-8")
    monkeypatch.setattr(page, "ROOT", tmp_path)
    assert "| not measured | not measured |" in page.page()
    assert "No entry is measured." in page.page()
    (tmp_path / page.plan_entries.PILOTS).mkdir()
    cell = {"at": {"setting": "sc", "seed": 0}, "core_seconds": 1800.0, "values": {"s3": 0.5}, "curve": []}
    (tmp_path / page.plan_entries.PILOTS / "graf-toy.json").write_text(json.dumps({"cells": [cell]}))
    written = page.page()
    assert "| `graf-toy` | – | – | – | – | 2 | 2 | 2 | 1,800 | 1.0 |" in written
    assert "In all 1.0 core-hours." in written
    assert "| `again` | – | – | – | – | 2 | 2 | 0 | – | 0.0 |" in written, "it shares all of its runs"
