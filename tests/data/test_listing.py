"""Files are found in order and checked; what is no image is listed, and too many of them stop it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from kontrast.data.listing import list_images, shown, suffixes, warn_of_skipped
from kontrast.data.options import Options
from tests.data.pictures import write
from tests.data.test_images import bomb


def test_sorted_recursive_and_without_hidden_or_other_files(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.png", "a.jpg", "c/d/e.PNG", ".hidden/x.png", "__MACOSX/x.png", ".x.png", "no_suffix"):
        write(tmp_path / "x.png")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 6)).save(tmp_path / name, "png")
    (tmp_path / "x.png").unlink()
    (tmp_path / "notes.txt").write_text("no image, and not taken for one")
    found = list_images(tmp_path, Options())
    assert found.names == ["a.jpg", "b/10.png", "b/2.png", "c/d/e.PNG", "no_suffix"]
    assert found.size == (6, 4)
    assert found.skipped == []
    assert found.others == ["notes.txt"]
    assert list_images(tmp_path, Options(), only=["b"]).names == ["b/10.png", "b/2.png"]


def test_not_one_that_can_be_read(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"none of the 3 image files in .* can be read: 0.png"):
        list_images(tmp_path, Options())


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a" / "1.png")
    write(tmp_path / "elsewhere" / "2.png")
    (tmp_path / "set" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "a" / "self").symlink_to(tmp_path / "set" / "a" / "self")
    (tmp_path / "set" / "gone.png").symlink_to(tmp_path / "nothing.png")
    found = list_images(tmp_path / "set", Options())
    assert found.names == ["a/1.png", "b/2.png"]
    assert "gone.png" in dict(found.skipped)


@pytest.mark.parametrize("name", ["späß.png", "a b'\"$&.png", "新.png", "-x.png", "a\nb.png", "%s{}.png"])
def test_names_of_any_characters(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert list_images(tmp_path, Options()).names == [name]


def test_names_that_are_not_text(tmp_path: Path) -> None:
    write(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", os.fsencode(tmp_path) + b"/\xff\xfe.png")
    found = list_images(tmp_path, Options(check="full"))
    assert len(found) == 1
    shown([(found.names[0], "why")]).encode()


def test_damaged_files_are_listed_with_reasons(tmp_path: Path) -> None:
    write(tmp_path / "good.png")
    (tmp_path / "text.jpg").write_text("no image")
    cut = write(tmp_path / "cut.jpg", (64, 64))
    cut.write_bytes(cut.read_bytes()[:-300])
    bomb(tmp_path / "bomb.png", 60_000)
    bomb(tmp_path / "smaller.png", 10_000)
    found = list_images(tmp_path, Options())
    assert found.names == ["good.png"]
    assert [name for name, _ in found.skipped] == ["bomb.png", "cut.jpg", "smaller.png", "text.jpg"]
    assert dict(found.skipped)["text.jpg"] == "not an image that PIL knows"
    with pytest.warns(UserWarning, match=r"skipped 4 of 5 image files .*cut\.jpg \("):
        warn_of_skipped(found.skipped, 5, tmp_path)


def test_damage_inside_is_found_by_the_full_check_only(tmp_path: Path) -> None:
    write(tmp_path / "good.png")
    path = write(tmp_path / "bad.png", (64, 64))
    content = bytearray(path.read_bytes())
    content[100:160] = bytes(60)
    path.write_bytes(content)
    assert len(list_images(tmp_path, Options())) == 2
    assert list_images(tmp_path, Options(check="full")).names == ["good.png"]
    assert list_images(tmp_path, Options(check="names")).sizes is None


def test_too_many_stop_it_and_the_limit_is_the_users(tmp_path: Path) -> None:
    for i in range(20):
        write(tmp_path / f"{i:02}.png")
    for i in range(11):
        (tmp_path / f"bad{i}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"11 of 31 image files .* more than the 10 allowed: bad0.png .* and 1 more"):
        list_images(tmp_path, Options())
    assert len(list_images(tmp_path, Options(max_bad=11))) == 20
    assert len(list_images(tmp_path, Options(max_bad=0.5))) == 20
    with pytest.raises(ValueError, match="more than the 0 allowed"):
        list_images(tmp_path, Options(max_bad=0))


def test_no_images_says_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is empty"):
        list_images(tmp_path, Options())
    (tmp_path / "train.csv").write_text("x")
    with pytest.raises(ValueError, match=r"no images in .*train\.csv.*\.jpg"):
        list_images(tmp_path, Options())
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.png is the only image, and cannot be read: "):
        list_images(tmp_path, Options())
    with pytest.raises(ValueError, match="is no folder"):
        list_images(tmp_path / "absent", Options())


def test_ordinary_suffixes_are_known() -> None:
    assert {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm"} <= suffixes()
    assert not {".txt", ".csv", ".pdf", ".npz", ""} & suffixes()
