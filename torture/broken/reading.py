"""Files with one flipped bit, or cut at some byte, are read as kontrast reads them: an error that names them, or the
same content. Of each, hundreds of cases at random places."""

from __future__ import annotations

import hashlib
import os
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from broken.outcome import Row, harmed
from kontrast import data
from kontrast.data.cache import CachedImages, write_cache
from kontrast.train import checkpoint, load
from kontrast.train.folder import LEFT, RunFolder


@dataclass(frozen=True)
class Kind:
    """A file below a folder, and how its content is read."""

    name: str
    path: str
    read: Callable[[Path], Any]


def kinds(folder: Path, run: Path) -> list[Kind]:
    """Makes the files; ``run`` is a finished run, whose files are copied."""
    draw = torch.Generator().manual_seed(0)
    state = {"step": 3, "method": {"weight": torch.randn(60, 50, generator=draw)}, "sums": {"loss": 1.5}}
    checkpoint.save(folder / "last.pt", state)
    images = torch.randint(256, (40, 3, 12, 12), generator=draw, dtype=torch.uint8)
    write_cache(folder / "images.kimg", iter([images]), shape=(3, 12, 12), fingerprint="made of nothing")
    rows, labels = images.flatten(1).float().numpy(), np.arange(40) % 4
    np.savez(folder / "features.npz", x_train=rows, y_train=labels)
    np.savez_compressed(folder / "packed.npz", x_train=rows, y_train=labels)
    for name in (*LEFT, "run.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    return [
        Kind("checkpoint", "last.pt", lambda path: _bytes(checkpoint.load(path))),
        Kind("encoder.safetensors", "encoder.safetensors", lambda path: _bytes(load(path.parent).state_dict())),
        Kind("image cache", "images.kimg", lambda path: _bytes(CachedImages(path).read(torch.arange(40)))),
        Kind(".npz of data", "features.npz", lambda path: _set(data.load(path))),
        Kind(".npz, compressed", "packed.npz", lambda path: _set(data.load(path))),
        *(Kind("each file of a finished run, by its digest", name, _of_run) for name in LEFT),
    ]


def all_tried(folder: Path, run: Path, cases: int) -> list[Row]:
    """Every kind; those of one name are one row."""
    rows: dict[tuple[str, str], Row] = {}
    for seed, kind in enumerate(kinds(folder, run)):
        for row in tried(kind, folder, cases, seed):
            whole = rows.setdefault((row.what, row.fault), Row(row.what, row.fault))
            whole.counts.update(row.counts)
            whole.faults += row.faults
    return list(rows.values())


def tried(kind: Kind, folder: Path, cases: int, seed: int) -> list[Row]:
    """One file, flipped so often, and cut half as often."""
    path, draw = folder / kind.path, random.Random(seed)
    good, status = path.read_bytes(), path.stat()
    expected = kind.read(path)
    rows = []
    for harm, times in (("flipped", cases), ("cut", cases // 2)):
        row = Row(kind.name, "a bit flipped" if harm == "flipped" else "cut short")
        for _ in range(times):
            what = harmed(path, harm, draw)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as a failing disk does
            row.add(*_verdict(kind, path, expected, what))
            path.write_bytes(good)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        rows.append(row)
    return rows


def _verdict(kind: Kind, path: Path, expected: Any, what: str) -> tuple[str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            seen = kind.read(path)
    except (ValueError, OSError) as error:
        return ("told", "") if str(path) in str(error) else ("missed", f"{what}: {error}")
    except Exception as error:
        return "missed", f"{what}: {type(error).__name__}: {error}"
    return ("same", "") if seen == expected else ("missed", f"{what}: read as something else")


def _bytes(value: Any) -> str:
    """A digest of nested containers of tensors."""
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous()
        head = f"{flat.dtype} {list(flat.shape)}".encode()
        return hashlib.sha256(head + flat.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    if isinstance(value, dict):
        return hashlib.sha256(repr([(key, _bytes(value[key])) for key in value]).encode()).hexdigest()
    return repr(value)


def _set(found: data.DataSet) -> str:
    inputs = found.train.inputs.read(torch.arange(len(found.train)))
    return _bytes({"inputs": inputs, "labels": found.train.labels})


def _of_run(path: Path) -> bytes:
    if path.name in RunFolder(path.parent).changed():
        raise ValueError(f"{path} is not what the run wrote")
    return path.read_bytes()
