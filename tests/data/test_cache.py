"""A cache gives back what was written, notices every kind of damage, and is written again when the folder changes."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

import pytest
import torch

from kontrast.data.cache import PAGE, CachedImages, CacheError, fingerprint, open_or_write, write_cache

ROWS = torch.randint(256, (10, 3, 5, 4), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def written(folder: Path, made: str = "abc") -> Path:
    path = folder / "sub" / "x.kimg"
    skipped = [("cat/\udcff.png", "truncated")]  # a name that is not text
    write_cache(path, iter([ROWS[:6], ROWS[6:]]), shape=(3, 5, 4), fingerprint=made, skipped=lambda: skipped)
    return path


def flip(path: Path, place: int) -> None:
    """One byte changed, the file's time kept, as a failing disk does."""
    times = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_reads_what_was_written(tmp_path: Path) -> None:
    cache = CachedImages(written(tmp_path), fingerprint="abc", verify=True)
    assert len(cache) == 10
    assert cache.shape == (3, 5, 4)
    assert cache.skipped == [("cat/\udcff.png", "truncated")]
    index = torch.tensor([9, 0, 0, 5])
    assert torch.equal(cache.read(index), ROWS[index])
    assert torch.equal(cache.read(index, lambda image, seed: image[:, seed:, :1], [1] * 4), ROWS[index][:, :, 1:, :1])
    assert os.listdir(tmp_path / "sub") == ["x.kimg"], "nothing is left beside it"


def test_a_worker_gets_the_path_and_not_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "big.kimg"
    write_cache(path, iter([torch.zeros(100, 3, 64, 64, dtype=torch.uint8)]), shape=(3, 64, 64), fingerprint="a")
    sent = pickle.dumps(CachedImages(path))
    assert len(sent) < 5000
    assert pickle.loads(sent).read(torch.tensor([99])).shape == (1, 3, 64, 64)


def test_what_is_read_can_be_written_to_without_touching_the_file(tmp_path: Path) -> None:
    cache = CachedImages(written(tmp_path))
    cache.read(torch.arange(10)).zero_()
    assert torch.equal(cache.read(torch.arange(10)), ROWS)


def test_another_folder_is_another_cache(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="made from other files"):
        CachedImages(written(tmp_path), fingerprint="other")


@pytest.mark.parametrize("place", [0, 8, 16, 24, -1, -40])
def test_a_flipped_byte_of_the_header_is_noticed_always(tmp_path: Path, place: int) -> None:
    path = written(tmp_path)
    flip(path, place)
    with pytest.raises(CacheError):
        CachedImages(path)


@pytest.mark.parametrize("place", [PAGE, PAGE + 300, PAGE + 599])
def test_a_flipped_byte_of_the_data_is_noticed_when_it_is_read_or_asked_for(tmp_path: Path, place: int) -> None:
    path = written(tmp_path)
    flip(path, place)
    cache = CachedImages(path)  # the time is as it was: only the header is looked at
    damaged = (place - PAGE) // 60
    others = torch.tensor([i for i in range(10) if i != damaged])
    assert torch.equal(cache.read(others), ROWS[others])
    with pytest.raises(CacheError, match="damaged"):
        CachedImages(path, verify=True)
    with pytest.raises(CacheError, match=rf"image {damaged} in the cache .*x\.kimg is damaged. Run again"):
        cache.read(torch.arange(10))
    with pytest.raises(CacheError, match="damaged"):  # found once, it is not trusted when opened again
        CachedImages(path)


def test_a_flipped_checksum_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path)
    flip(path, PAGE + 600 + 11)
    with pytest.raises(CacheError, match=r"checksums of .* are damaged"):
        CachedImages(path)


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_a_file_that_is_cut_while_in_use_is_an_error_and_one_that_is_removed_none(tmp_path: Path, harm: str) -> None:
    path = written(tmp_path)
    cache = CachedImages(path)
    if harm == "gone":
        path.unlink()
        assert torch.equal(cache.read(torch.arange(10)), ROWS)
        return
    os.truncate(path, PAGE + 100)
    assert torch.equal(cache.read(torch.tensor([0])), ROWS[:1])
    with pytest.raises(CacheError, match=r"image 1 in the cache .*x\.kimg"):
        cache.read(torch.tensor([0, 1]))


