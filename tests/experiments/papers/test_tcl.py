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
    longer = experiments.find("tcl-table-2").published
    assert longer({"data": "cifar100", "method": "tcl", "epochs": 250}, "linear") == (81.6, None)
    assert longer({"data": "cifar100", "method": "tcl", "epochs": 150}, "linear") == (79.30, 0.45)


def test_table_2_is_twice_as_long_and_shares_the_runs_of_table_1() -> None:
    for preset, epochs in (("paper", {150: 100, 250: 200}), ("cpu", {150: 60, 250: 120})):
        first = {cell.path for cell in plan(experiments.find("tcl-table-1"), preset)}
        for cell in plan(experiments.find("tcl-table-2"), preset):
            assert isinstance(cell.does, Recipe)
            assert cell.does.train.epochs == epochs[cell.at["epochs"]]  # type: ignore[index]
            assert (cell.path in first) == (cell.at["epochs"] == 150)


def test_k1_begins_with_supcon_and_shares_the_runs_of_table_1() -> None:
    cells = {cell.at["k1"]: cell for cell in plan(experiments.find("tcl-k1"), "paper", seeds=1)}
    first = {cell.path for cell in plan(experiments.find("tcl-table-1"), "paper", ["data=cifar100"], seeds=1)}
    assert {cells[0.0].path, cells[4000.0].path} < first
    for k1, cell in cells.items():
        assert isinstance(cell.does, Recipe)
        assert cell.does.method.options.get("k1", 0.0) == k1


def test_without_labels_there_is_a_control() -> None:
    """Three views with k1 = 0 and k2 = 1: the same run but for the two."""
    for preset in ("paper", "cpu"):
        cells = plan(experiments.find("tcl-self"), preset, seeds=1)
        here = [cell for cell in cells if cell.at["data"] == cells[0].at["data"]]
        made = {(cell.at["k1"], cell.at["k2"]): cell.does for cell in here if cell.at["method"] == "tcl-self"}
        assert set(made) == {(0.0, 1.0), (0.0, 1.5), (1.0, 1.0), (1.0, 1.5), (1000.0, 1.5)}
        control, tcl = made[0.0, 1.0], made[1.0, 1.5]
        assert isinstance(control, Recipe)
        assert isinstance(tcl, Recipe)
        assert len(control.augment.views) == 3
        assert control.override({"method.k1": 1.0, "method.k2": 1.5}).hash == tcl.hash


def test_studies_say_that_supcons_rates_are_tcls() -> None:
    for name in ("tcl-encoders", "tcl-batch-sizes", "tcl-projector", "tcl-augmentations"):
        for preset in ("paper", "cpu"):
            assert "SupCon has TCL's learning rates" in experiments.find(name).presets[preset].about
            rates: dict[tuple[object, ...], set[float]] = {}
            for cell in plan(experiments.find(name), preset, seeds=1):
                assert isinstance(cell.does, Recipe)
                place = tuple(value for axis, value in cell.at.items() if axis != "method")
                rates.setdefault(place, set()).add(cell.does.optim.options["lr"])
            assert all(len(found) == 1 for found in rates.values())


def test_fashion_mnist_has_crop_and_flip_and_other_sets_have_autoaugment() -> None:
    views = {}
    for data in ("fashion-mini", "cifar10"):
        [cell, *_] = plan(experiments.find("tcl-table-1"), "cpu", [f"data={data}", "method=tcl"], seeds=1)
        assert isinstance(cell.does, Recipe)
        views[data] = ([view.name for view in cell.does.augment.views], cell.does.method.options["k1"])
    assert views == {
        "fashion-mini": (["crop-flip", "crop-flip"], 5000.0),
        "cifar10": (["autoaugment", "autoaugment"], 4000.0),
    }


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
    settings = ["method=[supcon,ce]"]
    cells = {cell.at["method"]: cell.does for cell in plan(experiments.find("tcl-table-1"), "cpu", settings, seeds=1)}
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
