"""Graf et al.'s experiments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kontrast import experiments
from kontrast.experiments.plan import plan
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe


def test_the_papers_values_stand_at_their_places() -> None:
    value = experiments.find("graf-table").published
    assert value({"data": "cifar100", "method": "sc", "augmented": True}, "error") == 24.9
    assert value({"data": "cifar100", "method": "ce-fix", "augmented": False}, "error") == 41.3


def test_kinds_of_geometry() -> None:
    cells = {cell.at["method"]: cell.does for cell in plan(experiments.find("graf-geometry"), "cpu", seeds=1)}
    made = {kind: does for kind, does in cells.items() if isinstance(does, Recipe)}
    assert made["ce-random"].method.options["weights"] == "random"
    assert made["ce-fix"].method.options["weights"] == "simplex"
    assert (made["sc"].head.name, made["sc-projector"].head.name) == ("none", "tcl")
    table = {cell.path for cell in plan(experiments.find("graf-table"), "cpu")}
    shared = {cell.at["method"] for cell in plan(experiments.find("graf-geometry"), "cpu") if cell.path in table}
    assert shared == {"ce", "ce-fix", "sc"}


def test_random_labels_smoke(tmp_path: Path) -> None:
    """Four steps fit nothing: every run is censored, and said to be."""
    settings = ["method=[ce,sc]", "fraction=[0.0,1.0]"]
    sweep = Sweep.of(experiments.find("graf-random-labels"), "smoke", settings, seeds=1, out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    summary = sweep.write()
    assert summary["status"] == {"done": 4}
    assert [place["cells"]["steps"]["censored"] for place in summary["places"]] == [1, 1, 1, 1]
    assert "&gt; 4" in (sweep.folder / "table.md").read_text()


def test_toy_and_label_configurations(tmp_path: Path) -> None:
    sweep = Sweep.of(experiments.find("graf-toy"), "smoke", out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    claims = {claim["text"]: claim["findings"][0]["verdict"] for claim in sweep.write()["claims"]}
    assert set(claims.values()) == {"holds"}, claims
    with np.load(sweep.cells[0].path / "points.npz") as arrays:
        assert arrays["path"].shape[1:] == (400, 3)
        np.testing.assert_allclose(np.linalg.norm(arrays["path"][-1], axis=1), 1.0, atol=1e-6)
    sweep = Sweep.of(experiments.find("graf-label-configurations"), "smoke", out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    gaps = {place["at"]["labels"]: place["cells"]["gap"]["mean"] for place in sweep.write()["places"]}
    assert gaps["3-3-3"] < 1e-6 < gaps["5-2-2"]
