"""What a shell offers: settings and their values, run folders, recipes, names of parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast import augment, data, evaluate, methods, models, recipes
from kontrast.cli import _completion as completion
from kontrast.recipe import Recipe
from kontrast.train import resolve
from tests.cli.asking import START, process
from tests.train.small import recipe


def flat(values: dict[str, Any], before: str = "") -> list[str]:
    """Dotted keys of nested mappings."""
    found = []
    for key, value in values.items():
        found += flat(value, f"{before}{key}.") if isinstance(value, dict) else [f"{before}{key}"]
    return found


@pytest.mark.parametrize("name", recipes.names()[::9])
def test_every_key_of_a_resolved_recipe_is_offered(name: str) -> None:
    whole = resolve(recipes.find(name)).model_dump(mode="json")
    wanted = {key for key in flat(whole) if not key.endswith("name") and key != "about"}
    assert wanted <= set(completion.keys(name))


def test_the_options_are_those_of_the_parts_chosen() -> None:
    with_tcl = completion.keys("supcon-fashion-mini", ["method=tcl"])
    assert "method.k1" in with_tcl
    assert "method.k1" not in completion.keys("supcon-fashion-mini")
    assert "method.k1" not in completion.keys(None)
    assert {"optim.lr", "train.epochs"} <= set(completion.keys("no such recipe", ["method=none such"]))


def test_every_key_is_taken_by_override() -> None:
    made = recipe("tcl")
    for key in completion.keys("tcl-fashion-mini"):
        section, _, rest = key.partition(".")
        assert section in Recipe.model_fields
        if rest and section in ("train", "run", "data", "evaluate", "augment"):
            assert hasattr(getattr(made, section), rest)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("method", methods.names()),
        ("data", data.names()),
        ("encoder", [name.removesuffix("…") for name in models.names()]),
        ("head.name", list(models.HEADS)),
        ("augment", list(augment.NAMES)),
        ("evaluate.protocols", evaluate.names()),
        ("train.precision", ["float32", "bfloat16", "float16"]),
        ("run.compile", ["true", "false"]),
        ("data.labelled", ["true", "false"]),
        ("run.device", ["auto", "cpu", "cuda", "mps"]),
        ("optim.lr", []),
        ("no.such", []),
    ],
)
def test_values_that_are_names(key: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert completion.values_of(key, "") == names


def test_data_may_be_folders_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos" / "cats").mkdir(parents=True)
    (tmp_path / "photos" / "rows.npz").touch()
    (tmp_path / "photos" / "notes.txt").touch()
    assert completion.values_of("data", "pho") == ["photos/"]
    assert completion.values_of("data", "photos/") == ["photos/cats/", "photos/rows.npz"]


def test_run_folders_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/tcl-1", "runs/sce-2", "runs/notes", "mine/other-3"):
        (tmp_path / name).mkdir(parents=True)
        if name != "runs/notes":
            (tmp_path / name / "run.json").touch()
    assert completion.complete_run("") == ["runs/sce-2", "runs/tcl-1"]
    assert completion.complete_run("runs/t") == ["runs/tcl-1"]
    assert completion.complete_run("mine/") == ["mine/other-3"]
    assert completion.complete_run("nowhere/") == []
    (tmp_path / "mine.yaml").touch()
    assert completion.complete_recipe_or_run("mi") == ["mine.yaml"]
    assert completion.complete_recipe_or_run("runs/s") == ["runs/sce-2"]
    assert completion.complete_recipe_or_run("tcl-self-f") == ["tcl-self-fashion-mini"]


def asked(words: str, shell: str, folder: Path) -> list[str]:
    """What the shell is told; words end where the cursor is. The last line says whether torch was imported."""
    split = words.split(" ")
    env = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(split) - 1), "_KONTRAST_COMPLETE": "complete_bash"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_KONTRAST_COMPLETE": "complete_fish",
        },
    }[shell]
    code = f"import atexit, os, sys; os.chdir({str(folder)!r}); atexit.register(lambda: print('torch' in sys.modules));"
    answer = process(python=f"{code} {START}", env=env)
    *found, torch = answer.out.splitlines()
    assert torch == "False", "the tab key should be quick"
    return found


@pytest.mark.parametrize(
    ("words", "shell", "found"),
    [
        ("kontrast train supcon-fashion-mini optim.m", "bash", ["optim.momentum="]),
        ("kontrast train supcon-fashion-mini optim.m", "fish", ["optim.momentum="]),
        ("kontrast train supcon-fashion-mini method=tcl method.k", "fish", ["method.k1=", "method.k2="]),
        ("kontrast train supcon-fashion-mini method = tcl method.k", "bash", ["method.k1=", "method.k2="]),
        ("kontrast train supcon-fashion-mini encoder=small", "fish", ["encoder=small-resnet"]),
        ("kontrast train supcon-fashion-mini encoder = small", "bash", ["small-resnet"]),
        ("kontrast train supcon-fashion-mini schedule =", "bash",
         ["constant", "cosine", "multi-step", "power", "warmup-cosine"]),
        ("kontrast evaluate runs/", "bash", ["runs/mine-1"]),
        ("kontrast evaluate runs/mine-1 --protocol knn", "bash", ["knn20", "knn200"]),
        ("kontrast export runs/mine-1 --to on", "bash", ["onnx"]),
        ("kontrast reproduce wl-table", "bash", ["wl-table-1", "wl-table-2"]),
        ("kontrast list opt", "bash", ["optimizers", "optimisers"]),
        ("kontrast doctor sce-fashion-mini method.self", "bash", ["method.self_logit="]),
    ],
)  # fmt: skip
def test_through_the_shells_machinery(words: str, shell: str, found: list[str], tmp_path: Path) -> None:
    (tmp_path / "runs" / "mine-1").mkdir(parents=True)
    (tmp_path / "runs" / "mine-1" / "run.json").touch()
    assert asked(words, shell, tmp_path) == found
