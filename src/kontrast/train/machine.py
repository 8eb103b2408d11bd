"""Where a run was computed, and with which versions: for run.json."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import kontrast
from kontrast import distributed
from kontrast.runs import commit


def machine(device: torch.device) -> dict[str, Any]:
    """Versions, machine and command, as `kontrast.runs.State` has them.

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
