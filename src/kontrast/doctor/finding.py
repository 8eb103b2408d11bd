"""What a rule found of a patient.

| status | what it says |
|---|---|
| ill | the sign of the disease is there: do what the cure says |
| watch | near it, or a choice that often goes wrong: look at it when the result disappoints |
| healthy | looked for and not there |
| unknown | could not be looked for; the evidence says what is missing |
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["ill", "watch", "healthy", "unknown"]
STATUSES: tuple[Status, ...] = ("ill", "watch", "unknown", "healthy")
"""In the order in which findings are told."""


@dataclass(frozen=True)
class Finding:
    """One disease looked for: what was seen, and what to do about it (empty where nothing is).

    >>> Finding("small-queue", "ill", "queue too small", "16 keys, batches of 64", "raise method.queue").record()
    {'rule': 'small-queue', 'status': 'ill', 'disease': 'queue too small', 'evidence': '16 keys, batches of 64',
     'cure': 'raise method.queue'}
    """

    rule: str
    status: Status
    disease: str
    evidence: str
    cure: str = ""

    def record(self) -> dict[str, str]:
        """As JSON has it."""
        return asdict(self)
