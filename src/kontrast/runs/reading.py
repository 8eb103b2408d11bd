"""Reading a JSON file into its model: strict, or tolerant.

*Strict* (``messages=None``): a file that does not fit its model raises a ValueError that names the file and the field.
*Tolerant* (``messages`` is a list): the values that fit are kept, the others are left out, and each is described in a
line of ``messages``. Both modes return None for a file that does not exist.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from kontrast.files import RUN_AGAIN, read_regular
from kontrast.recipe import describe_error
from kontrast.registry import quoted
from kontrast.runs.schemas import METRICS_LINE, MetricsLine

Model = TypeVar("Model", bound=BaseModel)
MOST_MESSAGES = 5  # per file, then their number
_WRONG: Any = object()  # marks a value that is left out


def read_json_file(
    path: Path, model: type[Model], messages: list[str] | None = None, *, hint: str = RUN_AGAIN
) -> Model | None:
    """Read a JSON file into its model.

    Args:
        path: The file.
        model: Its model, from `kontrast.runs.schemas`.
        messages: None for strict reading; a list for tolerant reading, which adds a line for each problem.
        hint: What to do about a damaged file; the end of the error.

    Returns:
        The model; None if the file does not exist, or if nothing of it fits (tolerant).

    Raises:
        ValueError: Strict reading only: the file is damaged; the message names the file and the field.
    """
    try:
        values = json.loads(read_regular(path).decode())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError, OSError) as error:
        if messages is None:
            if isinstance(error, OSError):
                raise
            raise ValueError(f"{path} is damaged ({error}); {hint}") from error
        messages.append(describe_damage(path, error))
        return None
    if messages is None:
        return validate(model, values, path, hint=hint)
    return fit(model, values, path.name, messages)


def validate(model: type[Model], values: Any, path: Path, *, hint: str = RUN_AGAIN) -> Model:
    """Validate the content of a file strictly.

    Raises:
        ValueError: A value does not fit; the message names the file and the field.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{path} is damaged (it holds {type(values).__name__}, expected an object); {hint}")
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{path} is damaged ({describe_error(error.errors()[0])}); {hint}") from None


def fit(model: type[Model], values: Any, name: str, messages: list[str]) -> Model | None:
    """Keep what fits the model, and describe the rest in ``messages``.

    A list loses the items that do not fit; an item without a required field is left out whole.

    Args:
        model: The file's model.
        values: What the file holds.
        name: The file's name, for the messages.
        messages: A line is added for each wrong value, at most `MOST_MESSAGES` and their number.

    Returns:
        The model; None if nothing fits.

    >>> from kontrast.runs.schemas import State
    >>> messages = []
    >>> fit(State, {"step": 5, "error": [1]}, "run.json", messages).step, messages
    (5, ['run.json is damaged: error=[1]: must be a string'])
    """
    values, problems, result = copy.deepcopy(values), [], None
    while isinstance(values, dict):
        try:
            result = model.model_validate(values)
            break
        except ValidationError as error:
            items = error.errors()
            problems += [describe_error(item) for item in items]
            if any(not _mark_wrong(values, item["loc"], item["type"]) for item in items):
                break
            values = _without_marked(values)
    else:
        problems.append(f"it is {quoted(values)}: must be a mapping")
    messages += [f"{name} is damaged: {problem}" for problem in problems[:MOST_MESSAGES]]
    if len(problems) > MOST_MESSAGES:
        messages.append(f"{name} is damaged: {len(problems) - MOST_MESSAGES:,} more values do not fit")
    return result


def read_metrics_file(path: Path, messages: list[str] | None = None) -> list[MetricsLine]:
    """Read metrics.jsonl. A last line that a kill cut short is left out; a missing file is empty.

    Args:
        path: The file.
        messages: None for strict reading; a list for tolerant reading, which leaves damaged lines out.

    Raises:
        ValueError: Strict reading only: a line is damaged; the message names it.
    """
    try:
        lines = read_regular(path).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        if messages is None:
            raise
        messages.append(describe_damage(path, error))
        return []
    records, problems = [], []
    for number, line in enumerate(lines, 1):
        try:
            if line:
                records.append(METRICS_LINE.validate_python(json.loads(line)))
        except (ValueError, RecursionError) as error:
            reason = describe_error(error.errors()[0]) if isinstance(error, ValidationError) else str(error)
            if messages is None:
                raise ValueError(
                    f"line {number} of {path} is damaged ({reason}); if the run is not done, the same recipe again "
                    "restores it from the checkpoint, else put back a copy or remove the line"
                ) from error
            problems.append(f"line {number} of {path.name} is damaged: {reason}")
    if messages is not None:
        messages += problems[:MOST_MESSAGES]
        if len(problems) > MOST_MESSAGES:
            messages.append(f"{path.name} is damaged: {len(problems) - MOST_MESSAGES:,} more lines do not fit")
    return records


def describe_damage(path: Path, error: Exception) -> str:
    """Describe a file that cannot be read, without the path on this machine."""
    text = " ".join(str(error).split()).replace(str(path), path.name)
    return text if text.startswith(path.name) else f"{path.name} is damaged: {text}"


def _mark_wrong(values: Any, loc: Sequence[int | str], kind: str) -> bool:
    """Mark the value at ``loc``; for a missing field the mapping that lacks it. False if that is the whole file."""
    place, parent, key = values, None, None
    for part in loc[:-1] if kind == "missing" else loc:
        if place is _WRONG:
            return True
        if not isinstance(place, dict | list) or (isinstance(place, dict) and part not in place):
            continue  # pydantic's name of a validator, not a key of the file
        parent, key, place = place, part, place[part]  # type: ignore[index]
    if parent is None:
        return False
    parent[key] = _WRONG  # type: ignore[index]
    return True


def _without_marked(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_marked(value) for key, value in values.items() if value is not _WRONG}
    if isinstance(values, list):
        return [_without_marked(value) for value in values if value is not _WRONG]
    return values
