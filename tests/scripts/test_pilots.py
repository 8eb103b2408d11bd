"""Pilots run the cells that the plan chooses, and write down what they cost and came to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLAN = """
[[entry]]
experiment = "graf-toy"
preset = "smoke"
seeds = 2
pilot = ["setting=sc"]
"""


def test_a_pilot_is_recorded_once(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    words = [
        "--plan",
        str(tmp_path / "plan.toml"),
        "--folder",
        str(tmp_path / "runs-here"),
        "--to",
        str(tmp_path / "to"),
    ]
    command = [sys.executable, str(ROOT / "scripts" / "pilots.py"), *words]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("graf-toy: setting=sc seed=0")
    record = tmp_path / "to" / "graf-toy.json"
    (cell,) = json.loads(record.read_text(encoding="utf-8"))["cells"]
    assert cell["at"] == {"setting": "sc", "seed": 0}
    assert cell["core_seconds"] > 0
    assert any(value is not None for value in cell["values"].values())
    text = record.read_bytes()
    subprocess.run(command, capture_output=True, check=True)
    assert record.read_bytes() == text, "it is done, and its cost is known"
    unknown = subprocess.run([*command, "graf-toi"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2
    assert "graf-toi: is no entry with a pilot. Use graf-toy" in unknown.stderr
