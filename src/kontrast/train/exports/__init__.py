"""Export a run's encoder for other tools: a folder with the weights, README.md and model.json. One target a file.

| target | the folder has | for |
|---|---|---|
| ``safetensors`` | encoder.safetensors | every encoder; plain torch, or `kontrast.load` |
| ``onnx`` | encoder.onnx | every encoder; onnxruntime and whatever else reads ONNX |
| ``timm`` | config.json, model.safetensors | ``timm/…`` and ResNets with the large stem; ``timm.create_model("local-dir:FOLDER")`` |
| ``torchvision`` | encoder.pth | ResNets; ``torchvision.models.resnet18()`` without its classifier |

Each export is loaded by the tool it is for, and its features are compared with the run's, before it is put in place.

With a classifier, the linear probe of the evaluation stands behind the encoder, and labels.txt has the names of its
classes, a line each:

| target | instead, or more |
|---|---|
| ``safetensors`` | classifier.safetensors beside the encoder: weight, bias |
| ``onnx`` | classifier.onnx: normalisation, encoder, classifier and class names in one file |
| ``timm`` | the model's own classifier is this one, ``num_classes`` and ``label_names`` in config.json |
| ``torchvision`` | classifier.pth: ``fc`` is this one |

>>> from kontrast.train import exports
>>> exports.names()
['onnx', 'safetensors', 'timm', 'torchvision']
"""  # noqa: E501 (a table)

from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import Any

import kontrast
from kontrast import augment
from kontrast.evaluate import Progress
from kontrast.files import expanded, read_regular, staging, write_atomically, write_json
from kontrast.registry import FAMILIES, one_line
from kontrast.runs import Run
from kontrast.train.exports._head import Head, fit_head
from kontrast.train.exports._target import Source, Target

TARGETS = FAMILIES["export"]
names, find = TARGETS.names, TARGETS.find

LABELS = "labels.txt"

__all__ = ["LABELS", "TARGETS", "Head", "Source", "Target", "export_run", "find", "names"]


def export_run(
    run: str | os.PathLike[str] | Run,
    to: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    with_classifier: bool = False,
    data: Any = None,
    device: str = "auto",
    progress: Progress | None = None,
    **options: Any,
) -> Path:
    """Export a finished run's encoder, alone or with a classifier behind it.

    The classifier is the evaluation's linear probe: fitted on the features of training rows, tested on test rows, of
    the run's data or of others. Without test rows, a fifth of the training rows is held out from the classifier; of the
    run's own data, the card says that the encoder has learned from them.

    Args:
        run: The run, or its folder.
        to: The target, one of `names`.
        folder: Where to write: a new or empty folder, or an earlier export. ``RUN/exports/<to>`` if left out, with a
            classifier ``RUN/exports/<to>-classifier``.
        with_classifier: Whether to fit a classifier and export it with the encoder.
        data: Labelled data for the classifier, as `kontrast.data.load` takes them; the run's own if left out, which are
            given again if they came from Python.
        device: Where the encoder runs for the classifier: ``auto``, ``cpu``, ``cuda``, …
        progress: Called with ``(what, done, of)`` while the classifier is fitted.
        **options: The target's own (``normalise`` and ``opset`` of ``onnx``).

    Returns:
        The folder.

    Raises:
        ValueError: The target or an option is unknown, the target cannot hold this encoder, the folder has other files,
            the exported model's features or predictions differ from the run's, or there are no labels for a classifier.
    """
    run = Run(run)
    target: Target = TARGETS.make(to, **options)
    source = Source.read(run)
    why = _refusal(target, source, with_classifier)
    if why:
        others = [name for name in names() if name != to and not _refusal(TARGETS.make(name), source, with_classifier)]
        what = f"{source.name} with a classifier" if with_classifier else source.name
        raise ValueError(f"{what} cannot be exported to {to}: {why}. Targets that work: {', '.join(others)}")
    name = f"{to}-classifier" if with_classifier else to
    place = run.path / "exports" / name if folder is None else expanded(folder)
    _check_free(place)
    if with_classifier:
        if not run.has_recipe:
            raise ValueError(
                f"{run.path} has no recipe.yaml: a classifier is fitted on the data of a run. Use the folder that "
                "`kontrast train` wrote"
            )
        head = fit_head(run, data=data, device=device, progress=progress)
        about = {"classes": head.classes, "labels": LABELS, "data": head.data, "result": head.result}
        source = dataclasses.replace(source, head=head, card={**source.card, "classifier": about})
    place.parent.mkdir(parents=True, exist_ok=True)
    with staging(place) as staged:
        lines = target.write(source, staged)
        prepare = target.preparing_code(source)
        record = {**source.card, "load": lines, "prepare": prepare, "results": source.results, "export": to}
        write_json(staged / "model.json", record)
        write_atomically(staged / "README.md", model_card(source, target, lines, prepare).encode())
        if source.head is not None:
            text = "".join(f"{one_line(name)}\n" for name in source.head.classes)
            write_atomically(staged / LABELS, text.encode(errors="backslashreplace"))
        place.mkdir(exist_ok=True)
        for file in sorted(staged.iterdir()):
            file.replace(place / file.name)
    return place


def _refusal(target: Target, source: Source, with_classifier: bool) -> str | None:
    """Why a target cannot hold this encoder, or no classifier behind it; None if it can."""
    return target.refusal(source) or (target.classifier_refusal(source) if with_classifier else None)


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
    if source.head is not None:
        tag = "image-classification" if card["input"]["kind"] == "image" else "tabular-classification"
    parts = [
        f"---\nlibrary_name: {target.library}\npipeline_tag: {tag}\ntags: [contrastive-learning, kontrast]\n---",
        f"# {plain(card['recipe'])}",
        f"An encoder, {plain(source.name)}: {parameters:,} parameters, {card['feature_dim']} features, learned with "
        f"{plain(_method(card['method']))} by kontrast {plain(card['kontrast'])} (run {plain(card['hash'])}).",
        f"## Loading\n\n```python\n{lines}\n```",
        f"It takes {plain(target.describe_inputs(source))}. It gives {_outputs(source)}",
        *([f"An image file becomes such an input by\n\n```python\n{prepare}\n```"] if prepare else []),
        *([f"## Classifier\n\n{_classifier(source.head)}"] if source.head is not None else []),
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


def number(count: int, what: str, several: str = "") -> str:
    """``1 epoch``, ``2 epochs``.

    >>> number(1, "file"), number(1000, "step"), number(2, "class", "classes")
    ('1 file', '1,000 steps', '2 classes')
    """
    return f"{count:,} {what if count == 1 else several or f'{what}s'}"


def _outputs(source: Source) -> str:
    if source.head is None:
        return "features, not normalised to length 1; compare them by cosine."
    classes = number(len(source.head.classes), "class", "classes")
    return f"a score (logit) for each of {classes}; softmax makes probabilities of them."


def _classifier(head: Head) -> str:
    """What the classifier is, how good it is, and on which rows that was measured."""
    result = head.result
    text = (
        f"{100 * result['value']:.2f} % ± {100 * result['error']:.2f} of {result['test_rows']:,} "
        f"{plain(result['split'])} rows are classified right: {plain(result['protocol'])}; fitted on "
        f"{result['train_rows']:,} rows of {plain(head.data)}, seed {result['seed']}."
    )
    if head.was_seen:
        text += (
            " There were no test rows. Those rows were held out from the classifier, but the encoder has learned from "
            "them: on new data expect less."
        )
    return f"{text}\n\nThe classes stand in `{LABELS}`, a line each, in the order of the scores."


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
