"""A sweep of nine runs of a second, with table and chart: ``python sweep.py INPUTS OUT``; status 75 if some failed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(1, str(Path(__file__).parents[1]))

from kontrast.experiments.cell import At
from kontrast.experiments.engines.local import Local
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset
from kontrast.experiments.sweep import Sweep
from kontrast.recipe import Recipe
from kontrast.train import Run
from storm.crew import AGAIN
from storm.kinds import small


def make(at: At) -> Recipe:
    """The run at a temperature."""
    return Recipe.of(
        small("supcon", Path(sys.argv[1]), {"method": {"temperature": at["temperature"]}, "train": {"steps": 60}})
    )


EXPERIMENT = Experiment(
    "storm",
    "A sweep to be killed",
    "nobody",
    {"temperature": (0.1, 0.2, 0.5)},
    {"tiny": Preset("as small as can be", make, seeds=3)},
    [Measure("knn", "kNN accuracy", lambda folder: Run(folder).value("knn20"))],
    "temperature",
    charts=[Chart("accuracy", "Accuracy", "line", "temperature", "knn")],
)

if __name__ == "__main__":
    sweep = Sweep.of(EXPERIMENT, "tiny", out=sys.argv[2])
    sweep.run(Local(jobs=2))
    sys.exit(AGAIN if sweep.missing else 0)
