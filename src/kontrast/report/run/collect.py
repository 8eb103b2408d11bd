"""A run's folder as a record: everything the page draws, read from files and nothing else.

A file that is not there leaves its part empty; one that is damaged does too, and is named in ``troubles``, as is a
value of another type than it should be. So a run that has only begun, or that failed, has a record as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from kontrast import analysed
from kontrast.files import RUN_AGAIN, changed, open_regular
from kontrast.plain import MOST_BYTES, checked
from kontrast.report import _shapes as shapes
from kontrast.report._shapes import read_json, read_lines
from kontrast.runs import Examination
from kontrast.runs import Run as Folder
from kontrast.runs.reading import read_json_file

Json = shapes.Json
MOST_OTHERS = 200  # runs of the same folder that are looked at


@dataclass(frozen=True)
class Other:
    """Another run of the same data: where its features stand."""

    name: str
    uniformity: float
    tolerance: float


@dataclass(frozen=True)
class Run:
    """What a run's folder says."""

    path: Path
    recipe: Json
    recipe_text: str = ""
    state: Json = field(default_factory=dict)  # run.json
    lines: Sequence[Json] = ()  # metrics.jsonl
    result: Json = field(default_factory=dict)
    geometry: Json = field(default_factory=dict)
    class_names: Sequence[str] = ()
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    findings: Sequence[Json] | None = None  # doctor.json; None: not examined
    others: Sequence[Other] = ()
    troubles: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The recipe's."""
        return str(self.recipe.get("name", self.path.name))

    @property
    def shown_path(self) -> str:
        """The folder as a command has it, without where it lies on this machine."""
        full = self.path.resolve()
        return f"{full.parent.name}/{full.name}"

    @property
    def status(self) -> str:
        """training, evaluating, done, interrupted or failed; unknown without run.json."""
        return str(self.state.get("status", "unknown"))

    @property
    def results(self) -> list[Json]:
        """A record a protocol."""
        return [record for record in self.result.get("results") or [] if isinstance(record.get("value"), int | float)]

    @property
    def steps(self) -> list[Json]:
        """The lines with a loss."""
        return [line for line in self.lines if "loss" in line]

    @property
    def monitors(self) -> list[Json]:
        """The lines with what the monitors saw."""
        return [line for line in self.lines if any(key.startswith("monitor/") for key in line)]

    def class_name(self, label: int) -> str:
        """A class's name, or its number."""
        return self.class_names[label] if 0 <= label < len(self.class_names) else str(label)

    def measure(self, where: str, name: str) -> Json | None:
        """A line of the geometry of ``features`` or ``embeddings`` by the beginning of its name."""
        lines = self.geometry.get(where) or []
        return next((line for line in lines if line["name"].startswith(name) and line.get("value") is not None), None)


def collect(path: Path) -> Run:
    """Reads the folder of a run.

    >>> collect(Path("."))
    Traceback (most recent call last):
        ...
    ValueError: . is not a run's folder: it has no recipe.yaml
    """
    if not (path / "recipe.yaml").exists():
        raise ValueError(f"{path} is not a run's folder: it has no recipe.yaml")
    troubles: list[str] = []
    text, recipe = _recipe(path / "recipe.yaml", troubles)
    state = read_json(path / "run.json", shapes.STATE, troubles)
    troubles += [f"{name} is not what the run wrote; {RUN_AGAIN}" for name in _changed(path, state)]
    result = read_json(path / "result.json", shapes.RESULT, troubles)
    analysis = read_json(path / "analysis.json", shapes.ANALYSIS, troubles)
    examination = read_json_file(Folder(path).findings_file, Examination, troubles)
    names = analysis.get("class_names") or next((r.get("class_names") for r in result.get("results") or []), None)
    return Run(
        path=path,
        recipe=recipe,
        recipe_text=text,
        state=state,
        lines=read_lines(path / "metrics.jsonl", troubles),
        result=result,
        geometry=analysis.get("geometry") or result.get("geometry") or {},
        class_names=[str(name) for name in names or []],
        arrays=_arrays(path / "analysis.npz", troubles),
        findings=None if examination is None else [finding.model_dump() for finding in examination.findings],
        others=_others(path, recipe),
        troubles=troubles,
    )


def _recipe(path: Path, troubles: list[str]) -> tuple[str, Json]:
    """Its text, and what of it the page asks for."""
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES).decode(errors="replace")
    except (ValueError, OSError) as error:
        troubles.append(shapes.damaged(path, error))
        return "", {}
    try:
        return text, checked(shapes.read_recipe(path), shapes.RECIPE, path.name, troubles) or {}
    except ValueError as error:
        troubles.append(shapes.damaged(path, error))
        return text, {}


def _changed(path: Path, state: Json) -> list[str]:
    """Files of a finished run that are there, and no longer what it wrote."""
    digests = (state.get("files") if state.get("status") == "done" else None) or {}
    there = {file.name for file in path.iterdir() if file.is_file()}
    return changed(path, {name: was for name, was in digests.items() if name in there})


def _arrays(path: Path, troubles: list[str]) -> dict[str, NDArray[Any]]:
    strange: list[str] = []
    try:
        return analysed.read(path, strange)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        troubles.append(shapes.damaged(path, error))
        return {}
    finally:
        troubles += [f"{path.name}: {what}" for what in strange]


_DATA = re.compile(r"^data:\n(?:  .*\n)*?  name: (.*)$", re.MULTILINE)
_DIGEST = re.compile(r"^  digest: ['\"]?([0-9a-f]{8,})", re.MULTILINE)


def _others(path: Path, recipe: Json) -> list[Other]:
    """Runs beside this one that learned from the same data; the recipe's text tells, which is quicker than YAML."""
    data = str((recipe.get("data") or {}).get("name"))
    content = (recipe.get("data") or {}).get("digest")
    found: list[Other] = []
    for folder in sorted(path.resolve().parent.iterdir()):
        if folder == path.resolve() or not (folder / "analysis.json").is_file() or len(found) == MOST_OTHERS:
            continue
        try:
            with open_regular(folder / "recipe.yaml") as file:
                text = file.read(MOST_BYTES).decode()
        except (OSError, ValueError):
            continue  # it is only scenery
        named, digest = _DATA.search(text), _DIGEST.search(text)
        if (None if digest is None else digest[1]) != content:
            continue
        if named is not None and named[1].strip("'\"") == data:
            lines = read_json(folder / "analysis.json", shapes.ANALYSIS, []).get("geometry") or {}
            values = {line["name"]: line.get("value") for line in lines.get("features") or []}
            u, t = values.get("uniformity, t = 2"), values.get("tolerance")
            found += [] if u is None or t is None else [Other(folder.name, float(u), float(t))]
    return found
