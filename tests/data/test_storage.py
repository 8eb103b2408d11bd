"""Images are kept in memory, in a cache or in their files, and read the same from each."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kontrast.data.cache import PAGE, CachedImages
from kontrast.data.folder import Folder
from kontrast.data.images import CentreCrop, decode
from kontrast.data.listing import Listing, check_images, list_images
from kontrast.data.options import Options
from kontrast.data.records import Inputs, Memory
from kontrast.data.storage import CHUNK, store
from tests.data.pictures import write


def listed(folder: Path) -> Listing:
    return list_images(folder, Options(check="names"))


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
    monkeypatch.setattr("kontrast.data.storage.decode", lambda *_, **__: pytest.fail("decoded again"))
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
    with pytest.warns(UserWarning, match="not what was written.*made anew"):
        second, _ = store(listed(tmp_path / "a"), options)
    assert torch.equal(everything(second), expected)


def test_a_cache_of_several_sizes_needs_one(tmp_path: Path) -> None:
    several(tmp_path / "a")
    with pytest.raises(ValueError, match="differ in size and a cache holds one; give size="):
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

    monkeypatch.setattr("kontrast.data.storage.check_images", checked)
    for options in (Options(), Options(cache=tmp_path.parent / f"{tmp_path.name}-cache")):
        write(tmp_path / "0.png", (6, 5))
        inputs, kept = store(listed(tmp_path), options)
        assert inputs.shape == (3, 6, 5)
        assert kept.names == ["1.png", "2.png", "3.png"]
        assert kept.skipped == [("0.png", "[3, 5, 5] and not [3, 6, 5] as it was when listed")]
