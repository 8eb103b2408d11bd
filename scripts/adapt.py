"""Run the recorded adaptations of docs/adapt.md as a user would, and keep what came out.

    python scripts/adapt.py [NAME …] --data DIR --weights FILE --out DIR [--threads 1] [--minutes 20]

DIR has svhn-12k.npz (images 32 × 32) and imagenette-sample (600 + 200 photos); of SVHN the first 3,000 training and the
first 1,000 test images are written as a folder of PNG files. FILE are the ImageNet weights of EfficientNet-Lite0. Each
case is one `kontrast adapt`, one after another; verdict, wall and CPU seconds go to docs/adapt.json, and so does the
simulation of the verdict's rows (``simulation``). `python docs/adapt.py` then writes the page. What that file has is
not run again; to run a case anew, remove it there. A killed case resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from kontrast.adaptation.comparison import compare
from kontrast.adaptation.rows import PARTS, choose, cross_fit, parts_of
from kontrast.runs import Run

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "docs" / "adapt.json"
ENCODER = "timm/tf_efficientnet_lite0"
TRAIN, TEST = 3000, 1000  # images of SVHN
SMALL = "augment.size=96"  # pixels a side of what the encoder sees of SVHN
CASES: dict[str, list[str]] = {
    "svhn": ["{data}/svhn", SMALL, "--method", "supcon"],
    "svhn-sce": ["{data}/svhn", SMALL, "--method", "sce"],
    "imagenette": ["{data}/imagenette-sample", "--method", "supcon"],
    "imagenette-sce": ["{data}/imagenette-sample", "--method", "sce"],
    "unlabelled": ["{data}/svhn", SMALL, "data.labelled=false", "data.limit=1000"],
    "made-to-fail": ["{data}/imagenette-sample", "data.limit=40", "optim.lr=0.1", "augment.size=128"],
}
CASES_OF_SIMULATION, ROWS, EPOCHS, PATIENCE, CHANGED = 4000, 600, 12, 3, 0.1


def main() -> None:
    """Run the cases that are asked for, or all, and the simulation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*CASES, "simulation"]
    parser.add_argument("names", nargs="*", metavar="NAME", help="cases; all if left out")
    parser.add_argument("--data", type=Path, help="the folder of svhn-12k.npz and imagenette-sample")
    parser.add_argument("--weights", type=Path, help="the weights of EfficientNet-Lite0")
    parser.add_argument("--out", type=Path, help="the folder of the run folders and of SVHN's images")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20.0)
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in names]:
        parser.error(f"{unknown[0]!r}: is no case. Use {', '.join(names)}")
    for name in asked.names or names:
        if name in read_found():
            continue
        if name == "simulation":
            record = simulate()
        else:
            if not (asked.data and asked.weights and asked.out):
                parser.error("--data, --weights and --out must be given")
            record = perform(name, asked)
        found = read_found()  # anew: another call may have written meanwhile
        found[name] = record
        FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, record.get("verdict", {}).get("sentence", record), flush=True)


def read_found() -> dict[str, Any]:
    """What there is so far."""
    found: dict[str, Any] = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    return found


def perform(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Adapt; the verdict, accuracies in percent, wall and CPU seconds, and the peak of the memory."""
    write_svhn(asked.data / "svhn-12k.npz", asked.out / "svhn")
    places = {"{data}/svhn": asked.out / "svhn", "{data}/imagenette-sample": asked.data / "imagenette-sample"}
    words = [str(places.get(word, word)) for word in CASES[name]]
    out = asked.out / name
    minutes = ["--minutes", f"{asked.minutes:g}", "--weights", str(asked.weights)]
    settings = [f"run.threads={asked.threads}", "run.progress=false", "--out", str(out)]
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kontrast", "adapt", ENCODER, *words, *minutes, *settings]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
    [run] = [Run(folder) for folder in out.iterdir() if (folder / "run.json").exists()]
    verdict, recipe = run.verdict, run.recipe
    assert verdict is not None
    steps = [line["step"] for line in run.metrics() if line.get("step")]
    losses = [line["epoch"] for line in run.metrics() if line.get("epoch")]
    return {
        "words": CASES[name],
        "minutes": asked.minutes,
        "verdict": verdict.model_dump(mode="json", exclude_none=True),
        "epochs": {"planned": recipe.train.epochs, "trained": round(max(losses, default=0.0), 1)},
        "steps": max(steps, default=0),
        "results": {r.name: round(100 * (r.value or 0.0), 2) for r in run.read_result().results},
        "wall_seconds": round(wall),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
        "peak_mb": round(after.ru_maxrss / 1024),
        "threads": asked.threads,
        "cores": os.cpu_count(),
        "versions": {key: run.state.versions[key] for key in ("kontrast", "commit", "torch")},
    }


def write_svhn(file: Path, folder: Path) -> None:
    """Write some of SVHN as train/ and test/ with a folder of PNG files for each digit."""
    if (folder / "done").exists():
        return
    with np.load(file) as arrays:
        for split, count in (("train", TRAIN), ("test", TEST)):
            images, labels = arrays[f"x_{split}"][:count], arrays[f"y_{split}"][:count]
            for i, (pixels, label) in enumerate(zip(images, labels, strict=True)):
                place = folder / split / str(label)
                place.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(place / f"{i:04}.png")
    (folder / "done").touch()


def simulate() -> dict[str, Any]:
    """How often an adaptation ships that is no better than the frozen encoder, by which rows choose and judge.

    Each of 12 epochs changes a tenth of the rows' answers, wrong to right and right to wrong alike, independently.
    """
    shipped = dict.fromkeys(("disjoint", "in both directions", "shared"), 0)
    for seed in range(CASES_OF_SIMULATION):
        draw = torch.Generator().manual_seed(seed)
        frozen = torch.rand(ROWS, generator=draw) < 0.5
        right = frozen ^ (torch.rand(EPOCHS, ROWS, generator=draw) < CHANGED)
        part = parts_of(ROWS, seed)
        best = int(right.double().mean(1).argmax())
        others = [int(right[:, part != k].double().mean(1).argmax()) for k in range(PARTS)]
        crossed = torch.stack([right[others[k], i] for i, k in enumerate(part.tolist())])
        judged = {
            "disjoint": cross_fit(right, frozen, part, choose(right, part, PATIENCE)),
            "in both directions": (frozen, crossed),
            "shared": (frozen, right[best]),
        }
        for name, (before, after) in judged.items():
            shipped[name] += compare(before, after, seed=seed).is_better
    about = {"cases": CASES_OF_SIMULATION, "rows": ROWS, "epochs": EPOCHS, "patience": PATIENCE, "changed": CHANGED}
    return {**about, "shipped": {name: count / CASES_OF_SIMULATION for name, count in shipped.items()}}


if __name__ == "__main__":
    main()
