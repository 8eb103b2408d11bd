"""The summary is the measures themselves, one a line, each beside its theoretical value."""

from __future__ import annotations

import math

import pytest
import torch

from kontrast import geometry
from kontrast.geometry import Line, summary
from kontrast.simplex import vertices
from tests.geometry.samples import clusters, rows, sphere


def by_name(lines: list[Line]) -> dict[str, Line]:
    assert len({line.name for line in lines}) == len(lines)
    return {line.name: line for line in lines}


def same(line: Line, value: float, error: float | None = None) -> None:
    assert line.value == pytest.approx(value, rel=1e-12, abs=1e-14), line.name
    if error is not None:
        assert line.error == pytest.approx(error, rel=1e-9), line.name


def test_lines_are_the_measures() -> None:
    x, labels = clusters(80, 6, 4)
    w = rows(4, 6, seed=1)
    found = by_name(summary(x, labels, w, temperature=0.2, k1=3.0, k2=1.5, t=1.5))
    z = x / x.norm(dim=1, keepdim=True)
    same(found["uniformity, t = 1.5"], *geometry.uniformity(x, 1.5, with_error=True))
    same(found["tolerance"], *geometry.tolerance(x, labels, with_error=True))
    spectrum, simplex = geometry.spectrum(x, with_error=True), geometry.simplex(x, labels, w, with_error=True)
    same(found["effective rank"], spectrum.effective_rank, spectrum.errors["effective_rank"])
    same(found["spread"], geometry.collapse(x).spread)
    for name, key in {
        "S1, means off the origin": "origin",
        "S2, lengths of means differ": "norm",
        "S3, distances of means differ": "distance",
        "cosine of two class means": "across_means",
        "cosine to the class mean": "within",
        "cosine to the class's weight": "to_weight",
    }.items():
        same(found[name], getattr(simplex, key), simplex.errors[key])
    entropies = geometry.penalty_entropy(x, x, x, torch.arange(80), temperature=[0.07, 0.2, 0.3, 1.0]).mean(0)
    for tau, value in zip((0.07, 0.2, 0.3, 1.0), entropies.tolist(), strict=True):
        same(found[f"penalty entropy, τ = {tau:g}"], value)
    nearest = geometry.local_separation(z, z, z, torch.arange(80)).nearest.mean(0)
    same(found["cosine to the nearest other"], nearest[0].item())
    same(found["cosine to the 10th nearest other"], nearest[9].item())
    collapse = geometry.neural_collapse(x, labels, w, with_error=True)
    for key in ("nc1", "nc3", "nc4"):
        line = next(line for name, line in found.items() if name.startswith(key.upper()))
        same(line, getattr(collapse, key), collapse.errors[key])
    supcon = geometry.gradient_response(x, labels, temperature=0.2, k1=0.0, k2=1.0)
    tcl = geometry.gradient_response(x, labels, temperature=0.2, k1=3.0, k2=1.5)
    for name, response in (("SupCon", supcon), ("TCL", tcl)):
        same(found[f"{name}: pull of hardest positive"], response.positive.mean().item())
        same(found[f"{name}: push of hardest negative"], response.negative.mean().item())


def test_every_line_of_collapsed_classes_stands_at_its_theory() -> None:
    """At the simplex value and theory agree wherever the theory is about the simplex, and all have a meaning."""
    labels = torch.arange(60) % 4
    v = vertices(4, dtype=torch.float64)
    lines = summary(v[labels], labels, v)
    about = [line for line in lines if "simplex" in line.meaning or line.meaning == "each class one point"]
    assert len(about) > 15
    for line in about:
        assert line.theory is not None
        # Angles near 0 are known to the root of the cosine's precision.
        assert line.value == pytest.approx(line.theory, abs=1e-7), line.name
    assert all(line.meaning for line in lines if line.theory is not None)


def test_features_alone() -> None:
    names = by_name(summary(sphere(50, 5)))
    assert "effective rank" in names
    assert not any(word in name for name in names for word in ("tolerance", "S1", "NC1", "SupCon"))


def test_labels_without_a_classifier() -> None:
    names = by_name(summary(*clusters(60, 5, 3)))
    assert "tolerance" in names
    assert not any("weight" in name or "NC3" in name for name in names)


