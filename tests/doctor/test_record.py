"""The record: what is missing says so, and the data are opened only when asked for."""

from __future__ import annotations

import pytest
import torch

from kontrast import recipes
from kontrast.doctor.collecting import collect_features, collect_recipe
from kontrast.doctor.record import Missing, Record
from tests.doctor import patients


def test_what_is_missing_says_what() -> None:
    record = Record(patient="run", lines=[{"step": 1, "loss": 2.0}, {"step": 2, "loss": None}])
    assert record.course("loss") == [2.0], "a loss that was no number is null in the log"
    for ask, what in (
        (lambda: record.last("waiting"), "metrics.jsonl has no 'waiting'"),
        (lambda: record.features, "analysis.npz has no features"),
        (lambda: record.measured("embeddings", "spread"), "analysis.json has no 'spread' of the embeddings"),
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
    assert Record(patient="run", written=recipe, lines=lines).rows == 4 * 64


def test_a_loss_without_temperature_has_none() -> None:
    simclr = recipes.find("simclr-fashion-mini")
    assert collect_recipe(simclr).temperature == 0.1
    assert collect_recipe(simclr.override(["method.loss=simple"])).temperature is None
    assert collect_recipe(recipes.find("ce-fashion-mini")).temperature is None


def test_a_run_knows_its_training_rows() -> None:
    from kontrast.doctor.collecting import collect_run

    record = collect_run(patients.run("healthy"))
    assert record.rows == 512
    assert record.features.shape == (500, 32)
    assert record.method.needs_labels
