"""Training: one loop for every method, checkpoints, monitors, the run folder.

    recipe → `resolve` → `make_job` → `Training.run` → evaluation, analysis, export

`run_recipe` does it all; `kontrast.run` also takes a recipe's name. The pieces work alone: `gradients.backward` for
batches larger than memory, `checkpoint.save` for files that are whole or not there, `monitors.measure` for a network of
your own.
"""

from kontrast.runs import Run
from kontrast.train.folder import RunFolder
from kontrast.train.job import Job, make_job
from kontrast.train.loop import Training
from kontrast.train.resolving import resolve
from kontrast.train.running import load, pick_device, protocol_defaults, run_recipe, subject_of
from kontrast.train.stopping import NonFiniteLoss, Stopped

__all__ = [
    "Job",
    "NonFiniteLoss",
    "Run",
    "RunFolder",
    "Stopped",
    "Training",
    "load",
    "make_job",
    "pick_device",
    "protocol_defaults",
    "resolve",
    "run_recipe",
    "subject_of",
]
