"""A run's folder as a record, whole or damaged."""

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
from kontrast.report.records import Other, find_others, read
from tests.report import made


def test_what_a_finished_run_says(tmp_path: Path) -> None:
    record = read(made.folder(tmp_path / "runs" / "by-hand-1"))
    assert (record.name, record.status, record.shown_path) == ("by-hand", "done", "runs/by-hand-1")
    assert [result.name for result in record.results] == ["knn20"]
    assert len(record.steps) == 4
    assert len(record.monitors) == 1
    assert [record.class_name(i) for i in (0, 2, 3, -1)] == ["cat", "owl", "3", "-1"]
    line = record.measure("features", "uniformity")
    assert line is not None
    assert line.value == -2.1
    assert record.measure("features", "no such") is None
    assert record.contents.findings is None
    assert not record.messages


def test_other_runs_of_the_same_data_are_seen(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "one")
    made.folder(tmp_path / "two")
    strange = made.folder(tmp_path / "three")
    (strange / "recipe.yaml").write_text("name: x\nmethod: supcon\ntrain:\n  epochs: 1\ndata:\n  name: other\n")
    damaged = made.folder(tmp_path / "four")
    (damaged / "analysis.json").write_text("{")
    assert find_others(read(folder)) == [Other("two", -2.1, 0.6)]


def test_files_that_are_damaged_are_named(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "run")
    for name in ("result.json", "metrics.jsonl", "analysis.npz", "run.json", "doctor.json"):
        (folder / name).write_text("{\n")
    (folder / "recipe.yaml").write_text("a: [")
    found = read(folder)
    assert sorted(message.removeprefix("line 1 of ").partition(" ")[0] for message in found.messages) == [
        "analysis.npz",
        "doctor.json",
        "metrics.jsonl",
        "recipe.yaml",
        "result.json",
        "run.json",
    ]
    assert (found.results, found.steps, found.arrays, found.status) == ([], [], {}, "unknown")


def test_a_line_that_a_kill_cut_short_is_left_out(tmp_path: Path) -> None:
    folder = made.folder(tmp_path / "run")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 50, "lo')
    assert read(folder).steps[-1]["step"] == 40
    assert not read(folder).messages


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"is not a run's folder: it has no recipe.yaml"):
        read(tmp_path)


DAMAGED = ("run.json", "result.json", "analysis.json", "doctor.json", "metrics.jsonl", "recipe.yaml")


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
    findings = [{"rule": "a", "status": status, "title": "b", "evidence": "c"} for status in ("problem", "ok")]
    write_json(folder / "doctor.json", {"findings": findings})
    return folder


def fuzz(place: Path, cases: int, seed: int) -> None:
    """Make the pages of damaged runs: every page shows what there is."""
    draw = random.Random(seed)
    good, bad = finished(place / "runs" / "good"), place / "runs" / "bad"
    for case in range(cases):
        shutil.rmtree(bad, ignore_errors=True)
        shutil.copytree(good, bad)
        for name in draw.sample(DAMAGED, draw.choice((1, 1, 1, 2))):
            damage(bad, name, draw)
        try:
            render(run.page(bad) if case % 3 else comparison.page([good, bad])).encode(errors="replace")
        except Exception as error:
            error.add_note(f"case {case} of seed {seed}, in {bad}")
            raise


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("run.json", '{"status": "done", "command": 5}', "run.json is damaged: command=5: must be a list"),
        ("result.json", '{"results": [{"name": "a", "protocol": "b", "value": 1, "error": [1]}]}', "results.0.error"),
        (
            "analysis.json",
            '{"geometry": 5, "class_names": 5}',
            "analysis.json is damaged: geometry=5: must be a mapping",
        ),
        ("metrics.jsonl", '{"step": 1, "loss": 2}\n[1, 2]\n', "line 2 of metrics.jsonl is damaged"),
        ("recipe.yaml", "[" * 50_000, "recipe.yaml is damaged: it is not YAML: it is nested too deep"),
        ("recipe.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nabout: " + "[" * 30 + "]" * 30, "one inside the other"),
    ],
)
def test_what_is_wrong_is_said_on_the_page(file: str, content: str, message: str, tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / file).write_text(content)
    (found,) = [one for one in read(folder).messages if message in one]
    assert escape(found) in render(run.page(folder))
    assert escape(found) in render(comparison.page([folder, finished(tmp_path / "other")]))


@pytest.mark.parametrize("file", [*DAMAGED, "analysis.npz"])
def test_a_pipe_in_a_files_place_is_named_and_not_waited_for(file: str, tmp_path: Path) -> None:
    folder = finished(tmp_path / "run")
    (folder / file).unlink()
    os.mkfifo(folder / file)
    assert [message for message in read(folder).messages if f"{file} is a pipe, not a file" in message]


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


@pytest.mark.parametrize(("drawn", "plain"), [(1, 25), pytest.param(6, 100, marks=pytest.mark.slow)])
def test_no_value_of_another_type_breaks_a_page(
    drawn: int, plain: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some with their charts; most without, and without t-SNE, which take most of the time."""
    fuzz(tmp_path / "drawn", drawn, seed=0)
    monkeypatch.setattr("kontrast.report.run.embedding.tsne", lambda x, *_, **__: x[:, :2])
    monkeypatch.setitem(sys.modules, "altair", Blank())
    fuzz(tmp_path, plain, seed=1)
