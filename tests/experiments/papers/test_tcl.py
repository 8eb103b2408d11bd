"""TCL's experiments."""

from __future__ import annotations

from pathlib import Path

from kontrast import experiments
from kontrast.experiments.plan import plan
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe


def test_the_papers_seeds_and_values() -> None:
    table = experiments.find("tcl-table-1")
    cells = plan(table, "paper")
    counts = {data: sum(c.at["data"] == data and c.at["method"] == "tcl" for c in cells) for data in table.axes["data"]}
    assert counts == {"cifar10": 5, "cifar100": 30, "fashion-mnist": 5, "imagenet100": 3}
    assert table.published({"data": "cifar100", "method": "tcl"}, "linear") == (79.30, 0.45)
    assert experiments.find("tcl-table-2").published({"data": "cifar100", "method": "tcl"}, "linear") == (81.6, None)


def test_table_2_is_twice_as_long() -> None:
    for preset, epochs in (("paper", 200), ("cpu", 20)):
        for cell in plan(experiments.find("tcl-table-2"), preset):
            assert isinstance(cell.does, Recipe)
            assert cell.does.train.epochs == epochs


def test_studies_vary_what_they_say() -> None:
    seen = {}
    for name, key in (
        ("tcl-batch-sizes", lambda r: (r.train.batch_size, r.optim.options["lr"])),
        ("tcl-projector", lambda r: r.head.options["out"]),
        ("tcl-encoders", lambda r: (r.encoder.name, r.encoder.options.get("width"), r.encoder.options.get("depth"))),
        ("tcl-augmentations", lambda r: r.augment.views[0].name),
    ):
        for preset in ("paper", "cpu"):
            seen[name, preset] = list(dict.fromkeys(key(cell.does) for cell in plan(experiments.find(name), preset)))
    assert seen["tcl-batch-sizes", "paper"] == [(32, 8e-3), (64, 9e-3), (128, 0.1), (256, 0.2), (512, 0.5), (1024, 1.0)]
    assert [lr for _, lr in seen["tcl-batch-sizes", "cpu"]] == [0.025, 0.05, 0.1, 0.2, 0.4, 0.8]
    assert seen["tcl-projector", "cpu"] == [16, 32, 64, 128, 256]
    assert [name for name, *_ in seen["tcl-encoders", "paper"]] == ["resnet18", "resnet34", "resnet50", "resnet101"]
    assert len(seen["tcl-encoders", "cpu"]) == 4
    assert seen["tcl-augmentations", "cpu"] == ["crop-flip", "autoaugment", "simaugment"]


def test_cross_entropy_is_in_the_same_setting() -> None:
    cells = {cell.at["method"]: cell.does for cell in plan(experiments.find("tcl-table-1"), "cpu", seeds=1)}
    supcon, ce = cells["supcon"], cells["ce"]
    assert isinstance(supcon, Recipe)
    assert isinstance(ce, Recipe)
    for section in ("data", "augment", "encoder", "optim", "schedule", "train", "evaluate"):
        assert getattr(supcon, section) == getattr(ce, section), section


def test_gradients_smoke(tmp_path: Path) -> None:
    """Deterministic enough that the theorems hold on random vectors with three seeds."""
    sweep = Sweep.of(experiments.find("tcl-gradients"), "smoke", seeds=3, out=tmp_path)
    for cell in sweep.cells:
        cell.perform()
    claims = {claim["text"]: claim["findings"][0]["verdict"] for claim in sweep.write()["claims"]}
    assert set(claims.values()) == {"holds"}, claims
