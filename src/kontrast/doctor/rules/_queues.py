"""The queue of a momentum method: how many keys, how many come in a step."""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.doctor.record import Record


@dataclass(frozen=True)
class Queue:
    """As the recipe has it."""

    length: int
    batch: int
    keys: int  # that join it in a step
    momentum: float

    @property
    def age(self) -> float:
        """Steps that the oldest key has seen pass."""
        return self.length / self.keys

    @property
    def drift(self) -> float:
        """1 − momentum times the age: how far the target has moved on meanwhile; at 1 it is replaced to 1 − 1/e."""
        return self.age * (1 - self.momentum)


def queue_of(record: Record) -> Queue | None:
    """None for methods without one."""
    options, batch = record.options, record.recipe.train.batch_size
    if "queue" not in options:
        return None
    keys = batch * (2 if options.get("symmetric") else 1)
    return Queue(int(options["queue"]), batch, keys, float(options["momentum"]))
