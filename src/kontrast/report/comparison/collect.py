"""Several runs as records, with names that tell them apart, and their recipes beside each other.

A resolved recipe has every default written out, so two recipes of different methods can be compared key by key. What
cannot change a result (how it is run, what it is called) is left out, as it is from the recipe's hash.

What an unfinished run has not written is empty here. A damaged file, or a value that does not fit, is left out and
named in ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from kontrast.report.records import RunRecord
from kontrast.runs import Run

ARRAYS = ("predictions", "labels", "test_labels", "between_means", "within")
ABSENT = "–"
OUTSIDE = ("name", "about", "run")  # not in the recipe's hash
SEED = "seed"
MOST_NAMED = 3  # differing keys in a name


@dataclass(frozen=True)
class ComparedRun(RunRecord):
    """A run of the comparison.

    Args:
        recipe: The recipe with dotted keys (`flat`).
        label: The name that tells the run from the others.
        group: The name that it shares with the runs that differ in the seed alone.
    """

    recipe: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    group: str = ""

    @property
    def status(self) -> str:
        """training, evaluating, done, interrupted or failed; ``not begun`` without run.json."""
        return self.state.status or "not begun"


def collect(paths: Sequence[Path]) -> list[ComparedRun]:
    """Read the folders, and give each run a short name that tells it from the others.

    A folder that is passed twice counts once.

    Raises:
        ValueError: Fewer than two folders, or one that is not a run's.
    """
    distinct = list({Path(path).resolve(): Path(path) for path in paths}.values())
    if len(distinct) < 2:
        raise ValueError(f"a comparison needs at least 2 runs; got {', '.join(map(str, paths)) or 'none'}")
    runs = [_read(path) for path in distinct]
    groups = group_names([run.name for run in runs], [run.recipe for run in runs])
    seeded = len({run.seed for run in runs}) > 1 or len(set(groups)) < len(runs)
    labels = [f"{group}, seed {run.seed}" if seeded else group for group, run in zip(groups, runs, strict=True)]
    labels = [
        label if labels.count(label) == 1 else f"{label} ({run.path})" for label, run in zip(labels, runs, strict=True)
    ]
    return [replace(run, label=label, group=group) for run, label, group in zip(runs, labels, groups, strict=True)]


def _read(path: Path) -> ComparedRun:
    contents = Run(path).read(strict=False, arrays=ARRAYS)
    return ComparedRun(contents, recipe=flat(contents.recipe_values))


# ----------------------------------------------------------------------------------------------- recipes side by side


def flat(recipe: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """A recipe with dotted keys, and values as YAML writes them; lists stay whole.

    >>> flat({"name": "mine", "seed": 0, "method": {"name": "tcl", "k1": 5000.0}, "run": {"device": "cpu"}})
    {'seed': '0', 'method.name': 'tcl', 'method.k1': '5000.0'}
    """
    values: dict[str, str] = {}
    for key, value in recipe.items():
        if not before and key in OUTSIDE:
            continue
        if isinstance(value, Mapping):
            values |= flat(value, f"{before}{key}.")
        else:
            values[f"{before}{key}"] = _text(value)
    return values


def _text(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) and "name" in one for one in value):
        return ", ".join(_part(one) for one in value)
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")


def _part(part: Mapping[str, Any]) -> str:
    """A part with its options, such as ``crop-flip (padding 4)``."""
    options = ", ".join(f"{key} {value}" for key, value in part.items() if key != "name")
    return f"{part['name']} ({options})" if options else str(part["name"])


def differing(recipes: Sequence[Mapping[str, str]], *, seed: bool = True) -> list[str]:
    """The keys whose values differ between recipes, in their order; without the seed if ``seed`` is False.

    >>> differing([{"seed": "0", "lr": "0.1"}, {"seed": "1", "lr": "0.1", "k1": "5"}])
    ['seed', 'k1']
    """
    keys = dict.fromkeys(key for recipe in recipes for key in recipe)
    return [key for key in keys if (seed or key != SEED) and len({recipe.get(key) for recipe in recipes}) > 1]


def common(recipes: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The keys that have the same value in all recipes."""
    different = set(differing(recipes))
    return {key: value for key, value in recipes[0].items() if key not in different} if recipes else {}


def group_names(names: Sequence[str], recipes: Sequence[Mapping[str, str]]) -> list[str]:
    """A name for each run's group: the recipe's name, with what differs where several groups have the same name.

    >>> group_names(["a", "a", "b"], [{"lr": "1", "k": "0"}, {"lr": "2", "k": "0"}, {"lr": "1", "k": "9"}])
    ['a, lr 1', 'a, lr 2', 'b']
    >>> group_names(["a", "a"], [{"lr": "1"}, {"lr": "2"}])  # a name that all have says nothing
    ['lr 1', 'lr 2']
    >>> group_names(["a", "a"], [{"data.size": "1", "augment.size": "2"}, {"data.size": "2", "augment.size": "1"}])
    ['data.size 1, augment.size 2', 'data.size 2, augment.size 1']
    """
    kinds = [tuple(sorted((key, value) for key, value in recipe.items() if key != SEED)) for recipe in recipes]
    first: dict[object, int] = {}  # the same recipe under two names is one group, by the name that came first
    for i, kind in enumerate(kinds):
        first.setdefault(kind, i)
    result = []
    for kind, recipe in zip(kinds, recipes, strict=True):
        name = names[first[kind]]
        alike = [recipes[i] for i in first.values() if names[i] == name]
        keys = differing(alike, seed=False)
        short = [_short(key) for key in keys]
        words = [key if short.count(word) > 1 else word for key, word in zip(keys, short, strict=True)]
        values = [f"{word} {recipe.get(key, ABSENT)}" for key, word in list(zip(keys, words, strict=True))[:MOST_NAMED]]
        values += [f"{len(keys) - MOST_NAMED} more"] if len(keys) > MOST_NAMED else []
        result.append(", ".join(values if values and len(set(names)) == 1 else [name, *values]))
    return _numbered(result, [first[kind] for kind in kinds])


def _short(key: str) -> str:
    """``temperature`` of ``method.temperature``, ``encoder`` of ``encoder.name``."""
    return key.removesuffix(".name").rpartition(".")[2]


def _numbered(names: Sequence[str], kinds: Sequence[int]) -> list[str]:
    """Groups that still share a name get a number."""
    of: dict[str, list[int]] = {}
    for name, kind in zip(names, kinds, strict=True):
        if kind not in of.setdefault(name, []):
            of[name].append(kind)
    return [
        name if len(of[name]) == 1 else f"{name} #{of[name].index(kind) + 1}"
        for name, kind in zip(names, kinds, strict=True)
    ]
