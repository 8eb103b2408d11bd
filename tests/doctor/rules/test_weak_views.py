"""Views too weak or identical: by the presets, and by the pictures that were kept."""

from __future__ import annotations

import pytest

from kontrast.train import resolve
from tests.doctor import patients


def test_runs() -> None:
    assert patients.findings("identical")["weak-views"].status == "problem"
    assert patients.findings("healthy-self")["weak-views"].status == "ok"
    assert patients.findings("healthy")["weak-views"].status == "ok"


def test_pictures_that_hardly_differ_are_seen_whatever_the_preset_says() -> None:
    found = patients.findings("divided")["weak-views"]  # two grey levels in all
    assert found.status == "problem"
    assert "grey levels" in found.evidence


@pytest.mark.parametrize(
    ("method", "views", "status"),
    [
        ("simclr", "[none, none]", "problem"),
        ("simclr", "[crop-flip, crop-flip]", "warning"),
        ("simclr", "[strong, strong]", "ok"),
        ("simclr", "[none, strong]", "ok"),
        ("moco", "[none, none]", "problem"),
        ("instance", "[none]", "problem"),
        ("simclr", "[[crop, flip], [crop, flip]]", "warning"),
        ("simclr", "[[{name: flip, p: 0}], [color-jitter]]", "problem"),
        ("simclr", "[[resized-crop, flip], [resized-crop]]", "ok"),
        ("simclr", "{name: crop-flip, jitter: 0.4}", "ok"),
        ("simclr", "{name: none, scale: 0.5}", "ok"),
        ("simclr", "{name: none, jitter: 0}", "problem"),
        ("supcon", "[none, none]", "problem"),
        ("supcon", "[crop-flip, crop-flip]", "ok"),
    ],
)
def test_recipes(method: str, views: str, status: str) -> None:
    assert patients.of_recipe(method, f"augment.views={views}")["weak-views"].status == status


def test_the_cure_can_be_typed() -> None:
    pictures = patients.of_recipe("simclr", "augment.views=[none, none]")["weak-views"].advice
    assert "augment=strong" in pictures
    assert "vector" not in pictures
    vectors = patients.findings("easy")["weak-views"].advice
    assert "strong" not in vectors.partition(":")[2]
    typed = vectors.partition('"')[2].removesuffix('"')
    assert resolve(patients.RECIPES["easy"]().override([typed])).augment.described[1]["noise"] == 0.1


def test_one_view_without_augmentation_is_right_for_supervised_methods() -> None:
    assert "weak-views" not in patients.of_recipe("sc", "augment=none")


def test_a_task_that_is_solved() -> None:
    found = patients.findings("easy")["weak-views"]
    assert found.status == "warning"
    assert "the task is solved" in found.evidence
