"""A run that failed, was stopped, or has not ended: its measures are not those of a finished model.

Problem: run.json says failed.
Warning: it says interrupted, or still training or evaluating.
Why: it explains all other findings, so it is shown first.
Reads: run.json; whether there is a checkpoint.
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule
from kontrast.runs import Run

ADVICE = {
    "NonFiniteLoss": "lower optim.lr (by 10 as a first try), warm it up (schedule=warmup-cosine), and check whether "
    "method.temperature is below 0.02",
    "MemoryError": "set train.micro_batch=auto: the loss still sees the whole batch",
    "OutOfMemory": "set train.micro_batch=auto (the loss still sees the whole batch), or run.device=cpu",
    "FileNotFoundError": "put the data where the recipe expects them, or change data.name or run.data_root",
    "OSError": "check whether the disk is full or the data have moved; then run the same command again",
}
RESUME = "read the error above and fix its cause; the same command then continues from the last checkpoint"
RESTART = "read the error above, correct the setting that it names and start again (other settings have another folder)"


class FailedRun(Rule):
    """Looks at the run's status."""

    patients = ("run",)
    title = "the run did not end well"
    explains_others = True

    def examine(self, record: Record) -> Finding | None:
        state = record.state
        if state.status is None:
            raise Missing("there is no run.json, or no status in it: the run has not begun")
        place = f"step {state.step or 0} of {state.total_steps}" if state.total_steps else "before the first checkpoint"
        if state.status == "failed":
            error = state.error or "no error was written down"
            advice_of_error = next((advice for name, advice in ADVICE.items() if name in error.partition(":")[0]), None)
            has_checkpoint = record.path is not None and Run(record.path).last_checkpoint.exists()
            return self.problem(f"failed, {place}: {error}", advice_of_error or (RESUME if has_checkpoint else RESTART))
        if state.status == "done":
            return self.ok(f"done, {place}")
        status = "interrupted" if state.status == "interrupted" else f"{state.status}, or killed while it was"
        return self.warning(f"{status}, {place}", f"`kontrast train {record.path}` continues it")
