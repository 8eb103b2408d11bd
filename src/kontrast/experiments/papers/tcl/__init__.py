"""TCL: SupCon against TCL with intervals, what they are stable against, without labels, and the gradient theory.

At the `cpu` scale everything is small-resnet on 10,000 images (`_scale` has its numbers): what the paper's recipes have
in common with the small ones (loss, k1, k2, projector, views) stays, what a study varies is varied over smaller values.
"""

from kontrast.experiments.papers.tcl._gradients import GRADIENTS
from kontrast.experiments.papers.tcl._k1 import STRENGTH
from kontrast.experiments.papers.tcl._studies import STUDIES
from kontrast.experiments.papers.tcl._tables import TABLES
from kontrast.experiments.papers.tcl._unlabelled import UNLABELLED

EXPERIMENTS = [*TABLES, STRENGTH, *STUDIES, UNLABELLED, GRADIENTS]
