"""Recipes beside each other: dotted keys, what differs, what is common, which runs differ in the seed alone.

A resolved recipe has every default written out, so two that were never asked the same question still answer it. What
cannot change a result (how it is run, what it is called) is left out, as it is out of the recipe's hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

ABSENT = "–"
OUTSIDE = ("name", "about", "run")  # of the hash
SEED = "seed"
MOST_NAMED = 3


def flat(recipe: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Dotted keys and values as YAML has them; lists stay whole.

    >>> flat({"name": "mine", "seed": 0, "method": {"name": "tcl", "k1": 5000.0}, "run": {"device": "cpu"}})
    {'seed': '0', 'method.name': 'tcl', 'method.k1': '5000.0'}
    """
    found: dict[str, str] = {}
    for key, value in recipe.items():
        if not before and key in OUTSIDE:
            continue
        if isinstance(value, Mapping):
            found |= flat(value, f"{before}{key}.")
        else:
            found[f"{before}{key}"] = _text(value)
    return found


def _text(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) and "name" in one for one in value):
        return ", ".join(_part(one) for one in value)
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _part(part: Mapping[str, Any]) -> str:
    """``crop-flip (padding 4)``."""
    options = ", ".join(f"{key} {value}" for key, value in part.items() if key != "name")
    return f"{part['name']} ({options})" if options else str(part["name"])


def differing(recipes: Sequence[Mapping[str, str]], *, seed: bool = True) -> list[str]:
    """The keys that not all have alike, in their order.

    >>> differing([{"seed": "0", "lr": "0.1"}, {"seed": "1", "lr": "0.1", "k1": "5"}])
    ['seed', 'k1']
    """
    keys = dict.fromkeys(key for recipe in recipes for key in recipe)
    return [key for key in keys if (seed or key != SEED) and len({recipe.get(key) for recipe in recipes}) > 1]


def common(recipes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all have alike."""
    apart = set(differing(recipes))
    return {key: value for key, value in recipes[0].items() if key not in apart} if recipes else {}


def group_names(names: Sequence[str], recipes: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each run's group: the recipe's, with what differs where several groups have the same.

    >>> group_names(["a", "a", "b"], [{"lr": "1", "k": "0"}, {"lr": "2", "k": "0"}, {"lr": "1", "k": "9"}])
    ['a, lr 1', 'a, lr 2', 'b']
    >>> group_names(["a", "a"], [{"lr": "1"}, {"lr": "2"}])  # the name that all have tells nothing
    ['lr 1', 'lr 2']
    >>> group_names(["a", "a"], [{"data.size": "1", "augment.size": "2"}, {"data.size": "2", "augment.size": "1"}])
    ['data.size 1, augment.size 2', 'data.size 2, augment.size 1']
    """
    kinds = [tuple(sorted((key, value) for key, value in recipe.items() if key != SEED)) for recipe in recipes]
    first: dict[object, int] = {}  # the same recipe under two names is one group, and has the name that came first
    for i, kind in enumerate(kinds):
        first.setdefault(kind, i)
    found = []
    for kind, recipe in zip(kinds, recipes, strict=True):
        name = names[first[kind]]
        alike = [recipes[i] for i in first.values() if names[i] == name]
        keys = differing(alike, seed=False)
        short = [_short(key) for key in keys]
        words = [key if short.count(word) > 1 else word for key, word in zip(keys, short, strict=True)]
        said = [f"{word} {recipe.get(key, ABSENT)}" for key, word in list(zip(keys, words, strict=True))[:MOST_NAMED]]
        said += [f"{len(keys) - MOST_NAMED} more"] if len(keys) > MOST_NAMED else []
        found.append(", ".join(said if said and len(set(names)) == 1 else [name, *said]))
    return _told_apart(found, [first[kind] for kind in kinds])


def _short(key: str) -> str:
    """``temperature`` of ``method.temperature``, ``encoder`` of ``encoder.name``."""
    return key.removesuffix(".name").rpartition(".")[2]


def _told_apart(names: Sequence[str], kinds: Sequence[int]) -> list[str]:
    """Groups that still have one name get a number."""
    of: dict[str, list[int]] = {}
    for name, kind in zip(names, kinds, strict=True):
        if kind not in of.setdefault(name, []):
            of[name].append(kind)
    return [
        name if len(of[name]) == 1 else f"{name} #{of[name].index(kind) + 1}"
        for name, kind in zip(names, kinds, strict=True)
    ]
