"""Run folders written by hand: all that a run leaves, in milliseconds, with whatever names and numbers a test needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast.files import write_json


def folder(
    path: Path,
    *,
    classes: Sequence[str] = ("cat", "dog", "owl"),
    per_class: int = 8,
    images: bool = True,
    labels: bool = True,
    status: str = "done",
    about: str = "A run made by hand",
    **state: Any,
) -> Path:
    """Features of each class around an axis of its own; every fifth row of a class is taken for the next one."""
    path.mkdir(parents=True)
    draw = np.random.default_rng(0)
    count, k = per_class * len(classes), len(classes)
    truth = np.arange(count) % k
    guess = np.where(np.arange(count) // k % 5 == 4, (truth + 1) % k, truth)
    features = np.eye(k, 16 + k)[truth] + 0.2 * draw.standard_normal((count, 16 + k))
    confusion = np.zeros((k, k), dtype=int)
    np.add.at(confusion, (truth, guess), 1)
    recipe = f"name: by-hand\nabout: {json.dumps(about)}\nseed: 3\ndata:\n  name: pets\n"
    recipe += "method:\n  name: supcon\ntrain:\n  epochs: 1\n"
    (path / "recipe.yaml").write_text(recipe)
    versions = {"kontrast": "0.1.0", "torch": "2.0"}
    machine = {"folder": "/home/somebody", "device": "cpu", "cores": 2}
    command = ["__main__.py", "train", "by hand.yaml"]
    run = {"status": status, "seed": 3, "step": 40, "total_steps": 40, "seconds": 12.0, "versions": versions}
    write_json(path / "run.json", {**run, "machine": machine, "command": command, **state})
    lines: list[dict[str, Any]] = [
        {"step": s, "loss": 5.0 - s / 20, "lr": 0.1, "chance": 5.5, "bound": 2.5} for s in range(10, 50, 10)
    ]
    lines.append({"step": 40, "monitor/knn20": 0.8, "monitor/uniformity": -2.0, "monitor/entropy_share": 0.7})
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arrays: dict[str, Any] = {"features": features.astype(np.float32), "rows": np.arange(count)}
    results: list[dict[str, Any]] = []
    if labels:
        value = float(np.mean(truth == guess))
        record = {"name": "knn20", "protocol": "kNN, k = 20", "value": value, "error": 0.05, "top5": None}
        record |= {"per_class": (np.diag(confusion) / per_class).tolist(), "confusion": confusion.tolist()}
        record |= {"split": "test", "train_rows": 90, "test_rows": count, "class_names": list(classes)}
        results.append(record)
        arrays |= {
            "labels": truth,
            "predictions": guess,
            "query_rows": np.array([0, 1]),
            "neighbours": np.zeros((2, 5), dtype=np.int64),
        }
        arrays["neighbour_labels"] = np.array([[0, 0, 0, 0, 0], [1, 0, 1, 1, 0]])
        means = np.full(max(k * (k - 1) // 2, 1), -0.2)
        arrays |= {"between_means": means, "within": np.linspace(0.8, 1, 50)}
    arrays |= {"positive": np.full(count, 0.9), "nearest": np.full((count, 10), 0.4)}
    if images:
        arrays["thumbnail_rows"] = np.arange(count)
        arrays["thumbnails"] = draw.integers(0, 255, (count, 3, 8, 8), dtype=np.uint8)
        arrays["sample_images"] = draw.integers(0, 255, (2, 3, 8, 8), dtype=np.uint8)
        arrays["sample_views"] = draw.integers(0, 255, (2, 2, 3, 8, 8), dtype=np.uint8)
        if labels:
            arrays["query_images"] = draw.integers(0, 255, (2, 3, 8, 8), dtype=np.uint8)
            arrays["neighbour_images"] = draw.integers(0, 255, (2, 5, 3, 8, 8), dtype=np.uint8)
    np.savez(path / "analysis.npz", **arrays)
    measures = [
        {"name": "uniformity, t = 2", "value": -2.1, "error": 0.1, "theory": -3.9, "meaning": "uniform on the sphere"},
        {"name": "tolerance", "value": 0.6, "error": 0.1, "theory": 1.0, "meaning": "each class one point"},
    ]
    simplex = {name: {"optimum": -1 / max(k - 1, 1), "num_classes": k} for name in ("features", "embeddings")}
    geometry = {"features": measures if labels else measures[:1], "embeddings": measures[:1], "simplex": simplex}
    geometry["protocol"] = {"split": "test"}
    names = list(classes) if labels else None
    write_json(path / "analysis.json", {"geometry": geometry, "class_names": names, "kind": "image"})
    if status == "done":
        note = {} if labels else {"note": "not evaluated: the training rows have no labels"}
        write_json(path / "result.json", {"recipe": "by-hand", "results": results, "geometry": geometry, **note})
    return path


def rows(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All data of a chart, whichever layer has them."""
    return [row for values in spec["datasets"].values() for row in values]
