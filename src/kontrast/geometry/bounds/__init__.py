"""How low each loss can go (`closed_forms`), and where between chance and that a value stands (`standing`).

>>> from kontrast import losses
>>> from kontrast.geometry import bounds
>>> bounds.standing(losses.InfoNCELoss(temperature=0.1), 3.0, num_negatives=4096)
Standing(chance=8.318..., collapsed=8.318..., bound=8.44...e-06, value=3.0)
"""

from kontrast.geometry.bounds.closed_forms import (
    anchor_value,
    batches_with,
    cross_entropy,
    cross_entropy_any,
    hyperspherical_energy,
    info_nce,
    info_nce_beside,
    info_nce_queue,
    regularised_cross_entropy,
    regularised_weight_radius,
    simplex_response,
    supcon_all_batches,
    supcon_batch,
    tcl_batch,
)
from kontrast.geometry.bounds.standing import Standing, standing

__all__ = [
    "Standing",
    "anchor_value",
    "batches_with",
    "cross_entropy",
    "cross_entropy_any",
    "hyperspherical_energy",
    "info_nce",
    "info_nce_beside",
    "info_nce_queue",
    "regularised_cross_entropy",
    "regularised_weight_radius",
    "simplex_response",
    "standing",
    "supcon_all_batches",
    "supcon_batch",
    "tcl_batch",
]
