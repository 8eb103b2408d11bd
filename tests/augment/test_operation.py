"""Tests of kontrast.augment.operation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional as T

from kontrast import augment
from kontrast.augment import (
    ColorJitter,
    Compose,
    GaussianBlur,
    HorizontalFlip,
    Normalize,
    Params,
    RandomCrop,
    RandomGrayscale,
    RandomResizedCrop,
    Views,
)
from kontrast.augment.operation import bernoulli, uniform
from tests.augment.samples import floats, levels, seeded


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
    joined = Params.join(2, [a, Params(2), b])
    assert sorted(joined) == ["0/x", "2/x"]
    assert joined.part(2)["x"].tolist() == [3, 4]
    assert list(joined.part(1)) == []
    many = Params.join(1, [Params(1, {"x": torch.tensor([i])}) for i in range(12)])
    assert list(many.part(1)) == ["x"], "part 1 is not part 11"
    assert many.part(11)["x"].item() == 11


def test_operation_errors() -> None:
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
    seen = float(bernoulli(20_000, p, seeded()).float().mean())
    assert abs(seen - p) < 0.013 if 0 < p < 1 else seen == p


def test_uniform_keeps_its_range() -> None:
    x = uniform(20_000, -0.5, 2.0, seeded())
    assert x.min() >= -0.5
    assert x.max() <= 2.0
    assert abs(float(x.mean()) - 0.75) < 4 * 2.5 / (12 * 20_000) ** 0.5, "four standard errors"


def test_composition_is_one_after_the_other() -> None:
    operations = [
        RandomCrop(30, padding=3),
        RandomResizedCrop((24, 32)),
        HorizontalFlip(),
        ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8),
        RandomCrop((24, 32), padding=2),
        RandomGrayscale(0.3),
        GaussianBlur(p=0.5),
        HorizontalFlip(),
    ]
    whole = Compose(operations)
    params = whole.draw(24, (32, 32), seeded())
    x = floats(24)
    for i, operation in enumerate(operations):
        x = operation.apply(x, params.part(i))
    # The fused matrices multiply in another order: rounding of values up to 1.
    torch.testing.assert_close(whole.apply(floats(24), params), x, atol=2e-6, rtol=0)


def test_nested_compositions_are_flat() -> None:
    inner = Compose([HorizontalFlip(), Normalize(0.5, 0.5)])
    outer = Compose([Compose([]), RandomCrop(32), inner])
    assert [type(o).__name__ for o in outer.operations] == ["RandomCrop", "HorizontalFlip", "Normalize"]
    assert torch.equal(outer(levels(), seeded()), Compose(outer.operations)(levels(), seeded()))


def test_sizes_are_handed_on() -> None:
    """The second crop draws for what the first leaves: it cannot fit otherwise."""
    operation = Compose([RandomResizedCrop(48), RandomCrop(48, padding=0)])
    assert operation(floats(4)).shape == (4, 3, 48, 48)
    assert operation.output_size((32, 32)) == (48, 48)


def test_equals_torchvision() -> None:
    """Exactly: the same subtraction and division."""
    mean, std = [0.4914, 0.4822, 0.4465], [0.2023, 0.1994, 0.2010]
    assert torch.equal(Normalize(mean, std)(floats()), T.normalize(floats(), mean, std))
    assert torch.equal(Normalize(tuple(mean), std)(levels()), T.normalize(floats(), mean, std))


def test_one_number_for_all_channels() -> None:
    assert torch.equal(Normalize(0.5, 0.25)(floats()), Normalize([0.5] * 3, [0.25] * 3)(floats()))


@pytest.mark.parametrize(
    "kind", [tuple, list, torch.tensor, np.array, np.float32, lambda v: [np.float64(x) for x in v]]
)
def test_numbers_of_any_kind_are_taken(kind) -> None:
    values = kind([0.5, 0.25])
    if isinstance(values, np.ndarray):
        values.flags.writeable = False
    assert Normalize(values, values).mean == (0.5, 0.25)
    assert Normalize(values, values).std == (0.5, 0.25)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1.0), np.int64(1), torch.tensor(1.0), np.array(1.0)])
def test_a_number_of_any_kind_is_taken(value) -> None:
    assert Normalize(0.0, value).std == (1.0,)


@pytest.mark.parametrize("value", ["0.5", None, [], [[0.5], [0.5, 0.5]], float("nan"), np.array([np.inf])])
def test_other_things_are_not(value) -> None:
    with pytest.raises(ValueError, match="mean must be a finite number, or one each of the channels or features, got"):
        Normalize(value, 1.0)


def test_vectors_feature_by_feature() -> None:
    """Exactly: the same subtraction and division; one number stands for all features."""
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    mean, std = torch.tensor([1.0, -2.0, 0.5]), torch.tensor([2.0, 0.1, 3.0])
    assert torch.equal(Normalize(mean, std)(x), (x - mean) / std)
    assert torch.equal(Normalize(0.5, 2.0)(x), (x - 0.5) / 2)
    with pytest.raises(ValueError, match=r"mean has 2 numbers for vectors of shape \[7, 3\]: one a feature, or one"):
        Normalize((1.0, 2.0), 1.0)(x)


@pytest.mark.parametrize("value", [0.1, 7.0, -1e6])
def test_a_constant_feature_is_divided_by_one(value: float) -> None:
    """Its std is 0, or what rounding makes of that; 1e-3 of its mean is a true one."""
    x = torch.tensor([[value, value, value], [value, value + 1, value]])
    out = Normalize(mean=[value] * 3, std=[0.0, abs(value) * 5e-8, abs(value) * 1e-3])(x)
    assert out.isfinite().all()
    assert float(out[1, 1]) == pytest.approx(1.0, abs=1e-6)
    assert not out[:, [0, 2]].any()
    changed = Normalize(mean=[value] * 3, std=[abs(value) * 1e-3] * 3)(x * 1.01)
    torch.testing.assert_close(changed[0].abs(), torch.full((3,), 10.0), rtol=1e-3, atol=0)


def test_a_constant_channel_of_images_is_refused() -> None:
    normalize = Normalize(0.5, (0.2, 0.0, 0.2))
    with pytest.raises(ValueError, match=r"std must be above 0 in every channel of images, got \(0.2, 0.0, 0.2\)"):
        normalize(floats())
    with pytest.raises(ValueError, match="std must be above 0"):
        Normalize(0.5, (0.2, -0.1, 0.2))


WEAK, STRONG = (augment.preset(name, size=32, mean=0.5, std=0.25) for name in ("weak", "strong"))


def test_each_view_is_its_preset_at_its_own_draw() -> None:
    views, x = Views([WEAK, STRONG, WEAK]), levels(24)
    seen = views(x, seeded())
    assert seen.shape == (24, 3, 3, 32, 32)
    generator = seeded()
    for v, preset in enumerate([WEAK, STRONG, WEAK]):
        assert torch.equal(seen[:, v], preset.apply(x, preset.draw(24, (32, 32), generator)))
    assert not torch.equal(seen[:, 0], seen[:, 2])


def test_ranks_draw_for_all_and_apply_to_their_rows() -> None:
    """Rounding of products in another order: 4e-6 on normalised values."""
    views, x = Views([WEAK, STRONG]), levels(24)
    whole = views(x, seeded(7))
    for rank in range(3):
        params = views.draw(24, (32, 32), seeded(7))
        mine = views.apply(x[rank::3], params[rank::3])
        torch.testing.assert_close(mine, whole[rank::3], atol=4e-6, rtol=0)


def test_sizes_that_differ_give_a_list() -> None:
    views = Views([RandomResizedCrop(32), RandomResizedCrop(16)])(floats(4), seeded())
    assert isinstance(views, list)
    assert [v.shape[-1] for v in views] == [32, 16]


def test_vectors() -> None:
    noise = augment.preset("vector-noise")
    assert Views([noise, noise])(torch.randn(5, 7)).shape == (5, 2, 7)


def test_input_stays() -> None:
    x = floats(4)
    before = x.clone()
    views = Views([augment.preset("none", mean=0.5, std=0.5), STRONG, augment.Compose([])])(x)
    assert torch.equal(x, before)
    assert torch.equal(views[:, 2], x)


def test_views_errors() -> None:
    with pytest.raises(ValueError, match="at least one augmentation"):
        Views([])
    with pytest.raises(ValueError, match="at least one augmentation"):
        Views([len])
    with pytest.raises(ValueError, match="expected images"):
        Views([WEAK])(torch.rand(3, 32, 32))
    assert len(Views([WEAK, STRONG])) == 2


@pytest.mark.parametrize(
    ("view", "strength"),
    [
        ("none", "none"),
        ([{"name": "flip", "p": 0}], "none"),
        ({"name": "none", "jitter": 0}, "none"),
        ("crop-flip", "weak"),
        ([{"name": "gaussian-noise", "std": 0.01}], "weak"),
        ({"name": "none", "jitter": 0.4}, "strong"),
        ([{"name": "feature-dropout", "rate": 0.0}, {"name": "gaussian-noise", "std": 0.5}], "strong"),
        ("weak", "strong"),
    ],
)
def test_a_view_says_how_much_it_changes(view: Any, strength: str) -> None:
    assert augment.view(view, size=32).strength == strength
