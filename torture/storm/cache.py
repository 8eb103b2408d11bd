"""A folder of images, read through a cache file: ``python cache.py INPUTS OUT``."""

from __future__ import annotations

import sys
from pathlib import Path

from kontrast import data

if __name__ == "__main__":
    found = data.load(Path(sys.argv[1]) / "many", size=32, cache=sys.argv[2])
    print(len(found.train))
