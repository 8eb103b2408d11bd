"""SupContrast is not on PyPI: equations (1)–(3) of the module, as a loop over anchors and candidates, stand for it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from kontrast.compat.supcontrast import SupConLoss


def loop(
    features: Tensor,
    m: list[list[float]],
    *,
    temperature: float,
    base_temperature: float = 0.07,
    contrast_mode: str = "all",
) -> Tensor:
    """(3), one pair at a time."""
    size, views = features.shape[:2]
    everyone = [(i, v) for i in range(size) for v in range(views)]
    anchors = [(i, v) for i, v in everyone if contrast_mode == "all" or v == 0]
    total = features.new_zeros(())
    for i, v in anchors:
        others = [a for a in everyone if a != (i, v)]
        logits = [features[i, v].flatten() @ features[j, u].flatten() / temperature for j, u in others]
        log_d = torch.stack(logits).logsumexp(0)
        number = sum(m[i][j] for j, _ in others)
        number = 1.0 if number < 1e-6 else number  # (1)
        for (j, _), logit in zip(others, logits, strict=True):
            total = total - m[i][j] * (logit - log_d) / number  # (2)
    return total / len(anchors) * temperature / base_temperature


def by_labels(labels: list[float]) -> list[list[float]]:
    return [[float(a == b) for b in labels] for a in labels]


def views(size: int, number: int, *, seed: int = 0, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(size, number, 4, generator=generator, dtype=torch.float64)
    return torch.nn.functional.normalize(x, dim=-1) * scale


def check(loss: SupConLoss, features: Tensor, m: list[list[float]], **call: Tensor) -> None:
    mine, theirs = features.clone().requires_grad_(), features.clone().requires_grad_()
    value = loss(mine, **call)
    expected = loop(
        theirs,
        m,
        temperature=float(loss.temperature),
        base_temperature=loss.base_temperature,
        contrast_mode=loss.contrast_mode,
    )
    value.backward()
    expected.backward()
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["all", "one"])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize(
    "labels", [[0, 1, 0, 2, 1, 0], [5, 5, 5, 5, 5, 5], [0, 1, 2, 3, 4, 5], [0.5, 0.5, 2, 2, 2, -1]]
)
def test_labels(labels: list[float], number: int, mode: str) -> None:
    check(SupConLoss(contrast_mode=mode), views(6, number), by_labels(labels), labels=torch.tensor(labels))


@pytest.mark.parametrize("mode", ["all", "one"])
@pytest.mark.parametrize("number", [2, 3])
def test_without_labels_it_is_simclr(number: int, mode: str) -> None:
    check(SupConLoss(contrast_mode=mode), views(5, number), by_labels([0, 1, 2, 3, 4]))


@pytest.mark.parametrize("temperature", [0.05, 0.07, 0.5, 2.0])
@pytest.mark.parametrize("base_temperature", [0.07, 1.0])
def test_temperatures(temperature: float, base_temperature: float) -> None:
    loss = SupConLoss(temperature, "all", base_temperature)
    check(loss, views(6, 2), by_labels([0, 1, 0, 2, 1, 0]), labels=torch.tensor([0, 1, 0, 2, 1, 0]))


ASYMMETRIC = [[1, 1, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 0, 0]]
WEIGHTS = [[0.5, 0.25, 0, 0], [0, 2, 0, 0.75], [0.125, 0, 0, 0], [0, 0, 0, 0]]  # exact in float32


@pytest.mark.parametrize("mode", ["all", "one"])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32, torch.int64])
def test_asymmetric_mask(dtype: torch.dtype, number: int, mode: str) -> None:
    loss = SupConLoss(contrast_mode=mode)
    check(loss, views(4, number), ASYMMETRIC, mask=torch.tensor(ASYMMETRIC, dtype=dtype))


@pytest.mark.parametrize("mode", ["all", "one"])
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("factor", [1.0, 2.0**-30])  # the sums of weights above and below 1e-6
def test_weights_in_the_mask(factor: float, number: int, mode: str) -> None:
    m = [[w * factor for w in row] for row in WEIGHTS]
    check(SupConLoss(contrast_mode=mode), views(4, number), m, mask=torch.tensor(m))


def test_features_are_not_normalised() -> None:
    labels = torch.tensor([0, 1, 0, 1])
    check(SupConLoss(0.5), views(4, 2, scale=3.0), by_labels([0, 1, 0, 1]), labels=labels)


def test_long_features_stay_finite() -> None:
    """Logits far outside float32's exponentials: the nearest candidate decides."""
    features = torch.eye(2)[:, None].repeat(1, 2, 1) * 100.0
    features[0, 0] *= 10.0
    features.requires_grad_()
    value = SupConLoss(0.07)(features)
    value.backward()
    # Exactly 0; the largest logit, 1000·100/0.07, is computed in two ways, each within a unit of rounding.
    assert abs(value.item()) <= 2 * torch.finfo(torch.float32).eps * 1000 * 100 / 0.07
    assert bool(features.grad.isfinite().all())


