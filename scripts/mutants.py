"""Change the source in small ways, one at a time, and see which changes the tests notice.

    python scripts/mutants.py --out before.json                     forty mutants, tests of the working tree
    python scripts/mutants.py --out after.json --tests HEAD~3       the same mutants, tests of another commit
    python scripts/mutants.py --out after.json --killed before.json      only those that an earlier record has as killed
    python scripts/mutants.py --compare before.json after.json      mutants that only one of them kills

A mutant is a copy of one source file with one operator, comparison, constant or condition changed, or one statement
dropped; which ones, a seed decides. Its tests are the test file with its name and the contract test beside it, or, for
files without a test of their own, the tests of the folder. A mutant is killed if one fails (the record says which) or
they do not end. The tests must pass without a mutant: a test that fails anyway kills nothing.
Tests that no longer kill a mutant lost something; tests that kill the same mutants in less time did not.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
AREAS = ("losses", "train", "runs", "experiments")
LONGEST = 1500  # seconds that the tests of a mutant may take; then it counts as killed
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changes(node: ast.AST) -> Iterator[str]:
    """Source that can stand in the place of a node.

    >>> [*changes(ast.parse("a < b").body[0].value)], [*changes(ast.parse("x.add_(y)").body[0])]
    (['(a <= b)'], ['pass'])
    """
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
        changed = copy.deepcopy(node)
        changed.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        yield f"({ast.unparse(changed)})"
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        compared = copy.deepcopy(node)
        compared.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        yield f"({ast.unparse(compared)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "pass"
    elif isinstance(node, ast.IfExp):
        yield f"({ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)})"


def mutants_of(path: Path) -> list[dict[str, Any]]:
    """Every change of a file: where it is, and the source before and after. Not in annotations and error texts."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    skip: set[ast.AST] = set()
    for node in ast.walk(tree):
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            skip |= set(ast.walk(part)) if part is not None else set()
        if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
            skip |= set(ast.walk(node))
    found = []
    for node in ast.walk(tree):
        if node in skip or getattr(node, "lineno", 0) != getattr(node, "end_lineno", -1):
            continue
        before = ast.get_source_segment(text, node)
        for after in changes(node):
            place = {"line": node.lineno, "column": node.col_offset}  # type: ignore[attr-defined]
            found.append({"file": str(path.relative_to(ROOT)), **place, "before": before, "after": after})
    return found


def draw(areas: list[str], count: int, seed: int) -> list[dict[str, Any]]:
    """So many mutants, the same number of each area, at most one of a line."""
    chooser, chosen = random.Random(seed), []
    for number, area in enumerate(areas):
        files = sorted((ROOT / "src" / "kontrast" / area).rglob("*.py"))
        mutants = [mutant for file in files for mutant in mutants_of(file)]
        chooser.shuffle(mutants)
        share = count // len(areas) + (number < count % len(areas))
        chosen += list({(mutant["file"], mutant["line"]): mutant for mutant in mutants}.values())[:share]
    return chosen


def tests_of(file: str, tests: Path) -> list[str]:
    """The tests that belong to a source file."""
    inside = Path(file).relative_to("src/kontrast")
    folder = tests / inside.parent
    while not folder.exists():
        folder = folder.parent
    own = folder / f"test_{inside.stem.strip('_')}.py"
    contract = folder / "test_contract.py"
    return [str(path) for path in (own, contract) if path.exists()] if own.exists() else [str(folder)]


def run(mutant: dict[str, Any], place: Path) -> str:
    """Run the tests of a mutant in a fork of this process, which has imported the large libraries already."""
    path = place / mutant["file"]
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    line, column = lines[mutant["line"] - 1].encode(), mutant["column"]
    changed = line[:column] + mutant["after"].encode() + line[column + len(mutant["before"].encode()) :]
    lines[mutant["line"] - 1] = changed.decode()
    path.write_text("".join(lines), encoding="utf-8")
    start = time.monotonic()
    try:
        ast.parse("".join(lines))
        child = os.fork()
        if child == 0:
            os.setsid()
            _test(place, tests_of(mutant["file"], place / "tests"))
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() - start > LONGEST:
                os.killpg(child, signal.SIGKILL)
            time.sleep(0.1)
        status = (place / "status").read_text() if (place / "status").exists() else "killed"
    except SyntaxError:
        status = "invalid"
    finally:
        path.write_text(text, encoding="utf-8")
        (place / "status").unlink(missing_ok=True)
    return status


def _test(place: Path, tests: list[str]) -> None:
    """Leave "survived" in a file if the tests pass."""
    import pytest

    os.chdir(place)
    sys.path.insert(0, str(place / "src"))
    os.environ["PYTHONPATH"] = str(place / "src")
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    failed: list[str] = []

    class First:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    status = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[First()])
    by = failed[0].rpartition("/")[2] if failed else "an error while tests were collected"
    (place / "status").write_text("survived" if status in (0, 5) else f"killed by {by}")
    os._exit(0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--tests", help="a commit whose tests are run; the working tree's by default")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--killed", type=Path, help="a record: the mutants it has as killed, in place of a draw")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = ({m["id"]: m for m in json.loads(path.read_text())} for path in arguments.compare)
        for key in before:
            if key in after and before[key]["status"] != after[key]["status"]:
                print(f"{key}: {before[key]['status']} before, {after[key]['status']} after")
        for name, record in (("before", before), ("after", after)):
            killed = sum(m["status"] == "killed" for m in record.values())
            print(f"{name}: {killed} of {len(record)} killed in {sum(m['seconds'] for m in record.values()):.0f} s")
        return
    # A mutant may be as long as its source and as old to the second: no bytecode of one may serve another.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    import numpy  # noqa: F401
    import torch  # noqa: F401  (imported once, for every fork)
    import torchvision  # noqa: F401

    record = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        place = Path(scratch)
        for name in ("src", "tests", "docs", "torture", "benchmarks", "scripts", "pyproject.toml", "README.md"):
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, place / name)
        if arguments.tests:
            shutil.rmtree(place / "tests")
            archive = subprocess.run(
                ["git", "archive", arguments.tests, "tests"], cwd=ROOT, capture_output=True, check=True
            ).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as file:
                file.extractall(place, filter="data")
        if arguments.killed:
            mutants = [m for m in json.loads(arguments.killed.read_text()) if m["status"] == "killed"]
        else:
            mutants = draw(arguments.areas, arguments.count, arguments.seed)
        for mutant in mutants:
            start = time.monotonic()
            mutant["status"], _, mutant["by"] = run(mutant, place).partition(" by ")
            mutant["seconds"] = round(time.monotonic() - start, 1)
            mutant["id"] = f"{mutant['file']}:{mutant['line']} {mutant['before']} → {mutant['after']}"
            print(f"{mutant['status']:9} {mutant['seconds']:6.1f} s  {mutant['id']}  {mutant['by']}", flush=True)
            record.append(mutant)
            if arguments.out:
                arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
