"""What the files of a run hold, so that a page need not ask of every value what it is: the rest is left out on reading.

And reading itself: a file that is not there is empty, one that is damaged is empty and named in ``troubles``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kontrast.files import read_regular
from kontrast.plain import (
    NOTHING,
    Shape,
    check_plain,
    checked,
    flag,
    from_file,
    items,
    number,
    record,
    scalar,
    text,
    whole,
)

Json = dict[str, Any]


def square(value: Any, place: str, wrong: list[str]) -> Any:
    """Counts ``[K, K]``."""
    rows = items(items(whole, all_or_none=True), all_or_none=True)(value, place, wrong)
    if rows is NOTHING:
        return NOTHING
    if any(row is None or len(row) != len(rows) for row in rows) or any(
        count is None or not 0 <= count < 2**40 for row in rows for count in row
    ):
        wrong.append(f"{place} is no table of counts, as many rows as columns")
        return NOTHING
    return rows


_WORDS, _NUMBERS, _NAMES = record({}, others=scalar), record({}, others=number), items(scalar, all_or_none=True)
_PART = record({"name": scalar})


def _view(value: Any, place: str, wrong: list[str]) -> Any:
    """A preset, or a list of operations."""
    return (items(_PART) if isinstance(value, list) else _PART)(value, place, wrong)


_MEASURE = record({"name": text, "value": number, "error": number, "theory": number, "meaning": text}, needed=["name"])
_CORNER = record({"num_classes": whole, "reachable": flag, "nonnegative": flag}, others=number)
_PROTOCOL = {"split": text, "simplex": text, "neighbours": record({"queries": text, "searched": number})}
GEOMETRY = record({
    "features": items(_MEASURE),
    "embeddings": items(_MEASURE),
    "simplex": record({"features": _CORNER, "embeddings": _CORNER}),
    "protocol": record(_PROTOCOL),
})  # fmt: skip
_COUNTED = {"train_rows": whole, "test_rows": whole, "per_class": items(number, all_or_none=True), "confusion": square}
_VALUED = {"value": number, "error": number, "top5": number, "class_names": _NAMES}
_RESULT = record({"name": text, "protocol": text, "split": text, **_COUNTED, **_VALUED}, needed=["name", "protocol"])
_START = {"result": _RESULT, "difference": record({"value": number, "error": number})}
RESULT = record({
    "results": items(_RESULT),
    "geometry": GEOMETRY,
    "note": text,
    "weights": text,
    "start": record(_START),
})  # fmt: skip
ANALYSIS = record({"geometry": GEOMETRY, "class_names": _NAMES})
STATE = record({
    **dict.fromkeys(("status", "error", "hash", "started", "finished"), text),
    **dict.fromkeys(("step", "total_steps", "seconds"), number),
    "data_file": scalar,
    "versions": _WORDS,
    "machine": _WORDS,
    "command": items(scalar),
    "files": record({}, others=text),
})  # fmt: skip
LINES = items(record({}, others=number, needed=["step"]))
RECIPE = record({
    "name": scalar,
    "about": scalar,
    "seed": whole,
    "data": record({"name": scalar, "validation": number, "digest": text}),
    "augment": record({"views": items(_view)}),
    "method": _PART,
    "encoder": _PART,
})  # fmt: skip


def read_recipe(path: Path) -> Json:
    """recipe.yaml as it stands, plain and bounded; what is none is a `ValueError` that names it."""
    found = from_file(path)
    try:
        check_plain(found)
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error})") from None
    return dict(found)


def read_json(path: Path, shape: Shape, troubles: list[str]) -> Json:
    """What of a JSON file has the shape."""
    try:
        found = json.loads(read_regular(path).decode())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError, RecursionError) as error:
        troubles.append(damaged(path, error))
        return {}
    return checked(found, shape, path.name, troubles) or {}


def read_lines(path: Path, troubles: list[str]) -> list[Json]:
    """The lines of metrics.jsonl; a last one that a kill cut short is left out."""
    try:
        found = [json.loads(line) for line in read_regular(path).decode(errors="replace").split("\n")[:-1] if line]
    except FileNotFoundError:
        return []
    except (ValueError, OSError, RecursionError) as error:
        troubles.append(damaged(path, error))
        return []
    return checked(found, LINES, path.name, troubles) or []


def damaged(path: Path, error: Exception) -> str:
    """What is said of a file that cannot be read, without where it lies on this machine."""
    said = " ".join(str(error).split()).replace(str(path), path.name)
    return said if said.startswith(path.name) else f"{path.name} is damaged: {said}"
