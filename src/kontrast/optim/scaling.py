"""The linear rule for learning rates: a batch k times as large has a learning rate k times as large.

    (1)  lr(B) = lr · B / base

(Goyal et al.; sce writes its rates so, 0.06·B/256 on small sets, 0.3·B/256 on ImageNet.) Nothing applies it
automatically: a recipe holds the learning rate itself, and another batch size leaves it as it is.
"""

from __future__ import annotations

from kontrast.checks import number, whole_number


def scale_rate(lr: float, batch_size: int, base: int = 256) -> float:
    """Scale a learning rate to another batch size (1).

    Args:
        lr: The learning rate for batches of ``base``.
        batch_size: B.
        base: The batch size that ``lr`` is for.

    Returns:
        lr(B).

    Raises:
        ValueError: A number is outside its range.

    >>> scale_rate(0.06, 512), scale_rate(0.3, 4096)
    (0.12, 4.8)
    """
    lr = number("lr", lr, least=0.0)
    return lr * whole_number("batch_size", batch_size, least=1) / whole_number("base", base, least=1)
