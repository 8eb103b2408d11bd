"""Crops taken while a file is decoded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn.functional import interpolate

from kontrast import augment, data
from kontrast.augment import CropAtDecoding, RandomResizedCrop, Views, at_decoding
from tests.augment.samples import levels, seeded

WEAK, STRONG = (augment.preset(name, size=32, mean=0.5, std=0.25) for name in ("weak", "strong"))


def photographs(folder: Path, n: int) -> Path:
    """JPEG files of several sizes, smooth, so that resizing in another order changes little."""
    folder.mkdir()
    for i in range(n):
        grid = torch.stack(torch.meshgrid(torch.linspace(0, 1, 90 + 10 * i), torch.linspace(0, 1, 150), indexing="ij"))
        pixels = torch.stack([grid[0], grid[1], torch.full_like(grid[0], i / n)], 2).mul(255).to(torch.uint8)
        Image.fromarray(pixels.numpy()).save(folder / f"{i}.jpg", quality=95)
    return folder


def test_a_view_is_its_box_resized() -> None:
    crop, image = CropAtDecoding([RandomResizedCrop(16), RandomResizedCrop(16)]), levels(8)[5]
    views = crop(image, 5)
    assert views.dtype == torch.uint8
    for view, (top, left, height, width) in zip(views, crop.boxes(32, 32, 5), strict=True):
        part = image[None, :, top : top + height, left : left + width]
        assert torch.equal(view, interpolate(part, (16, 16), mode="bilinear", antialias=True)[0])
    assert torch.equal(crop(image, 5), views)
    assert not torch.equal(crop(image, 6), views)


def test_crop_then_rest_is_the_whole_but_for_rounding() -> None:
    """Half a level of 255 for each axis before the rest, which here only flips and divides by a quarter: 4/255."""
    crop, rest = at_decoding(WEAK)
    images = levels(8)
    params = WEAK.draw(8, (32, 32), seeded(3))
    for key, values in zip(("top", "left", "height", "width"), zip(*_boxes(crop, 8), strict=True), strict=True):
        params["0/" + key].copy_(torch.tensor(values))
    cropped = torch.stack([crop(image, seed) for seed, image in enumerate(images)])
    flips = augment.Params.join(8, [params.part(1), params.part(2)])
    torch.testing.assert_close(rest.apply(cropped, flips), WEAK.apply(images, params), atol=4.01 / 255, rtol=0)


def _boxes(crop: CropAtDecoding, n: int) -> list[tuple[int, int, int, int]]:
    return [crop.boxes(32, 32, seed)[0] for seed in range(n)]


def test_box_is_that_of_the_view_that_is_enlarged_most() -> None:
    crop = CropAtDecoding([RandomResizedCrop(32, scale=(s, s), ratio=(1.0, 1.0)) for s in (0.5, 0.04, 0.25)])
    assert crop.box(400, 400, 0)[2:] == (80, 80)


def test_rest_of_several_views_gives_each_its_own() -> None:
    crop, rest = at_decoding(Views([WEAK, STRONG]))
    assert len(crop.crops) == 2
    views = torch.stack([levels(6), levels(6).flip(0)], 1)
    out = rest(views, seeded())
    generator = seeded()
    for v, operation in enumerate(rest.operations):
        assert torch.equal(out[:, v], operation.apply(views[:, v], operation.draw(6, (32, 32), generator)))
    with pytest.raises(ValueError, match="have 3 views; expected 2, one each"):
        rest(torch.zeros(4, 3, 3, 8, 8))


@pytest.mark.parametrize("workers", [0, 2])
def test_files_to_views_whatever_workers_and_ranks(tmp_path: Path, workers: int) -> None:
    """From JPEG files of several sizes to two views: two ranks with workers make the rows of one process without."""
    files = data.load(photographs(tmp_path / "photos", 7))
    crop, rest = at_decoding(Views([WEAK, STRONG]))
    sampler = data.Shuffled(7, 4, seed=1, drop_last=False)

    def views(rank: int, world: int, workers: int) -> list[torch.Tensor]:
        loader = data.Loader(files.train, sampler, seed=1, rank=rank, world_size=world, workers=workers, crop=crop)
        made = []
        for batch in loader.epoch(2):
            params = rest.draw(batch.total, crop.size, batch.generator())
            made.append(rest.apply(batch.inputs, params[batch.place]))
        return made

    alone = views(0, 1, 0)
    assert [tuple(view.shape) for view in alone] == [(4, 2, 3, 32, 32), (3, 2, 3, 32, 32)]
    for whole, first, second in zip(alone, views(0, 2, workers), views(1, 2, workers), strict=True):
        torch.testing.assert_close(torch.cat([first, second]), whole, atol=4e-6, rtol=0)


def test_jpegs_are_decoded_smaller_where_every_view_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    from PIL import JpegImagePlugin

    draft = JpegImagePlugin.JpegImageFile.draft
    monkeypatch.setattr(
        JpegImagePlugin.JpegImageFile, "draft", lambda image, mode, size: seen.append(draft(image, mode, size))
    )
    Image.new("RGB", (640, 640), "red").save(tmp_path / "red.jpg")
    large, small = (RandomResizedCrop(64, scale=(s, s), ratio=(1.0, 1.0)) for s in (1.0, 0.01))
    files = data.Folder([str(tmp_path / "red.jpg")])
    assert files.read(torch.tensor([0]), CropAtDecoding([large, large]), [0]).shape == (1, 2, 3, 64, 64)
    assert len(seen) == 1
    files.read(torch.tensor([0]), CropAtDecoding([large, small]), [0])
    assert len(seen) == 1


def test_reduced_decoding_shows_the_same_part(tmp_path: Path) -> None:
    """The same box to within its rounding: on a gradient of 255 levels over the image a shift of 1 % is 2.55 levels.

    851 × 260 with ten tries of a box that must fit is where rounding at the smaller scale would choose another one.
    """
    ramp = torch.stack(torch.meshgrid(torch.linspace(0, 255, 851), torch.linspace(0, 255, 260), indexing="ij"), 2)
    pixels = torch.cat([ramp, ramp[..., :1]], 2).to(torch.uint8)
    Image.fromarray(pixels.numpy()).save(tmp_path / "ramp.jpg", quality=100)
    image, files = data.decode(tmp_path / "ramp.jpg"), data.Folder([str(tmp_path / "ramp.jpg")])
    crop, reduced = CropAtDecoding([RandomResizedCrop(32, scale=(0.2, 1.0))]), 0
    for seed in range(100):
        seen, whole = files.read(torch.tensor([0]), crop, [seed])[0].float(), crop(image, seed).float()
        reduced += not torch.equal(seen, whole)
        assert float((seen - whole)[:2].mean((1, 2)).abs().max()) < 2.55
    assert reduced > 50


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"begins with RandomCrop.*Load the images with size="):
        at_decoding(augment.preset("autoaugment", size=32))
    with pytest.raises(ValueError, match="begins with None"):
        at_decoding(Views([WEAK, augment.preset("none")]))
    with pytest.raises(ValueError, match="need one size"):
        CropAtDecoding([RandomResizedCrop(32), RandomResizedCrop(16)])
