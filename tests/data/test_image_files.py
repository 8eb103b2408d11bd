"""Tests of kontrast.data.image_files."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from kontrast.data.cache import PAGE, CachedImages
from kontrast.data.dataset import Inputs, Memory, Options
from kontrast.data.image_files import (
    CHUNK,
    Folder,
    Listing,
    check_images,
    format_skipped,
    list_images,
    store,
    suffixes,
    warn_of_skipped,
)
from kontrast.data.images import CentreCrop, decode
from tests.data.pictures import write
from tests.data.test_images import bomb


def test_sorted_recursive_and_without_hidden_or_other_files(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.png", "a.jpg", "c/d/e.PNG", ".hidden/x.png", "__MACOSX/x.png", ".x.png", "no_suffix"):
        write(tmp_path / "x.png")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 6)).save(tmp_path / name, "png")
    (tmp_path / "x.png").unlink()
    (tmp_path / "notes.txt").write_text("no image, and not taken for one")
    found = check_images(list_images(tmp_path), Options())
    assert found.names == ["a.jpg", "b/10.png", "b/2.png", "c/d/e.PNG", "no_suffix"]
    assert found.size == (6, 4)
    assert found.skipped == []
    assert found.others == ["notes.txt"]
    assert list_images(tmp_path, only=["b"]).names == ["b/10.png", "b/2.png"]


def test_not_one_that_can_be_read(tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"{i}.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"none of the 3 image files in .* can be read: 0.png"):
        check_images(list_images(tmp_path), Options())


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    write(tmp_path / "set" / "a" / "1.png")
    write(tmp_path / "elsewhere" / "2.png")
    (tmp_path / "set" / "b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "a" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "set" / "a" / "self").symlink_to(tmp_path / "set" / "a" / "self")
    (tmp_path / "set" / "gone.png").symlink_to(tmp_path / "nothing.png")
    found = check_images(list_images(tmp_path / "set"), Options())
    assert found.names == ["a/1.png", "b/2.png"]
    assert "gone.png" in dict(found.skipped)


@pytest.mark.parametrize("name", ["späß.png", "a b'\"$&.png", "新.png", "-x.png", "a\nb.png", "%s{}.png"])
def test_names_of_any_characters(tmp_path: Path, name: str) -> None:
    write(tmp_path / name)
    assert check_images(list_images(tmp_path), Options()).names == [name]


def test_names_that_are_not_text(tmp_path: Path) -> None:
    write(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", os.fsencode(tmp_path) + b"/\xff\xfe.png")
    found = check_images(list_images(tmp_path), Options(check="full"))
    assert len(found) == 1
    format_skipped([(found.names[0], "why")]).encode()


def test_damaged_files_are_listed_with_reasons(tmp_path: Path) -> None:
    write(tmp_path / "good.png")
    (tmp_path / "text.jpg").write_text("no image")
    cut = write(tmp_path / "cut.jpg", (64, 64))
    cut.write_bytes(cut.read_bytes()[:-300])
    bomb(tmp_path / "bomb.png", 60_000)
    bomb(tmp_path / "smaller.png", 10_000)
    found = check_images(list_images(tmp_path), Options())
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
    assert len(check_images(list_images(tmp_path), Options())) == 2
    assert check_images(list_images(tmp_path), Options(check="full")).names == ["good.png"]
    assert list_images(tmp_path).sizes is None


def test_too_many_stop_it_and_the_limit_is_the_users(tmp_path: Path) -> None:
    for i in range(20):
        write(tmp_path / f"{i:02}.png")
    for i in range(11):
        (tmp_path / f"bad{i}.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"11 of 31 image files .* more than the 10 allowed: bad0.png .* and 1 more"):
        check_images(list_images(tmp_path), Options())
    assert len(check_images(list_images(tmp_path), Options(max_bad=11))) == 20
    assert len(check_images(list_images(tmp_path), Options(max_bad=0.5))) == 20
    with pytest.raises(ValueError, match="more than the 0 allowed"):
        check_images(list_images(tmp_path), Options(max_bad=0))


def test_no_images_says_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it is empty"):
        check_images(list_images(tmp_path), Options())
    (tmp_path / "train.csv").write_text("x")
    with pytest.raises(ValueError, match=r"must hold at least one image .*train\.csv.*\.jpg"):
        check_images(list_images(tmp_path), Options())
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(ValueError, match=r"x\.png is the only image, and cannot be read: "):
        check_images(list_images(tmp_path), Options())
    with pytest.raises(ValueError, match="must be a folder"):
        check_images(list_images(tmp_path / "absent"), Options())


def test_ordinary_suffixes_are_known() -> None:
    assert {".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm"} <= suffixes()
    assert not {".txt", ".csv", ".pdf", ".npz", ""} & suffixes()


def files(folder: Path, count: int = 6) -> list[str]:
    return [str(write(folder / f"{i}.png", (20 + i, 30), seed=i)) for i in range(count)]


def corner(image: Tensor, seed: int) -> Tensor:
    return image[:, seed : seed + 4, :5]


def test_reads_what_is_in_the_files_in_the_order_asked(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths)
    assert folder.shape is None
    assert len(folder) == 6
    found = folder.read(torch.tensor([4, 0, 4]), corner, [1, 2, 3])
    expected = torch.stack([corner(decode(paths[i]), s) for i, s in ((4, 1), (0, 2), (4, 3))])
    assert torch.equal(found, expected)
    assert torch.equal(pickle.loads(pickle.dumps(folder)).read(torch.tensor([4, 0, 4]), corner, [1, 2, 3]), expected)


def test_a_crop_of_its_own_gives_it_a_shape(tmp_path: Path) -> None:
    folder = Folder(files(tmp_path), crop=CentreCrop(10))
    assert folder.shape == (3, 10, 10)
    assert folder.read(torch.arange(6)).shape == (6, 3, 10, 10)
    assert folder.read(torch.arange(2), corner, [0, 1]).shape == (2, 3, 4, 5), "a crop that is given comes first"
    grey = Folder(files(tmp_path), crop=CentreCrop(10), channels=1)
    assert grey.read(torch.arange(2)).shape == (2, 1, 10, 10)


def test_different_sizes_need_a_crop_and_a_crop_needs_seeds(tmp_path: Path) -> None:
    folder = Folder(files(tmp_path))
    with pytest.raises(ValueError, match="differ in size: read them with a crop"):
        folder.read(torch.tensor([0]))
    with pytest.raises(ValueError, match="seeds: must be 1, one for each image, when a crop is given; got none"):
        folder.read(torch.tensor([0]), corner)
    with pytest.raises(ValueError, match="changed since they were listed"):
        Folder(files(tmp_path), shape=(3, 20, 30)).read(torch.arange(2))
    with pytest.raises(ValueError, match="paths: must hold at least one"):
        Folder([])


def test_a_file_gone_bad_is_replaced_by_the_next_of_its_label(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths, crop=CentreCrop(8), labels=torch.tensor([0, 1, 0, 1, 0, 1]))
    expected = folder.read(torch.tensor([5, 1, 3]))
    Path(paths[3]).write_bytes(b"")
    with pytest.warns(UserWarning, match=r"3\.png can no longer be read .* the next image with its label replaces it"):
        found = folder.read(torch.tensor([5, 1, 3]))
    assert torch.equal(found[:2], expected[:2])
    assert torch.equal(found[2], expected[0]), "5 follows 3 among the odd ones"
    Path(paths[5]).unlink()
    with pytest.warns(UserWarning, match=r"5\.png can no longer"):
        assert torch.equal(folder.read(torch.tensor([3]))[0], expected[1]), "round the end to 1"
    other = Folder(paths, crop=CentreCrop(8), labels=folder.labels)  # a worker that has seen nothing yet
    with pytest.warns(UserWarning, match="can no longer"):
        assert torch.equal(other.read(torch.tensor([3])), folder.read(torch.tensor([3])))


def test_too_many_gone_bad_stop_it(tmp_path: Path) -> None:
    paths = files(tmp_path)
    folder = Folder(paths, crop=CentreCrop(8), max_bad=1)
    for path in paths[:2]:
        Path(path).write_bytes(b"")
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="with it 2 files, more than the 1 allowed"):  # noqa: PT030
        folder.read(torch.tensor([0, 1]))
    alone = Folder(paths[:1], crop=CentreCrop(8))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="nor any other file of its label"):  # noqa: PT030
        alone.read(torch.tensor([0]))


def listed(folder: Path) -> Listing:
    return list_images(folder)


def several(folder: Path, count: int = 5) -> Path:
    for i in range(count):
        write(folder / f"{i}.png", (20 + i, 30), seed=i)
    return folder


def everything(inputs: Inputs) -> torch.Tensor:
    return inputs.read(torch.arange(len(inputs)))


def test_one_size_goes_into_memory_if_it_fits(tmp_path: Path) -> None:
    for i in range(CHUNK + 3):
        write(tmp_path / f"{i:03}.png", (4, 5), seed=i)
    inputs, kept = store(listed(tmp_path), Options())
    assert isinstance(inputs, Memory)
    assert torch.equal(inputs.values[-1], decode(kept.paths[-1]))
    files, _ = store(listed(tmp_path), Options(memory=100))
    assert isinstance(files, Folder)
    assert files.shape == inputs.shape == (3, 4, 5)
    assert torch.equal(everything(files), everything(inputs))


def test_several_sizes_stay_files_unless_one_is_asked_for(tmp_path: Path) -> None:
    inputs, _ = store(listed(several(tmp_path)), Options())
    assert isinstance(inputs, Folder)
    assert inputs.shape is None
    small, kept = store(listed(tmp_path), Options(size=8))
    assert isinstance(small, Memory)
    assert torch.equal(everything(small), torch.stack([CentreCrop(8)(decode(path)) for path in kept.paths]))
    on_disk, _ = store(listed(tmp_path), Options(size=8, memory=10))
    assert isinstance(on_disk, Folder)
    assert torch.equal(everything(on_disk), everything(small))
    grey, _ = store(listed(tmp_path), Options(size=8, channels=1))
    assert grey.shape == (1, 8, 8)


def test_the_cache_holds_the_same_and_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several(tmp_path / "a")
    (tmp_path / "a" / "1.png").write_bytes(b"")
    options = Options(size=8, cache=tmp_path / "cache")
    cached, kept = store(listed(tmp_path / "a"), options)
    small, also_kept = store(listed(tmp_path / "a"), Options(size=8))
    assert isinstance(cached, CachedImages)
    assert torch.equal(everything(cached), everything(small))
    assert kept.names == also_kept.names == ["0.png", "2.png", "3.png", "4.png"]
    assert kept.skipped == also_kept.skipped == [("1.png", "not an image that PIL knows")]
    monkeypatch.setattr("kontrast.data.image_files.decode", lambda *_, **__: pytest.fail("decoded again"))
    again, kept = store(listed(tmp_path / "a"), options)
    assert torch.equal(everything(again), everything(cached))
    assert kept.skipped == also_kept.skipped


def change_nothing(folder: Path) -> None:
    os.utime(folder)


def change_a_file(folder: Path) -> None:
    write(folder / "2.png", (22, 30), seed=99)
    os.utime(folder / "2.png", (9, 9))


def add_a_file(folder: Path) -> None:
    write(folder / "9.png", (22, 30), seed=99)


def remove_a_file(folder: Path) -> None:
    (folder / "0.png").unlink()


def rename_a_file(folder: Path) -> None:
    (folder / "0.png").rename(folder / "7.png")


@pytest.mark.parametrize("change", [change_nothing, change_a_file, add_a_file, remove_a_file, rename_a_file])
def test_the_cache_follows_the_folder(tmp_path: Path, change: object) -> None:
    several(tmp_path / "a")
    options = Options(size=8, cache=tmp_path / "cache")
    first, _ = store(listed(tmp_path / "a"), options)
    assert isinstance(first, CachedImages)
    inode = first.path.stat().st_ino
    change(tmp_path / "a")  # type: ignore[operator]
    second, kept = store(listed(tmp_path / "a"), options)
    assert isinstance(second, CachedImages)
    assert torch.equal(everything(second), everything(store(listed(tmp_path / "a"), Options(size=8))[0]))
    assert (second.path.stat().st_ino == inode) == (change is change_nothing)
    assert len(second) == len(kept)


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    several(tmp_path / "a")
    options = Options(size=8, cache=tmp_path / "cache", verify=True)
    first, _ = store(listed(tmp_path / "a"), options)
    assert isinstance(first, CachedImages)
    expected = everything(first)
    content = bytearray(first.path.read_bytes())
    content[PAGE + 7] ^= 255
    first.path.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged.*written again"):
        second, _ = store(listed(tmp_path / "a"), options)
    assert torch.equal(everything(second), expected)


def test_a_cache_of_several_sizes_needs_one(tmp_path: Path) -> None:
    several(tmp_path / "a")
    with pytest.raises(ValueError, match="size=None: must be set for a cache"):
        store(listed(tmp_path / "a"), Options(cache=tmp_path / "cache"))
    write(tmp_path / "b" / "1.png", (7, 9))
    inputs, _ = store(listed(tmp_path / "b"), Options(cache=tmp_path / "cache"))
    assert inputs.shape == (3, 7, 9)


def test_too_many_unreadable_files_stop_it_and_leave_no_cache(tmp_path: Path) -> None:
    several(tmp_path / "a")
    (tmp_path / "a" / "1.png").write_bytes(b"")
    for options in (Options(size=8, max_bad=0), Options(size=8, max_bad=0, cache=tmp_path / "cache")):
        with pytest.raises(ValueError, match=r"1 of 5 image files .* more than the 0 allowed: 1.png"):
            store(listed(tmp_path / "a"), options)
    assert os.listdir(tmp_path / "cache") == []


def test_a_cache_made_when_more_was_allowed_does_not_raise_the_limit(tmp_path: Path) -> None:
    several(tmp_path / "a")
    (tmp_path / "a" / "1.png").write_bytes(b"")
    options = Options(size=8, cache=tmp_path / "cache")
    store(listed(tmp_path / "a"), options)
    with pytest.raises(ValueError, match=r"1 of 5 image files .* more than the 0 allowed: 1.png"):
        store(listed(tmp_path / "a"), replace(options, max_bad=0))


@pytest.mark.parametrize("below", ["file", "file/cache"])
def test_an_unusable_cache_folder_is_named(tmp_path: Path, below: str) -> None:
    several(tmp_path / "a")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ValueError, match=f"no cache file can be written in .*{below} .*cache="):
        store(listed(tmp_path / "a"), Options(size=8, cache=tmp_path / below))
    with pytest.raises(ValueError, match="no cache file can be written in /proc/none"):
        store(listed(tmp_path / "a"), Options(size=8, cache="/proc/none"))


def test_images_are_held_to_the_size_they_were_listed_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(4):
        write(tmp_path / f"{i}.png", (6, 5), seed=i)
    own = check_images

    def checked(listing: Listing, options: Options) -> Listing:
        found = own(listing, options)
        write(tmp_path / "0.png", (5, 5))  # the first changes before it is decoded: it is the odd one out, not the rest
        return found

    monkeypatch.setattr("kontrast.data.image_files.check_images", checked)
    for options in (Options(), Options(cache=tmp_path.parent / f"{tmp_path.name}-cache")):
        write(tmp_path / "0.png", (6, 5))
        inputs, kept = store(listed(tmp_path), options)
        assert inputs.shape == (3, 6, 5)
        assert kept.names == ["1.png", "2.png", "3.png"]
        assert kept.skipped == [("0.png", "[3, 5, 5] and not [3, 6, 5] as it was when listed")]
