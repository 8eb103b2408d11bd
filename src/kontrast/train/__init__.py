"""Training: one loop for every method, checkpoints, monitors, and the session that fills a run folder.

    recipe → `resolve` → `make_job` → `Training.run` → evaluation, analysis, export

`kontrast.pipeline` does it all (`kontrast.run`, ``kontrast train``) with a `Session`. The pieces work alone:
`gradients.backward` for batches larger than memory, `checkpoint.save` for files that are complete or not there,
`monitors.measure` for a network of your own.
"""

from kontrast.runs import Run
from kontrast.train.evaluation import protocol_defaults, subject_of, subject_on
from kontrast.train.job import Job, make_job
from kontrast.train.loading import is_run, load
from kontrast.train.loop import Training
from kontrast.train.machine import pick_device
from kontrast.train.resolving import resolve
from kontrast.train.running import Session
from kontrast.train.stopping import NonFiniteLoss, Stopped

__all__ = [
    "Job",
    "NonFiniteLoss",
    "Run",
    "Session",
    "Stopped",
    "Training",
    "is_run",
    "load",
    "make_job",
    "pick_device",
    "protocol_defaults",
    "resolve",
    "subject_of",
    "subject_on",
]
