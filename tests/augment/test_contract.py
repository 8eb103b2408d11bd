"""What holds for every operation: same seed same views, rows apart, input untouched, uint8 and float alike, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from kontrast import augment
from kontrast.augment import operation as operation_module
from tests.augment.samples import OPERATIONS, floats, image_operations, levels, seeded, vector_operations

CASES: dict[str, tuple[augment.Operation, Tensor]] = {
    **{name: (o, floats(24)) for name, o in image_operations().items()},
    **{f"{name}, grey": (o, floats(24, 1)) for name, o in image_operations().items()},
    **{name: (o, torch.randn(24, 10, generator=seeded())) for name, o in vector_operations().items()},
}
# Products of matrices may be summed in another order for another batch: a few units in the last place of values up to
# 4 (normalised pixels) are below 4e-6. AutoAugment behind a crop rounds to whole levels first, which takes that away.
ROUNDING = 4e-6


@pytest.fixture(params=CASES, ids=str)
def case(request) -> tuple[augment.Operation, Tensor]:
    return CASES[request.param]


def test_same_seed_same_views(case) -> None:
    operation, x = case
    first = operation(x, seeded(1))
    assert torch.equal(first, operation(x, seeded(1))), (
        "one seed must give the same views: draw in _draw, not in _apply"
    )
    grey = x.ndim == 4 and x.shape[1] == 1 and isinstance(operation, augment.RandomGrayscale)
    if list(operation.draw(1, operation.size_of(x))) and not grey:
        assert not torch.equal(first, operation(x, seeded(2)))


@pytest.mark.parametrize("rows", [slice(5, 17), [23, 0, 7], torch.arange(24) % 5 == 2], ids=["slice", "list", "mask"])
def test_rows_apart_are_rows_together(case, rows) -> None:
    operation, x = case
    params = operation.draw(len(x), operation.size_of(x), seeded(3))
    whole = operation.apply(x, params)
    apart = operation.apply(x[rows], params[rows])
    torch.testing.assert_close(apart, whole[rows], atol=ROUNDING, rtol=0)


def test_each_sample_has_its_own_draw() -> None:
    """Sixteen copies of one image become different views of it."""
    x = floats(16)[15:].expand(16, -1, -1, -1)
    for name in ("simaugment", "autoaugment", "wang-liu", "weak", "crop-flip"):
        views = augment.preset(name, size=32)(x, seeded())
        distinct = {tuple(v.flatten().tolist()) for v in views}
        assert len(distinct) > 10, name


def test_what_is_passed_in_stays(case) -> None:
    operation, x = case
    before = x.clone()
    out = operation(x, seeded())
    assert torch.equal(x, before)
    out.zero_()
    assert torch.equal(x, before), "the result shares memory with the input"


def test_result_is_float32_of_the_announced_size(case) -> None:
    operation, x = case
    out = operation(x.double(), seeded())
    assert out.dtype == torch.float32
    assert operation.size_of(out) == operation.output_size(operation.size_of(x))
    assert len(out) == len(x)
    assert out.isfinite().all()


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_dataclass_is_frozen(name: str) -> None:
    assert OPERATIONS[name].__dataclass_params__.frozen, f"{name}: write @dataclass(frozen=True) above the class"


def test_every_file_is_among_them() -> None:
    types = {type(operation) for operation, _ in CASES.values()}
    assert types >= set(OPERATIONS.values())


def test_a_result_of_another_precision_names_the_operation() -> None:
    class Wide(augment.HorizontalFlip):
        def _apply(self, images: Tensor, params: augment.Params) -> Tensor:
            return super()._apply(images, params).double()

    with pytest.raises(
        ValueError, match=r"Wide\._apply must return torch\.float32, as its input is; got torch\.float64"
    ):
        Wide()(floats(4))


@pytest.mark.parametrize(
    ("result", "got"), [(lambda x: x[:, :, :9], r"\[4, 3, 9, 32\]"), (lambda x: None, "a NoneType")]
)
def test_a_result_of_another_shape_names_the_operation_also_in_a_view(result: Any, got: str) -> None:
    class Cutout(augment.HorizontalFlip):
        def _apply(self, images: Tensor, params: augment.Params) -> Tensor:
            return result(images)

    class Alone(augment.Solarize):
        _apply = Cutout._apply

    for operation in (Cutout(), augment.Compose([augment.GaussianBlur(), Alone(), augment.RandomCrop(32)])):
        with pytest.raises(
            ValueError,
            match=rf"(Cutout|Alone)\._apply must return \[n, C, H, W\] = \[4, 3, 32, 32\] .*; got {got}\. If the size",
        ):
            operation(floats(4))


def test_no_samples_give_none(case) -> None:
    operation, x = case
    assert operation(x[:0]).shape == operation(x, seeded())[:0].shape


def test_views_stay_in_0_to_1(case) -> None:
    """Without normalisation; products of weights that sum to 1 may exceed it by rounding."""
    operation, x = case
    if x.ndim == 4 and "Normalize" not in repr(operation):
        out = operation(x, seeded())
        assert out.min() >= 0
        assert out.max() <= 1 + 1e-6


@pytest.mark.parametrize("name", image_operations())
def test_uint8_is_float_times_255(name: str) -> None:
    operation, x = image_operations()[name], levels(24)
    assert torch.equal(operation(x, seeded()), operation(x.float() / 255, seeded()))


@pytest.mark.parametrize("dense", [8, 64])
@pytest.mark.parametrize("name", image_operations())
def test_any_order_of_memory(name: str, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels last, and images that are a view of others."""
    monkeypatch.setattr(operation_module, "DENSE", dense)
    operation, x = image_operations()[name], floats(24)
    wanted = operation(x, seeded())
    cut = torch.cat([x, x], 3)[..., 32:]
    for other in (x.contiguous(memory_format=torch.channels_last), cut, x.transpose(0, 1).contiguous().transpose(0, 1)):
        torch.testing.assert_close(operation(other, seeded()), wanted, atol=ROUNDING, rtol=0)


