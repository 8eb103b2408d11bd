"""What the methods with Wang & Liu's four losses share (instance discrimination and SimCLR).

"ordinary" is the method's own softmax loss; in "hard" only the nearest negatives count, "simple" has no softmax, and
"hard-simple" is both. The simple ones know no temperature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kontrast import losses
from kontrast.methods._base import Method, OptionWords


class WangLiuMethod(Method):
    """Base of the methods whose option ``loss`` is one of the four."""

    option_words: ClassVar[OptionWords] = {
        "hard_negatives": "the {} nearest negatives",
        "warmup_steps": "after {} steps of NT-Xent",
        "bank_momentum": "memory bank of all training images with momentum {}",
    }

    @classmethod
    def words(cls, options: Mapping[str, Any], *, number: Callable[[float], str]) -> str:
        """Those of the base class, without what the loss does not use."""
        loss, unused = options["loss"], []
        unused += [] if loss.startswith("hard") else ["hard_negatives"]
        unused += ["temperature"] if loss.endswith("simple") else []
        unused += [] if options.get("warmup_steps") else ["warmup_steps"]
        return super().words({name: x for name, x in options.items() if name not in unused}, number=number)

    @classmethod
    def loss_temperature(cls, options: Mapping[str, Any]) -> float | None:
        return None if "simple" in str(options.get("loss")) else super().loss_temperature(options)

    @classmethod
    def keeps_nearest_negatives(cls, options: Mapping[str, Any]) -> bool:
        return "hard" in str(options.get("loss"))


def choose_loss(name: str, ordinary: losses.Loss, temperature: float, hard_negatives: int) -> losses.Loss:
    """The loss of the option ``method.loss``.

    Raises:
        ValueError: The name is unknown.
    """
    by_name = {
        "ordinary": ordinary,
        "hard": losses.HardContrastiveLoss(temperature, hard_negatives),
        "simple": losses.SimpleContrastiveLoss(),
        "hard-simple": losses.SimpleContrastiveLoss(hard_negatives=hard_negatives),
    }
    if name not in by_name:
        raise ValueError(f"method.loss={name!r}: must be one of {', '.join(by_name)}")
    return by_name[name]
