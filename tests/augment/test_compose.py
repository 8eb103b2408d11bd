"""A composition is its operations one after the other, fused or not."""

from __future__ import annotations

import torch

from kontrast.augment import (
    ColorJitter,
    Compose,
    GaussianBlur,
    HorizontalFlip,
    Normalize,
    RandomCrop,
    RandomGrayscale,
    RandomResizedCrop,
)
from tests.augment.samples import floats, levels, seeded


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
