"""Run folders made of files alone: what a comparison reads, with the numbers that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kontrast.report.page import Figure, Fold, Mark, Page, Part, Table, figures

CLASSES = ["sock", "shoe", "hat"]
LABELS = np.arange(30) % 3


def write_run(
    folder: Path,
    *,
    name: str = "tcl-mini",
    encoder: str | None = None,
    seed: int = 0,
    value: float = 0.8,
    error: float | None = 0.01,
    protocol: str = "kNN, k = 20",
    method: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    right: Sequence[bool] | None = None,
    status: str = "done",
    why: str | None = None,
    chance: float = 5.0,
    class_names: Sequence[str] = CLASSES,
    simplex: Mapping[str, Any] | None = None,
) -> Path:
    """A folder with every file that the page reads; ``right`` says which of the 30 test rows are predicted well.

    Another name is another encoder, unless ``encoder`` says otherwise: a name alone makes no other recipe.
    """
    folder.mkdir(parents=True)
    recipe = {
        "name": name,
        "about": "made up",
        "seed": seed,
        "data": {"name": "mini", "test_limit": None, **(data or {})},
        "augment": {"views": [{"name": "crop-flip", "padding": 4}]},
        "encoder": {"name": encoder or f"net-{name}"},
        "method": {"name": "tcl", "temperature": 0.1, **(method or {})},
        "train": {"epochs": 1},
        "run": {"out": str(folder.parent)},
    }
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    state = {"status": status, "error": why, "seed": seed, "step": 20, "seconds": 12.5, "data_file": None}
    (folder / "run.json").write_text(json.dumps({**state, "versions": {"kontrast": "0.1.0", "commit": None}}))
    lines: list[dict[str, Any]] = [
        {"step": step, "loss": chance - step / 10, "chance": chance, "bound": 1.0} for step in range(1, 21)
    ]
    lines += [{"step": step, "monitor/knn20": 0.5 + step / 100, "monitor/uniformity": -1.0} for step in (10, 20)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if status != "done":
        return folder
    accuracy = value if right is None else float(np.mean(right))
    record = {
        "name": "knn20",
        "protocol": protocol,
        "value": accuracy,
        "error": error,
        "per_class": [accuracy, accuracy, None],
        "class_names": list(class_names),
        "split": "test",
        "test_rows": len(LABELS),
    }
    lines_of = [
        {"name": "uniformity, t = 2", "value": -2.0, "error": 0.01, "theory": -3.9, "meaning": "uniform"},
        {"name": "tolerance", "value": 0.5, "error": 0.01, "theory": 1.0, "meaning": "each class one point"},
    ]
    geometry = {
        "embeddings": lines_of,
        "simplex": {"embeddings": {"num_classes": 3, "optimum": -0.5, **(simplex or {})}},
    }
    (folder / "result.json").write_text(json.dumps({"results": [record], "geometry": geometry}))
    (folder / "analysis.json").write_text(json.dumps({"geometry": geometry, "class_names": list(class_names)}))
    hits = np.ones(len(LABELS), bool) if right is None else np.asarray(right, bool)
    draw = np.random.default_rng(seed)
    np.savez(
        folder / "analysis.npz",
        predictions=np.where(hits, LABELS, (LABELS + 1) % 3),
        labels=LABELS,
        between_means=draw.uniform(-0.6, 0.2, 3),
        within=draw.uniform(0.6, 1.0, 30),
    )
    return folder


def parts(page: Page, title: str) -> list[Part]:
    """Of a section, folded ones too."""

    def inside(found: list[Part]) -> list[Part]:
        return [p for part in found for p in (inside(list(part.parts)) if isinstance(part, Fold) else [part])]

    return inside([part for section in page.sections if section.title == title for part in section.parts])


def tables(page: Page, title: str) -> list[Table]:
    return [part for part in parts(page, title) if isinstance(part, Table)]


def words(table: Table) -> list[list[str]]:
    return [[cell.text if isinstance(cell, Mark) else cell for cell in row] for row in table.rows]


def figure(page: Page, name: str) -> Figure:
    return next(one for one in figures(page) if one.name == name)


def rows(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The data of every layer."""
    inside = [row for layer in spec.get("layer", []) for row in rows(layer)]
    named = [row for values in spec.get("datasets", {}).values() for row in values]
    return [*spec.get("data", {}).get("values", []), *named, *inside]
