"""Real processes over gloo on this machine, for tests of what ranks do together."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

Check = Callable[[int, int], None]  # (rank, world), defined at the top of a module so that processes find it


def run_on_ranks(check: Check, world: int, folder: Path) -> None:
    """``check(rank, world)`` on each of ``world`` processes; the test fails with the traceback of the one that did."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if sys.platform != "win32":  # one server imports the libraries, and every rank is a fork of it
        libraries = [
            "torch.distributed",
            "torch._dynamo",
            "pytest",
            "kontrast.train",
            "kontrast.losses",
        ]  # DDP loads it
        multiprocessing.set_forkserver_preload(libraries)
    arguments = (check, world, port, str(folder), dict(os.environ), os.getcwd())
    start = "spawn" if sys.platform == "win32" else "forkserver"
    try:
        mp.start_processes(_worker, arguments, nprocs=world, start_method=start)
    except Exception as error:
        failures = "\n".join(f.read_text() for f in sorted(folder.glob("failure-*.txt")))
        pytest.fail(f"{error}\n{failures}")


def _worker(
    rank: int, check: Check, world: int, port: int, folder: str, environment: dict[str, str], place: str
) -> None:
    os.environ.clear()
    os.chdir(place)
    os.environ |= environment | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    try:
        check(rank, world)
    except BaseException:
        Path(folder, f"failure-{rank}.txt").write_text(traceback.format_exc())
        os._exit(1)  # the others would wait for this one
    gc.collect()  # DDP's reducers hold on to the group
    dist.barrier()
    dist.destroy_process_group()
