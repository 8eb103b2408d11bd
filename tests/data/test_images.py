"""Every kind of image file becomes uint8 [C, H, W], and what is none is refused with its reason."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torchvision.transforms.v2 import functional as reference

from kontrast.data.images import CentreCrop, ImageError, as_uint8, decode, from_pil, from_value, with_channels
from tests.data.pictures import noise, write


def chw(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.copy()).permute(2, 0, 1)


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr", "HSV"])
def test_every_mode_becomes_rgb_or_grey(mode: str) -> None:
    image = Image.fromarray(noise(6, 9)).convert(mode)
    for channels, name in ((3, "RGB"), (1, "L")):
        expected = np.asarray(
            image.convert("RGB").convert(name) if mode in ("P", "RGBA", "LA") else image.convert(name)
        )
        found = from_pil(image, channels)
        assert found.shape == (channels, 6, 9)
        assert found.dtype == torch.uint8
        assert np.array_equal(found.permute(1, 2, 0).squeeze(-1).numpy(), expected)


def test_transparent_pixels_are_white_whatever_colour_they_hide(tmp_path: Path) -> None:
    image = Image.new("RGBA", (2, 1), (10, 200, 30, 0))
    image.putpixel((1, 0), (10, 200, 30, 255))
    image.save(tmp_path / "a.png")
    assert decode(tmp_path / "a.png")[:, 0].T.tolist() == [[255, 255, 255], [10, 200, 30]]


@pytest.mark.parametrize("transparency", [0, b"\x00\xff"])
def test_transparent_palette_entries_are_white(tmp_path: Path, transparency: int | bytes) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    image.save(tmp_path / "a.png", transparency=transparency)
    assert decode(tmp_path / "a.png")[:, 0].T.tolist() == [[255, 255, 255], [0, 0, 255]]


def test_sixteen_bits_are_scaled_not_clipped(tmp_path: Path) -> None:
    values = np.array([[0, 257, 32896, 65535]], dtype=np.uint16)
    for suffix in ("png", "tiff"):
        Image.fromarray(values).save(tmp_path / f"a.{suffix}")
        assert decode(tmp_path / f"a.{suffix}", channels=1).tolist() == [[[0, 1, 128, 255]]]
        assert decode(tmp_path / f"a.{suffix}").shape == (3, 1, 4)


def test_float_files_are_0_to_1(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 0.5, 1]], dtype=np.float32)).save(tmp_path / "a.tiff")
    assert decode(tmp_path / "a.tiff", channels=1).tolist() == [[[0, 128, 255]]]
    Image.fromarray(np.array([[0, 300]], dtype=np.float32)).save(tmp_path / "b.tiff")
    with pytest.raises(ImageError, match="values 0 to 300 in mode F: must be 0 to 1"):
        decode(tmp_path / "b.tiff")


def test_cmyk_jpeg(tmp_path: Path) -> None:
    Image.fromarray(noise(16, 16)).convert("CMYK").save(tmp_path / "a.jpg", quality=95)
    found = decode(tmp_path / "a.jpg").int()
    assert found.shape == (3, 16, 16)
    # Not inverted (a mistake of old readers), which would be far off; JPEG at 95 stays within a few levels on average.
    assert (found - chw(noise(16, 16)).int()).abs().float().mean() < 12


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_exif_orientation_is_applied(tmp_path: Path, orientation: int, suffix: str) -> None:
    pixels = np.zeros((16, 24, 3), dtype=np.uint8)
    pixels[:8, :8] = 255  # a white corner; blocks of 8 so that JPEG keeps it exactly
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels).save(tmp_path / f"a.{suffix}", exif=exif)
    found = decode(tmp_path / f"a.{suffix}")
    turned = orientation >= 5
    assert found.shape[1:] == ((24, 16) if turned else (16, 24))
    assert decode(tmp_path / f"a.{suffix}", check=True).shape == found.shape
    bottom = orientation in (3, 4, 7, 8)
    right = orientation in (2, 3, 6, 7)
    corner = found[0, -1 if bottom else 0, -1 if right else 0]
    assert corner > 250
    assert (found > 128).float().mean() == pytest.approx(1 / 6, abs=1e-6)


@pytest.mark.parametrize("orientation", [0, 9, 10, 255])
def test_an_orientation_that_is_none_turns_nothing(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(noise(16, 24)).save(tmp_path / "a.jpg", exif=exif)
    assert decode(tmp_path / "a.jpg", check=True).shape == decode(tmp_path / "a.jpg").shape == (3, 16, 24)


def test_the_first_frame_of_several(tmp_path: Path) -> None:
    frames = [Image.new("L", (2, 2), value) for value in (0, 255)]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert decode(tmp_path / "a.gif").max() == 0


@pytest.mark.parametrize("suffix", ["jpg", "png", "gif", "bmp"])
def test_truncated_files_are_refused_by_header_check_or_decoding(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a.{suffix}", (64, 64))
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(ImageError):
        decode(path)
    if suffix in ("jpg", "png"):
        with pytest.raises(ImageError):
            decode(path, check=True)


def test_much_written_after_the_end_is_no_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "motion.jpg", (32, 32))
    path.write_bytes(path.read_bytes() + b"film" * 5000)
    assert decode(path, check=True).shape == (3, 32, 32)
    assert decode(path).shape == (3, 32, 32)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0" + b"\0" * 50, b"GIF89a"])
def test_what_is_no_image_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(content)
    for check in (True, False):
        with pytest.raises(ImageError):
            decode(path, check=check)


def test_no_byte_of_a_file_can_raise_anything_else(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for suffix in ("jpg", "png", "gif", "tiff", "webp", "bmp"):
        whole = bytearray(write(tmp_path / f"a.{suffix}", (16, 16)).read_bytes())
        for trial in range(60):
            broken = bytearray(whole)
            for place in rng.integers(0, len(whole), 3):
                broken[place] = rng.integers(0, 256)
            path = tmp_path / f"{trial}.{suffix}"
            path.write_bytes(broken)
            try:
                assert decode(path).dtype == torch.uint8
            except ImageError:
                pass
            except Warning:
                pass  # PIL remarks on odd metadata; warnings are errors in these tests only


def bomb(path: Path, side: int) -> Path:
    """A PNG of a few bytes whose header says side×side."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    return path


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [10_000, 60_000])
def test_decompression_bombs_are_refused_unopened(tmp_path: Path, side: int) -> None:
    with pytest.raises(ImageError, match="more than 89,478,485"):
        decode(bomb(tmp_path / "a.png", side))


