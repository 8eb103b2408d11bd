"""What every protocol keeps: found by its file, deterministic, words, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn

from kontrast.data import DataSet
from kontrast.evaluate import Subject, evaluate, names

QUICK = {
    "graf-linear": {"iterations": 50},
    "probe": {"epochs": 3, "learning_rates": (0.03, 0.3), "weight_decays": (0.0, 1e-3)},
    "sce": {"epochs": 2, "batch_size": 64},
    "tcl": {"epochs": 2, "batch_size": 64},
    "wang-liu": {"epochs": 2, "batch_size": 64},
}


def test_the_names_are_those_that_were_promised() -> None:
    promised = [
        "graf-linear",
        "graf-means",
        "knn20",
        "knn200",
        "logistic",
        "probe",
        "retrieval",
        "sce",
        "tcl",
        "wang-liu",
    ]
    assert set(promised) <= set(names())


@pytest.mark.parametrize("name", names())
def test_a_result_says_how_it_came_about_and_is_the_same_again(
    name: str, encoder: nn.Module, pictures: DataSet
) -> None:
    subject = Subject.from_encoder(encoder, pictures)
    before = {key: tensor.clone() for key, tensor in encoder.state_dict().items()}
    state = torch.get_rng_state()
    first, again = (evaluate(subject, name, seed=7, **QUICK.get(name, {})) for _ in range(2))
    assert torch.equal(first.predictions, again.predictions)
    assert first.record() == again.record()
    assert torch.equal(torch.get_rng_state(), state), "torch's own generator is left alone"
    assert all(torch.equal(before[key], tensor) for key, tensor in encoder.state_dict().items())
    assert encoder.training
    assert (first.name, first.seed, first.split) == (name, 7, "test")
    assert first.protocol in str(first)
    assert 0.1 < first.value < 1, "better than chance on 100 rows of ten classes"
    assert sum(map(sum, first.confusion)) == first.test_rows == len(first.predictions)
    json.dumps(first.record(), allow_nan=False)


@pytest.mark.parametrize("name", ["wang-liu", "tcl", "sce"])
def test_features_alone_are_not_enough_for_augmented_probes(name: str, subject: Subject) -> None:
    with pytest.raises(ValueError, match=f"{name} trains on augmented images .*graf-linear, graf-means, knn20"):
        evaluate(subject, name)


def test_unknown_names_and_options_name_the_nearest(subject: Subject) -> None:
    with pytest.raises(ValueError, match="did you mean 'graf-means'"):
        evaluate(subject, "graf_mean")
    with pytest.raises(ValueError, match="has no option 'temprature'; did you mean 'temperature'"):
        evaluate(subject, "knn20", temprature=0.1)
    with pytest.raises(ValueError, match="seed=-1: must be a whole number"):
        evaluate(subject, "knn20", seed=-1)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("knn20", "k", 0),
        ("knn20", "temperature", 0.0),
        ("probe", "epochs", 0),
        ("probe", "learning_rates", ()),
        ("probe", "weight_decays", (-1.0,)),
        ("probe", "held_out", 1.5),
        ("logistic", "C", -1.0),
        ("graf-linear", "iterations", 1.5),
        ("retrieval", "references", "all"),
        ("probe", "limit", 0),
    ],
)
def test_options_out_of_range_are_value_errors(subject: Subject, name: str, option: str, value: object) -> None:
    with pytest.raises(ValueError, match="must"):
        evaluate(subject, name, **{option: value})


@pytest.mark.parametrize("name", ["probe", "logistic", "graf-linear"])
def test_a_limit_is_in_the_words_and_in_the_rows(subject: Subject, name: str) -> None:
    found = evaluate(subject, name, limit=140, **QUICK.get(name, {}))
    assert "limited to 140 training rows" in found.protocol
    assert found.train_rows == 140


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, {}) for name in ("knn20", "retrieval", "graf-means", "logistic", "probe", "graf-linear")]
    + [("graf-means", {"normalize": False})],
)
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(torch.float32, scale) for scale in (1e-25, 1e-20, 1e20, 1e30)]
    + [(torch.float64, scale) for scale in (1e-200, 1e200)],
)
def test_the_size_of_features_does_not_matter(
    name: str, options: dict[str, Any], dtype: torch.dtype, scale: float, subject: Subject
) -> None:
    train, test = ((x[:300].to(dtype) * scale) for x in (subject.train, subject.test))
    labels = subject.train_labels[:300], subject.test_labels[:300]
    small = Subject.from_features(train / scale, labels[0], test / scale, labels[1])
    first, second = (
        evaluate(which, name, **QUICK.get(name, {}), **options)
        for which in (small, Subject.from_features(train, labels[0], test, labels[1]))
    )
    assert float((first.predictions == second.predictions).double().mean()) > 0.99, "all but rows on a border"
    assert len(first.predictions.unique()) > 1
