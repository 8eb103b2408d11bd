r"""How sure a difference is.

    (1)  two runs, one number each with its standard error over test rows: they differ if |a − b| > 2 √(e_a² + e_b²)
    (2)  two recipes on the same seeds: Student's 95 % interval of the paired differences, as in
         `kontrast.intervals`
    (3)  two runs on the same test rows: McNemar's exact test. Of the b + c rows on which only one is right,
         min(b, c) ~ Binomial(b + c, 1/2) if neither is better; p = min(1, 2 P(X ≤ min(b, c)))
    (4)  several of (3): Holm's adjustment, p_(i) → max over j ≤ i of (m − j + 1) p_(j), at most 1
    (5)  the difference of (3)'s accuracies over n rows: d = (b − c)/n with the standard error √(((b + c)/n − d²)/n)

(1) ignores that the rows are the same, so it finds fewer differences than (3). (3) speaks of these two encoders on
other test rows of the same kind; only (2) speaks of other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np
from scipy.special import bdtr  # type: ignore[import-untyped]

from kontrast.intervals import paired
from kontrast.report.comparison.collect import ComparedRun
from kontrast.runs import ProtocolResult

ERRORS = 2.0


@dataclass(frozen=True)
class Protocol:
    """A protocol on a data set. Numbers are compared only if all fields are the same."""

    name: str
    text: str
    data: str
    rows: int | None

    @property
    def title(self) -> str:
        """The protocol with its data and test rows."""
        return f"{self.text}; {self.data}, {self.rows:,} test rows" if self.rows else f"{self.text}; {self.data}"


def by_protocol(runs: Sequence[ComparedRun]) -> dict[Protocol, dict[str, ProtocolResult]]:
    """The results of each protocol by the label of the run; protocols that most runs have come first."""
    by_key: dict[Protocol, dict[str, ProtocolResult]] = {}
    for run in runs:
        for result in run.results:
            data = run.recipe.get("data.name", "")
            if (digest := _digest(run)) != "null":  # data from Python: the name says little
                data += f" ({digest[:8]})"
            name = data if result.split in (None, "test") else f"{data}, {result.split}"
            key = Protocol(result.name, result.protocol, name, result.test_rows)
            by_key.setdefault(key, {})[run.label] = result
    return dict(sorted(by_key.items(), key=lambda item: -len(item[1])))


def titles(protocols: Iterable[Protocol]) -> dict[Protocol, str]:
    """A short name for each protocol; where two have one name, with what tells them apart, or a number.

    >>> a, b = Protocol("knn20", "kNN", "sets/a.npz", 9), Protocol("knn20", "kNN", "sets/b.npz", 9)
    >>> list(titles([a, b, Protocol("probe", "linear", "sets/a.npz", 9)]).values())
    ['knn20, a.npz', 'knn20, b.npz', 'probe']
    """
    every = list(protocols)
    names: dict[Protocol, str] = {}
    for protocol in every:
        alike = [other for other in every if other.name == protocol.name]
        ways = zip(*map(_ways, alike), strict=True)
        numbered = [f"{other.name} #{i + 1}" for i, other in enumerate(alike)]
        short = next((way for way in ways if len(set(way)) == len(alike)), numbered)
        names[protocol] = short[alike.index(protocol)]
    return names


def _ways(protocol: Protocol) -> list[str]:
    """Names, from short to long."""
    name, data = protocol.name, protocol.data
    rows = f"{protocol.rows:,} rows" if protocol.rows else ""
    parts: tuple[list[str], ...] = ([], [PurePath(data).name], [data], [data, rows])
    return [", ".join(filter(None, [name, *more])) for more in parts]


def accuracy(result: ProtocolResult) -> float:
    """The value of a result that is known to have one."""
    assert result.value is not None
    return float(result.value)


def differ(a: ProtocolResult, b: ProtocolResult) -> bool:
    """Whether two accuracies differ by their standard errors (1).

    >>> best = ProtocolResult(name="knn20", protocol="kNN", value=0.86, error=0.008)
    >>> differ(best, best.model_copy(update={"value": 0.83})), differ(best, best.model_copy(update={"value": 0.85}))
    (True, False)
    """
    if a.error is None or b.error is None:
        return False
    return abs(accuracy(a) - accuracy(b)) > ERRORS * math.hypot(a.error, b.error)


def leaders(records: Mapping[str, ProtocolResult]) -> list[str]:
    """The highest, and those that do not differ from it by (1).

    >>> values = {"a": 0.9, "b": 0.89, "c": 0.5}
    >>> leaders({name: ProtocolResult(name="knn20", protocol="", value=x, error=0.01) for name, x in values.items()})
    ['a', 'b']
    """
    order = sorted(records, key=lambda label: -accuracy(records[label]))
    return [label for label in order if label == order[0] or not differ(records[order[0]], records[label])]


def by_seed(runs: Sequence[ComparedRun], records: Mapping[str, ProtocolResult]) -> dict[str, dict[int, float]]:
    """The accuracy in percent of each recipe's seeds."""
    values: dict[str, dict[int, float]] = {}
    for run in runs:
        if run.label in records:
            values.setdefault(run.group, {})[run.seed] = 100 * accuracy(records[run.label])
    return values