def test_rows_count_from_either_end_and_no_further(tmp_path: Path) -> None:
    cache = CachedImages(written(tmp_path))
    assert torch.equal(cache.read(torch.tensor([-1])), ROWS[-1:])
    with pytest.raises(IndexError):
        cache.read(torch.tensor([10]))


def test_an_older_version_is_replaced_without_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontrast.data.cache.VERSION", 1)
    path = written(tmp_path)
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(open_or_write(path, "abc", lambda: written(tmp_path) and None).read(torch.arange(10)), ROWS)


def test_a_changed_time_has_the_data_checked_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    os.utime(path, (1, 1))
    CachedImages(path)
    assert path.stat().st_mtime_ns // 1000 == CachedImages(path).header["written"] // 1000, "found whole, time set back"
    flip(path, PAGE + 5)
    os.utime(path, (1, 1))
    with pytest.raises(CacheError, match="damaged"):
        CachedImages(path)


@pytest.mark.parametrize("keep", [0, 20, PAGE, PAGE + 300, -1])
def test_a_cut_file_is_noticed(tmp_path: Path, keep: int) -> None:
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CacheError):
        CachedImages(path)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(CacheError):
        CachedImages(path)


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = written(tmp_path)

    def chunks() -> object:
        yield ROWS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_cache(path, chunks(), shape=(3, 5, 4), fingerprint="new")  # type: ignore[arg-type]
    assert os.listdir(path.parent) == ["x.kimg"]
    assert torch.equal(CachedImages(path, fingerprint="abc", verify=True).read(torch.arange(10)), ROWS)
    with pytest.raises(ValueError, match="must be uint8"):
        write_cache(path, iter([ROWS.float()]), shape=(3, 5, 4), fingerprint="new")


def test_made_once_and_anew_when_it_does_not_hold(tmp_path: Path) -> None:
    made: list[str] = []

    def write(name: str) -> None:
        made.append(name)
        written(tmp_path, name)

    path = tmp_path / "sub" / "x.kimg"
    for name in ("a", "a", "b", "b"):  # another fingerprint: the folder has changed
        cache = open_or_write(path, name, lambda name=name: write(name))
        assert torch.equal(cache.read(torch.arange(10)), ROWS)
    assert made == ["a", "b"]
    flip(path, PAGE + 1)
    with pytest.warns(UserWarning, match="written again now"):
        open_or_write(path, "b", lambda: write("b"), verify=True)
    assert made == ["a", "b", "b"]


def test_what_a_killed_writer_left_goes_when_the_cache_is_opened(tmp_path: Path) -> None:
    """It need not be written again for that: another process may have made it meanwhile."""
    path = tmp_path / "x.kimg"
    write_cache(path, iter([torch.zeros(2, 3, 2, 2, dtype=torch.uint8)]), shape=(3, 2, 2), fingerprint="a")
    (tmp_path / ".x.kimg.12345-abcd.part").write_bytes(b"half")
    open_or_write(path, "a", lambda: pytest.fail("it is there"))
    assert os.listdir(tmp_path) == ["x.kimg"]


def test_the_fingerprint_knows_names_sizes_times_and_making(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"12")
    os.utime(file, ns=(5, 5))
    seen = [
        fingerprint(tmp_path, ["a"], size=4),
        fingerprint(tmp_path, ["a"], size=5),
        fingerprint(tmp_path, ["a", "b"], size=4),
    ]
    os.utime(file, ns=(5, 6))
    seen.append(fingerprint(tmp_path, ["a"], size=4))
    file.write_bytes(b"123")
    os.utime(file, ns=(5, 5))
    seen.append(fingerprint(tmp_path, ["a"], size=4))
    assert len(set(seen)) == 5
    file.write_bytes(b"12")
    os.utime(file, ns=(5, 5))
    assert fingerprint(tmp_path, ["a"], size=4) == seen[0]
