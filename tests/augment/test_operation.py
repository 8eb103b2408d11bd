"""Parameters of a batch, cut to rows; drawing and applying apart."""

from __future__ import annotations

import pytest
import torch

from kontrast.augment import HorizontalFlip, Normalize, Params
from kontrast.augment.operation import chosen, uniform
from tests.augment.samples import floats, seeded


def test_rows_by_slice_list_mask_and_none() -> None:
    params = Params(4, {"a": torch.arange(4), "b": torch.arange(8).view(4, 2)})
    assert params[1:3]["b"].tolist() == [[2, 3], [4, 5]]
    assert params[[3, 0]]["a"].tolist() == [3, 0]
    assert params[torch.tensor([True, False, False, True])]["a"].tolist() == [0, 3]
    assert len(params[[]]) == 0
    assert params[[]]["b"].shape == (0, 2)
    assert len(Params(4)[1:]) == 3, "parameters without tensors still know how many samples they are for"


def test_joined_and_part_are_inverse() -> None:
    a, b = Params(2, {"x": torch.tensor([1, 2])}), Params(2, {"x": torch.tensor([3, 4])})
    joined = Params.joined(2, [a, Params(2), b])
    assert sorted(joined) == ["0/x", "2/x"]
    assert joined.part(2)["x"].tolist() == [3, 4]
    assert list(joined.part(1)) == []
    many = Params.joined(1, [Params(1, {"x": torch.tensor([i])}) for i in range(12)])
    assert list(many.part(1)) == ["x"], "part 1 is not part 11"
    assert many.part(11)["x"].item() == 11


def test_errors() -> None:
    with pytest.raises(ValueError, match="a has 3 rows; expected 4"):
        Params(4, {"a": torch.arange(3)})
    with pytest.raises(KeyError, match="no parameter 'q'; there are a"):
        Params(1, {"a": torch.arange(1)})["q"]
    with pytest.raises(ValueError, match="16 samples, but parameters for 4: draw for 16, or pass params"):
        HorizontalFlip().apply(floats(16), HorizontalFlip().draw(4, (32, 32)))
    with pytest.raises(ValueError, match="n is -1"):
        HorizontalFlip().draw(-1, (32, 32))
    with pytest.raises(ValueError, match="mean has 3 numbers for images of shape"):
        Normalize((0.1, 0.2, 0.3), 1.0)(floats(4, 1))


def test_repr_tells_shapes() -> None:
    assert repr(Params(2, {"a": torch.zeros(2, 3)})) == "Params(2, a=[2, 3])"


def test_no_gradient_is_kept() -> None:
    assert not HorizontalFlip()(floats(4).requires_grad_()).requires_grad


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_chosen_has_its_probability(p: float) -> None:
    """20,000 draws: four standard errors of the mean are 0.013."""
    seen = float(chosen(20_000, p, seeded()).float().mean())
    assert abs(seen - p) < 0.013 if 0 < p < 1 else seen == p


def test_uniform_keeps_its_range() -> None:
    x = uniform(20_000, -0.5, 2.0, seeded())
    assert x.min() >= -0.5
    assert x.max() <= 2.0
    assert abs(float(x.mean()) - 0.75) < 4 * 2.5 / (12 * 20_000) ** 0.5, "four standard errors"
