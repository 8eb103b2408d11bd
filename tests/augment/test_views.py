"""Several views of one batch."""

from __future__ import annotations

import pytest
import torch

from kontrast import augment
from kontrast.augment import RandomResizedCrop, Views
from tests.augment.samples import floats, levels, seeded

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


def test_errors() -> None:
    with pytest.raises(ValueError, match="at least one augmentation"):
        Views([])
    with pytest.raises(ValueError, match="at least one augmentation"):
        Views([len])
    with pytest.raises(ValueError, match="expected images"):
        Views([WEAK])(torch.rand(3, 32, 32))
    assert len(Views([WEAK, STRONG])) == 2
