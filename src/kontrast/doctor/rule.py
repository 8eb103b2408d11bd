"""The base class of all rules: a record in, a finding out; None where the rule does not apply.

The docstring of a rule's file has lines that begin with ``Problem:``, ``Warning:``, ``Why:`` and ``Reads:``; the table
of docs/doctor.md is made from them.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from typing import ClassVar, get_args

from kontrast.doctor.record import Missing, Patient, Record
from kontrast.runs import Finding
from kontrast.runs.schemas import Status

__all__ = ["Finding", "Missing", "Record", "Rule", "above", "below", "percent", "quantity", "short_number"]

FEWEST_STEPS, ENOUGH_STEPS = 50, 500  # the shortest recipes here (fashion-mini) have 585 steps


class Rule(ABC):
    """One thing that the doctor looks for. ``RULES.make("small-queue")(record)`` is the finding of one rule.

    A new rule sets ``patients`` and ``title``, and writes `examine`. ``RULES["small-queue"]`` is its class; hyphens and
    underscores in a name are equal.

    Attributes:
        patients: What the rule can examine: ``"run"``, ``"features"``, ``"recipe"``.
        title: What the rule looks for, in a few words; the finding's title.
        of_learning: Whether every run of a few steps shows the sign. Such a run only gets a warning.
        explains_others: Whether a problem or a warning explains the other findings, so that it is shown before them.

    >>> from kontrast.doctor.rules import RULES
    >>> RULES["small-queue"].title
    'queue too small'
    >>> finding = RULES.make("small-queue")(Record(patient="features"))
    >>> finding.status, finding.evidence
    ('unknown', 'a file of features has no recipe')
    """

    patients: ClassVar[tuple[Patient, ...]]
    title: ClassVar[str]
    of_learning: ClassVar[bool] = False
    explains_others: ClassVar[bool] = False

    @abstractmethod
    def examine(self, record: Record) -> Finding | None:
        """Judge the record.

        Returns:
            A finding, made with `problem`, `warning`, `ok` or `graded`; None if the rule does not apply.

        Raises:
            Missing: Something that the rule needs is not there. The finding is then ``unknown``.
        """

    def check(self) -> None:
        """Raise a TypeError if the class does not say what it can examine, or has no title."""
        kind, patients = type(self).__name__, getattr(self, "patients", None)
        if not isinstance(patients, tuple) or not patients or not set(patients) <= set(get_args(Patient)):
            words = ", ".join(map(repr, get_args(Patient)))
            raise TypeError(f"{kind}.patients={patients!r}: must be a tuple of one or more of {words}")
        if not isinstance(title := getattr(self, "title", None), str) or not title:
            raise TypeError(f"{kind}.title={title!r}: must be a few words, what the rule looks for")

    def __call__(self, record: Record) -> Finding | None:
        """Judge the record.

        What the record lacks makes the finding ``unknown``, with the reason. So does an error in the rule's own code;
        the finding then says so and names the rule's file.
        """
        try:
            finding = self.examine(record)
            if finding is not None and not isinstance(finding, Finding):
                raise TypeError(f"examine must return a Finding or None, got a {type(finding).__name__}")
            return self._soften(finding, record) if finding is not None and self.of_learning else finding
        except Missing as missing:
            return self._finding("unknown", str(missing))
        except Exception as error:  # one rule's error must not hide what the others find
            what = f"the rule {self.name} has an error: {type(error).__name__}: {error}"
            file = getattr(sys.modules.get(type(self).__module__), "__file__", None)
            return self._finding("unknown", what, f"correct {file or 'it'}")

    def _soften(self, finding: Finding, record: Record) -> Finding:
        short = too_short(record)
        if short is None or finding.status not in ("problem", "warning"):
            return finding
        return self.warning(f"{finding.evidence}; {short[0]}", f"{short[1]}; if that does not help: {finding.advice}")

    @property
    def name(self) -> str:
        """The name of the rule's file."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    def problem(self, evidence: str, advice: str) -> Finding:
        """A finding: the sign is there."""
        return self._finding("problem", evidence, advice)

    def warning(self, evidence: str, advice: str) -> Finding:
        """A finding: nearly the sign, or a choice that often goes wrong."""
        return self._finding("warning", evidence, advice)

    def ok(self, evidence: str) -> Finding:
        """A finding: the sign is not there."""
        return self._finding("ok", evidence)

    def graded(self, status: Status, evidence: str, advice: str) -> Finding:
        """A finding whose status was computed; without the advice if it is ``ok``."""
        return self._finding(status, evidence, "" if status == "ok" else advice)

    def _finding(self, status: Status, evidence: str, advice: str = "") -> Finding:
        if status not in get_args(Status):
            raise ValueError(f"status={status!r}: must be one of {', '.join(map(repr, get_args(Status)))}")
        return Finding(rule=self.name, status=status, title=self.title, evidence=evidence, advice=advice)


