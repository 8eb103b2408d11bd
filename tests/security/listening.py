"""A process that may not reach any network, and is heard if it tries.

Two guards. Every Python process in it has an audit hook that notes and refuses each connection, name looked up and
datagram, whatever library asks (sockets of the machine's own, AF_UNIX, are none). And where the kernel allows it, it
runs in a network of its own without any interface (``unshare -rn``): compiled libraries are cut off too.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HOOK = """
import os, sys

def _hear(event, arguments, _note=os.environ.get("HEARD")):
    if _note and event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        import socket
        if event in ("socket.connect", "socket.sendto") and arguments[0].family == socket.AF_UNIX:
            return
        with open(_note, "a") as file:
            file.write(f"{event} {arguments[1:] if event == 'socket.connect' else arguments}\\n")
        raise OSError(101, "Network is unreachable (denied by the test)")

sys.addaudithook(_hear)
"""


class Heard(NamedTuple):
    status: int
    said: str  # on both streams
    tried: list[str]  # what it asked of the network


@functools.cache
def cut_off() -> list[str]:
    """The words before a command that leave it without a network; none where that is not allowed."""
    unshare = shutil.which("unshare")
    words = [unshare or "unshare", "-rn"]
    allowed = unshare and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if allowed else []


def run(folder: Path, *words: str, alone: bool = True) -> Heard:
    """``python WORDS`` in ``folder``, without a network (``alone`` False: by the first guard only)."""
    hooks, note = folder / "hooks", folder / "heard.txt"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(HOOK)
    note.write_text("")
    kept = os.pathsep.join([str(hooks), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": kept, "HEARD": str(note), "OMP_NUM_THREADS": "1"}
    call = [*(cut_off() if alone else []), sys.executable, *words]
    done = subprocess.run(call, cwd=folder, env=env, capture_output=True, text=True, check=False)
    return Heard(done.returncode, done.stdout + done.stderr, note.read_text().splitlines())
