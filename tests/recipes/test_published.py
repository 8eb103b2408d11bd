"""The papers' tables: whole, within what can be, and their best values where the papers say they are."""

from __future__ import annotations

import pytest

from kontrast.recipes import published


@pytest.mark.parametrize("loss", ["ordinary", "hard"])
def test_wang_liu_is_whole(loss: str) -> None:
    assert list(published.WANG_LIU) == ["cifar10", "cifar100", "svhn", "imagenet100"]
    for table in published.WANG_LIU.values():
        assert tuple(table[loss]) == published.WANG_LIU_TEMPERATURES
        assert len(table[loss]) == 12
        assert all(0 < value < 100 for value in table[loss].values())


@pytest.mark.parametrize(
    ("loss", "data", "accuracy", "temperature"),
    [
        ("ordinary", "cifar10", 83.78, 0.2),
        ("ordinary", "cifar100", 56.44, 0.3),
        ("ordinary", "svhn", 95.47, 0.3),
        ("ordinary", "imagenet100", 75.41, 0.2),
        ("hard", "cifar10", 84.60, 0.6),
        ("hard", "cifar10", 84.60, 0.8),
        ("hard", "cifar100", 57.54, 0.7),
        ("hard", "svhn", 95.26, 1.0),
        ("hard", "imagenet100", 75.04, 0.4),
    ],
)
def test_wang_liu_is_best_where_the_paper_says(loss: str, data: str, accuracy: float, temperature: float) -> None:
    column = published.WANG_LIU[data][loss]
    assert max(column.values()) == accuracy == column[temperature]


def test_the_comma_of_svhn_is_a_point() -> None:
    assert published.WANG_LIU["svhn"]["ordinary"][0.8] == 93.22


def test_main_table_agrees_with_the_supplement_but_for_the_known_cells() -> None:
    differ = set()
    for data, table in published.WANG_LIU_MAIN.items():
        assert len(table) == 10
        for (loss, temperature), (accuracy, uniformity, tolerance) in table.items():
            assert 1 < uniformity < 3.9375, "the value of a perfectly uniform sphere in 128 dimensions"
            assert 0 < tolerance < 1
            if temperature is not None and published.WANG_LIU[data][loss][temperature] != accuracy:
                differ.add((data, loss, temperature))
    assert differ == {("imagenet100", "ordinary", 1.0), ("imagenet100", "hard", 1.0)}


def test_tcl_is_whole_and_above_supcon() -> None:
    assert published.TCL.keys() == published.TCL_SEEDS.keys()
    for table in published.TCL.values():
        assert set(table) == {(method, epochs) for method in ("supcon", "tcl") for epochs in (150, 250)}
        for epochs in (150, 250):
            assert table["tcl", epochs][0] > table["supcon", epochs][0]
        assert all((half is None) == (epochs == 250) for (_, epochs), (_, half) in table.items())
    assert published.TCL_SEEDS == {"cifar10": 5, "cifar100": 30, "fashion-mnist": 5, "imagenet100": 3}


def test_solo_learn_has_the_same_methods_on_every_set() -> None:
    methods = [tuple(table) for table in published.SOLO_SELF.values()]
    assert len(set(methods)) == 1
    assert len(methods[0]) == 12
    assert [table["simclr"] for table in published.SOLO_SELF.values()] == [90.74, 65.78, 77.64]


def test_sce_is_whole_and_best_where_the_paper_says() -> None:
    best = {"cifar10": (0.2, 0.1), "cifar100": (0.1, 0.08), "stl10": (0.1, 0.04), "tiny-imagenet": (0.1, 0.07)}
    values = {"cifar10": 90.34, "cifar100": 65.45, "stl10": 89.94, "tiny-imagenet": 51.90}
    for data, table in published.SCE.items():
        assert len(table) == 16
        assert {tau for tau, _ in table} == {0.1, 0.2}
        assert max(table.values()) == values[data] == table[best[data]]
    assert max(published.SCE_LAMBDA["imagenet100"], key=published.SCE_LAMBDA["imagenet100"].__getitem__) == 0.5


def test_graf_sc_is_best_with_augmentation() -> None:
    for table in published.GRAF.values():
        assert min((key for key in table if key[1]), key=table.__getitem__) == ("sc", True)
        assert all(table[method, True] < value for (method, augmented), value in table.items() if not augmented)
    assert ("ce-fix", False) not in published.GRAF["cifar10"], "nobody published it"
