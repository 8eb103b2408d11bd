"""SCE's experiments."""

from __future__ import annotations

from kontrast import experiments
from kontrast.experiments.papers import sce
from kontrast.experiments.plan import plan
from kontrast.recipe import Recipe


def test_the_grid_and_its_baselines() -> None:
    cells = plan(experiments.find("sce-table-2"), "paper", ["data=cifar10"], seeds=1)
    by_method = {m: [c for c in cells if c.at["method"] == m] for m in ("sce", "ressl", "moco")}
    assert {m: len(found) for m, found in by_method.items()} == {"sce": 16, "ressl": 16, "moco": 2}
    for cell in by_method["sce"]:
        assert isinstance(cell.does, Recipe)
        assert cell.does.method.options["temperature"] == cell.at["temperature"]
        assert cell.does.method.options["target_temperature"] == cell.at["target"]
    assert all(c.at["target"] is None for c in by_method["moco"])


def test_the_papers_values_stand_at_their_places() -> None:
    value = experiments.find("sce-table-2").published
    place = {"data": "cifar10", "method": "sce", "temperature": 0.2, "target": 0.1}
    assert value(place, "linear") == 90.34
    assert value({**place, "method": "ressl"}, "linear") is None
    weight = experiments.find("sce-lambda").published
    assert weight({"data": "imagenet100", "method": "sce", "weight": 0.5}, "linear") == 82.94
    assert weight({"data": "fashion-mini", "method": "sce", "weight": 0.5}, "linear") is None


def test_the_small_grid_compares_what_the_claims_compare() -> None:
    """A sharper target and τ_m = τ, and SCE, MoCo and ReSSL at one τ_m, in width and length of the design."""
    cells = plan(experiments.find("sce-table-2"), "cpu", seeds=1)
    assert {cell.at["target"] for cell in cells if cell.at["method"] == "sce"} == {0.04, 0.07, 0.1}
    assert sce.COMPARED in sce.SMALL_TARGETS
    for cell in cells:
        assert isinstance(cell.does, Recipe)
        assert (cell.does.encoder.options["width"], cell.does.train.epochs) == (16, 120)
    for cell in plan(experiments.find("sce-collapse"), "cpu", seeds=1):
        assert isinstance(cell.does, Recipe)
        assert (cell.does.encoder.options["width"], cell.does.train.epochs) == (16, 30)


def test_lambda_is_the_contrastive_weight() -> None:
    for cell in plan(experiments.find("sce-lambda"), "cpu", seeds=1):
        assert isinstance(cell.does, Recipe)
        assert cell.does.method.options["contrastive_weight"] == cell.at["weight"]
