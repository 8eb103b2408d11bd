"""The judgement of `torture/soak.py` on invented samples, and a short soak."""

import json
import os
from pathlib import Path

import pytest

import soak


def samples(*, memory: float = 0.0, files: float = 0.0) -> list[dict[str, float]]:
    """One a minute for 100 minutes; memory and files grow by so much a sample."""
    return [{"time": 60.0 * i, "memory": 500 + memory * i + i % 7, "files": 50 + files * i + i % 5} for i in range(100)]


@pytest.mark.parametrize(
    ("growth", "flat"),
    [({}, [True, True]), ({"memory": 0.2}, [False, True]), ({"files": 0.05}, [True, False])],
    ids=["steady", "memory", "files"],
)
def test_a_leak_is_found(growth: dict[str, float], flat: list[bool]) -> None:
    """0.2 of 500 MB a sample are 3.6 % in the 90 samples that count."""
    assert [row.is_flat for row in soak.judge(samples(**growth))] == flat


def test_the_warm_up_is_left_out() -> None:
    warm = samples()
    for sample in warm[:9]:
        sample["memory"] = 5000.0
    assert soak.judge(warm)[0].is_flat
    assert max(soak.judge(warm)[0].values) < 600


def test_a_process_is_measured_from_outside() -> None:
    before = soak.open_files(os.getpid())
    with Path(__file__).open():
        assert soak.open_files(os.getpid()) == before + 1
    assert soak.megabytes(os.getpid()) > 1
    assert soak.family(os.getpid())[0] == os.getpid()
    ended = 2**22 + 1  # above the largest number of a process
    assert (soak.family(ended), soak.megabytes(ended), soak.open_files(ended)) == ([ended], 0, 0)


@pytest.mark.slow
def test_a_minute_and_a_half(tmp_path: Path) -> None:
    found = soak.soak(tmp_path, hours=0.025, every=5)
    end = soak.ending(tmp_path)
    assert end["status"] == "interrupted"
    assert end["left over"] == []
    assert end["checkpoint"] >= found[-1]["step"] > 0
    assert {3} <= {sample["processes"] for sample in found}  # itself and two workers
    assert "Ended as `interrupted`" in soak.page(found, end)
    assert [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()] == found
