"""Every experiment is whole: its claims and charts speak of what it has."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kontrast import experiments
from kontrast.experiments import papers
from kontrast.experiments.cell import Cell
from kontrast.experiments.experiment import Row
from kontrast.experiments.papers import BESIDE
from kontrast.experiments.plan import plan
from kontrast.recipe import Recipe
from kontrast.recipes import published
from kontrast.registry import PartError

FOLDER = Path(papers.__file__).parent


@functools.cache
def cells_of(name: str, preset: str) -> list[Cell]:
    """The cells of one seed; to resolve their recipes takes up to a second."""
    return plan(experiments.find(name), preset, seeds=1)


def test_every_file_of_a_paper_is_in_the_table() -> None:
    declared = {
        name
        for file in FOLDER.rglob("*.py")
        for name in re.findall(r"Experiment\(\n\s+name=\"(.+?)\"", file.read_text(encoding="utf-8"))
    }
    assert declared
    assert declared <= set(experiments.names()), "an experiment that is declared must be in EXPERIMENTS of its file"


def test_the_table_is_read_without_torch() -> None:
    """`kontrast list experiments` and the shell's completion need it, and torch takes seconds."""
    code = "import sys\nfrom kontrast import experiments\nexperiments.names()\nprint('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files are experiments like those of the papers."""
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    yield tmp_path
    for file in tmp_path.glob("*.py"):
        sys.modules.pop(f"{papers.__name__}.{file.stem}", None)


def test_a_new_file_is_known_at_once(folder: Path) -> None:
    (folder / "margins.py").write_text(
        "from dataclasses import replace\nfrom kontrast.experiments.papers import sce\n"
        'EXPERIMENTS = [replace(sce.EXPERIMENTS[0], name="margin-views")]\n'
    )
    (folder / "_shared.py").write_text("raise RuntimeError\n")
    assert "margin-views" in experiments.names()
    assert experiments.find("margin-views").rows == "target"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", PartError, r"papers\.margins\.EXPERIMENTS: must be a list of Experiment"),
        ("EXPERIMENTS = (\n", PartError, r"papers\.margins cannot be imported: SyntaxError: .*margins\.py"),
        ("EXPERIMENTS = [3]\n", PartError, r"papers\.margins\.EXPERIMENTS: must be a list of Experiment"),
        (
            "from kontrast.experiments.papers.sce import EXPERIMENTS\n",
            ValueError,
            r"papers\.sce: .* another experiment 'sce-table-2'",
        ),
    ],
)
def test_a_file_that_is_no_papers_is_named(folder: Path, text: str, error: type[Exception], message: str) -> None:
    (folder / "margins.py").write_text(text)
    with pytest.raises(error, match=message):
        experiments.names()


@pytest.mark.parametrize("name", experiments.names())
def test_presets_measures_claims_and_charts(name: str) -> None:
    made = experiments.find(name)
    assert list(made.presets) == ["paper", "cpu", "smoke"], (
        "--preset takes these three: each must be there, in this order"
    )
    assert made.rows in made.axes
    assert made.claims, "an experiment must have claims: a sentence of the paper with its statistic"
    assert made.charts, "an experiment must have charts"
    measures = {measure.name for measure in made.measures}
    for scale, preset in made.presets.items():
        assert len(preset.about) > 20, f"presets[{scale!r}].about must be a sentence (more than 20 characters)"
        assert set(preset.axes) <= set(made.axes)
    for chart in made.charts:
        known = measures | set(made.axes)
        if chart.data is None:  # records of a chart's own have keys of their own, and lack none (`charts.spec`)
            assert {chart.x, chart.y} <= known, chart.name
            for axis in (chart.colour, chart.panel):
                assert axis is None or axis in known | {"panel"}, chart.name
    # A claim about a measure that is not there could never be decided: with every value in place it must say something.
    cells = plan(made, "cpu", seeds=3)
    rows = [
        Row(cell.at, cell.path.name, "done", {m: 1.0 + 0.1 * i + len(m) for m in measures})
        for i, cell in enumerate(cells)
    ]
    for claim in made.claims:
        findings = claim.test(rows)
        assert findings, claim.text
        assert all("no cells" not in finding.says and "lack" not in finding.says for finding in findings), claim.text


@pytest.mark.parametrize("name", experiments.names())
def test_cells_of_each_preset_are_runs_of_their_own(name: str) -> None:
    for preset in ("paper", "cpu"):
        cells = cells_of(name, preset)
        assert len({cell.path for cell in cells}) == len(cells), preset
        for cell in cells:
            if isinstance(cell.does, Recipe):
                assert cell.does.name, cell.name


@pytest.mark.parametrize("name", experiments.names())
def test_measures_can_be_read_and_papers_values_are_shown(name: str) -> None:
    """A column that no run can fill, or a promise of values that are not there, would be found after days."""
    made = experiments.find(name)
    places = [cell.at for cell in cells_of(name, "paper")]
    values = [made.published(at, measure.name) for at in places for measure in made.measures]
    assert any(value is not None for value in values) == (BESIDE in made.presets["cpu"].about)
    for measure in made.measures:
        for preset in ("paper", "cpu"):
            for cell in cells_of(name, preset):
                if measure.protocols and isinstance(cell.does, Recipe) and not (measure.optional and preset == "paper"):
                    have = {part.name for part in cell.does.evaluate.protocols}
                    assert have & set(measure.protocols), f"{preset} {cell.name}: {measure.name}"


@pytest.mark.parametrize("name", experiments.names())
def test_values_of_the_paper_stand_beside_its_own_sets_alone(name: str) -> None:
    """A file of other data has none, whatever set the paper has; a part of a set has that set's."""
    made = experiments.find(name)
    places = [cell.at for cell in cells_of(name, "paper") if "data" in cell.at]
    for at in places:
        for measure in made.measures:
            value = made.published(at, measure.name)
            assert made.published({**at, "data": f"{at['data']}-20k"}, measure.name) == value
            assert made.published({**at, "data": "photos"}, measure.name) is None
            assert made.published({**at, "data": "x/photos.npz"}, measure.name) is None


def test_which_sets_a_paper_has_values_for() -> None:
    """CIFAR-100 is not CIFAR-10, and Fashion-MNIST's part is Wang & Liu's no more than any other data."""
    at = {"temperature": 0.1, "seed": 0}
    table = experiments.find("wl-table-1").published
    assert table({**at, "data": "cifar100-a"}, "linear") == published.WANG_LIU["cifar100"]["ordinary"][0.1]
    assert table({**at, "data": "fashion-mini"}, "linear") is None
    tcl = experiments.find("tcl-table-1").published
    assert tcl({"method": "tcl", "data": "fashion-mini"}, "linear") == published.TCL["fashion-mnist"]["tcl", 150]