@pytest.mark.parametrize(("height", "width"), [(40, 60), (61, 37), (20, 20), (9, 31)])
def test_centre_crop_is_torchvisions_resize_of_the_middle_square(height: int, width: int) -> None:
    image = chw(noise(height, width))
    side = min(height, width)
    top, left, _, _ = CentreCrop(20).box(height, width)  # torchvision rounds an odd margin, we floor it
    assert abs(top - (height - side) / 2) + abs(left - (width - side) / 2) <= 0.5
    expected = reference.resize(image[:, top : top + side, left : left + side], [20, 20], antialias=True)
    found = CentreCrop(20)(image)
    # Older ones of torchvision take another way where a processor has AVX-512, by floats, and round otherwise.
    by_bytes = tuple(map(int, torchvision.__version__.split(".")[:2])) >= (0, 29)
    assert (found.int() - expected.int()).abs().max() <= (0 if by_bytes else 1)
    assert torch.equal(CentreCrop(20)(image[None])[0], found), "alone or in a batch"


def test_bicubic_is_pils_within_a_level_and_never_wraps() -> None:
    """Both have integer weights, of different bits; black beside white must not overshoot into the other."""
    checks = np.kron(np.indices((6, 6)).sum(0) % 2 * 255, np.ones((7, 7))).astype(np.uint8)
    for image in (noise(60, 60), np.repeat(checks[..., None], 3, 2)):
        found = CentreCrop(20, interpolation="bicubic")(chw(image))
        expected = chw(np.asarray(Image.fromarray(image).resize((20, 20), Image.Resampling.BICUBIC)))
        assert (found.int() - expected.int()).abs().max() <= 1
        assert (found.int() - CentreCrop(20)(chw(image)).int()).abs().max() > 1, "bilinear is another"
    with pytest.raises(ValueError, match="interpolation='nearest': must be one of bilinear, bicubic"):
        CentreCrop(8, interpolation="nearest")  # type: ignore[arg-type]


