"""Label noise: how many change, into what, and that a larger share contains a smaller one."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from kontrast.data.noise import noisy_labels

K, N = 10, 20000
LABELS = torch.arange(N) % K


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.25, 1.0])
def test_changed_labels_are_exactly_the_share_and_all_wrong(noise: float) -> None:
    assert int((noisy_labels(LABELS, noise, K) != LABELS).sum()) == round(noise * N)


def test_changed_labels_are_uniform_over_the_others() -> None:
    shift = (noisy_labels(LABELS, 1.0, K) - LABELS) % K
    counts = torch.bincount(shift, minlength=K)[1:]
    assert stats.chisquare(counts.numpy()).pvalue > 1e-3


def test_redrawn_labels_stay_one_time_in_ten() -> None:
    noisy = noisy_labels(LABELS, 0.5, K, kind="redrawn")
    changed = int((noisy != LABELS).sum())
    assert stats.binomtest(changed, N // 2, 0.9).pvalue > 1e-3
    assert stats.chisquare(torch.bincount(noisy_labels(LABELS, 1.0, K, kind="redrawn")).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("kind", ["changed", "redrawn"])
def test_a_larger_share_contains_a_smaller_one(kind: str) -> None:
    less, more = (noisy_labels(LABELS, share, K, kind=kind) for share in (0.2, 0.6))
    changed = less != LABELS
    assert torch.equal(less[changed], more[changed])


def test_seed_and_input() -> None:
    labels = LABELS.clone()
    first, again, other = (noisy_labels(labels, 0.3, K, seed=s) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(labels, LABELS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"noise": 1.5}, "share of the labels"),
        ({"noise": -0.1}, "share of the labels"),
        ({"noise": float("nan")}, "share of the labels"),
        ({"noise": 0.5, "kind": "flipped"}, "must be one of 'changed', 'redrawn'"),
        ({"noise": 0.5, "num_classes": 1}, "at least 2"),
        ({"noise": 0.5, "num_classes": 5}, r"labels run from 0 to 9; with num_classes=5"),
    ],
)
def test_errors(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        noisy_labels(LABELS, **{"num_classes": K, **options})  # type: ignore[arg-type]