def seed_leaders(values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """The recipe with the highest mean over seeds, and those that do not differ from it by (2).

    >>> seed_leaders({"a": {0: 80.0, 1: 81.0, 2: 82.0}, "b": {0: 79.0, 1: 80.1, 2: 80.9}, "c": {0: 90.0}})
    ['c', 'a', 'b']
    >>> seed_leaders({"a": {0: 80.0, 1: 81.0, 2: 82.0}, "b": {0: 79.0, 1: 80.1, 2: 80.9}})
    ['a']
    """
    order = sorted(values, key=lambda name: -math.fsum(values[name].values()) / len(values[name]))
    first = values[order[0]]

    def level(name: str) -> bool:
        if not set(first) & set(values[name]):
            return True
        low = paired(first, values[name]).low
        return low is None or low <= 0

    return [name for name in order if name == order[0] or level(name)]


@dataclass(frozen=True)
class McNemar:
    """The result of (3): on how many rows only the first, or only the second, is right; and (5).

    >>> test = McNemar(only_first=30, only_second=10, rows=1000, p=0.002)
    >>> test.difference, round(test.error, 4)
    (0.02, 0.0063)
    """

    only_first: int
    only_second: int
    rows: int
    p: float

    @property
    def difference(self) -> float:
        """Accuracy of the first minus that of the second (5)."""
        return (self.only_first - self.only_second) / self.rows

    @property
    def error(self) -> float:
        """The standard error of `difference` (5)."""
        share = (self.only_first + self.only_second) / self.rows
        return math.sqrt(max(share - self.difference**2, 0.0) / self.rows)


def mcnemar(first: np.ndarray, second: np.ndarray) -> McNemar:
    """McNemar's test (3) for two arrays that say which rows are right.

    >>> mcnemar(np.array([True] * 9 + [False] * 1), np.array([False] * 9 + [True] * 1))
    McNemar(only_first=9, only_second=1, rows=10, p=0.021484375)
    """
    if first.shape != second.shape:
        raise ValueError(f"shapes {first.shape} and {second.shape}: must be the same test rows of both runs")
    b, c = int((first & ~second).sum()), int((second & ~first).sum())
    p = min(1.0, 2 * float(bdtr(min(b, c), b + c, 0.5))) if b + c else 1.0
    return McNemar(b, c, len(first), p)


def holm(p: Sequence[float]) -> list[float]:
    """p-values after Holm's adjustment (4).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, highest = [0.0] * len(p), 0.0
    for place, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        highest = max(highest, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = highest
    return adjusted


def right(run: ComparedRun) -> tuple[np.ndarray, np.ndarray] | None:
    """Which test rows the run predicts right, and their labels; None without predictions of them.

    analysis.npz has the labels of up to 2,000 test rows; of more only if it has ``test_labels``.
    """
    predictions = run.arrays.get("predictions")
    labels = run.arrays.get("test_labels", run.arrays.get("labels"))
    if predictions is None or labels is None or len(predictions) != len(labels):
        return None
    return predictions == labels, labels


def paired_test(a: ComparedRun, b: ComparedRun) -> McNemar | None:
    """(3) of two runs; None unless the predictions of both are there, by one protocol and of the same rows."""
    first, second = right(a), right(b)
    if first is None or second is None or predictor(a) != predictor(b) or not same_rows(a, b):
        return None
    return mcnemar(first[0], second[0])


def predictor(run: ComparedRun) -> str:
    """The protocol whose predictions analysis.npz has: the one with the accuracy that they give."""
    hits = right(run)
    share = None if hits is None else float(hits[0].mean())
    match = (r.name for r in run.results if share is not None and math.isclose(accuracy(r), share, abs_tol=1e-9))
    return next(match, "the first protocol")


def same_rows(a: ComparedRun, b: ComparedRun) -> bool:
    """Whether both were tested on the same rows: same data, and if only a part was drawn, with the same seed."""
    first, second = right(a), right(b)
    if first is None or second is None or not np.array_equal(first[1], second[1]):
        return False
    keys = ("data.name", "data.test_limit")
    is_sample = a.recipe.get("data.test_limit", "null") != "null" and a.seed != b.seed
    same_file = a.state.data_file == b.state.data_file
    same_content = _digest(a) == _digest(b)
    return same_file and same_content and not is_sample and all(a.recipe.get(key) == b.recipe.get(key) for key in keys)


def _digest(run: ComparedRun) -> str:
    """The digest of data from Python; "null" for other data."""
    return run.recipe.get("data.digest", "null")
