"""Tuning: settings of a recipe chosen on rows held out of its training rows. ``kontrast tune`` is `tune`.

    search       what a search procedure is: it proposes settings, receives their scores, and ends
    k            TCL's procedure for k1 and k2, and its remark about SupCon
    temperature  a coarse grid of temperatures, then closer to the best
    trials       one setting, one seed: trained and scored without test rows; stopped half-way if far below the others
    study        the Optuna side: storage, samplers, pruner (needs ``pip install 'kontrast[tune]'``)
    tuning       a search with its trials, and its record, tune.json

`kontrast.experiments.ranges` reads ranges such as ``optim.lr=log:0.01..1``.
"""

from kontrast.experiments.tune.k import choose_k
from kontrast.experiments.tune.search import Ending, Phase, Score, Search
from kontrast.experiments.tune.temperature import choose_temperature
from kontrast.experiments.tune.tuning import Tuning, tune

__all__ = ["Ending", "Phase", "Score", "Search", "Tuning", "choose_k", "choose_temperature", "tune"]
