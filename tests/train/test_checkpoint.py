"""Checkpoints are whole or not there, and what has changed since it was written is found."""

from __future__ import annotations

import os
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kontrast.files import write_json
from kontrast.train import checkpoint
from kontrast.train.checkpoint import Damaged, State, log_of, mismatch, random_states, set_random_states
from kontrast.train.gradients import Precision
from kontrast.train.stopping import Patience
from tests.methods.samples import batch, made


def test_there_and_back(tmp_path: Path) -> None:
    state = {"step": 3, "weights": {"a": torch.arange(4.0)}, "states": [1, (2, "x")], "none": None}
    checkpoint.save(tmp_path / "deep" / "last.pt", state)
    back = checkpoint.load(tmp_path / "deep" / "last.pt")
    assert back["step"] == 3
    assert torch.equal(back["weights"]["a"], torch.arange(4.0))
    assert back["states"] == [1, (2, "x")]
    assert os.listdir(tmp_path / "deep") == ["last.pt"]


@pytest.mark.parametrize("where", ["write", "fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1})

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif where == "replace":
        monkeypatch.setattr(Path, "replace", full)
    else:
        monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(path, {"step": 2})
    monkeypatch.undo()
    assert checkpoint.load(path)["step"] == 1
    assert os.listdir(tmp_path) == ["last.pt"]


def test_leftovers_of_a_kill_are_cleared(tmp_path: Path) -> None:
    (tmp_path / ".last.pt.12345.part").write_bytes(b"half")
    checkpoint.save(tmp_path / "last.pt", {"step": 1})
    assert os.listdir(tmp_path) == ["last.pt"]


@pytest.mark.parametrize("damage", ["cut", "junk", "list"])
def test_damaged_files_are_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1, "x": torch.zeros(1000)})
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:2000])
    elif damage == "junk":
        path.write_bytes(b"no checkpoint at all")
    else:
        torch.save([1], path)
    with pytest.raises(Damaged, match=r"last\.pt is damaged .*; put back a copy of it, or remove the folder"):
        checkpoint.load(path)


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)


def test_a_flipped_bit_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1, "x": torch.zeros(200)})
    bits = 8 * path.stat().st_size
    draw = random.Random(0)
    end = range(bits - 8 * 80, bits)  # the archive's end, the mark and the digest: every bit
    for bit in [*end, *(draw.randrange(bits) for _ in range(300))]:
        flip(path, bit)
        with pytest.raises(Damaged, match=r"last\.pt"):
            checkpoint.load(path)
        flip(path, bit)
    assert checkpoint.load(path)["step"] == 1


def test_a_cut_is_found_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"step": 1, "x": torch.zeros(20)})
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(Damaged, match=r"last\.pt"):
            checkpoint.load(path)


def test_torch_reads_it_without_us(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "last.pt", {"step": 1, "x": torch.arange(3)})
    assert torch.equal(torch.load(tmp_path / "last.pt", weights_only=True)["x"], torch.arange(3))


def test_files_of_before_there_were_digests_are_read(tmp_path: Path) -> None:
    torch.save({"step": 4}, tmp_path / "last.pt")
    assert checkpoint.load(tmp_path / "last.pt") == {"step": 4}


# ---------------------------------------------------------------------------------- the last and the previous


def two(folder: Path) -> tuple[Path, Path]:
    last, previous = folder / "last.pt", folder / "previous.pt"
    for step in (1, 2, 3):
        checkpoint.save(last, {"step": step}, previous=previous)
    return last, previous


def test_the_one_before_the_newest_is_kept(tmp_path: Path) -> None:
    last, previous = two(tmp_path)
    assert (checkpoint.load(last)["step"], checkpoint.load(previous)["step"]) == (3, 2)
    assert sorted(os.listdir(tmp_path)) == ["last.pt", "previous.pt"]


def test_none_yet(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "last.pt", tmp_path / "previous.pt") is None


@pytest.mark.parametrize("harm", ["flipped", "cut", "gone", "folder", "pipe", "another's"])
def test_where_the_newest_is_damaged_the_one_before_is_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    last, previous = two(tmp_path)
    if harm in ("gone", "folder", "pipe"):
        last.unlink()
    if harm == "folder":
        last.mkdir()
    elif harm == "pipe":
        os.mkfifo(last)
    elif harm == "cut":
        last.write_bytes(last.read_bytes()[:100])
    elif harm == "flipped":
        flip(last, 800)
    another = "another's" if harm == "another's" else ""
    state = checkpoint.newest(last, previous, lambda seen: another if seen["step"] == 3 else "")
    assert state is not None
    assert state["step"] == 2
    told = capsys.readouterr().err
    assert str(last) in told
    assert "resumes from previous.pt, step 2" in told
    checkpoint.save(last, {"step": 3}, previous=previous)  # the damaged one does not push the good one out
    assert (checkpoint.load(last)["step"], checkpoint.load(previous)["step"]) == (3, 2)
    checkpoint.keep_only(last, previous)
    assert os.listdir(tmp_path) == ["last.pt"]


def test_a_newest_that_holds_is_used_without_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last, previous = two(tmp_path)
    flip(previous, 800)
    state = checkpoint.newest(last, previous)
    assert state is not None
    assert state["step"] == 3
    assert capsys.readouterr().err == ""


