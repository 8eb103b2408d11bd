"""The registry: names, lookup, options and summaries of every family, read from the source without importing it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kontrast import losses, models
from kontrast.registry import FAMILIES, NOT_PARTS, Family, PartError, check_operation, expected_kind, families

OF_SOURCE = [family for family in FAMILIES.values() if family.table is None]
PARTS = [(family, name) for family in OF_SOURCE for name in family if "…" not in name]


def label(value: object) -> str:
    return value.kind if isinstance(value, Family) else str(value)


# ------------------------------------------------------------------------------------------------ a family of files


@pytest.fixture
def fruits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Family:
    folder = tmp_path / "fruits"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "apple.py").write_text(
        '"""An apple:\nround.\n\nMore."""\nfrom pathlib import Path\n'
        "class _Core: ...\nclass Apple:\n    def __init__(self, *, size=3, red=True, seed=0): self.size = size\n"
    )
    (folder / "blood_orange.py").write_text("class BloodOrange: ...\n")
    (folder / "pears.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass Pear:\n    sort: str\n    weight: float = 0.2\n"
        'ENTRIES = {"abate": (Pear, {"sort": "abate"}, "A long pear."), "nashi": (Pear, {"sort": "n", "weight": 1})}\n'
    )
    (folder / "wild.py").write_text(
        'class Wild:\n    """Any."""\n    def __init__(self, name, *, ripe=False, **more): self.name = name\n'
        'ENTRIES = {"wild/…": Wild}\n'
    )
    (folder / "_peel.py").write_text("class Peel: ...\n")
    (folder / "two.py").write_text("class One: ...\nclass Two: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.partition(".")[0] == "fruits"]:
        monkeypatch.delitem(sys.modules, name)
    return Family("fruit", "fruits", supplied=("seed",), common={"price": None})


def test_a_file_is_a_part_and_a_table_names_several(fruits: Family) -> None:
    assert list(fruits) == ["abate", "apple", "blood-orange", "nashi", "two", "wild/…"]
    assert fruits["apple"].__name__ == "Apple"
    assert fruits["blood-orange"] is fruits["blood_orange"]
    assert fruits["abate"] is fruits["nashi"]
    assert "apple" in fruits
    assert "aple" not in fruits
    assert fruits.get("aple") is None
    assert len(fruits) == 6


def test_a_new_file_is_known_at_once(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "cherry.py").write_text("class Cherry: ...\n")
    assert fruits["cherry"].__name__ == "Cherry"


def test_names_options_and_summaries_import_no_file(fruits: Family) -> None:
    assert fruits.options("apple") == {"size": 3, "red": True, "price": None}
    assert fruits.options("abate") == {"sort": "abate", "weight": 0.2, "price": None}
    assert fruits.options("wild/x") == {"ripe": False, "price": None}
    assert [fruits.summary(name) for name in ("apple", "abate", "wild/x")] == [
        "An apple: round.",
        "A long pear.",
        "Any.",
    ]
    fruits.check("apple", {"size": 2})
    assert not [name for name in sys.modules if name.startswith("fruits")]


def test_make_has_the_defaults_of_the_name(fruits: Family) -> None:
    assert (fruits.make("nashi").sort, fruits.make("nashi").weight, fruits.make("nashi", weight=2).weight) == (
        "n",
        1,
        2,
    )
    assert fruits.make("wild/plum", colour="blue").name == "plum"
    assert fruits.make("apple", seed=1).size == 3
    with pytest.raises(ValueError, match=r"fruit 'apple' has no option 'sise'; did you mean 'size'\? It has size, red"):
        fruits.make("apple", sise=1)


def test_an_unknown_name_lists_the_known_ones(fruits: Family) -> None:
    with pytest.raises(ValueError, match=r"no fruit 'aple'; did you mean 'apple'\? Known: abate, apple, blood-orange"):
        fruits["aple"]
    with pytest.raises(ValueError, match=r"no fruit 'xyz'\. Known"):
        fruits.canonical("xyz")
    for wrong in (3, "", "wild/"):
        with pytest.raises(ValueError, match="no fruit"):
            fruits.check(wrong)  # type: ignore[arg-type]
    assert fruits.canonical("blood_orange") == "blood-orange"


def test_a_long_list_is_one_command_away() -> None:
    with pytest.raises(ValueError, match=r"'tcl-cifar10'\? `kontrast list recipes` has them all"):
        FAMILIES["recipe"].find("tlc-cifar10")


def test_options_are_checked_by_name_and_kind(fruits: Family) -> None:
    with pytest.raises(ValueError, match="fruit 'apple' has no option 'seed'"):
        fruits.check("apple", {"seed": 1})  # the run decides it
    with pytest.raises(ValueError, match=r"^fruit\.size='big': must be a number$"):
        fruits.check("apple", {"size": "big"})
    with pytest.raises(ValueError, match=r"^food\.red=1: must be true or false$"):
        fruits.check("apple", {"red": 1}, section="food")
    fruits.check("apple", {"price": "any"})  # the family takes care of common options
    fruits.check("wild/x", {"colour": "blue"})  # passed on to what only the part knows


def test_two_classes_in_a_file_are_refused(fruits: Family) -> None:
    with pytest.raises(PartError, match="must declare exactly one public class; it declares One, Two"):
        fruits["two"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class Broken(Fruit:\n", r"broken\.py is no Python, line 1: "),
        ("class Broken(Fruit:\nENTRIES = {}\n", r"broken\.py is no Python, line 1: "),
        ("", r"broken\.py must declare exactly one public class; it declares none"),
        ("class Broken: ...\n", r"broken\.py: Broken must be a class that inherits from Fruit, as every fruit"),
        ("def broken(): ...\nENTRIES = {'broken': broken}\n", r"broken\.py: broken must be a class that inherits"),
        (
            "class Fruit: ...\nclass _Broken(Fruit):\n    def __init__(self, *, size): ...\n"
            "ENTRIES = {'broken': _Broken}\n",
            r"broken\.py: the option size of _Broken must have a default",
        ),
        (
            "from dataclasses import dataclass\nclass Fruit: ...\n@dataclass\nclass _Broken(Fruit):\n    size: int\n"
            "    red: bool = True\nENTRIES = {'broken': _Broken}\n",
            r"broken\.py: the option size of _Broken must have a default",
        ),
        ("class _Fruit: ...\nclass Broken(_Fruit, Fruit): ...\nclass Fruit: ...\n", "it declares Broken, Fruit"),
    ],
)
def test_a_file_that_is_no_part_is_named_and_the_others_stay(
    fruits: Family, tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from kontrast.cli.list import lines

    (tmp_path / "fruits" / "broken.py").write_text(text)
    with_base = Family("fruit", "fruits", base="Fruit")
    assert "apple" in with_base
    for use in (with_base.options, with_base.find, with_base.check, with_base.make):
        with pytest.raises(PartError, match=message):
            use("broken")
    assert re.search(f"^error: .*{message}", lines(with_base)["broken"])
    assert lines(fruits)["apple"].startswith("An apple: round.")


def test_a_part_that_must_be_a_dataclass(fruits: Family) -> None:
    family = Family("fruit", "fruits", dataclasses=True)
    assert family.options("abate") == {"sort": "abate", "weight": 0.2}
    with pytest.raises(
        PartError, match=r"apple\.py: Apple must be a dataclass: write @dataclass\(frozen=True\) above it"
    ):
        family.options("apple")


def test_an_error_of_a_parts_own_code_names_its_file(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "broken.py").write_text("class Broken: ...\nno_such_name\n")
    with pytest.raises(
        PartError, match=r"broken\.py cannot be imported: NameError: name 'no_such_name' is not defined"
    ):
        fruits.find("broken")
    assert fruits.options("broken") == {"price": None}


def test_a_class_that_lacks_a_method_names_it(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "fig.py").write_text(
        "from abc import ABC, abstractmethod\nclass _Fruit(ABC):\n    @abstractmethod\n    def peel(self): ...\n"
        "    @abstractmethod\n    def eat(self): ...\nclass Fig(_Fruit): ...\n"
    )
    for use in (fruits.find, fruits.make):
        with pytest.raises(PartError, match=r"fig\.py: Fig must define eat and peel$"):
            use("fig")


def test_a_declared_value_is_written_out(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "fig.py").write_text(
        "class Fig:\n    a = dict(x=[1], y=None)\n    b: str = 'no'\n    c = 'a' + 'b'\n"
    )
    assert (fruits.declared("fig", "a"), fruits.declared("fig", "b")) == ({"x": [1], "y": None}, "no")
    with pytest.raises(PartError, match=r"fig\.py, line 4: c must have literal values, .* Write out each word"):
        fruits.declared("fig", "c")


def test_a_table_that_is_computed_is_refused(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "broken.py").write_text("class Broken: ...\nENTRIES = dict(broken=Broken)\n")
    with pytest.raises(PartError, match=r"broken\.py: ENTRIES must be written out as \{name: class\} or"):
        fruits.names()


def test_an_option_that_is_a_whole_number_takes_no_other(fruits: Family, tmp_path: Path) -> None:
    (tmp_path / "fruits" / "melon.py").write_text(
        "class Melon:\n    def __init__(self, *, seeds: int = 0, weight: float = 1, size: int | None = None): ...\n"
    )
    for options in ({"seeds": 3}, {"seeds": 3.0}, {"weight": 2.5}, {"size": None}):
        fruits.check("melon", options)
    for option in ("seeds", "size"):
        with pytest.raises(ValueError, match=rf"^fruit\.{option}=2\.5: must be a whole number$"):
            fruits.check("melon", {option: 2.5})


@pytest.mark.parametrize(
    ("default", "value", "kind"),
    [(1, "x", "a number"), (True, 1, "true or false"), ("a", 1, "a word"), ((1, 2), 1, "a list"), (None, 1, None),
     (1.0, None, None), (1, True, "a number"), ([1], (2,), None)],
)  # fmt: skip
def test_the_kind_of_a_value_is_that_of_the_default(default: Any, value: Any, kind: str | None) -> None:
    assert expected_kind(default, value) == kind


# ------------------------------------------------------------------------------------------------ all families


@pytest.mark.parametrize("family", OF_SOURCE, ids=label)
def test_every_class_of_a_familys_files_is_a_part(family: Family) -> None:
    """The names that are read are those of the modules that Python sees, and of their tables."""
    package = importlib.import_module(family.source)
    if not hasattr(package, "__path__"):
        assert list(family) == list(package.ENTRIES)
        return
    names: list[str] = []
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_") and module.name not in NOT_PARTS:
            table = getattr(importlib.import_module(f"{family.source}.{module.name}"), "ENTRIES", None)
            names += table or [module.name.replace("_", "-")]
    assert list(family) == sorted(names)


@pytest.mark.parametrize(("family", "name"), PARTS, ids=label)
def test_what_is_read_is_what_the_imported_part_has(family: Family, name: str) -> None:
    part = family[name]
    options = family.options(name)
    preset = family._members()[family.canonical(name)].preset
    parameters: dict[str, inspect.Parameter] = {}
    for kind in part.__mro__ if isinstance(part, type) else [part]:
        signature = inspect.signature(kind).parameters
        parameters |= {key: parameter for key, parameter in signature.items() if key not in parameters}
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
            break
    for option, default in options.items():
        if option in family.common and option not in parameters:
            continue
        parameter = parameters.pop(option)
        imported = preset.get(option, None if parameter.default is parameter.empty else parameter.default)
        is_factory = dataclasses.is_dataclass(part) and type(imported).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
        assert default == (None if is_factory else imported), option
    for parameter in parameters.values():  # the rest are no options: arguments, or what the data and the run decide
        is_argument = parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY
        assert is_argument or parameter.name in family.supplied, parameter.name


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in OF_SOURCE for name in family], ids=label)
def test_every_part_can_be_found_and_says_what_it_is(family: Family, name: str) -> None:
    about = f"{family.file(name)}: the docstring on top must say in a line what {family.kind} {name!r} is"
    assert len(family.summary(name)) > 5, about
    assert isinstance(family.options(name), dict)
    if "…" not in name:
        assert family[name] is family.find(name.replace("-", "_"))


@pytest.mark.parametrize("family", [family for family in FAMILIES.values() if family.table], ids=label)
def test_every_object_of_a_table_says_what_it_is(family: Family) -> None:
    for name in family:
        assert len(family.summary(name)) > 5, f"{family.kind} {name!r} must say in a line what it is"
        assert family[name] is family.find(name.replace("-", "_"))


def test_every_loss_is_exported_under_its_name() -> None:
    exported = {name for name in losses.__all__ if name.endswith("Loss")} - {"Loss"}
    assert exported == {c.__name__ for c in losses.FAMILY.values()}, (
        "each loss must be in losses/__init__.py, __all__ too"
    )


def test_a_stage_has_the_same_family() -> None:
    assert losses.FAMILY is FAMILIES["loss"]
    assert models.HEADS is FAMILIES["head"]


def test_nothing_is_imported_for_it() -> None:
    code = (
        "import sys\nfrom kontrast.registry import FAMILIES\n"
        "for family in FAMILIES.values():\n"
        "    for name in () if family.table else family:\n"
        "        family.summary(name), family.options(name)\n"
        "[recipe.check_parts() for recipe in map(FAMILIES['recipe'].find, FAMILIES['recipe'])]\n"
        "print([m for m in ('torch', 'numpy', 'torchvision') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("word", "kinds"),
    [("optimisers", ["optimiser"]), ("optimizer", ["optimiser"]), ("method", ["method"]), ("loss", ["loss"]),
     ("Losses", ["loss"]), ("sets", ["data set"]), ("data_set", ["data set"]), ("scheduler", ["schedule"]),
     ("presets", ["preset", "operation"]), ("augmentation", ["preset", "operation"]), ("rules", ["rule"])],
)  # fmt: skip
def test_a_family_has_several_names(word: str, kinds: list[str]) -> None:
    assert [family.kind for family in families(word)] == kinds


def test_every_family_that_an_error_names_is_listed() -> None:
    """``no optimiser 'sdg'`` leads to ``kontrast list optimisers``."""
    for family in FAMILIES.values():
        assert family in families(family.kind)
        assert family in families(family.plural)


def test_operations_have_hints_of_their_own() -> None:
    with pytest.raises(ValueError, match="normalisation is added to every view by itself"):
        check_operation("normalize")
    with pytest.raises(ValueError, match="that is a preset, which is a view of its own"):
        check_operation("weak")
    with pytest.raises(ValueError, match=r"the size is the data's: set data\.size"):
        check_operation("resized-crop", {"size": 8})
