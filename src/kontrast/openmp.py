"""How long OpenMP's threads wait awake for each other, in the processes that kontrast starts.

Torch on a CPU runs hundreds of short parallel loops a step. At the end of each a thread waits for the other ones, and
for the next loop to begin. By default it waits awake (it spins) for about ten milliseconds, which is quickest as long
as every thread has a core of its own. Beside other work it is not: the scheduler takes the core from one thread, the
others spin until it has it back, and what they spin away counts as their share of the machine. Threads that sleep at
once (``OMP_WAIT_POLICY=passive``) leave the core to whoever has work, but waking them costs time after every loop.

    SPINS  looks at the other threads before a thread sleeps; one takes about 30 ns

Half of the pauses between two loops of a training step are shorter than the 0.03 ms that this makes; after it a
thread gives up its core, long before the milliseconds are over that the scheduler takes cores away for. Beside one
and two busy processes 1,000 did as well as sleeping at once, on a quiet machine as well as spinning on; 10,000 lost
beside others (`benchmarks/training.py` measures all three). The number of threads is another matter and stays as it
is: it changes bits, this does not.

The runtime reads the variable when it is loaded, with torch. So it is set at the start of the commands and in the
environment of worker processes, and never by importing kontrast or by `kontrast.run`: those run in somebody else's
process. Whoever has set one of `VARIABLES` has decided, and nothing is set.

Torch's own wheels for Linux bring GNU's runtime, libgomp, also for MKL; GOMP_SPINCOUNT is its variable. Other runtimes
(Intel's, LLVM's) ignore it: there OMP_WAIT_POLICY=passive or KMP_BLOCKTIME are for the user to set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

SPINS = 1000
VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def wait_policy(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables to add to the environment of a process that is about to load torch.

    Args:
        environment: The process's environment.

    Returns:
        GOMP_SPINCOUNT, or nothing if the environment has one of `VARIABLES` already.

    >>> wait_policy({"PATH": "/bin"})
    {'GOMP_SPINCOUNT': '1000'}
    >>> wait_policy({"OMP_WAIT_POLICY": "active"})
    {}
    """
    return {} if any(name in environment for name in VARIABLES) else {"GOMP_SPINCOUNT": str(SPINS)}


def set_wait_policy() -> None:
    """Set `wait_policy` in this process; do nothing if torch is loaded, which is too late and somebody else's process.

    For the start of a process that is ours: a command, a worker.
    """
    if "torch" not in sys.modules:
        os.environ.update(wait_policy(os.environ))
