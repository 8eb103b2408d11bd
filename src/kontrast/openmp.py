"""How long OpenMP's threads wait awake for each other, in the processes that kontrast starts.

Torch on a CPU runs hundreds of short parallel loops in a step. At the end of each a thread waits for the others, and
for the next loop. By default it waits awake (it spins) for about ten milliseconds. That is fastest if every thread has
a core of its own. If other processes are busy it is not: the scheduler takes the core from one thread, the others spin
until it has one again, and the time they spin counts as their share of the machine. Threads that sleep at once
(``OMP_WAIT_POLICY=passive``) leave the core to others, but waking them costs time after every loop.

    SPINS  how often a thread looks at the others before it sleeps; once takes about 30 ns

Half of the pauses between two loops of a training step are shorter than these 0.03 ms; after them a thread gives up its
core, long before the scheduler would take it. With one and two other busy processes 1,000 was as fast as sleeping at
once, and on a quiet machine as fast as spinning on; 10,000 was slower with others (`benchmarks/training.py` measures
all three). The number of threads is another matter and does not change: it changes bits, this does not.

The runtime reads the variable when it is loaded, with torch. So it is set at the start of the commands and in the
environment of worker processes, and never by importing kontrast or by `kontrast.run`, which run in somebody else's
process. If the user has set one of `VARIABLES`, nothing is set.

Torch's own wheels for Linux bring GNU's runtime, libgomp, also for MKL; GOMP_SPINCOUNT is its variable. Other runtimes
(Intel's, LLVM's) ignore it: there the user can set OMP_WAIT_POLICY=passive or KMP_BLOCKTIME.
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
    """Set `wait_policy` in this process, at the start of a command or a worker; nothing if torch is loaded."""
    if "torch" not in sys.modules:
        os.environ.update(wait_policy(os.environ))