def test_errors_are_there_or_none() -> None:
    for line in summary(*clusters(60, 5, 3)):
        assert line.error is None or (math.isfinite(line.error) and line.error >= 0), line.name


def test_measures_per_anchor_are_taken_at_a_sample_against_all() -> None:
    x = rows(200, 6)
    few = by_name(summary(x, anchors=40))
    every = by_name(summary(x))
    name = "cosine to the nearest other"
    assert few[name].value != every[name].value
    assert abs(few[name].value - every[name].value) < 4 * (few[name].error or 0.0)
    assert few["uniformity, t = 2"] == every["uniformity, t = 2"]
    assert summary(x, anchors=40) == summary(x, anchors=40)
    assert by_name(summary(x, anchors=40, seed=1))[name].value != few[name].value


def test_progress_is_told_before_each_step() -> None:
    told: list[tuple[str, int, int]] = []
    x, labels = clusters(60, 5, 3)
    summary(x, labels, progress=lambda name, done, of: told.append((name, done, of)))
    assert [done for _, done, _ in told] == list(range(len(told)))
    assert {of for _, _, of in told} == {len(told)}
    assert all(name for name, _, _ in told)


def test_too_few_samples_are_warned_of_at_the_callers_line() -> None:
    with pytest.warns(geometry.TooFewSamples) as seen:
        summary(rows(20, 3))
    assert {w.filename for w in seen} == {__file__}


def test_gradient_responses_of_few_anchors_are_against_all_rows() -> None:
    x, labels = clusters(1500, 12, 5)
    every, some = (by_name(geometry.summary(x, labels, anchors=a)) for a in (1500, 100))
    for name in ("SupCon: pull of hardest positive", "SupCon: push of hardest negative"):
        line = some[name]
        assert line.error is not None
        assert abs(line.value - every[name].value) < 5 * line.error
        assert line.theory == every[name].theory


def test_unsuited_labels_cost_only_the_measures_that_need_others() -> None:
    x, _ = clusters(300, 12, 5)
    found = by_name(geometry.summary(x, torch.zeros(300, dtype=torch.long)))
    assert math.isfinite(found["tolerance"].value)
    assert math.isfinite(found["uniformity, t = 2"].value)
    for name in ("simplex", "neural collapse", "gradient response"):
        assert math.isnan(found[name].value)
        assert found[name].meaning.startswith("not measured: labels hold 1 class")


def test_rows_of_any_length_have_no_theory_of_unit_rows() -> None:
    x, labels = clusters(300, 12, 5)
    found = by_name(geometry.summary(5 * x, labels, normalize=False))
    assert found["inner product with the nearest other"].theory is None
    assert found["tolerance, inner product"].theory is None
    assert found["uniformity, t = 2"].theory is None
    assert found["TCL: pull of hardest positive"].theory is None
    assert found["cosine of two class means"].theory == pytest.approx(-0.25)


@pytest.mark.filterwarnings("ignore::kontrast.geometry.TooFewSamples")
def test_equal_rows_say_so() -> None:
    found = by_name(geometry.summary(torch.ones(40, 3), torch.arange(40) % 4))
    assert math.isnan(found["NC2, means off the angle"].value)
    assert "equal" in found["NC2, means off the angle"].meaning
    assert "complete collapse" in found["dead directions"].meaning


@pytest.mark.parametrize("anchors", [0, -5, 1.5])
def test_wrong_anchors(anchors: object) -> None:
    with pytest.raises(ValueError, match=r"anchors=.*: must be a whole number of at least 1"):
        geometry.summary(torch.randn(40, 3), anchors=anchors)  # type: ignore[arg-type]


def test_weights_without_labels() -> None:
    with pytest.raises(ValueError, match="pass labels too"):
        geometry.summary(torch.randn(40, 3), weights=torch.randn(2, 3))


@pytest.mark.filterwarnings("ignore::kontrast.geometry.TooFewSamples")
@pytest.mark.parametrize("n", [3, 4, 5, 8, 11, 12, 13])
def test_few_rows_have_a_summary_too(n: int) -> None:
    names = by_name(summary(rows(n, 16, seed=0), torch.arange(n) % 5))
    farthest = min(10, max(n - 2, 1))
    if farthest > 1:
        assert f"cosine to the {farthest}th nearest other" in names
    assert "cosine to the nearest other" in names
