"""What must be the same after any number of kills: every file, to the bit, but for what the clock says.

Each function takes the folder of an undisturbed run and that of a killed one, and gives the differences in words; a
temporary file, or a line of metrics too many or too few, is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CLOCK = {"time", "images_per_second", "waiting", "seconds", "started", "finished", "updated", "created"}
WORDS = {"command", "folder", "machine", "versions"}  # where and by which command it was run
HOURS = re.compile(r"; [\d.]+ hours$", re.MULTILINE)  # what a sweep took, below its table
NOT_COMPARED = ("log.txt", "report.html", "run.json", "doctor.json")  # of runs: there, and not the same


def runs(whole: Path, killed: Path) -> list[str]:
    """Of two folders with run folders in them, and the tables and charts of a sweep."""
    found = [f"{path.name} was left behind" for path in killed.rglob("*") if _is_temporary(path)]
    found += _names(whole, killed)
    if not found:
        for path in _files(whole):
            found += _file(whole / path, killed / path)
    return found


def caches(whole: Path, killed: Path) -> list[str]:
    """Two folders with a cache file: headers but for the time, every pixel, and nothing beside it."""
    from kontrast.data.cache import CachedImages

    found = _names(whole, killed)
    if not found:
        (name,) = _files(whole)
        a, b = CachedImages(whole / name, verify=True), CachedImages(killed / name, verify=True)
        headers = [{k: v for k, v in images.header.items() if k != "written"} for images in (a, b)]
        if headers[0] != headers[1]:
            found.append(f"{name}: headers differ")
    return found


def _is_temporary(path: Path) -> bool:
    return path.suffix == ".part" or path.name.startswith((".part-", ".seen-")) or path.suffix == ".tmp"


def _files(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and p.name != "log.txt")


def _names(whole: Path, killed: Path) -> list[str]:
    expected, seen = set(_files(whole)), set(_files(killed))
    found = [f"{name} is missing" for name in sorted(expected - seen)]
    return found + [f"{name} should not be there" for name in sorted(seen - expected)]


def _file(a: Path, b: Path) -> Iterator[str]:
    name = f"{a.parent.name}/{a.name}"
    if a.name == "metrics.jsonl":
        yield from _metrics(name, a, b)
    elif a.suffix == ".pt":
        yield from _checkpoint(name, a, b)
    elif a.suffix == ".npz":
        yield from _arrays(name, a, b)
    elif a.suffix == ".json" and a.name not in NOT_COMPARED:
        yield from _equal(name, _timeless(json.loads(a.read_text())), _timeless(json.loads(b.read_text())))
    elif a.name == "recipe.yaml":
        yield from _equal(name, _placeless(a), _placeless(b))
    elif a.name == "run.json":
        statuses = [json.loads(path.read_text()).get("status") for path in (a, b)]
        if statuses != ["done", "done"]:
            yield f"{name}: status {statuses}"
    elif a.name == "table.md":
        yield from _equal(name, HOURS.sub("", a.read_text()), HOURS.sub("", b.read_text()))
    elif a.name not in NOT_COMPARED and a.read_bytes() != b.read_bytes():
        yield f"{name} differs"


def _metrics(name: str, a: Path, b: Path) -> Iterator[str]:
    lines = [path.read_text().splitlines() for path in (a, b)]
    if len(lines[0]) != len(lines[1]):
        yield f"{name}: {len(lines[1])} lines; expected {len(lines[0])}"
    for i, (one, other) in enumerate(zip(*lines, strict=False), 1):
        if _timeless(json.loads(one)) != _timeless(json.loads(other)):
            yield f"{name}: line {i} differs"
            return


def _checkpoint(name: str, a: Path, b: Path) -> Iterator[str]:
    """All but what is of the log (its lines tell the time) and the random states, which nobody draws from."""
    from kontrast.train import checkpoint

    one, other = (checkpoint.load(path) for path in (a, b))
    for part in ("offset", "log", "random"):
        one.pop(part, None)
        other.pop(part, None)
    yield from _equal(name, one, other)


def _arrays(name: str, a: Path, b: Path) -> Iterator[str]:
    import numpy as np

    with np.load(a, allow_pickle=False) as one, np.load(b, allow_pickle=False) as other:
        if one.files != other.files:
            yield f"{name}: arrays {other.files}; expected {one.files}"
            return
        for key in one.files:
            if one[key].dtype != other[key].dtype or one[key].tobytes() != other[key].tobytes():
                yield f"{name}: {key} differs"


def _equal(where: str, a: Any, b: Any) -> Iterator[str]:
    """Nested containers, tensors to the bit."""
    if type(a) is not type(b):
        yield f"{where}: {type(b).__name__}; expected {type(a).__name__}"
    elif isinstance(a, dict):
        if a.keys() != b.keys():
            yield f"{where}: keys {sorted(map(str, b))}; expected {sorted(map(str, a))}"
            return
        for key in a:
            yield from _equal(f"{where}: {key}", a[key], b[key])
    elif isinstance(a, list | tuple):
        if len(a) != len(b):
            yield f"{where}: {len(b)} entries; expected {len(a)}"
            return
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _equal(f"{where}: {i}", x, y)
    elif hasattr(a, "numpy"):
        if a.dtype != b.dtype or a.shape != b.shape or a.numpy().tobytes() != b.numpy().tobytes():
            yield f"{where} differs"
    elif a != b and not (a != a and b != b):
        yield f"{where}: {b!r}; expected {a!r}"


def _placeless(recipe: Path) -> Any:
    """All but the folder that run folders lie in."""
    import yaml

    read = yaml.safe_load(recipe.read_text())
    read["run"].pop("out")
    return read


def _timeless(record: Any) -> Any:
    if isinstance(record, dict):
        return {key: _timeless(value) for key, value in record.items() if key not in CLOCK | WORDS}
    return [_timeless(value) for value in record] if isinstance(record, list) else record