def test_fraction_is_resize_256_crop_224() -> None:
    assert CentreCrop(224, fraction=0.875).box(256, 300) == (16, 38, 224, 224)
    with pytest.raises(ValueError, match="fraction=0"):
        CentreCrop(8, fraction=0)


def test_draft_decodes_a_jpeg_smaller_but_never_below_the_crop(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jpg", (256, 320))
    seen: list[tuple[int, ...]] = []

    class Watched(CentreCrop):
        def __call__(self, image: torch.Tensor, seed: int = 0) -> torch.Tensor:
            seen.append(tuple(image.shape[1:]))
            return super().__call__(image, seed)

    found = decode(path, crop=Watched(60))
    decode(path, crop=Watched(129))
    decode(path, crop=Watched(16))
    assert seen == [(64, 80), (256, 320), (32, 40)], "by 1/4, not at all, and by 1/8 as the smallest"
    whole = CentreCrop(60)(decode(path))
    # Both average the same pixels with other weights; on a smooth image that is a few levels.
    assert (found.int() - whole.int()).abs().float().mean() < 3


def test_objects_of_python() -> None:
    array = noise(5, 7)
    assert torch.equal(from_value(array), chw(array))
    assert torch.equal(from_value(Image.fromarray(array)), chw(array))
    assert torch.equal(from_value(chw(array).double() / 255), chw(array)), "what ToTensor made of it"
    assert from_value(array[..., 0]).shape == (1, 5, 7)
    assert from_value(array[..., 0], channels=3).shape == (3, 5, 7)
    for wrong in ("a.png", np.zeros((2, 2, 5)), torch.zeros(2)):
        with pytest.raises(ImageError, match="must be"):
            from_value(wrong)


def test_grey_is_pils() -> None:
    every = np.random.default_rng(0).integers(0, 256, (1100, 16, 16, 3), dtype=np.uint8)
    expected = torch.from_numpy(np.asarray(Image.fromarray(every.reshape(-1, 16, 3)).convert("L")).copy())
    pixels = torch.from_numpy(every.transpose(0, 3, 1, 2).copy())
    assert torch.equal(with_channels(pixels, 1), expected.reshape(1100, 1, 16, 16)), "in several chunks"
    assert torch.equal(with_channels(pixels[0], 1), expected.reshape(1100, 1, 16, 16)[0])
    assert torch.equal(from_value(every[0], channels=1), from_value(Image.fromarray(every[0]), channels=1))
    grey = pixels[:, :1]
    assert torch.equal(with_channels(grey, 3), torch.cat([grey, grey, grey], 1))
    assert with_channels(pixels, 3) is pixels


def test_pixels_of_other_types() -> None:
    assert as_uint8(torch.tensor([0, 65535], dtype=torch.uint16)).tolist() == [0, 255]
    assert as_uint8(torch.tensor([0, 255])).tolist() == [0, 255]
    assert as_uint8(torch.tensor([False, True])).tolist() == [0, 255]
    given = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert as_uint8(given).tolist() == [0, 255]
    assert given.tolist() == [0.0, 1.0], "what a caller gives is left as it is"
    assert from_value(np.eye(3, dtype=bool)).unique().tolist() == [0, 255]
    for wrong in (torch.tensor([-0.1, 1.0]), torch.tensor([300]), torch.tensor([float("nan")])):
        with pytest.raises(ImageError, match="must be 0 to"):
            as_uint8(wrong)
