"""Tuning: k1 and k2 as the TCL supplement chooses them, or a loss's temperature, on rows held out of the training rows.

    search       what a search is: it proposes settings, is sent their scores, and ends
    k            the supplement's procedure
    temperature  a coarse grid, then ever closer to its best
    hopeless     which trials are not trained to their end
    trials       one setting, one seed: trained and scored; the test rows are not there
    remark       whether any k1 below 5,000 beat SupCon, as the supplement says
    tuning       a search with its trials, and its record, tune.json

`kontrast tune RECIPE` is `tune` on the command line.
"""

from kontrast.experiments.tune.k import choose_k
from kontrast.experiments.tune.search import Ending, Phase, Score, Search
from kontrast.experiments.tune.temperature import choose_temperature
from kontrast.experiments.tune.tuning import Tuning, tune

__all__ = ["Ending", "Phase", "Score", "Search", "Tuning", "choose_k", "choose_temperature", "tune"]
