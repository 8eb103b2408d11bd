"""``kontrast verify``: a line each, JSON for programs, and a status that tells."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from kontrast.cli import app, main
from kontrast.theory import check, sce, verify

runner = CliRunner()


def test_a_line_for_each_and_status_0() -> None:
    done = runner.invoke(app, ["verify", "--only", "sce-decomposition", "--only", "gradient-*"])
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert "sce-decomposition" in done.output
    assert "L_SCE" in done.output or "λ" in done.output, "the statement is shown"
    assert "all hold" in done.output


def test_json_is_a_list_of_objects() -> None:
    done = runner.invoke(app, ["verify", "--only", "sce-*", "--seed", "3", "--json"])
    found = json.loads(done.stdout)
    assert [set(x) >= {"name", "source", "statement", "error", "holds"} for x in found] == [True] * len(found)
    assert [x["error"] for x in found] == [o.error for o in verify(["sce-*"], seed=3)]


def test_a_failing_check_gives_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sce, "ceil", lambda *arguments, **options: 0.0)
    done = runner.invoke(app, ["verify", "--only", "sce-decomposition"])
    assert done.exit_code == 1
    assert "FAILS" in done.output
    assert "1 fail" in done.output


def test_no_check_gives_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    list(verify(["gradient-balance"]))  # the modules are loaded and have registered theirs
    for name in list(check.REGISTRY):
        monkeypatch.delitem(check.REGISTRY, name)
    done = runner.invoke(app, ["verify"])
    assert done.exit_code == 1


def test_unknown_name_gives_status_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["kontrast", "verify", "--only", "sce-decompositon"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "did you mean 'sce-decomposition'" in capsys.readouterr().err
