"""Graf et al.: CE, CE-fix and SC, their errors, how near a simplex they come, random labels, and free points.

At the `cpu` scale the runs are small-resnet on `fashion-mini`, or on other images by ``data=``; `_scale` has the sizes
that pilots decide. The paper's three open questions have an experiment each: capacity, projector, interaction.
"""

from kontrast.experiments.papers.graf._geometry import GEOMETRY
from kontrast.experiments.papers.graf._open_questions import CAPACITY, PROJECTED
from kontrast.experiments.papers.graf._random_labels import INTERACTION, RANDOM_LABELS
from kontrast.experiments.papers.graf._table import TABLE
from kontrast.experiments.papers.graf._without_encoder import CONFIGURED, TOY

EXPERIMENTS = [TABLE, GEOMETRY, RANDOM_LABELS, TOY, CONFIGURED, CAPACITY, PROJECTED, INTERACTION]
