"""A run that failed, was stopped, or has not ended: what is measured of it is not of a finished model.

Ill: run.json says failed.
Watch: it says interrupted, or still training or evaluating.
Why: whatever else is seen, this explains it; so it is told first.
Reads: run.json; whether there is a checkpoint.
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule
from kontrast.train.folder import RunFolder

CURES = {
    "NonFiniteLoss": "lower optim.lr (by 10, to begin with), warm it up (schedule=warmup-cosine), and look whether "
    "method.temperature is below 0.02",
    "MemoryError": "set train.micro_batch=auto: the loss still sees the whole batch",
    "OutOfMemory": "set train.micro_batch=auto (the loss still sees the whole batch), or run.device=cpu",
    "FileNotFoundError": "put the data where the recipe says, or say data.name and run.data_root anew",
    "OSError": "look whether the disk is full or the data have moved; then the same command again",
}
OTHER = "read the error above and mend what it names; the same command then continues from the last checkpoint"
ANEW = "read the error above, correct the setting that it names and start anew (other settings have another folder)"


class FailedRun(Rule):
    """Looks at the status."""

    patients: ClassVar[tuple[Patient, ...]] = ("run",)
    disease: ClassVar[str] = "the run did not end well"

    def examine(self, record: Record) -> Finding | None:
        """By the status."""
        status, step = record.run.get("status"), record.run.get("step", 0)
        of = record.run.get("total_steps")
        at = f"step {step} of {of}" if of else "before the first checkpoint"
        if status is None:
            raise Missing("there is no run.json, or no status in it: the run has not begun")
        if status == "failed":
            error = str(record.run.get("error") or "no error was written down")
            cure = next((cure for name, cure in CURES.items() if name in error.partition(":")[0]), None)
            kept = record.path is not None and RunFolder(record.path).last.exists()
            return self.ill(f"failed, {at}: {error}", cure or (OTHER if kept else ANEW))
        if status == "done":
            return self.healthy(f"done, {at}")
        words = "interrupted" if status == "interrupted" else f"{status}, or killed while it was"
        return self.watch(f"{words}, {at}", f"`kontrast train {record.path}` continues it")
