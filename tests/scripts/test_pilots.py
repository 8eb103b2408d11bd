"""Pilots run the cells that the plan chooses, and write down what they cost and came to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pilots

ROOT = Path(__file__).parents[2]
PLAN = """
[[entry]]
experiment = "graf-toy"
preset = "smoke"
seeds = 2
pilot = ["setting=sc"]
"""


def test_a_pilot_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    folders = {"--plan": "plan.toml", "--folder": "runs-here", "--to": "to"}
    words = [word for option, name in folders.items() for word in (option, str(tmp_path / name))]
    command = [sys.executable, str(ROOT / "scripts" / "pilots.py"), *words]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("graf-toy: setting=sc seed=0")
    record = tmp_path / "to" / "graf-toy.json"
    (cell,) = json.loads(record.read_text(encoding="utf-8"))["cells"]
    assert cell["at"] == {"setting": "sc", "seed": 0}
    assert cell["core_seconds"] > 0
    assert any(value is not None for value in cell["values"].values())
    text = record.read_bytes()

    monkeypatch.chdir(tmp_path)  # which it changes, as its priority and what a signal does
    monkeypatch.setattr("os.nice", lambda more: more)
    monkeypatch.setattr("signal.signal", lambda *arguments: None)
    monkeypatch.setattr("sys.argv", ["pilots.py", *words])
    assert pilots.main() == 0
    assert record.read_bytes() == text, "it is done, and its cost is known"
    monkeypatch.setattr("sys.argv", ["pilots.py", *words, "graf-toi"])
    with pytest.raises(SystemExit, match="2"):
        pilots.main()
    assert "graf-toi: is no entry with a pilot. Use graf-toy" in capsys.readouterr().err
