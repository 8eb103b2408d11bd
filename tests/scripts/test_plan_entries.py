"""The plan of the long runs is read, and what is wrong with one is said."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import plan_entries
from plan_entries import Entry, link_data, read_plan

ROOT = Path(__file__).parents[2]


def read(folder: Path, text: str) -> list[Entry]:
    path = folder / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(plan_entries).failed == 0


def test_entries_come_in_order_with_defaults(tmp_path: Path) -> None:
    first, second = read(
        tmp_path,
        """
        [[entry]]
        experiment = "graf-toy"
        [[entry]]
        name = "k"
        tune = "tcl-fashion-mini"
        data = "10k/a.npz"
        settings = ["a=1"]
        seeds = 2
        whole = false
        """,
    )
    assert first == Entry("graf-toy", experiment="graf-toy", preset="cpu", whole=True)
    assert not second.whole
    assert " ".join(second.command(2)) == "tune tcl-fashion-mini data=data/10k/a.npz a=1 --seeds 2 --out runs"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no entry"),
        ("[[entry", "is not TOML"),
        ('[[entry]]\nname = "a"', "entry 1: must have either experiment= .* or tune="),
        ('[[entry]]\nexperiment = "a"\ntune = "b"', "must have either"),
        ('[[entry]]\nexperiment = "a"\nseed = 3', "entry 1: seed=3: unknown. Use name, .*seeds"),
        ('[[entry]]\nexperiment = "a"\nseeds = "3"', "seeds='3': must be a int"),
        ('[[entry]]\nexperiment = "a"\nseeds = true', "seeds=True: must be a int"),
        ('[[entry]]\nexperiment = "a"\nseeds = 0', "seeds=0: must be 1 or more"),
        ('[[entry]]\nexperiment = "a"\npreset = "gpu"', "preset='gpu': must be one of paper, cpu, smoke"),
        ('[[entry]]\nexperiment = "a"\nsettings = ["0.1"]', "settings: '0.1' must be a string such as"),
        ('[[entry]]\nexperiment = "a"\n[[entry]]\nexperiment = "a"', "name='a': stands 2 times"),
    ],
)
def test_a_wrong_plan_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(tmp_path, text)


def test_no_plan_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_plan(tmp_path / "plan.toml")


def test_the_data_folder_is_linked_and_checked(tmp_path: Path) -> None:
    entries = [Entry("a", experiment="a", data="10k/x.npz")]
    with pytest.raises(ValueError, match=r"KONTRAST_DATA: is not set.*10k/x.npz"):
        link_data(tmp_path, None, entries)
    (tmp_path / "one").mkdir()
    with pytest.raises(ValueError, match=r"one: has no 10k/x.npz"):
        link_data(tmp_path, str(tmp_path / "one"), entries)
    (tmp_path / "two" / "10k").mkdir(parents=True)
    (tmp_path / "two" / "10k" / "x.npz").touch()
    link_data(tmp_path, str(tmp_path / "two"), entries)
    link_data(tmp_path, None, entries)  # the link is there
    assert (tmp_path / "data").readlink() == tmp_path / "two"
    link_data(tmp_path, None, [])


def test_our_plan_has_no_path_of_a_machine() -> None:
    text = (ROOT / plan_entries.PLAN).read_text(encoding="utf-8")
    assert not [entry for entry in read_plan(ROOT / plan_entries.PLAN) if entry.data.startswith(("/", "~"))]
    assert "/home" not in text