def test_more_dimensions_are_flattened() -> None:
    x = views(6, 2).reshape(6, 2, 2, 2)
    check(SupConLoss(), x, by_labels([0, 1, 0, 2, 1, 0]), labels=torch.tensor([[0], [1], [0], [2], [1], [0]]))


def test_anchor_without_positives_counts_as_zero() -> None:
    features = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]])
    value = SupConLoss(1.0, base_temperature=1.0)(features, torch.tensor([0, 0, 1, 2]))
    assert float(value) == pytest.approx(2 / 4 * (math.log(math.e + 2) - 1))


def test_nothing_is_positive() -> None:
    features = views(4, 1).requires_grad_()
    value = SupConLoss()(features)
    value.backward()
    assert value == 0.0
    assert not features.grad.any()


def test_blocks_agree_with_whole() -> None:
    labels = torch.tensor([0, 1, 0, 2, 1, 0, 2])
    for mode in ("all", "one"):
        loss = SupConLoss(contrast_mode=mode)
        loss.tile = 3
        check(loss, views(7, 2), by_labels(labels.tolist()), labels=labels)


def test_gradient_reaches_a_learned_temperature() -> None:
    features, labels = views(6, 2), torch.tensor([0, 1, 0, 2, 1, 0])

    def value(tau: Tensor) -> Tensor:
        return SupConLoss(tau)(features, labels)

    tau = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    value(tau).backward()
    step = 1e-6
    slope = (value(tau.detach() + step) - value(tau.detach() - step)) / (2 * step)
    assert float(tau.grad) == pytest.approx(float(slope), rel=1e-6)


def test_half_precision_is_computed_in_float32() -> None:
    features, labels = views(6, 2).half(), torch.tensor([0, 1, 0, 2, 1, 0])
    torch.testing.assert_close(SupConLoss()(features, labels), SupConLoss()(features.float(), labels))


class TestErrors:
    features = torch.ones(3, 2, 4)

    def test_two_dimensions(self) -> None:
        with pytest.raises(ValueError, match=r"\[bsz, n_views, ...\],at least 3 dimensions are required; got \[3, 4\]"):
            SupConLoss()(torch.ones(3, 4))

    def test_labels_and_mask(self) -> None:
        with pytest.raises(ValueError, match="Cannot define both `labels` and `mask`"):
            SupConLoss()(self.features, torch.arange(3), torch.eye(3))

    def test_number_of_labels(self) -> None:
        with pytest.raises(ValueError, match="Num of labels does not match num of features: 2 labels"):
            SupConLoss()(self.features, torch.arange(2))

    def test_mode(self) -> None:
        with pytest.raises(ValueError, match="Unknown mode: some"):
            SupConLoss(contrast_mode="some")

    def test_mask_shape(self) -> None:
        with pytest.raises(ValueError, match=r"mask has shape \[6, 6\]; expected \[3, 3\]"):
            SupConLoss()(self.features, mask=torch.eye(6))

    def test_mask_with_gradient(self) -> None:
        with pytest.raises(ValueError, match=r"mask.detach\(\)"):
            SupConLoss()(self.features, mask=torch.eye(3, requires_grad=True))

    def test_temperature(self) -> None:
        with pytest.raises(ValueError, match=r"temperature=.*: must be a finite number above 0"):
            SupConLoss(temperature=0.0)

    def test_base_temperature(self) -> None:
        with pytest.raises(ValueError, match=r"base_temperature=.*: must be a finite number above 0"):
            SupConLoss(base_temperature=0.0)

    def test_empty_batch(self) -> None:
        with pytest.raises(ValueError, match="features is empty"):
            SupConLoss()(torch.ones(0, 2, 4))
