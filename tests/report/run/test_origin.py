"""How to make a run again."""

from __future__ import annotations

from pathlib import Path

from kontrast.report.page import Fold, Text
from kontrast.report.run.collect import collect
from kontrast.report.run.origin import command, section
from tests.report import made


def test_the_command_and_what_was_typed(tmp_path: Path) -> None:
    run = collect(made.folder(tmp_path / "my runs" / "by-hand-1"))
    codes = [part.text for part in section(run).parts if isinstance(part, Text) and part.kind == "code"]
    assert codes == ["kontrast train 'my runs/by-hand-1' --out again", "kontrast train 'by hand.yaml'"]
    run.state["command"] = ["__main__.py", "-q", "tests"]
    assert command(run) == "", "another package started with -m"


def test_the_recipe_is_whole_and_the_machine_s_folder_is_not_told(tmp_path: Path) -> None:
    path = made.folder(tmp_path / "run")
    parts = section(collect(path)).parts
    (fold,) = [part for part in parts if isinstance(part, Fold)]
    assert fold.parts == [Text((path / "recipe.yaml").read_text().rstrip(), "code")]
    assert "somebody" not in repr(parts)
