"""Patients into records: foreign and damaged folders, and features that are none, are errors that say what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast.doctor.collecting import collect_features, collect_run
from kontrast.doctor.examining import examine
from tests.doctor import patients


def test_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"no recipe.yaml, so it is not the folder of a run .* pass a run"):
        collect_run(tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        collect_run(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["recipe.yaml", "run.json", "metrics.jsonl", "analysis.json", "analysis.npz"])
def test_a_damaged_file_is_named(file: str, tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    whole = (run / file).read_bytes()
    (run / file).write_bytes(b"{" + whole[: len(whole) // 2] + b"\n")
    with pytest.raises(ValueError, match=re.escape(str(run / file)) + ".*(damaged|not YAML)"):
        collect_run(run)


def test_a_last_line_that_was_cut_is_no_damage(tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    before = collect_run(run).lines
    with (run / "metrics.jsonl").open("a") as log:
        log.write('{"step": 99, "lo')
    assert collect_run(run).lines == before


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        (np.zeros(5), None, r"features are \[5\]; expected \[N, D\]"),
        (np.zeros((1, 5)), None, "two rows or more"),
        (np.full((3, 2), np.nan), None, "3 of 3 rows of features hold NaN"),
        (np.eye(3), [0, 1], "2 labels for 3 rows"),
    ],
)
def test_features_that_are_none(features: object, labels: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        collect_features(features, labels)


def test_any_numbers_and_labels_will_do() -> None:
    record = collect_features(np.arange(6).reshape(3, 2), ["b", "a", "b"], temperature=0.1)
    assert record.features.dtype == torch.float32
    assert record.labels.tolist() == [1, 0, 1]
    assert record.temperature == 0.1
    with pytest.raises(ValueError, match="temperature"):
        collect_features(torch.eye(3), temperature=0.0)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("run.json", {"machine": "x"}),
        ("run.json", {"step": [1]}),
        ("analysis.json", {"geometry": 5}),
        ("analysis.json", {"geometry": {"features": [{"value": 1}]}}),
        ("model.json", {"input": "x"}),
        ("model.json", {"input": {"kind": "image", "mean": 5, "std": [1]}}),
        ("metrics.jsonl", [1, 2]),
        ("metrics.jsonl", {"step": "x"}),
    ],
)
def test_a_value_of_another_type_is_named(file: str, content: object, tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    (run / file).write_text(json.dumps(content) + "\n")
    with pytest.raises(ValueError, match=re.escape(str(run / file)) + r" is damaged \(.*\); "):
        collect_run(run)


def test_null_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    run = patients.edited("healthy", tmp_path / "run")
    (run / "run.json").write_text('{"machine": null, "status": null}')
    (run / "analysis.json").write_text('{"geometry": null, "class_names": null}')
    (run / "model.json").write_text('{"input": null}')
    assert examine(collect_run(run))
