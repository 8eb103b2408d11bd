"""An experiment's folder made of files alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def summary(**changes: Any) -> dict[str, Any]:
    """Two places: one done, with the paper's value; one that failed."""
    cell = {"paper": 83.27, "paper_half": None, "paper_data": "", "mean": 83.41, "half": 0.52, "n": 2}
    cell |= {"difference": 0.14, "censored": 0}
    empty = {**cell, "paper": None, "mean": None, "half": None, "n": 0, "difference": None}
    runs = [{"seed": seed, "folder": f"toy-{seed}", "status": "done", "error": None, "seconds": 1.0} for seed in (0, 1)]
    failed = {"seed": 0, "folder": "toy-9", "status": "failed", "error": "RuntimeError: <b>nan</b>", "seconds": None}
    finding = {"where": "", "value": 0.5, "half": 0.1, "n": 2}
    claims = [
        {
            "text": f"claim {i}",
            "statistic": "an interval",
            "findings": [{**finding, "verdict": verdict, "says": f"found {i}"}],
        }
        for i, verdict in enumerate(("holds", "does not hold", "not resolved at this scale"))
    ]
    made = {
        "experiment": "demo",
        "title": "A <demonstration>",
        "source": "nobody, Table 1",
        "preset": "cpu",
        "about": "Smaller than the paper.",
        "settings": [],
        "rows": "loss",
        "axes": {"loss": ["tcl", "supcon"]},
        "seeds": [0, 1],
        "measures": [{"name": "knn", "title": "kNN (%)", "digits": 1}],
        "status": {"done": 2, "failed": 1},
        "seconds": 7200.0,
        "places": [
            {"at": {"loss": "tcl"}, "runs": runs, "cells": {"knn": cell}},
            {"at": {"loss": "supcon"}, "runs": [failed], "cells": {"knn": empty}},
        ],
        "claims": claims,
        "made": {"version": "0.1.0", "commit": "abc1234", "command": "kontrast reproduce demo --preset cpu"},
    }
    return {**made, **changes}


def write_experiment(out: Path, made: Mapping[str, Any] | None = None) -> Path:
    """``<out>/demo-cpu`` with a chart."""
    folder = out / "demo-cpu"
    folder.mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(made or summary()))
    records = [{"x": x, "y": x * x, "panel": "data = mini"} for x in (1, 2, 3)]
    mark = {"mark": {"type": "point"}, "encoding": {"x": {"field": "x", "type": "quantitative"}}}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": "squares"},
        "data": {"values": records},
        "facet": {"field": "panel", "type": "nominal"},
        "columns": 3,
        "spec": {"width": 230, "height": 170, "layer": [mark]},
    }
    (folder / "squares.vl.json").write_text(json.dumps(chart))
    return folder


def write_points(folder: Path, *, classes: int = 4, frames: int = 7, dim: int = 3, weights: bool = False) -> Path:
    """A task folder whose points go from anywhere to a simplex that is turned somehow."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    labels = np.repeat(np.arange(classes), 5)
    end = np.eye(classes) - 1 / classes
    frame = np.linalg.qr(draw.normal(size=(max(classes, dim), max(classes, dim))))[0]
    if dim == classes - 1:  # the simplex in its own dimensions: an orthonormal basis of what is orthogonal to 1
        end = end @ np.linalg.svd(end)[2][: classes - 1].T
        frame = frame[:dim, :dim] if classes <= dim else np.linalg.qr(draw.normal(size=(dim, dim)))[0]
    end = np.pad(end, ((0, 0), (0, max(dim - end.shape[1], 0))))[:, :dim] @ frame[:dim, :dim]
    end /= np.linalg.norm(end, axis=1, keepdims=True)
    start = draw.normal(size=(len(labels), dim))
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    share = np.linspace(0, 1, frames)[:, None, None]
    arrays = {
        "labels": labels,
        "steps": np.arange(frames) * 10,
        "path": ((1 - share) * start + share * end[labels]).astype(np.float32),
        "values": np.geomspace(5, 1.001, frames),
        "bounds": np.ones(frames),
    }
    if weights:
        arrays["weight_path"] = (2.5 * np.broadcast_to(end, (frames, *end.shape))).astype(np.float32)
    np.savez(folder / "points.npz", **arrays)
    (folder / "result.json").write_text(json.dumps({"optimal_weight_radius": 2.5 if weights else None}))
    return folder
