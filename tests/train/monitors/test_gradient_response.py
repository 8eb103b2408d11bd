"""The gradient response, as geometry has it, of the rows the loss sees."""

from __future__ import annotations

import pytest
import torch

from kontrast import geometry
from kontrast.train.monitors import Snapshot, measure
from tests.train.monitors.snapshots import snapshot


def expected(given: Snapshot, labels: torch.Tensor, k1: float, k2: float) -> tuple[float, float]:
    z = torch.stack([given.embeddings[i, v] for i in range(len(labels)) for v in range(given.embeddings.shape[1])])
    rows = torch.tensor([int(label) for label in labels for _ in range(given.embeddings.shape[1])])
    found = geometry.gradient_response(z, rows, temperature=0.2, k1=k1, k2=k2)
    return float(found.positive.mean()), float(found.negative.mean())


def test_tcls_beside_supcons() -> None:
    """In float64; a grid of k1 and k2 sums in another order than one pair: 1e-9."""
    given = snapshot(embeddings=snapshot().embeddings.double(), k1=50.0, k2=1.5)
    assert given.labels is not None
    found = measure(["gradient-response"], given)
    tcl, supcon = expected(given, given.labels, 50.0, 1.5), expected(given, given.labels, 0.0, 1.0)
    assert list(found.values()) == pytest.approx([*tcl, *supcon], rel=1e-9)
    assert list(found) == [
        "monitor/response_positive",
        "monitor/response_negative",
        "monitor/response_positive_supcon",
        "monitor/response_negative_supcon",
    ]
    assert found["monitor/response_positive"] > found["monitor/response_positive_supcon"], "TCL's theorem 1"


@pytest.mark.parametrize("k", [{}, {"k1": 0.0, "k2": 1.0}])
def test_supcons_alone(k: dict[str, float]) -> None:
    given = snapshot(embeddings=snapshot().embeddings.double(), **k)
    assert given.labels is not None
    found = measure(["gradient-response"], given)
    assert list(found.values()) == pytest.approx(expected(given, given.labels, 0.0, 1.0), rel=1e-9)


@pytest.mark.parametrize("without", [{"labels": None}, {"supervised": False}])
def test_without_labels_the_views_of_an_image_are_its_positives(without: dict[str, object]) -> None:
    given = snapshot(embeddings=snapshot(views=3).embeddings.double(), **without)
    found = measure(["gradient-response"], given)
    assert list(found.values()) == pytest.approx(expected(given, torch.arange(40), 0.0, 1.0), rel=1e-9)


def test_nothing_is_said_where_nobody_has_a_positive() -> None:
    assert measure(["gradient-response"], snapshot(views=1, labels=torch.arange(40))) == {}
    assert measure(["gradient-response"], snapshot(views=1, supervised=False)) == {}
