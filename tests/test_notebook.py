"""docs/python.md as a notebook: executed by a real Jupyter kernel, with displays that a reader sees.

Without a kernel, IPython's own formatter says what it would show (the quick test).
"""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import pytest

from kontrast.runs import Run
from tests.report import made

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
VEGA = "application/vnd.vegalite."


def test_ipython_takes_html_for_runs_and_tables_and_vega_for_charts(tmp_path: Path) -> None:
    altair = pytest.importorskip("altair")
    formatters = pytest.importorskip("IPython.core.formatters")
    run = Run(made.folder(tmp_path / "one"))
    other = Run(made.folder(tmp_path / "two", about="another"))

    def shown(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = formatters.DisplayFormatter().format(value)[0]
        return found

    assert "<strong>87.5 ± 5.0 %</strong>" in shown(run)["text/html"]
    assert shown(run)["text/plain"] == repr(run)
    assert "<table>" in shown(run.compare(other))["text/html"]
    assert shown(run.report())["text/html"].startswith("<iframe srcdoc=")
    with altair.renderers.enable("mimetype"):  # not in the notebook: Altair 6 names the type as nbformat refuses it
        (spec,) = (value for key, value in shown(run.charts.loss()).items() if key.startswith(VEGA))
    assert spec["title"] == "Loss"


@pytest.mark.slow
def test_a_kernel_runs_the_page_and_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")  # jupyter_core asks for one or the other with a warning
    examples = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    sources = [*(example.source.strip() for example in examples), "page"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()

    def output(source: str) -> dict[str, Any]:
        (cell,) = (cell for cell in notebook.cells if cell.source == source)
        (found,) = (found for found in cell.outputs if found.output_type == "execute_result")
        data: dict[str, Any] = found.data
        return data

    assert "kNN accuracy" in output("run")["text/html"]
    assert output("run")["text/plain"].startswith("Run(")
    chart = output('run.charts.confusion().properties(title="Which is taken for which?")')["text/html"]
    assert "vegaEmbed" in chart
    assert "Which is taken for which?" in chart
    assert output("page")["text/html"].startswith("<iframe srcdoc=")
    nbformat.validate(notebook)
