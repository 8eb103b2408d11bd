"""Graf et al.: CE, CE-fix and SC, their errors, how near a simplex they come, random labels, and free points.

At the `cpu` scale the runs are small-resnet on `fashion-mini`, or on other images by ``data=``; `encoders` has the
sizes that pilots decide. The paper's three open questions have an experiment each: capacity, projector, interaction.
"""

from kontrast.experiments.papers.graf.encoders import CAPACITY, GEOMETRY, PROJECTED, TABLE
from kontrast.experiments.papers.graf.points import CONFIGURED, TOY
from kontrast.experiments.papers.graf.random_labels import INTERACTION, RANDOM_LABELS

EXPERIMENTS = [TABLE, GEOMETRY, RANDOM_LABELS, TOY, CONFIGURED, CAPACITY, PROJECTED, INTERACTION]
