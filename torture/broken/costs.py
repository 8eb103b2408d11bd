"""What the checks cost: side by side with the same work without them, the quickest of several."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torchvision.models import resnet18

from kontrast import files
from kontrast.data.cache import PAGE, CachedImages, write_cache
from kontrast.train import checkpoint
from kontrast.train.metrics import Metrics
from kontrast.train.state import log_of


def measured(folder: Path, repeats: int = 7) -> list[tuple[str, str, str, str]]:
    """What, with the check, without it, and the difference."""
    return [*_checkpoint(folder, repeats), _log(folder, repeats), *_cache(folder, repeats), _finished(folder, repeats)]


def quickest(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Seconds of each, taken in turns, so that what else the machine does falls on all."""
    best = [float("inf")] * len(calls)
    for _ in range(repeats):
        for i, call in enumerate(calls):
            began = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - began)
    return best


def _row(what: str, checked: float, plain: float, *, unit: str = "ms") -> tuple[str, str, str, str]:
    scale = {"ms": 1e3, "µs": 1e6}[unit]
    cells = [f"{seconds * scale:,.1f} {unit}" for seconds in (checked, plain, checked - plain)]
    return what, cells[0], cells[1], cells[2]


def _checkpoint(folder: Path, repeats: int) -> list[tuple[str, str, str, str]]:
    weights = resnet18().state_dict()
    momentum = {name: torch.zeros_like(tensor) for name, tensor in weights.items()}
    state = {"method": weights, "optimiser": momentum}
    ours, previous, plain = folder / "last.pt", folder / "previous.pt", folder / "plain.pt"

    def as_before() -> None:
        buffer = io.BytesIO()
        torch.save(state, buffer)
        files.write_atomically(plain, buffer.getvalue())

    saved = quickest(repeats, lambda: checkpoint.save(ours, state, previous=previous), as_before)
    loaded = quickest(
        repeats, lambda: checkpoint.load(ours), lambda: torch.load(plain, map_location="cpu", weights_only=True)
    )
    size = ours.stat().st_size / 1e6
    return [
        _row(f"writing a checkpoint of ResNet-18 with momentum, {size:.0f} MB, keeping the one before", *saved),
        _row("reading it", *loaded),
    ]


def _log(folder: Path, repeats: int) -> tuple[str, str, str, str]:
    """The copy of the log that a checkpoint holds."""
    metrics = Metrics(folder / "metrics.jsonl", 0)
    draw = np.random.default_rng(0)
    for step in range(10_000):
        metrics.append({"step": step, "epoch": step / 390, "loss": draw.random(), "lr": draw.random()})
    took, nothing = quickest(repeats, metrics.packed, lambda: None)
    packed = torch.frombuffer(bytearray(metrics.packed()), dtype=torch.uint8)
    assert log_of({"log": packed}) == metrics.path.read_bytes()
    metrics.close()
    return _row(f"a log of 10,000 lines in the checkpoint, {len(packed) / 1e6:.2f} MB", took, nothing)


def _cache(folder: Path, repeats: int) -> list[tuple[str, str, str, str]]:
    rows = []
    for side, count in ((32, 20_000), (224, 400)):
        path, shape = folder / f"{side}.kimg", (3, side, side)
        draw = torch.Generator().manual_seed(0)
        chunk = torch.randint(256, (count, *shape), generator=draw, dtype=torch.uint8)
        write_cache(path, iter([chunk]), shape=shape, fingerprint="noise")
        images, mapped = CachedImages(path), np.memmap(path, np.uint8, "r", PAGE, (count, *shape))
        some = torch.randint(count, (256,), generator=draw)
        checked, plain = quickest(repeats, partial(images.read, some), partial(mapped.take, some.numpy(), axis=0))
        rows.append(_row(f"reading an image of {side}×{side} from the cache", checked / 256, plain / 256, unit="µs"))
    return rows


def _finished(folder: Path, repeats: int) -> tuple[str, str, str, str]:
    path = folder / "encoder.safetensors"
    path.write_bytes(os.urandom(100_000_000))
    took, nothing = quickest(repeats, lambda: files.digest(path), lambda: None)
    return _row("digests when a run is done, or found done, a 100 MB", took, nothing)
