"""Settings by dotted keys: ``optim.lr=0.2``, ``augment.views.0.padding=2``; the value as YAML has it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from kontrast.plain import from_yaml
from kontrast.registry import nearest, quoted


def parse(setting: str) -> tuple[str, Any]:
    """``"optim.lr=0.2"`` → key and value, the value as YAML has it.

    >>> parse("train.epochs=5"), parse("augment.views=[weak, strong]"), parse("optim.lr=1e-3")
    (('train.epochs', 5), ('augment.views', ['weak', 'strong']), ('optim.lr', 0.001))
    """
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{quoted(setting)} is no setting; expected key=value, such as optim.lr=0.2")
    try:
        value = from_yaml(text)
    except ValueError:
        value = text
    value = None if value == "None" else value
    if isinstance(value, str):  # YAML 1.1 takes 1e-3 for a word
        with contextlib.suppress(ValueError):
            value = float(value)
    return key.strip(), value


def place(where: Any, name: str, above: str, *, new: bool) -> int | str:
    """The index or key that a part of a dotted key names inside a list or mapping; ``new`` allows keys to be added.

    >>> place(["weak", "strong"], "1", "augment.views", new=False)
    1
    """
    if isinstance(where, list):
        if not (name.isdecimal() and len(name) < 10 and int(name) < len(where)):
            raise ValueError(f"{above}: expected a number from 0 to {len(where) - 1}, seen {quoted(name)}")
        return int(name)
    if not isinstance(where, dict):
        raise ValueError(f"{above} is {quoted(where)}, which has nothing inside; expected a key that ends there")
    if not new and name not in where:
        raise ValueError(unknown_key(name, list(where), above or "the recipe"))
    return name


def unknown_key(key: str, known: Sequence[str], where: str) -> str:
    """The sentence about a key that is not there."""
    hint = nearest(key, known)
    return f"{where} has no key {quoted(key)}{hint} Known: {', '.join(known) or 'none'}"
