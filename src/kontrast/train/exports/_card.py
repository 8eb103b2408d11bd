"""The card of an exported encoder, README.md: for the people who get it, in the form that model hubs show.

What a run was given (class names, notes, names of data) is text: it is escaped, and makes no markup.
"""

from __future__ import annotations

import re
from typing import Any

import kontrast
from kontrast import augment
from kontrast.train.exports._target import Source

SPECIAL = re.compile(r"([\\`*_\[\]|~])")
CLASSES = 20  # named on the card; model.json has them all


def model_card(source: Source, target: str, lines: str, inputs: str, prepare: str | None = None) -> str:
    """The text of README.md: what it is, how to load it, what it learned from, how good it is, and its limits."""
    card = source.card
    parameters = sum(p.numel() for p in source.encoder.parameters())
    tag = "image-feature-extraction" if card["input"]["kind"] == "image" else "feature-extraction"
    library = {"timm": "timm", "onnx": "onnx"}.get(target, "pytorch")
    parts = [
        f"---\nlibrary_name: {library}\npipeline_tag: {tag}\ntags: [contrastive-learning, kontrast]\n---",
        f"# {plain(card['recipe'])}",
        f"An encoder, {plain(source.name)}: {parameters:,} parameters, {card['feature_dim']} features, learned with "
        f"{plain(_method(card['method']))} by kontrast {plain(card['kontrast'])} (run {plain(card['hash'])}).",
        f"## Loading\n\n```python\n{lines}\n```",
        f"It takes {plain(inputs)}. It gives features, not normalised to length 1; compare them by cosine.",
        *([f"An image file becomes such an input by\n\n```python\n{prepare}\n```"] if prepare else []),
        f"## Learned from\n\n{_data(card['data'])}{_training(source)}".rstrip(),
        f"## Results\n\n{_results(source)}",
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
    """``tcl (temperature 0.1, k1 5000.0)``: its name and what was chosen."""
    chosen = ", ".join(f"{key} {value}" for key, value in method.items() if key != "name" and value is not None)
    return f"{method['name']} ({chosen})" if chosen else str(method["name"])


def _data(data: dict[str, Any]) -> str:
    note = f": {plain(data['note'])}" if data.get("note") else ""
    text = f"- data: {plain(data['name'])}{note}\n"
    classes = data.get("classes") or []
    if classes:
        shown = ", ".join(plain(name) for name in classes[:CLASSES])
        more = f" and {len(classes) - CLASSES} more" if len(classes) > CLASSES else ""
        text += f"- {len(classes)} classes: {shown}{more}\n"
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


def _results(source: Source) -> str:
    found = source.results
    if not found:
        return plain((source.result or {}).get("note") or "It was not evaluated.")
    table = ["| accuracy | ± | protocol | test rows | seed |", "|---|---|---|---|---|"]
    table += [
        f"| {100 * result['value']:.2f} % | {100 * result['error']:.2f} | {plain(result['protocol'])} | "
        f"{result['test_rows']:,} ({plain(result['split'])}) | {result['seed']} |"
        for result in found
    ]
    used = plain((source.result or {}).get("weights", "last"))
    about = f"Weights: {used}. ± is the standard error that so many test rows leave; other seeds of training vary too."
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
