"""Export a run's encoder for other tools: a folder with the weights, README.md and model.json. One target a file.

| target | the folder has | for |
|---|---|---|
| ``safetensors`` | encoder.safetensors | every encoder; plain torch, or `kontrast.load` |
| ``onnx`` | encoder.onnx | every encoder; onnxruntime and whatever else reads ONNX |
| ``timm`` | config.json, model.safetensors | ``timm/…`` and ResNets with the large stem; ``timm.create_model("local-dir:FOLDER")`` |
| ``torchvision`` | encoder.pth | ResNets; ``torchvision.models.resnet18()`` without its classifier |

Each export is loaded by the tool it is for, and its features are compared with the run's, before it is put in place.

>>> from kontrast.train import exports
>>> exports.names()
['onnx', 'safetensors', 'timm', 'torchvision']
"""  # noqa: E501 (a table)

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kontrast.files import expanded, read_regular, staging, write_atomically, write_json
from kontrast.registry import FAMILIES
from kontrast.runs import Run
from kontrast.train.exports._card import model_card
from kontrast.train.exports._target import Source, Target

TARGETS = FAMILIES["export"]

__all__ = ["TARGETS", "Source", "Target", "export_run", "find", "names"]


def names() -> list[str]:
    """Every target's name."""
    return TARGETS.names()


def find(name: str) -> type[Target]:
    """The target of this name.

    Raises:
        ValueError: an unknown name; the error names the nearest one.

    >>> find("onxx")
    Traceback (most recent call last):
        ...
    ValueError: no export 'onxx'; did you mean 'onnx'? Known: onnx, safetensors, timm, torchvision
    """
    kind: type[Target] = TARGETS[name]
    return kind


def export_run(
    run: str | os.PathLike[str] | Run, to: str, folder: str | os.PathLike[str] | None = None, **options: Any
) -> Path:
    """Export a finished run's encoder.

    Args:
        run: The run, or its folder.
        to: The target, one of `names`.
        folder: Where to write: a new or empty folder, or an earlier export. ``RUN/exports/<to>`` if left out.
        **options: The target's own (``normalise`` and ``opset`` of ``onnx``).

    Returns:
        The folder.

    Raises:
        ValueError: The target or an option is unknown, the target cannot hold this encoder, the folder has other files,
            or the exported model's features differ from the run's.
    """
    run = run if isinstance(run, Run) else Run(run)
    target, source = TARGETS.make(to, **options), Source.read(run)
    why = target.refusal(source)
    if why:
        others = [name for name in names() if name != to and find(name)().refusal(source) is None]
        raise ValueError(f"{source.name} cannot be exported to {to}: {why}. Targets that work: {', '.join(others)}")
    place = run.path / "exports" / to if folder is None else expanded(folder)
    _check_free(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    with staging(place) as staged:
        lines = target.write(source, staged)
        prepare = target.preparing_code(source)
        record = {**source.card, "load": lines, "prepare": prepare, "results": source.results, "export": to}
        write_json(staged / "model.json", record)
        card = model_card(source, to, lines, target.describe_inputs(source), prepare)
        write_atomically(staged / "README.md", card.encode())
        place.mkdir(exist_ok=True)
        for file in sorted(staged.iterdir()):
            file.replace(place / file.name)
    return place


def _check_free(place: Path) -> None:
    """Raise ValueError if the folder has files that are not of an earlier export."""
    if place.exists() and not place.is_dir():
        raise ValueError(f"{place} is a file: must be a folder. Use another name")
    if not place.exists() or not any(place.iterdir()):
        return
    try:
        earlier = "export" in json.loads(read_regular(place / "model.json"))
    except (OSError, ValueError, TypeError):
        earlier = False
    if not earlier:
        raise ValueError(f"{place} holds other files: must be a new folder, an empty one, or an earlier export")
