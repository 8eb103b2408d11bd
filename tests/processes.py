"""Real processes over gloo on this machine, for tests of what ranks do together."""

from __future__ import annotations

import gc
import os
import socket
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
    try:
        mp.spawn(_worker, (check, world, port, str(folder)), nprocs=world)
    except Exception as error:
        failures = "\n".join(f.read_text() for f in sorted(folder.glob("failure-*.txt")))
        pytest.fail(f"{error}\n{failures}")


def _worker(rank: int, check: Check, world: int, port: int, folder: str) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
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
