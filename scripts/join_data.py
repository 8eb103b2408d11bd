"""Join npz files of images into one, with so many training and test rows, the same number of each class.

    python scripts/join_data.py OUT.npz IN.npz … [--train 10000] [--test 10000]

Files have x_train [N, H, W, C], y_train [N], x_test, y_test, or one pair of them. Of each class the first rows are
taken, in the order of the files; a class that has fewer gives what it has. The result is in the order of the files too,
so the same files always give the same rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np


def first_of_each_class(labels: np.ndarray, count: int) -> np.ndarray:
    """The places of about ``count`` rows: of each class the first ``count / classes``, in order.

    >>> first_of_each_class(np.array([1, 1, 0, 1, 0, 0]), 4).tolist()
    [0, 1, 2, 4]
    """
    classes = np.unique(labels)
    if count % len(classes):
        raise ValueError(f"{count} rows: must be a multiple of the number of classes ({len(classes)})")
    places = [np.flatnonzero(labels == label)[: count // len(classes)] for label in classes]
    return np.sort(np.concatenate(places))


def join(files: list[Path], rows: dict[str, int]) -> dict[str, Any]:
    """The joined arrays; ``rows`` says how many of each split."""
    loaded = [np.load(file, allow_pickle=False) for file in files]
    joined: dict[str, Any] = {}
    for split, count in rows.items():
        parts = [found for found in loaded if f"x_{split}" in found]
        if not parts:
            raise ValueError(f"x_{split}: is in none of {', '.join(map(str, files))}")
        labels = np.concatenate([part[f"y_{split}"] for part in parts])
        chosen = first_of_each_class(labels, count)
        joined |= {
            f"x_{split}": np.concatenate([part[f"x_{split}"] for part in parts])[chosen],
            f"y_{split}": labels[chosen],
        }
    return joined


def main() -> None:
    """Read, join, write, and say what was written."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("files", type=Path, nargs="+")
    arguments.add_argument("--train", type=int, default=10_000)
    arguments.add_argument("--test", type=int, default=10_000)
    given = arguments.parse_args()
    try:
        joined = join(given.files, {"train": given.train, "test": given.test})
    except (ValueError, OSError) as error:
        arguments.error(str(error))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out, **joined)
    print(f"{given.out}: {len(joined['y_train']):,} training and {len(joined['y_test']):,} test rows")


if __name__ == "__main__":
    main()
