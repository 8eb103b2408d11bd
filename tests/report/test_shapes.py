"""Files that are JSON and YAML still, but hold other types than they should: a page, or a ValueError, nothing else."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import sys
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml

from kontrast.files import write_json
from kontrast.report import comparison, run
from kontrast.report.page import render
from tests.report import made

DAMAGED = ("run.json", "result.json", "analysis.json", "doctor.json", "metrics.jsonl", "recipe.yaml")
CASES = 200


def deep(levels: int) -> Any:
    value: Any = 1
    for i in range(levels):
        value = [value] if i % 2 else {"name": value}
    return value


VALUES = [
    None, True, False, 0, 1, -1, 5, 2**63, 10**400, 0.5, -1e-320, 5e-324, 1e38, 1e300, float("nan"), float("inf"), "",
    "x", "5", "done", "failed", "\udcff\x00\n</script>", "a" * 5000, [], [1], ["x", None], [[1]], [[1, 2], [3]], [{}],
    [[]], [{"name": "uniformity", "value": 2}], {}, {"name": 5}, {"name": "x", "protocol": "y", "value": 0.5},
    {"step": 1, "loss": "x"}, {"a": {"b": [None]}}, {"name": ["x"]}, deep(15), deep(300),
]  # fmt: skip


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a nest, the whole among them."""
    if len(before) > 30:
        return [before]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(place for key, one in inner for place in places(one, (*before, key)))]


def harmed(value: Any, draw: random.Random) -> Any:
    """With up to three values put in at random, or taken away."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        *way, last = draw.choice(places(value)) or (None,)
        new = copy.deepcopy(draw.choice(VALUES))
        if last is None:
            return new
        inside = value
        for key in way:
            inside = inside[key]
        if draw.random() < 0.15:
            del inside[last]
        elif draw.random() < 0.1 and isinstance(inside, dict):
            inside[draw.choice(("name", "value", "data", "results", "x" * 300, "", "\n"))] = new
        else:
            inside[last] = new
    return value


def damage(folder: Path, name: str, draw: random.Random) -> None:
    content = (folder / name).read_text()
    if name == "metrics.jsonl":
        lines = harmed([json.loads(line) for line in content.splitlines()], draw)
        written = "".join(json.dumps(line) + "\n" for line in (lines if isinstance(lines, list) else [lines]))
    elif name == "recipe.yaml":
        written = json.dumps(harmed(yaml.safe_load(content), draw))  # which is YAML too
    else:
        written = json.dumps(harmed(json.loads(content), draw))
    (folder / name).write_text(written)


def finished(path: Path) -> Path:
    folder = made.folder(path, files={"result.json": "0" * 64})
    findings = [{"rule": "a", "status": status, "disease": "b", "evidence": "c"} for status in ("ill", "healthy")]
    write_json(folder / "doctor.json", {"findings": findings})
    return folder


def fuzz(place: Path, cases: int, seed: int) -> int:
    """Makes the pages of damaged runs; how many were ValueErrors."""
    draw, refused = random.Random(seed), 0
    good, bad = finished(place / "runs" / "good"), place / "runs" / "bad"
    for case in range(cases):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        for name in draw.sample(DAMAGED, draw.choice((1, 1, 1, 2))):
            damage(bad, name, draw)
        try:
            render(run.page(bad) if case % 3 else comparison.page([good, bad])).encode(errors="replace")
        except ValueError:
            assert not case % 3, "a run's own page shows what there is"
            refused += 1
        except Exception as error:
            error.add_note(f"case {case} of seed {seed}, in {bad}")
            raise
    return refused


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("run.json", '{"status": "done", "command": 5}', "run.json is damaged: command is 5; expected a list"),
        ("run.json", '{"machine": "x"}', "machine is 'x'; expected a mapping"),
        ("result.json", '{"results": [{"name": "a", "protocol": "b", "value": 1, "error": [1]}]}', "results.0.error"),
        ("analysis.json", '{"geometry": 5, "class_names": 5, "kind": 5}', "geometry is 5; expected a mapping"),
        ("metrics.jsonl", '{"step": 1, "loss": 2}\n[1, 2]\n', "metrics.jsonl is damaged: 1 is [1, 2]"),
        ("recipe.yaml", "[" * 50_000, "recipe.yaml is not YAML: it is nested too deep"),
        ("recipe.yaml", "data: 5", "recipe.yaml is damaged: data is 5; expected a mapping"),
        ("recipe.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nabout: " + "[" * 30 + "]" * 30, "one inside the other"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(file: str, content: str, says: str, tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / file).write_text(content)
    (trouble,) = [trouble for trouble in run.collect(folder).troubles if says in trouble]
    assert escape(trouble) in render(run.page(folder))
    if "[[[" not in content:
        assert escape(trouble) in render(comparison.page([folder, finished(tmp_path / "other")]))


@pytest.mark.parametrize("file", [*DAMAGED, "analysis.npz"])
def test_a_pipe_in_a_files_place_is_named_and_not_waited_for(file: str, tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / file).unlink()
    os.mkfifo(folder / file)
    assert [trouble for trouble in run.collect(folder).troubles if trouble == f"{file} is a pipe, no file"]
    if file != "doctor.json":
        with pytest.raises(ValueError, match=rf"{file} (is a pipe, no file|.*no recipe\.yaml)|no run's folder"):
            comparison.page([folder, finished(tmp_path / "other")])


class Blank:
    """In altair's place: takes everything, draws nothing, and costs no time."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self

    def __add__(self, _: Any) -> Any:
        return self

    def to_dict(self) -> dict[str, Any]:
        return {}


def test_no_value_of_another_type_is_more_than_a_value_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some with their charts; most without, and without t-SNE, which take most of the time."""
    assert fuzz(tmp_path / "drawn", 6, seed=0) < 4
    monkeypatch.setattr("kontrast.report.run.embedding.tsne", lambda x, *_, **__: x[:, :2])
    monkeypatch.setitem(sys.modules, "altair", Blank())
    assert fuzz(tmp_path, CASES, seed=1) < CASES // 5
