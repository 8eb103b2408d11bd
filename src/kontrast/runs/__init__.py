"""Run folders and experiment folders: the one place that knows their files, the keys in them, and how to read them.

    Run(path).result, .metrics(), .value("knn20"), .state.status     one thing, strict: an error names file and field
    Run(path).read()                                                  everything, strict
    Run(path).read(strict=False)                                      what fits, and .messages about the rest
    ExperimentFolder(path).summary                                    an experiment's result.json

`schemas` has a pydantic model for each file. Writing is atomic (`kontrast.files`), `Run.lock` keeps a second process
out, `Run.changed_files` compares the files of a finished run with their digests. This package never imports torch.
"""

from kontrast.runs.arrays import read_features, write_features
from kontrast.runs.displayed import Displayed
from kontrast.runs.experiment import ExperimentFolder, TuneFolder, kind_of_folder
from kontrast.runs.log import WALL_CLOCK, MetricsLog
from kontrast.runs.run import Busy, Contents, Run, commit, data_digest, file_digest, timestamp
from kontrast.runs.schemas import (
    Analysis,
    Examination,
    Finding,
    Geometry,
    Measure,
    MeasureVerdict,
    ModelCard,
    MonitorChart,
    ProtocolResult,
    Result,
    State,
    Summary,
    TaskCall,
    Verdict,
)

__all__ = [
    "WALL_CLOCK",
    "Analysis",
    "Busy",
    "Contents",
    "Displayed",
    "Examination",
    "ExperimentFolder",
    "Finding",
    "Geometry",
    "Measure",
    "MeasureVerdict",
    "MetricsLog",
    "ModelCard",
    "MonitorChart",
    "ProtocolResult",
    "Result",
    "Run",
    "State",
    "Summary",
    "TaskCall",
    "TuneFolder",
    "Verdict",
    "commit",
    "data_digest",
    "file_digest",
    "kind_of_folder",
    "read_features",
    "timestamp",
    "write_features",
]
