"""What every rule is: a record in, a finding out, or nothing where the disease cannot be.

The docstring of a rule's file has lines that begin with ``Ill:``, ``Watch:``, ``Why:`` and ``Reads:``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from kontrast.doctor.finding import Finding, Status
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._length import shortness


class Rule(ABC):
    """``rule(record)`` is its finding. A new one says its patients and the disease's name, and writes `examine`."""

    patients: ClassVar[tuple[Patient, ...]]
    disease: ClassVar[str]
    of_learning: ClassVar[bool] = False  # whether a run of a few steps has the sign anyhow

    @abstractmethod
    def examine(self, record: Record) -> Finding | None:
        """The finding, made with `ill`, `watch` or `healthy`; None if this patient cannot have the disease."""

    def __call__(self, record: Record) -> Finding | None:
        """`examine`; what is missing, or goes wrong in a strange folder, becomes ``unknown`` with the reason."""
        try:
            found = self.examine(record)
            return self._deferred(found, record) if found is not None and self.of_learning else found
        except Missing as missing:
            return self._found("unknown", str(missing))
        except Exception as error:  # one rule's trouble must not hide what the others see
            return self._found("unknown", f"the rule could not read this: {type(error).__name__}: {error}")

    def _deferred(self, found: Finding, record: Record) -> Finding:
        """A run that was too short is only watched, and to be trained longer before anything else."""
        short = shortness(record)
        if short is None or found.status not in ("ill", "watch"):
            return found
        return self.watch(f"{found.evidence}; {short[0]}", f"{short[1]}; if that does not help: {found.cure}")

    @property
    def name(self) -> str:
        """The file's."""
        return type(self).__module__.rpartition(".")[2].replace("_", "-")

    def ill(self, evidence: str, cure: str) -> Finding:
        """The sign is there."""
        return self._found("ill", evidence, cure)

    def watch(self, evidence: str, cure: str) -> Finding:
        """Near it."""
        return self._found("watch", evidence, cure)

    def healthy(self, evidence: str) -> Finding:
        """Looked for and not there."""
        return self._found("healthy", evidence)

    def by(self, grade: Status, evidence: str, cure: str) -> Finding:
        """Of a grade that was computed; the healthy need no cure."""
        return self._found(grade, evidence, "" if grade == "healthy" else cure)

    def _found(self, status: Status, evidence: str, cure: str = "") -> Finding:
        return Finding(self.name, status, self.disease, evidence, cure)


def above(value: float, *, ill: float, watch: float) -> Status:
    """The grade of a value that is bad when large.

    >>> above(0.5, ill=0.3, watch=0.1), above(0.2, ill=0.3, watch=0.1), above(0.05, ill=0.3, watch=0.1)
    ('ill', 'watch', 'healthy')
    """
    return "ill" if value > ill else "watch" if value > watch else "healthy"


def below(value: float, *, ill: float, watch: float) -> Status:
    """Of one that is bad when small."""
    return above(-value, ill=-ill, watch=-watch)
