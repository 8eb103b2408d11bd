"""A new contributor's first day: the files of docs/contributing.md, put into a copy of the tree, are parts at once."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kontrast
from tests.docs.loading import DOCS

PAGE = (DOCS / "contributing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (src/\S+\.py) -->\n```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
KINDS = {
    "losses": "losses",
    "methods": "methods",
    "augment/operations": "augmentations",
    "data/sets": "datasets",
    "models/encoders": "encoders",
    "train/monitors": "monitors",
    "doctor/rules": "rules",
    "evaluate/protocols": "protocols",
    "experiments/papers": "experiments",
}
"""What each folder's parts are called by ``kontrast list``."""
WITH_ALL_PARTS = (
    "method=pairs method.loss=decoupled data=stripes encoder=one-conv augment.views=[[invert],[flip,invert]] "
    "schedule=constant evaluate.protocols=[nearest-mean,knn20] evaluate.baselines=false "
    "train.steps=4 train.batch_size=16 run.log_every=2 run.monitor_every=2 run.progress=false"
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with every file of the page in it."""
    copy = tmp_path_factory.mktemp("tree")
    source = Path(kontrast.__file__).parent
    shutil.copytree(source, copy / "src" / "kontrast", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in FILES.items():
        assert not (copy / path).exists(), f"{path} is in the tree already"
        (copy / path).write_text(text, encoding="utf-8")
    return copy


def python(tree: Path, *words: str) -> str:
    """What Python prints in the copied tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        [sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


LISTS = """
import sys
from kontrast.cli import app
for kind in sys.argv[1:]:
    print("=", kind)
    app(["list", kind], standalone_mode=False)
"""


@pytest.fixture(scope="module")
def lists(tree: Path) -> dict[str, list[str]]:
    """What ``kontrast list`` prints of each kind in the copied tree, by one process."""
    parts = re.split("^= ", python(tree, "-c", LISTS, *KINDS.values()), flags=re.MULTILINE)[1:]
    return {kind: lines for kind, *lines in (part.splitlines() for part in parts)}


def test_the_page_has_a_file_for_each_kind() -> None:
    assert {Path(path).parent.relative_to("src/kontrast").as_posix() for path in FILES} == set(KINDS)


@pytest.mark.parametrize("path", FILES)
def test_the_file_alone_is_listed(lists: dict[str, list[str]], path: str) -> None:
    name = Path(path).stem.replace("_", "-")
    kind = KINDS[Path(path).parent.relative_to("src/kontrast").as_posix()]
    summary = FILES[path].partition('"""')[2].partition("\n")[0].removesuffix('"""')
    if kind == "experiments":  # its file may have several
        name, summary = re.findall(r'^        (?:name|title)="(.*)",$', FILES[path], re.MULTILINE)
    assert [line for line in lists[kind] if line.split()[0] in (name, f"[{name}]") and summary in line]


def test_a_recipe_trains_with_all_of_them(tree: Path) -> None:
    python(tree, "-m", "kontrast", "train", "simclr-fashion-mini", *WITH_ALL_PARTS.split(), "--out", "runs")
    (folder,) = (tree / "runs").iterdir()
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert any("loss" in line for line in lines)
    assert any("monitor/mean_norm" in line for line in lines)
    assert not any("bound" in line for line in lines), "the page's loss has no limits, and that is no error"
    result = json.loads((folder / "result.json").read_text())
    assert [entry["name"] for entry in result["results"]] == ["nearest-mean", "knn20"]
    findings = json.loads((folder / "doctor.json").read_text())["findings"]
    assert [finding["status"] for finding in findings if finding["rule"] == "few-rows"] == ["warning"]
    assert (folder / "report.html").stat().st_size > 10_000


CONTRACTS = (
    "tests/losses/test_contract.py",
    "tests/losses/test_functional.py",
    "tests/methods/test_contract.py",
    "tests/augment/test_contract.py",
    "tests/data/sets/test_contract.py",
    "tests/models/encoders/test_contract.py",
    "tests/train/monitors/test_contract.py",
    "tests/evaluate/protocols/test_contract.py",
    "tests/experiments/test_experiment.py",
    "tests/test_registry.py",
)
NAMES = "decoupled or pairs or invert or stripes or one-conv or mean-norm or few-rows or nearest-mean"
EXPORTS = {  # what the page says of a loss under "Then"
    "losses/__init__.py": "from kontrast.losses.decoupled import DecoupledLoss\n__all__ += ['DecoupledLoss']\n",
    "losses/functional.py": "from kontrast.losses.decoupled import decoupled\n__all__ += ['decoupled']\n",
}


@pytest.mark.slow
def test_the_contracts_of_all_parts_hold_for_the_new_ones(tree: Path) -> None:
    """The tests that the page says find a part by its file, in a tree that has the page's files."""
    shutil.copytree(Path(__file__).parent, tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in EXPORTS.items():
        with (tree / "src" / "kontrast" / name).open("a", encoding="utf-8") as file:
            file.write(text)
    examples = [path for path, text in FILES.items() if ">>>" in text]
    python(tree, "-m", "pytest", "-q", "--doctest-modules", *examples)
    printed = python(tree, "-m", "pytest", "-q", "-m", "not slow", "-k", NAMES, *CONTRACTS)
    assert int(re.search(r"(\d+) passed", printed)[1]) > 100


def test_the_new_experiment_is_reproduced(tree: Path) -> None:
    """With the page's method on the page's data set."""
    python(
        tree, "-m", "kontrast", "reproduce", "stripes-temperature", "--preset", "smoke", "--jobs", "1", "--out", "cells"
    )
    (file,) = (tree / "cells").glob("stripes-temperature*/result.json")
    result = json.loads(file.read_text())
    assert result["status"] == {"done": 2}
    assert [claim["findings"][0]["n"] for claim in result["claims"]] == [1]
