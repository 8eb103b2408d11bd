"""Devices and processes: where a run is computed, and what run.json says about it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import kontrast
from kontrast import distributed
from kontrast.runs import commit


def pick_device(name: str) -> torch.device:
    """Choose the device of ``run.device``.

    Args:
        name: ``auto`` is a GPU if there is one (each process its own), else the CPU; else a device of torch.

    Returns:
        The device.

    Raises:
        ValueError: There is no such device.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"run.device={name!r}: {reason}. Use auto, cpu, cuda, cuda:1 or mps") from error
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


@contextmanager
def processes(device: str) -> Iterator[torch.device]:
    """Pick the device; under torchrun also create the group of processes, and destroy it at the end."""
    started = distributed.launched()[1] > 1 and not distributed.active()
    place = pick_device(device)
    if started:
        dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    if place.type == "cuda":
        torch.cuda.set_device(place)
    try:
        yield place
    finally:
        if started:
            dist.destroy_process_group()


def machine(device: torch.device) -> dict[str, Any]:
    """Describe versions, machine and command, as `kontrast.runs.State` has them.

    >>> machine(torch.device("cpu"))["machine"]["device"]
    'cpu'
    """
    return {
        "versions": {
            "kontrast": kontrast.__version__,
            "commit": commit(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "machine": {
            "folder": os.getcwd(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "device": str(device),
            "processes": distributed.world_size(),
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }
