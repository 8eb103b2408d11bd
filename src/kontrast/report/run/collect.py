"""A run's folder as a record: everything the page draws, read from files and nothing else.

A file that is not there leaves its part empty; one that is damaged does too, and is named in ``troubles``. So a run
that has only begun, or that failed, has a record as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from numpy.typing import NDArray

from kontrast.files import RUN_AGAIN, changed, read_npz

Json = dict[str, Any]
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
        return [record for record in self.result.get("results", []) if isinstance(record.get("value"), int | float)]

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
        return next((line for line in lines if line["name"].startswith(name) and line["value"] is not None), None)


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
    text = (path / "recipe.yaml").read_text(encoding="utf-8", errors="replace")
    try:
        recipe = yaml.safe_load(text)
    except yaml.YAMLError as error:
        recipe = None
        troubles.append(f"recipe.yaml is damaged: {str(error).splitlines()[0]}")
    state = _json(path / "run.json", troubles)
    troubles += [f"{name} is not what the run wrote; {RUN_AGAIN}" for name in _changed(path, state)]
    result = _json(path / "result.json", troubles)
    analysis = _json(path / "analysis.json", troubles)
    findings = _json(path / "doctor.json", troubles).get("findings")
    names = analysis.get("class_names") or next((r.get("class_names") for r in result.get("results", [])), None)
    recipe = recipe if isinstance(recipe, dict) else {}
    return Run(
        path=path,
        recipe=recipe,
        recipe_text=text,
        state=state,
        lines=_lines(path / "metrics.jsonl", troubles),
        result=result,
        geometry=analysis.get("geometry") or result.get("geometry") or {},
        class_names=[str(name) for name in names or []],
        arrays=_arrays(path / "analysis.npz", troubles),
        findings=findings if isinstance(findings, list) else None,
        others=_others(path, recipe),
        troubles=troubles,
    )


def _json(path: Path, troubles: list[str]) -> Json:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        troubles.append(f"{path.name} is damaged: {error}")
        return {}
    return found if isinstance(found, dict) else {}


def _changed(path: Path, state: Json) -> list[str]:
    """Files of a finished run that are there, and no longer what it wrote."""
    digests = state.get("files") if state.get("status") == "done" else None
    return [name for name in changed(path, digests) if (path / name).exists()] if isinstance(digests, dict) else []


def _lines(path: Path, troubles: list[str]) -> list[Json]:
    """A last line that a kill cut short is left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        return [json.loads(line) for line in lines if line]
    except FileNotFoundError:
        return []
    except ValueError as error:
        troubles.append(f"{path.name} is damaged: {error}")
        return []


def _arrays(path: Path, troubles: list[str]) -> dict[str, NDArray[Any]]:
    try:
        return read_npz(path, RUN_AGAIN)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        troubles.append(str(error).replace(str(path), path.name))
        return {}


_DATA = re.compile(r"^data:\n(?:  .*\n)*?  name: (.*)$", re.MULTILINE)


def _others(path: Path, recipe: Json) -> list[Other]:
    """Runs beside this one that learned from the same data; the recipe's text tells, which is quicker than YAML."""
    data = str((recipe.get("data") or {}).get("name"))
    found: list[Other] = []
    for folder in sorted(path.resolve().parent.iterdir()):
        if folder == path.resolve() or not (folder / "analysis.json").exists() or len(found) == MOST_OTHERS:
            continue
        try:
            named = _DATA.search((folder / "recipe.yaml").read_text(encoding="utf-8"))
            if named is None or named[1].strip("'\"") != data:
                continue
            lines = json.loads((folder / "analysis.json").read_text(encoding="utf-8"))["geometry"]["features"]
            values = {line["name"]: line["value"] for line in lines}
            found.append(Other(folder.name, float(values["uniformity, t = 2"]), float(values["tolerance"])))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it is only scenery
    return found
