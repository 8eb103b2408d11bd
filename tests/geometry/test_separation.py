"""Local separation: equation (1) of `kontrast.geometry.separation`, and the summary that is drawn."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.neighbors import NearestNeighbors

from kontrast import geometry
from kontrast.geometry import _rows, local_separation
from tests.geometry.samples import EXACT, FORMS, anchors, keyed, on_sphere, rows, sphere


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nearest", [1, 4, 10])
@pytest.mark.parametrize("normalize", [True, False])
def test_sorted_similarities(form: str, nearest: int, normalize: bool) -> None:
    inputs = keyed(form, 31)
    found = local_separation(**inputs, nearest=nearest, normalize=normalize)
    each = anchors(**(on_sphere(inputs) if normalize else inputs))
    torch.testing.assert_close(found.positive, torch.tensor([p for p, _ in each], dtype=torch.float64), **EXACT)
    expected = torch.tensor([sorted(s, reverse=True)[:nearest] for _, s in each], dtype=torch.float64)
    torch.testing.assert_close(found.nearest, expected, **EXACT)
    torch.testing.assert_close(found.gap, found.positive - expected[:, 0], **EXACT)


def test_nearest_are_those_of_scikit_learn() -> None:
    """Long rows, so that the groups of `largest` are used: 700 candidates, 2 nearest."""
    query, bank = sphere(50, 8), sphere(700, 8, seed=1)
    distances, _ = NearestNeighbors(n_neighbors=2, metric="cosine", algorithm="brute").fit(bank).kneighbors(query)
    found = local_separation(query, query, bank, nearest=2).nearest
    torch.testing.assert_close(found, 1 - torch.from_numpy(distances), rtol=1e-10, atol=1e-12)


def test_without_own_index_the_anchor_finds_itself() -> None:
    bank = sphere(40, 6)
    itself = local_separation(bank, bank, bank, nearest=1).nearest
    torch.testing.assert_close(itself, torch.ones(40, 1, dtype=torch.float64), **EXACT)
    assert bool((local_separation(bank, bank, bank, torch.arange(40), nearest=1).nearest < 0.999).all())


def test_batch_is_a_bank_of_its_own_keys() -> None:
    inputs = keyed("batch", 40)
    bank = local_separation(**inputs, negatives=inputs["key"], own_index=torch.arange(40))
    batch = local_separation(**inputs)
    assert torch.equal(bank.nearest, batch.nearest)
    assert torch.equal(bank.positive, batch.positive)


def test_ten_nearest_unless_told() -> None:
    assert local_separation(**keyed("queue", 40)).nearest.shape == (40, 10)


@pytest.mark.parametrize(("form", "there"), [("batch", 30), ("queue", 40), ("bank", 39)])
def test_fewer_negatives_than_asked_for_gives_all(form: str, there: int) -> None:
    """31 anchors, and 40 rows of negatives; never the hidden place of the anchor itself."""
    found = local_separation(**keyed(form, 31), nearest=1000).nearest
    assert found.shape == (31, there)
    assert bool((found >= -1).all())


def test_ties() -> None:
    """Duplicated negatives each count."""
    x = torch.eye(3, dtype=torch.float64).repeat(12, 1)
    found = local_separation(x, x, nearest=13)
    assert found.nearest[:, :11].eq(1).all()
    assert found.nearest[:, 11:].eq(0).all()
    assert found.gap.eq(0).all()


def test_strips_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    query, bank = rows(50, 4), rows(1100, 4, seed=1)
    whole = local_separation(query, query, bank, nearest=4)
    monkeypatch.setattr(_rows, "STRIP", 1)
    torch.testing.assert_close(local_separation(query, query, bank, nearest=4).nearest, whole.nearest, **EXACT)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", None])
def test_wrong_number(bad: object) -> None:
    with pytest.raises(ValueError, match=r"nearest=.*: must be a whole number of at least 1"):
        local_separation(**keyed("batch", 31), nearest=bad)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ the summary

LEVELS = (0.0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.95, 1.0)


@pytest.mark.parametrize("n", [30, 31, 41, 100])
def test_quantiles_are_numpys(n: int) -> None:
    found = local_separation(**keyed("batch", n), nearest=3)
    columns = torch.cat([found.positive[:, None], found.nearest], dim=1).numpy()
    summary = found.summary(LEVELS)
    assert summary.quantile_levels == LEVELS
    assert summary.names == ["positive", "1", "2", "3"]
    np.testing.assert_allclose(np.array(summary.quantiles), np.quantile(columns, LEVELS, axis=0).T, rtol=1e-13)


def test_quantiles_of_tied_values() -> None:
    x = torch.eye(40, dtype=torch.float64)
    assert local_separation(x, x, nearest=2).summary().quantiles == [[1.0] * 5, [0.0] * 5, [0.0] * 5]


def test_means_with_errors() -> None:
    found = local_separation(**keyed("queue", 50), nearest=2)
    summary = found.summary()
    for column, estimate in zip((found.positive, *found.nearest.T), summary.means, strict=True):
        assert estimate.value == pytest.approx(float(column.mean()), rel=1e-12)
        assert estimate.error == pytest.approx(stats.sem(column.numpy()), rel=1e-10)
    assert summary.gap.value == pytest.approx(summary.means[0].value - summary.means[1].value, rel=1e-12)
    assert summary.gap.error == pytest.approx(stats.sem(found.gap.numpy()), rel=1e-10)


def test_share_of_separated_anchors() -> None:
    """10 of 40 keys are their queries; the others are opposite, while their nearest negative is orthogonal."""
    x = torch.eye(40, dtype=torch.float64)
    key = torch.where(torch.arange(40)[:, None] < 10, x, -x)
    found = local_separation(x, key, negatives=-x, own_index=torch.arange(40), nearest=1).summary()
    assert found.share_separated.value == 0.25
    assert found.share_separated.error == pytest.approx(stats.sem([1.0] * 10 + [0.0] * 30), rel=1e-12)
    assert found.gap.value == pytest.approx(0.25 - 0.75, rel=1e-12)


def test_a_tie_is_not_separated() -> None:
    x = torch.eye(20, dtype=torch.float64).repeat(2, 1)
    assert local_separation(x, x).summary().share_separated.value == 0.0


@pytest.mark.parametrize("bad", [1.5, -0.1, float("nan")])
def test_wrong_quantiles(bad: float) -> None:
    with pytest.raises(ValueError, match="quantiles"):
        local_separation(**keyed("batch", 31)).summary([0.5, bad])


def test_more_entries_than_torch_quantile_takes() -> None:
    """16 million of them: a few long columns made by hand."""
    n = 3_000_000
    found = geometry.LocalSeparation(torch.linspace(0, 1, n), torch.linspace(-1, 0, n)[:, None].expand(-1, 5))
    summary = found.summary()
    # Entries are float32 steps of 3e-7.
    assert summary.quantiles[0] == pytest.approx([0.05, 0.25, 0.5, 0.75, 0.95], abs=1e-6)
    assert summary.quantiles[5] == pytest.approx([-0.95, -0.75, -0.5, -0.25, -0.05], abs=1e-6)
