"""The record: what is missing says so, data are opened when a rule reads them, damaged files are errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from kontrast import recipes
from kontrast.doctor.examining import examine
from kontrast.doctor.record import Missing, Record, collect_features, collect_recipe, collect_run
from tests.doctor import patients


def test_what_is_missing_says_what() -> None:
    record = Record(patient="run", metrics=[{"step": 1, "loss": 2.0}, {"step": 2, "loss": None}])
    assert record.values("loss") == [2.0], "a loss that was no number is null in the log"
    for ask, what in (
        (lambda: record.last("waiting"), "metrics.jsonl has no 'waiting'"),
        (lambda: record.features, "analysis.npz has no features"),
        (lambda: record.measure("embeddings", "spread"), "analysis.json has no 'spread' of the embeddings"),
        (lambda: record.recipe, "no recipe"),
        (lambda: record.data, "no training data to look at"),
    ):
        with pytest.raises(Missing, match=what):
            ask()


def test_class_sizes_are_of_the_training_rows_or_of_the_file() -> None:
    recipe = recipes.find("supcon-fashion-mini").override(["data.limit=100"])
    assert collect_recipe(recipe).class_sizes == [10] * 10
    record = collect_features(torch.eye(5), ["a", "b", "a", "c", "a"])
    assert record.class_sizes == [3, 1, 1]
    with pytest.raises(Missing, match="could not be read"):
        _ = collect_recipe(recipe.override(["data=nowhere/at/all.npz"])).data


def test_rows_are_known_from_the_log_where_the_data_are_gone() -> None:
    lines = [{"step": 10, "epoch": 2.5, "loss": 1.0}]
    recipe = recipes.find("moco-fashion-mini").override(["train.batch_size=64"])
    assert Record(patient="run", resolved=recipe, metrics=lines).rows == 4 * 64


def test_a_loss_without_temperature_has_none() -> None:
    simclr = recipes.find("simclr-fashion-mini")
    assert collect_recipe(simclr).temperature == 0.1
    assert collect_recipe(simclr.override(["method.loss=simple"])).temperature is None
    assert collect_recipe(recipes.find("ce-fashion-mini")).temperature is None


def test_a_run_knows_its_training_rows() -> None:
    record = collect_run(patients.run("healthy"))
    assert record.rows == 512
    assert record.features.shape == (500, 32)
    assert record.method.needs_labels


def test_a_foreign_folder(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"is not a run's folder: it has no recipe\.yaml"):
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
    before = collect_run(run).metrics
    with (run / "metrics.jsonl").open("a") as log:
        log.write('{"step": 99, "lo')
    assert collect_run(run).metrics == before


@pytest.mark.parametrize(
    ("features", "labels", "said"),
    [
        (np.zeros(5), None, r"features: shape \[5\] must be \[N, D\]"),
        (np.zeros((1, 5)), None, "two rows or more"),
        (np.full((3, 2), np.nan), None, "features: 3 of 3 rows have NaN"),
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
    assert examine(collect_run(run))
