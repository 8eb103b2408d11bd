"""The soak's own judgement on made-up samples, and a short soak."""

import json
import os
from pathlib import Path

import pytest

import soak


def samples(count: int = 100, *, leak: float = 0.0, files: float = 0.0, slower: float = 0.0) -> list[dict[str, float]]:
    """One a minute: memory and files grow by so much a sample, the steps of a CPU second fall by that share."""
    made, step = [], 0.0
    for i in range(count):
        step += 100 * (1 - slower * i)
        busy = 1 + i % 3  # a neighbour's load: the same work takes longer, the yardstick too
        made.append(
            {
                "time": 60.0 * i,
                "memory": 500 + leak * i + i % 7,
                "files": 50 + files * i + i % 5,
                "processes": 3,
                "cpu": sum(10.0 * (1 + j % 3) for j in range(i + 1)),
                "yardstick": 0.1 * busy,
                "step": step,
                "lines": i,
            }
        )
    return made


def verdicts(**faults: float) -> list[bool]:
    return [row.passes for row in soak.judged(samples(**faults))]


def test_steady_is_flat_whatever_the_neighbours_do() -> None:
    assert verdicts() == [True, True, True, True]


def test_a_leak_of_memory_is_seen() -> None:
    assert verdicts(leak=0.2) == [False, True, True, True]  # 0.2 of 500 MB a sample: 3.6 % in the 90 that count


def test_a_leak_of_files_is_seen() -> None:
    assert verdicts(files=0.05) == [True, False, True, True]


def test_getting_slower_is_seen_in_the_slope() -> None:
    assert verdicts(slower=0.001) == [True, True, True, True], "told of, not judged by"
    assert soak.judged(samples(slower=0.001))[2].drift < -0.05


@pytest.mark.parametrize("slower", [0.0, 0.01, 0.05])
def test_an_old_run_beside_a_fresh_one(slower: float) -> None:
    """The neighbours' load is in both: the CPU seconds of a step go up and down."""
    pairs = [[{**seen, "step": 5000 + seen["step"] * (1 - slower)}, seen] for seen in samples(40)]
    speed, error = soak.kept_speed(pairs)
    assert speed == pytest.approx(1 - slower)
    assert error < 1e-9


def test_the_warm_up_is_left_out() -> None:
    warm = samples()
    for seen in warm[:9]:
        seen["memory"] = 5000.0
    assert soak.judged(warm)[0].passes
    assert max(soak.judged(warm)[0].values) < 600


def test_a_process_is_seen_from_outside() -> None:
    before = soak.open_files(os.getpid())
    with Path(__file__).open():
        assert soak.open_files(os.getpid()) == before + 1
    assert soak.megabytes(os.getpid()) > 1
    assert soak.cpu_seconds(os.getpid()) > 0
    assert soak.family(os.getpid())[0] == os.getpid()
    gone = 2**22 + 1  # above the largest number of a process
    assert (soak.family(gone), soak.megabytes(gone), soak.open_files(gone), soak.cpu_seconds(gone)) == ([gone], 0, 0, 0)


def test_too_few_looks_are_said_to_be() -> None:
    with pytest.raises(SystemExit, match="8 looks at both runs are too few"):
        soak.kept_speed([[seen, seen] for seen in samples(8)])


@pytest.mark.slow
def test_a_minute_and_a_half(tmp_path: Path) -> None:
    seen = soak.soak(tmp_path, hours=0.025, every=5)
    end = soak.ending(tmp_path)
    assert end["status"] == "interrupted"
    assert end["left over"] == []
    assert end["checkpoint"] >= seen[-1]["step"] > 0
    assert {3} <= {sample["processes"] for sample in seen}  # itself and two workers
    pairs = soak.beside(tmp_path, minutes=2.0, every=4)
    assert pairs[0][0]["step"] >= end["checkpoint"], "the old one goes on from there"
    assert pairs[0][1]["step"] < end["checkpoint"], "the fresh one begins"
    text = soak.page(seen, end, pairs)
    assert "Ended as `interrupted`" in text
    assert "beside a fresh run: " in text
    stored = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert stored == seen
