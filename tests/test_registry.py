from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kontrast import losses
from kontrast.registry import Family


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    folder = tmp_path / "fruits"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "apple.py").write_text("class Apple: ...\nclass _Core: ...\nfrom pathlib import Path\n")
    (folder / "blood_orange.py").write_text("class BloodOrange: ...\n")
    (folder / "_peel.py").write_text("class Peel: ...\n")
    (folder / "two.py").write_text("class One: ...\nclass Two: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.partition(".")[0] == "fruits"]:
        monkeypatch.delitem(sys.modules, name)
    return Family("fruits")


def test_the_file_name_is_the_key_of_the_class(family: Family) -> None:
    assert list(family) == ["apple", "blood_orange", "two"]
    assert family["apple"].__name__ == "Apple"
    assert family["blood-orange"] is family["blood_orange"]
    assert "apple" in family
    assert len(family) == 3


def test_a_new_file_is_known_at_once(family: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "cherry.py").write_text("class Cherry: ...\n")
    assert family["cherry"].__name__ == "Cherry"


def test_listing_names_loads_no_file(family: Family) -> None:
    family.names()
    assert "fruits.apple" not in sys.modules


def test_unknown_name_lists_the_known_ones(family: Family) -> None:
    with pytest.raises(KeyError, match=r"no 'aple' in fruits; did you mean 'apple'\? Known: apple, blood_orange, two"):
        family["aple"]
    with pytest.raises(KeyError, match=r"no 'xyz' in fruits\. Known"):
        family["xyz"]


def test_two_classes_in_a_file_are_refused(family: Family) -> None:
    with pytest.raises(TypeError, match="must declare exactly one public class; it declares One, Two"):
        family["two"]


def test_every_loss_is_exported_under_its_name() -> None:
    assert {c.__name__ for c in losses.FAMILY.values()} == {n for n in losses.__all__ if n.endswith("Loss")} - {"Loss"}
