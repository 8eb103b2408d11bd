"""Strict and tolerant reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kontrast.runs.reading import fit, read_json_file, read_metrics_file
from kontrast.runs.schemas import Geometry, Result, State


@pytest.mark.parametrize("content", ["{", "null", "[]", "[" * 100_000, "\udcff"])
def test_a_damaged_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"run\.json is damaged \(.*\); remove it"):
        read_json_file(path, State, hint="remove it")
    messages: list[str] = []
    assert read_json_file(path, State, messages) is None
    assert messages[0].startswith("run.json is damaged: ")
    assert str(tmp_path) not in messages[0]


def test_a_missing_file_is_none(tmp_path: Path) -> None:
    assert read_json_file(tmp_path / "run.json", State) is None
    assert read_json_file(tmp_path / "run.json", State, []) is None


@pytest.mark.parametrize(
    ("values", "expected", "message"),
    [
        ({"step": "x", "seed": 1}, {"seed": 1}, "step='x': must be a whole number"),
        ({"versions": {"torch": [1], "numpy": "2"}}, {"versions": {"numpy": "2"}}, "versions.torch=[1]: must be"),
        ({"command": ["a", {}, "b"]}, {"command": ["a", "b"]}, "command.1={}: must be"),
        ({"machine": 3}, {}, "machine=3: must be a mapping"),
    ],
)
def test_what_fits_is_kept(values: dict[str, Any], expected: dict[str, Any], message: str) -> None:
    messages: list[str] = []
    assert fit(State, values, "run.json", messages) == State.model_validate(expected)
    assert len(messages) == 1
    assert message in messages[0]


def test_an_item_without_a_required_field_is_left_out_whole() -> None:
    messages: list[str] = []
    found = fit(Geometry, {"features": [{"value": 1}, {"name": "tolerance", "value": 2}]}, "analysis.json", messages)
    assert found is not None
    assert [measure.name for measure in found.features] == ["tolerance"]
    assert messages == ["analysis.json is damaged: features.0.name: is missing"]


def test_lists_whose_places_count_are_kept_or_left_out_whole() -> None:
    record = {"name": "knn20", "protocol": "k = 20", "per_class": [0.1, "x"], "class_names": ["a", None]}
    found = fit(Result, {"results": [record]}, "result.json", [])
    assert found is not None
    assert found.results[0].per_class is None
    assert found.results[0].class_names == ["a", None]


def test_only_the_first_problems_are_described() -> None:
    messages: list[str] = []
    fit(State, {"files": {str(i): i for i in range(40)}}, "run.json", messages)
    assert len(messages) == 6
    assert messages[-1] == "run.json is damaged: 35 more values do not fit"


def test_lines_that_do_not_fit_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": "x"}\n[]\n{"step": 2}\n{"st')
    with pytest.raises(ValueError, match=r"line 2 of .*metrics\.jsonl is damaged \(step='x': must be a number\)"):
        read_metrics_file(path)
    messages: list[str] = []
    assert read_metrics_file(path, messages) == [{"step": 1}, {"step": 2}]
    assert messages[0] == "line 2 of metrics.jsonl is damaged: step='x': must be a number"
    assert read_metrics_file(tmp_path / "none") == []


def test_strict_reading_returns_everything(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"status": "done", "own": 5}))
    state = read_json_file(path, State)
    assert state is not None
    assert state.model_extra == {"own": 5}
