"""``kontrast show``: a recipe whole, as YAML that is the recipe again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kontrast import recipes
from kontrast.cli import app
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import resolve
from tests.cli.asking import ask, one_paragraph, written

runner = CliRunner()


def test_a_recipe_with_nothing_left_out(tmp_path: Path) -> None:
    done = runner.invoke(app, ["show", "tcl-fashion-mini", "optim.lr=0.05"])
    assert done.exit_code == 0, done.output
    whole = resolve(recipes.find("tcl-fashion-mini").override(["optim.lr=0.05"]))
    path = tmp_path / "shown.yaml"
    path.write_text(done.stdout)
    assert Recipe.read(path) == whole
    assert f"# run folder: {whole.folder}" in done.stdout
    assert done.stdout.startswith(f"# {whole.about}\n")
    assert yaml.safe_load(done.stdout)["method"] == {"name": "tcl", "temperature": 0.1, "k1": 5000.0, "k2": 1.0}


def test_a_claim_the_papers_units_and_the_command(tmp_path: Path) -> None:
    done = runner.invoke(app, ["show", "instance-cifar10"])
    assert done.exit_code == 0, done.output
    said = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert said[0].startswith(
        "# Instance discrimination on CIFAR-10, ordinary contrastive loss. Wang & Liu, supplement"
    )
    assert "83.78 % at τ = 0.2" in said[0]
    assert "# optimiser: SGD, momentum 0.9, learning rate 0.03, × 0.1 at epochs 160 and 190, weight decay 5e-4" in said
    assert "# command: kontrast train instance-cifar10" in said
    assert not any("claimed without" in line for line in said)
    path = tmp_path / "shown.yaml"
    path.write_text(done.stdout)
    assert Recipe.read(path) == resolve(recipes.find("instance-cifar10"))


def test_overrides_are_part_of_the_command_and_not_of_the_claim() -> None:
    shown = runner.invoke(
        app, ["show", "instance-cifar10", "method.temperature=0.5", "evaluate.protocols=[knn20, probe]"]
    )
    assert "# method: instance, ordinary loss, temperature τ = 0.5," in shown.stdout
    said = "method.temperature=0.5 'evaluate.protocols=[knn20, probe]'"
    assert f"# command: kontrast train instance-cifar10 {said}\n" in shown.stdout
    assert f"# the claim does not cover {said}\n" in shown.stdout


def test_files_and_run_folders(tmp_path: Path) -> None:
    path, made = written(tmp_path, about="two\nlines: [x]")
    of_file = runner.invoke(app, ["show", str(path)]).stdout
    assert of_file.startswith("# two lines: [x]\n")
    folder = Run.of(resolve(made))
    folder.begin(resolve(made))
    of_run = runner.invoke(app, ["show", str(folder.path)]).stdout
    for source, shown in ((path, of_file), (folder.path, of_run)):
        assert f"# command: kontrast train {source}\n" in shown
    assert of_run.replace(str(folder.path), "…") == of_file.replace(str(path), "…")


def test_mistakes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(monkeypatch, capsys, "show", "tcl-fashion-mini", "encoder.widht=3")
    assert (answer.status, answer.out) == (2, "")
    assert "did you mean 'width'?" in answer.err
    assert one_paragraph(answer.err)
