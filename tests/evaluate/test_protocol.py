"""What several protocols do to features: limits and standardisation."""

from __future__ import annotations

import pytest
import torch

from kontrast.evaluate.protocol import limit_rows, standardise, with_limit


def test_a_limit_keeps_classes_even_and_rows_with_their_labels() -> None:
    labels = torch.arange(90) % 3
    features, kept = limit_rows(labels[:, None].float(), labels, 31, seed=2)
    assert sorted(kept.bincount().tolist()) == [10, 10, 11]
    assert torch.equal(features[:, 0].long(), kept)
    assert limit_rows(features, kept, 31, seed=2)[0] is features, "nothing to leave out"
    assert with_limit("probe", 31, 31) == "probe"
    with pytest.raises(ValueError, match="limit=0: must be a whole number of at least 1"):
        limit_rows(features, kept, 0, seed=2)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_standardised_features_have_mean_0_and_deviation_1(offset: float) -> None:
    x = torch.randn(9000, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 5.0, 0.0]) + offset
    train, test = standardise(x, x[:5])
    assert train[:, :2].mean(0).tolist() == pytest.approx([0.0, 0.0], abs=1e-3)
    assert train[:, :2].std(0, correction=0).tolist() == pytest.approx([1.0, 1.0], abs=1e-3)
    assert (train[:, 2] == 0).all(), "a constant feature stays finite"
    assert torch.equal(test, train[:5])
