"""The learning rate is too low, or the training too short: the loss hardly moved, or still falls steeply at the end.

Ill: less than 0.02 of what could be won is won at the end; in a recipe, less than a hundredth of the smallest
published rate.
Watch: the last fifth of the run brought more than 0.15 of the whole fall; less than a tenth of the smallest rate.
Why: of 254 finished runs the least won is 0.15, and the last fifth brought 0.08 at most, but for 8 of the 45 with
random labels, which were stopped on purpose (`_course`, equations 2 and 3). Nothing is said of rates more than 3 times
above the published ones: what happens there is their doing.
Reads: metrics.jsonl (loss, bound), recipe (optimiser, batch).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._course import course_of
from kontrast.doctor.rules._rates import at_base, published, words


class LearningRateLow(Rule):
    """Looks at the course of the loss, and at the rate."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "learning rate too low, or training too short"

    def examine(self, record: Record) -> Finding | None:
        """What happened counts more than what was asked for."""
        if record.patient == "recipe":
            low = published(record.recipe.optim.name)[0]
            grade = below(at_base(record) / low, ill=0.01, watch=0.1)
            return self.by(grade, words(record), f"raise optim.lr towards {low:.2g} for a batch of 256")
        course = course_of(record)
        try:
            if at_base(record) > 3 * published(record.recipe.optim.name)[1]:
                return None
        except Missing:
            pass  # an optimiser that nobody published with: the course alone is judged
        if course.won < 0.02:
            return self.ill(
                f"{course.words()}: {100 * max(course.won, 0):.1f} % of what could be won; {words(record)}",
                "raise optim.lr by 10, and look whether the encoder's parameters are trained at all",
            )
        seen = f"{course.words()}, the last fifth of the run brought {100 * course.falling:.0f} % of the fall"
        if course.falling > 0.15:
            return self.watch(seen, "train longer (train.epochs), or raise optim.lr by 2 to 3")
        return self.healthy(seen)
