"""Recipes by name, from files, folders and mappings; and `kontrast.run`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kontrast
from kontrast import recipes
from kontrast.recipe import Recipe
from kontrast.runs import Run
from kontrast.train import resolve
from tests.train.small import recipe as small


def test_names_are_sorted_and_found() -> None:
    assert recipes.names() == sorted(recipes.names())
    for name in recipes.names():
        assert recipes.find(name).name == name


def test_no_name_is_in_two_books() -> None:
    assert len(recipes.names()) == len(set(recipes.names()))


def test_no_two_recipes_are_the_same_run() -> None:
    """Written out at full scale, which also shows that each of them resolves."""
    made = {name: resolve(recipes.find(name)) for name in recipes.names()}
    assert len({recipe.hash for recipe in made.values()}) == len(made)
    assert all(resolve(recipe) == recipe for recipe in made.values())


@pytest.mark.parametrize("book", recipes.BOOKS[1:], ids=lambda book: str(book.__name__).rpartition(".")[2])
def test_every_recipe_is_a_claim(book: ModuleType) -> None:
    """Paper, table, number, hardware, command; the docstring of the book says where we deviate."""
    assert "Deviates:" in (book.__doc__ or "")
    assert book.RECIPES.keys() == book.CLAIMS.keys()
    for name, recipe in book.RECIPES.items():
        claim = book.CLAIMS[name]
        assert recipe.about == claim.about(name)
        assert re.match(r"(Wang & Liu|TCL|SCE|Graf et al\.|solo-learn's README), \w", claim.source), name
        assert re.search("[Tt]able|section|figure|notebook|sweep", claim.source), name
        assert re.search(r"\d", claim.expected), name
        assert "GPU" in claim.hardware or "RTX" in claim.hardware, name
        assert recipe.about.endswith(f"Run: kontrast train {name}")
        assert "\n" not in recipe.about


def test_names_are_known_without_torch() -> None:
    code = "import sys; from kontrast import recipes; recipes.names(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tcl-fashion-mni", r"no recipe 'tcl-fashion-mni'; did you mean 'tcl-fashion-mini'\?"),
        ("xyz", r"no recipe 'xyz'\. `kontrast list recipes` has them all"),
        ("", "no recipe ''"),
    ],
)
def test_unknown_names(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        recipes.find(name)


def test_where_a_recipe_comes_from(tmp_path: Path) -> None:
    made = small(out=tmp_path)
    assert recipes.recipe(made) is made
    assert recipes.recipe(made.model_dump(mode="json")) == made
    path = tmp_path / "mine.yaml"
    path.write_text(made.to_yaml())
    assert recipes.recipe(path) == recipes.recipe(str(path)) == made
    assert recipes.recipe("tcl-fashion-mini") == recipes.find("tcl-fashion-mini")


def test_a_run_folder_is_its_recipe_and_goes_on_where_it_lies(tmp_path: Path) -> None:
    made = resolve(small(out=tmp_path / "first"))
    folder = Run.of(made)
    folder.begin(made)
    assert recipes.recipe(folder.path) == made
    moved = tmp_path / "moved" / folder.path.name
    moved.parent.mkdir()
    folder.path.rename(moved)
    assert Run.of(recipes.recipe(moved)).path == moved
    assert recipes.recipe(moved).hash == made.hash
    renamed = moved.rename(tmp_path / "renamed")
    assert recipes.recipe(renamed) == made, "a folder of another name is only read"


def test_a_name_is_the_recipe_whatever_lies_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tcl-fashion-mini").mkdir()
    assert recipes.recipe("tcl-fashion-mini") == recipes.find("tcl-fashion-mini")


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no file .*mine\.yaml; expected a recipe in YAML"):
        recipes.recipe(tmp_path / "mine.yaml")
    with pytest.raises(ValueError, match=r"has no recipe\.yaml; expected the folder of a run"):
        recipes.recipe(tmp_path)
    (tmp_path / "notes.txt").write_text("- a\n")
    with pytest.raises(ValueError, match="holds list; expected a mapping"):
        recipes.recipe(tmp_path / "notes.txt")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Recipe]:
    """What `kontrast.run` would run."""
    requests: list[Recipe] = []
    monkeypatch.setattr("kontrast.pipeline.perform", lambda session: requests.append(session.recipe))
    return requests


def test_overrides_as_sections_dotted_keys_and_names(asked: list[Recipe]) -> None:
    kontrast.run(
        "tcl-fashion-mini",
        seed=3,
        encoder="resnet18",
        data={"limit": 100},
        method={"k1": 10.0},
        **{"optim.lr": 0.05, "augment.views": ["weak", "strong"]},
    )
    (made,) = asked
    assert (made.seed, made.encoder.name, made.data.limit) == (3, "resnet18", 100)
    assert made.data.name == "fashion-mini", "what is not said stays"
    assert (made.method.options["k1"], made.method.options["k2"]) == (10.0, 1.0)
    assert made.optim.options["lr"] == 0.05
    assert [view.name for view in made.augment.views] == ["weak", "strong"]


@pytest.mark.parametrize("order", [("name", "lr"), ("lr", "name")])
def test_another_part_with_its_options_in_any_order(asked: list[Recipe], order: tuple[str, str]) -> None:
    """A new name clears the old options, never those that come with it."""
    options = {"name": "adamw", "lr": 0.001}
    kontrast.run("tcl-fashion-mini", optim={key: options[key] for key in order})
    assert asked[0].optim.model_dump().items() >= options.items()


def test_unknown_overrides(asked: list[Recipe]) -> None:
    with pytest.raises(ValueError, match="train has no key 'epoch'; did you mean 'epochs'"):
        kontrast.run("tcl-fashion-mini", train={"epoch": 1})
    with pytest.raises(ValueError, match="the recipe has no key 'optm'"):
        kontrast.run("tcl-fashion-mini", optm={"lr": 1})
    assert not asked
