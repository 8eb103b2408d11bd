"""Graf et al.: CE, CE-fix and SC, their errors, how near a simplex they come, random labels, and free points.

At the `cpu` scale the runs are small-resnet on `fashion-mini`; random labels are fitted on a few hundred of its images.
"""

from kontrast.experiments.papers.graf._geometry import GEOMETRY
from kontrast.experiments.papers.graf._random_labels import RANDOM_LABELS
from kontrast.experiments.papers.graf._table import TABLE
from kontrast.experiments.papers.graf._without_encoder import CONFIGURED, TOY

EXPERIMENTS = [TABLE, GEOMETRY, RANDOM_LABELS, TOY, CONFIGURED]