def test_if_neither_holds_both_are_named(tmp_path: Path) -> None:
    last, previous = two(tmp_path)
    flip(last, 800)
    flip(previous, 800)
    with pytest.raises(Damaged, match=r"last\.pt is damaged .* and .*previous\.pt is damaged .* remove the folder"):
        checkpoint.newest(last, previous)
    previous.unlink()
    with pytest.raises(Damaged, match=r"last\.pt is damaged"):
        checkpoint.newest(last, previous)


@pytest.mark.parametrize("renaming", [1, 2])
def test_killed_between_the_renamings_there_is_one_to_go_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renaming: int
) -> None:
    last, previous = two(tmp_path)
    real, count = Path.replace, 0

    def killed(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == renaming:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(last, {"step": 4}, previous=previous)
    monkeypatch.undo()
    state = checkpoint.newest(last, previous)
    assert state is not None
    assert state["step"] == 3


def test_nothing_pickled_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "made"),))

    torch.save({"x": Evil()}, tmp_path / "last.pt")
    with pytest.raises(ValueError, match="cannot be read as a checkpoint"):
        checkpoint.load(tmp_path / "last.pt")
    assert not (tmp_path / "made").exists()


def test_json_is_standard(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("-inf"), 1.5], "c": {"d": "é"}})
    assert (tmp_path / "x.json").read_text().replace("\n", "").replace(
        " ", ""
    ) == '{"a":null,"b":[null,1.5],"c":{"d":"é"}}'


def test_of_another_run_and_none_before_it(tmp_path: Path) -> None:
    last, previous = two(tmp_path)
    with pytest.raises(
        checkpoint.Damaged, match=r"last\.pt cannot be resumed from \(no\), and .*previous\.pt cannot be"
    ):
        checkpoint.newest(last, previous, lambda seen: "no")


def test_the_best_of_another_run_or_step(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    checkpoint.save(path, {"hash": "a", "step": 7})
    assert checkpoint.load_best(path, "a", 7)["step"] == 7
    assert checkpoint.load_best(path, "a")["step"] == 7
    with pytest.raises(checkpoint.Damaged, match=r"best\.pt is damaged \(it is of another recipe, 'a' and not 'b'"):
        checkpoint.load_best(path, "b", 7)
    with pytest.raises(checkpoint.Damaged, match="it is of step 7, and 8 was the best"):
        checkpoint.load_best(path, "a", 8)
    path.unlink()
    with pytest.raises(checkpoint.Damaged, match="it is missing"):
        checkpoint.load_best(path, "a", 8)


def test_a_leftover_of_any_kind_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / ".last.pt.1-a.part").mkdir()
    os.mkfifo(tmp_path / ".last.pt.2-b.part")
    checkpoint.save(tmp_path / "last.pt", {"step": 1})
    assert checkpoint.load(tmp_path / "last.pt")["step"] == 1
    assert os.listdir(tmp_path) == ["last.pt"]


def state(seed: int = 0) -> State:
    method = made("moco", seed=seed)
    optimiser = torch.optim.SGD(method.parameters(), lr=0.1, momentum=0.9)
    return State(method, optimiser, Precision("float32", torch.device("cpu")), Patience(3))


def test_a_state_there_and_back() -> None:
    one, other = state(), state(seed=4)
    one.method.step(batch("moco"))["loss"].backward()
    one.optimiser.step()
    one.method.after_step()
    one.step, one.sums = 1, {"loss": 2.0, "steps": 1}
    one.patience.better(0.4, 1)
    assert other.restore(one.capture("hash", "data", 77)) == 77
    assert (other.step, other.sums, other.patience.best) == (1, {"loss": 2.0, "steps": 1}, 0.4)
    for name, tensor in one.method.state_dict().items():
        assert torch.equal(other.method.state_dict()[name], tensor), name
    saved = [s.optimiser.state_dict()["state"] for s in (one, other)]
    assert all(torch.equal(saved[0][i]["momentum_buffer"], saved[1][i]["momentum_buffer"]) for i in saved[0])
    assert int(other.method.queue.pointer) == 12


@pytest.mark.parametrize(
    ("hash_", "data", "says"),
    [
        ("hash", "data", ""),
        ("other", "data", "another recipe, 'hash' and"),
        ("hash", "other", "other data, 'data' and"),
    ],
)
def test_of_another_run(hash_: str, data: str, says: str) -> None:
    saved = state().capture("hash", "data", 0)
    assert mismatch(saved, hash_, data).removeprefix("it is of ").startswith(says)
    assert bool(mismatch(saved, hash_, data)) == bool(says)


def test_a_key_that_it_lacks() -> None:
    saved = state().capture("hash", "data", 0)
    for key in set(saved) - {"log", "fitted_at", "average", "reason"}:  # those may lack in older ones
        assert mismatch({k: v for k, v in saved.items() if k != key}, "hash", "data") == f"it lacks {key}"


def test_random_states() -> None:
    states = random_states()
    drawn = torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    set_random_states(states)
    again = torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    assert torch.equal(drawn[0], again[0])
    assert (drawn[1] == again[1]).all()
    assert drawn[2] == again[2]


def test_the_log_comes_back_from_a_checkpoint() -> None:
    lines = b'{"step": 1}\n' * 1000
    packed = torch.frombuffer(bytearray(zlib.compress(lines, 1)), dtype=torch.uint8)
    assert log_of({"log": packed}) == lines
    assert log_of({"log": None}) is None
    assert log_of({}) is None, "of before it was kept"
