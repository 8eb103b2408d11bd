"""How many rows go through an encoder at once follows from the bytes of one row, and holds the peak down."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn

from kontrast import augment
from kontrast.data import DataSet, Memory, Split
from kontrast.evaluate import Subject, activations, evaluate, extract
from kontrast.evaluate.activations import CPU_BUDGET, MOST_ROWS, in_chunks, peak_bytes, rows_at_once
from kontrast.sklearn import encode

CPU = torch.device("cpu")


class Recorded(nn.Module):
    """An encoder that keeps how many rows each call had; each row is made ``copies`` times as large inside."""

    def __init__(self, copies: int = 1) -> None:
        super().__init__()
        self.copies, self.rows = copies, list[int]()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        self.rows.append(len(x))
        return x.flatten(1).repeat(1, self.copies).view(len(x), self.copies, -1).mean(1) * self.weight


def images(rows: int, side: int = 16) -> Split:
    draw = torch.Generator().manual_seed(0)
    return Split(Memory(torch.randint(0, 256, (rows, 1, side, side), dtype=torch.uint8, generator=draw)))


def test_freed_tensors_views_and_what_was_there_before_do_not_count() -> None:
    weight = torch.zeros(256, 256)
    assert peak_bytes(lambda: weight.t().flatten()[:3].view(3, 1)) == 256 * 256 * 4  # flatten of a transpose copies
    assert peak_bytes(lambda: weight.view(-1)[:100].add_(1)) == 0
    assert peak_bytes(lambda: [torch.zeros(100) for _ in range(5)]) == 5 * 400
    assert peak_bytes(lambda: [torch.zeros(100).sum() for _ in range(5)]) < 2 * 400


def test_the_backward_pass_is_seen() -> None:
    weight = nn.Parameter(torch.ones(1000))

    def chain(x: Tensor) -> Tensor:
        return x.exp().exp().exp().exp().sum()

    with torch.no_grad():
        assert peak_bytes(lambda: chain(weight)) == 2 * 4000
    assert peak_bytes(lambda: chain(weight)) >= 4 * 4000, "kept for the backward pass"
    assert peak_bytes(lambda: weight.sum()) < 4000
    assert peak_bytes(lambda: weight.sum().backward()) >= 4000, "the gradient"


@pytest.mark.parametrize("copies", [1, 1000, 100_000])
def test_rows_follow_from_the_bytes_of_one(copies: int) -> None:
    encoder, row = Recorded(copies), torch.zeros(1, 1, 16, 16)
    inside = copies * row.nbytes
    rows = rows_at_once(encoder, row)
    assert rows == min(MOST_ROWS, rows)
    assert rows == max(1, rows)
    if rows < MOST_ROWS:
        assert rows == pytest.approx(CPU_BUDGET / inside, rel=0.1, abs=1)
    assert rows_at_once(encoder, row) == rows
    assert encoder.rows == [1], "measured once"


def test_a_compiled_encoder_is_measured_uncompiled() -> None:
    plain = nn.Sequential(nn.Linear(16, 4096), nn.ReLU(), nn.Linear(4096, 4)).eval()
    expected = rows_at_once(plain, torch.zeros(1, 16), most=10**9)
    plain.compile(backend="eager")
    activations._bytes_of_rows.clear()
    assert rows_at_once(plain, torch.zeros(1, 16), most=10**9) == expected


def test_extraction_takes_so_many_and_an_explicit_size_overrides() -> None:
    split, encoder = images(300), Recorded(1000)
    expected = rows_at_once(encoder, torch.zeros(1, 1, 16, 16))
    assert 1 < expected < 100
    encoder.rows.clear()
    by_bytes = extract(encoder, split, mean=None, std=None)
    assert max(encoder.rows) == expected
    encoder.rows.clear()
    at_once = extract(encoder, split, mean=None, std=None, batch_size=300)
    assert encoder.rows == [300]
    assert torch.allclose(by_bytes, at_once, rtol=1e-5)  # means of 1,000 equal float32 numbers


def test_an_encoder_that_does_not_take_one_row_is_still_asked() -> None:
    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if len(x) < 2:
                raise RuntimeError("pairs only")
            return x.flatten(1)

    assert extract(Pairs(), images(64), mean=None, std=None).shape == (64, 256)


def test_in_chunks_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = Recorded(10)
    x = torch.randn(50, 8, generator=torch.Generator().manual_seed(0))
    whole = in_chunks(encoder, x, device=CPU, batch_size=50)
    monkeypatch.setattr(activations, "CPU_BUDGET", 5000)
    assert torch.allclose(in_chunks(encoder, x, device=CPU), whole, rtol=1e-5)
    assert 1 < encoder.rows[-2] < 50


def test_probes_on_augmented_images_go_in_chunks_unless_batch_norm_counts(
    encoder: nn.Module, pictures: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    encoder.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    options = {"epochs": 1, "batch_size": 64, "seed": 3}
    whole = evaluate(Subject.from_encoder(encoder, pictures, batch_size=300), "wang-liu", **options)
    assert 64 in seen
    monkeypatch.setattr(activations, "CPU_BUDGET", 200_000)
    seen.clear()
    parts = evaluate(Subject.from_encoder(encoder, pictures), "wang-liu", **options)
    assert max(seen) < 20
    assert abs(parts.value - whole.value) <= 0.01, "rounding alone: at most a row of 100"
    seen.clear()
    evaluate(Subject.from_encoder(encoder, pictures), "tcl", **options)
    assert 64 in seen, "in train mode batch norm needs the batch that the protocol names"


def test_the_estimators_random_views_do_not_depend_on_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = images(600).inputs.values
    view, encoder = augment.preset("crop-flip", size=16, mean=[0.5], std=[0.2]), Recorded(10)

    def drawn() -> Tensor:
        return encode(encoder, rows, view, device=CPU, draw=torch.Generator().manual_seed(1))

    whole = drawn()
    monkeypatch.setattr(activations, "CPU_BUDGET", 2_000_000)
    encoder.rows.clear()
    assert torch.allclose(drawn(), whole, rtol=1e-5)
    assert max(encoder.rows) < 200


PEAK = """
import re
import torch
from torch import nn
from kontrast.data import Memory, Split
from kontrast.evaluate import extract

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) // 1024

torch.set_num_threads(1)
encoder = nn.Sequential(nn.Conv2d(3, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
split = Split(Memory(torch.zeros(128, 3, 64, 64, dtype=torch.uint8)))
extract(encoder, split.subset(torch.arange(2)), mean=None, std=None)
before = peak()
extract(encoder, split, mean=None, std=None)
measured = peak()
extract(encoder, split, mean=None, std=None, batch_size=128)
print(measured - before, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_the_peak_is_held_down() -> None:
    """A row's activations are 4 MB: 128 at once make 512 MB, as 512 once did, and the budget is 64 MB."""
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    measured, at_once = map(int, done.stdout.split())
    assert measured < 200
    assert at_once > 350, "what batch_size still allows"