def above(value: float, *, problem: float, warning: float) -> Status:
    """The status of a value that is bad when it is large.

    >>> [above(value, problem=0.3, warning=0.1) for value in (0.5, 0.2, 0.05)]
    ['problem', 'warning', 'ok']
    """
    return "problem" if value > problem else "warning" if value > warning else "ok"


def below(value: float, *, problem: float, warning: float) -> Status:
    """The status of a value that is bad when it is small."""
    return above(-value, problem=-problem, warning=-warning)


def trained_steps(record: Record) -> int:
    """The number of training steps, by the log, or by run.json if the log has none."""
    steps = [int(step) for line in record.metrics if (step := line.get("step")) is not None]
    count = max(steps, default=record.state.step or 0)
    if not count:
        raise Missing("metrics.jsonl has no step")
    return count


def too_short(record: Record) -> tuple[str, str] | None:
    """Evidence and advice if a run is too short to judge what it learned; else None.

    After a few dozen steps the embeddings still lie where the random weights put them, near one point, and the loss is
    at chance, whether the recipe is right or wrong. A failed run is never too short: its error is the finding.
    """
    if record.patient != "run" or record.state.status == "failed":
        return None
    try:
        steps = trained_steps(record)
    except Missing:
        return None
    if steps >= FEWEST_STEPS:
        return None
    return f"{quantity(steps, 'step')} in all: too short to judge", f"train longer ({_longer(record)})"


def _longer(record: Record) -> str:
    train = record.recipe.train
    if train.steps is not None:
        return f"train.steps={ENOUGH_STEPS}"
    per_epoch = [step / epoch for line in record.metrics if (step := line.get("step")) and (epoch := line.get("epoch"))]
    steps = per_epoch[-1] if per_epoch else 1.0
    return f"train.epochs={max(math.ceil(ENOUGH_STEPS / steps), 2 * (train.epochs or 1))}"


def percent(share: float) -> str:
    """A share as a readable percentage, whatever its size.

    >>> [percent(share) for share in (1.0, 0.9999, 0.123, 0.0123, 1e-7, 0.0, -0.001)]
    ['100 %', '100 %', '12 %', '1.2 %', 'below 0.01 %', '0 %', '-0.1 %']
    """
    value = 100 * share
    if 0 < abs(value) < 0.01:
        return "below 0.01 %"
    return f"{value:.0f} %" if abs(value) >= 9.95 or value == 0 else f"{value:.2g} %"


def quantity(number: int, noun: str) -> str:
    """A number with its noun.

    >>> quantity(1, "line"), quantity(2000, "line")
    ('1 line', '2,000 lines')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def short_number(number: float) -> str:
    """A number with three digits; no exponent below a million.

    >>> short_number(1.4567), short_number(2998.6), short_number(4.8e8)
    ('1.46', '2,999', '4.8e+08')
    """
    return f"{number:,.0f}" if 100 <= number < 1e6 else f"{number:.3g}"