@pytest.mark.parametrize("name", ["strong", "autoaugment"])
def test_autocast_does_not_reach_inside(name: str) -> None:
    operation, x = image_operations()[name], floats(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(operation(x, seeded()), image_operations()[name](x, seeded()))
        out = operation(x, seeded())
    assert torch.equal(out, operation(x, seeded()))


@pytest.mark.parametrize("name", image_operations())
def test_large_images_are_augmented_as_small_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways for large images, taken for small ones, give what the matrices give."""
    operation, x = image_operations()[name], floats(24)
    small = operation(x, seeded(4))
    monkeypatch.setattr(operation_module, "DENSE", 8)
    torch.testing.assert_close(operation(x, seeded(4)), small, atol=ROUNDING, rtol=0)


def test_draws_do_not_depend_on_the_global_generator(case) -> None:
    operation, x = case
    state = torch.get_rng_state()
    operation(x, seeded())
    assert torch.equal(state, torch.get_rng_state()), (
        "random numbers must come from the generator that _draw is given: draw in _draw, not in _apply"
    )


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        ([[1.0]], "expected a tensor.* got list"),
        (torch.rand(3, 32, 32), r"shape \[3, 32, 32\]; expected images \[n, C, H, W\].* image\[None\]"),
        (torch.zeros(4, 3, 32, 32, dtype=torch.int64), "uint8 or floating point, got torch.int64"),
        (torch.zeros(4, 3, 0, 32), "empty"),
        (
            torch.full((4, 3, 8, 8), 255.0),
            "images hold floats from 255 to 255; expected 0…1. Divide levels 0…255 by 255",
        ),
        (torch.full((4, 3, 8, 8), -0.5), "images hold floats from -0.5 to -0.5; .*normalise after augmenting"),
        (torch.full((4, 3, 8, 8), 1.0).index_fill(0, torch.tensor(3), 1.002), "floats from 1 to 1.002; expected 0…1"),
        (torch.full((4, 3, 8, 8), torch.nan), "floats from nan to nan; expected 0…1"),
    ],
)
def test_a_wrong_batch_is_named(batch, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        augment.preset("none")(batch)


@pytest.mark.parametrize("name", image_operations())
def test_levels_as_floats_are_noticed_by_every_operation(name: str) -> None:
    x = levels(24).float()
    with pytest.raises(ValueError, match=r"images hold floats from 0 to 255; expected 0…1"):
        image_operations()[name](x, seeded())
    with pytest.raises(ValueError, match=r"images hold floats from 0 to 255; expected 0…1"):
        augment.Views([image_operations()[name]])(x.requires_grad_(), seeded())


@pytest.mark.parametrize("name", ["strong", "autoaugment"])
def test_rounding_beyond_0_to_1_is_no_error(name: str) -> None:
    x = floats(24)
    x[x == 0], x[x == 1] = -5e-4, 1 + 5e-4
    assert image_operations()[name](x, seeded()).isfinite().all()


def test_vectors_may_hold_anything() -> None:
    x = 1000 * torch.randn(24, 10, generator=seeded())
    assert torch.equal(augment.preset("none")(x), x)


@pytest.mark.parametrize("name", ["jitter", "grayscale", "autoaugment"])
def test_colours_need_one_or_three_channels(name: str) -> None:
    with pytest.raises(ValueError, match=r"takes images \[n, 1 or 3, H, W\], got shape \[2, 4, 32, 32\]"):
        image_operations()[name](torch.rand(2, 4, 32, 32))


@pytest.mark.parametrize("name", ["crop", "resized crop", "flip", "jitter", "blur", "solarize", "autoaugment"])
def test_images_are_not_vectors(name: str) -> None:
    with pytest.raises(ValueError, match=r"takes images, whose size is \(height, width\); got size \(10,\)"):
        image_operations()[name](torch.rand(4, 10))


@pytest.mark.parametrize("name", vector_operations())
def test_vectors_are_not_images(name: str) -> None:
    with pytest.raises(ValueError, match=r"takes vectors \[n, D\]"):
        vector_operations()[name](torch.rand(4, 3, 8, 8))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: augment.HorizontalFlip(1.5), "p=1.5: must be a finite number of at least 0 and of at most 1"),
        (lambda: augment.RandomResizedCrop(0), "size must be a number of pixels or a pair"),
        (lambda: augment.RandomResizedCrop(32, scale=(0.5, 0.2)), r"scale must be a pair .* got \(0.5, 0.2\)"),
        (lambda: augment.RandomResizedCrop(32, scale=(0.5, 1.2)), "low ≤ high ≤ 1"),
        (lambda: augment.RandomCrop(32, padding=-1), "padding=-1: must be"),
        (lambda: augment.RandomCrop(32, padding=1.5), "whole number of pixels, got 1.5"),
        (lambda: augment.ColorJitter(hue=0.6), "hue=0.6: must be a finite number of at least 0 and of at most 0.5"),
        (lambda: augment.ColorJitter(brightness=-1), "brightness=-1: must be a finite number of at least 0"),
        (lambda: augment.GaussianBlur(kernel=4), "odd number of pixels"),
        (lambda: augment.GaussianBlur(sigma=2.0), "sigma must be a pair"),
        (lambda: augment.Solarize(2.0), "threshold=2.0: must be"),
        (lambda: augment.AutoAugment(fill=128), "fill=128: must be a finite number of at least 0 and of at most 1"),
        (lambda: augment.Normalize(0.5, 0.0), "std must be above 0"),
        (lambda: augment.Normalize((), 1.0), "mean must be"),
        (lambda: augment.Compose([len]), "operation 0 is <built-in function len>"),
        (lambda: augment.GaussianNoise(-1.0), "std=-1.0: must be"),
        (lambda: augment.FeatureDropout(1.1), "rate=1.1: must be"),
        (lambda: augment.MarginalCorruption([1.0]), "reference must be a matrix of floats .* got list"),
    ],
)
def test_a_wrong_argument_is_named(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
