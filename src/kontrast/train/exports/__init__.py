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
import re
from pathlib import Path
from typing import Any

import kontrast
from kontrast import augment
from kontrast.files import expanded, read_regular, staging, write_atomically, write_json
from kontrast.registry import FAMILIES
from kontrast.runs import Run
from kontrast.train.exports._target import Source, Target

TARGETS = FAMILIES["export"]
names, find = TARGETS.names, TARGETS.find

__all__ = ["TARGETS", "Source", "Target", "export_run", "find", "names"]


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
    run = Run(run)
    target: Target = TARGETS.make(to, **options)
    source = Source.read(run)
    why = target.refusal(source)
    if why:
        others = [name for name in names() if name != to and TARGETS.make(name).refusal(source) is None]
        raise ValueError(f"{source.name} cannot be exported to {to}: {why}. Targets that work: {', '.join(others)}")
    place = run.path / "exports" / to if folder is None else expanded(folder)
    _check_free(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    with staging(place) as staged:
        lines = target.write(source, staged)
        prepare = target.preparing_code(source)
        record = {**source.card, "load": lines, "prepare": prepare, "results": source.results, "export": to}
        write_json(staged / "model.json", record)
        write_atomically(staged / "README.md", model_card(source, target, lines, prepare).encode())
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


# ------------------------------------------------------------------------------------------------ README.md

SPECIAL = re.compile(r"([\\`*_\[\]|~])")
CLASSES = 20  # named on the card; model.json has them all


def model_card(source: Source, target: Target, lines: str, prepare: str | None) -> str:
    """The text of README.md: what it is, how to load it, what it learned from, how good it is, and its limits.

    What a run was given (class names, notes, names of data) is text: it is escaped, and makes no markup.
    """
    card = source.card
    parameters = sum(p.numel() for p in source.encoder.parameters())
    tag = "image-feature-extraction" if card["input"]["kind"] == "image" else "feature-extraction"
    parts = [
        f"---\nlibrary_name: {target.library}\npipeline_tag: {tag}\ntags: [contrastive-learning, kontrast]\n---",
        f"# {plain(card['recipe'])}",
        f"An encoder, {plain(source.name)}: {parameters:,} parameters, {card['feature_dim']} features, learned with "
        f"{plain(_method(card['method']))} by kontrast {plain(card['kontrast'])} (run {plain(card['hash'])}).",
        f"## Loading\n\n```python\n{lines}\n```",
        f"It takes {plain(target.describe_inputs(source))}. It gives features, not normalised to length 1; compare "
        "them by cosine.",
        *([f"An image file becomes such an input by\n\n```python\n{prepare}\n```"] if prepare else []),
        f"## Learned from\n\n{_data(card['data'])}{_training(source)}".rstrip(),
        f"## Results\n\n{_verdict(card)}{_results(source)}",
        f"## Limits\n\n{_limits(source)}",
        f"Written by kontrast {kontrast.__version__}; `model.json` has all of this for programs.",
    ]
    return "\n\n".join(parts) + "\n"


def plain(text: object) -> str:
    r"""Any text as one line of Markdown that shows as it is.

    >>> print(plain("a|b <img src=x> [c](d)\n# e"))
    a\|b &lt;img src=x&gt; \[c\](d) # e
    """
    line = " ".join(str(text).split())
    return SPECIAL.sub(r"\\\1", line).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def number(count: int, what: str) -> str:
    """``1 epoch``, ``2 epochs``.

    >>> number(1, "file"), number(1000, "step")
    ('1 file', '1,000 steps')
    """
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _method(method: dict[str, Any]) -> str:
    """``tcl (temperature 0.1, k1 5000.0)``: its name and its options."""
    options = ", ".join(f"{key} {value}" for key, value in method.items() if key != "name" and value is not None)
    return f"{method['name']} ({options})" if options else str(method["name"])


def _data(data: dict[str, Any]) -> str:
    note = f": {plain(data['note'])}" if data.get("note") else ""
    text = f"- data: {plain(data['name'])}{note}\n"
    classes = data.get("classes") or []
    if classes:
        names = ", ".join(plain(name) for name in classes[:CLASSES])
        more = f" and {len(classes) - CLASSES} more" if len(classes) > CLASSES else ""
        text += f"- {len(classes)} classes: {names}{more}\n"
    if data.get("unread"):
        text += f"- left out, as they could not be read or lay in no class: {number(int(data['unread']), 'file')}\n"
    if "licen" not in str(data.get("note", "")).lower() and "CC BY" not in str(data.get("note", "")):
        text += "- the licence of the data is not known to kontrast: see to it before you share the weights\n"
    return text


def _training(source: Source) -> str:
    recipe = source.recipe
    if recipe is None:
        return ""
    train, optim = recipe.train, recipe.optim
    long = number(train.epochs, "epoch") if train.epochs is not None else number(train.steps or 0, "step")
    views = ", ".join(
        f"[{augment.title(view)}]" if isinstance(view, list) else augment.title(view)
        for view in recipe.augment.described
    )
    rate = optim.options.get("lr")
    about = f"{long}, batches of {train.batch_size}, {optim.name}"
    about += "" if rate is None else f" at {rate}"
    return f"- views: {plain(views)}\n- training: {plain(about)}, seed {recipe.seed}\n"


def _verdict(card: dict[str, Any]) -> str:
    """Of `kontrast adapt`: which encoder this is, and why."""
    verdict = card.get("verdict")
    if not verdict:
        return ""
    return f"This is the {plain(verdict['shipped'])} encoder. {plain(verdict['sentence'])}.\n\n"


def _results(source: Source) -> str:
    results = source.results
    if not results:
        return plain((source.result or {}).get("note") or "It was not evaluated.")
    table = ["| accuracy | ± | protocol | test rows | seed |", "|---|---|---|---|---|"]
    table += [
        f"| {100 * result['value']:.2f} % | {100 * result['error']:.2f} | {plain(result['protocol'])} | "
        f"{result['test_rows']:,} ({plain(result['split'])}) | {result['seed']} |"
        for result in results
    ]
    weights = plain((source.result or {}).get("weights", "last"))
    about = (
        f"Weights: {weights}. ± is the standard error that so many test rows leave; other seeds of training vary too."
    )
    return "\n".join([*table, "", about])


def _limits(source: Source) -> str:
    shape = "×".join(map(str, source.shape))
    kind = source.card["input"]["kind"]
    lines = [
        f"- It has seen {kind}s of {shape} of the data above and nothing else; what it does with others is not known.",
        "- The figures are of one run, by the protocol beside each; compare them with figures of that protocol only.",
        "- Whatever is uneven or wrong in the data is in the features. They were not examined for it.",
    ]
    if source.recipe is not None and source.recipe.data.noise:
        lines.append(f"- {100 * source.recipe.data.noise:g} % of the training labels were replaced on purpose.")
    return "\n".join(lines)
