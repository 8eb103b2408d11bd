"""The learning rate is too low, or the training too short: the loss hardly moved, or still falls steeply at the end.

Ill: less than 0.02 of what could be won is won at the end, with a rate below the published ones; in a recipe, less than
a hundredth of the smallest of them.
Watch: the last fifth of the run brought more than 0.15 of the whole fall; less than a tenth of the smallest rate.
Why: of 254 finished runs the least won is 0.15, and the last fifth brought 0.08 at most, but for 8 of the 45 with
random labels, which were stopped on purpose (`_course`, equations 2 and 3). A loss that does not move at a published
rate, that rises, or whose temperature is too high, is not cured by longer steps: MoCo on the digits, its loss rising at
0.24 for 256 images, has a kNN of 0.82 there, 0.68 (collapsed) at ten times that and 0.91 at a tenth. Nothing is said of
rates more than 3 times above the published ones: what happens there is their doing.
Reads: metrics.jsonl (loss, bound), recipe (optimiser, batch, temperature).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, below
from kontrast.doctor.rules._course import Course, course_of
from kontrast.doctor.rules._rates import at_base, least, published, words
from kontrast.doctor.rules._words import percent
from kontrast.doctor.rules.temperature_high import TemperatureHigh

STILL = 0.02  # of what could be won: less is no movement


class LearningRateLow(Rule):
    """Looks at the course of the loss, and at the rate."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "learning rate too low, or training too short"
    of_learning: ClassVar[bool] = True

    def examine(self, record: Record) -> Finding | None:
        """What happened counts more than what was asked for."""
        if record.patient == "recipe":
            low = published(record.recipe.optim.name)[0]
            grade = below(at_base(record) / low, ill=0.01, watch=0.1)
            return self.by(grade, words(record), f"raise optim.lr towards {least(record):.2g}")
        course = course_of(record)
        try:
            low, high = published(record.recipe.optim.name)
        except Missing:  # an optimiser that nobody published with: the course alone is judged
            return self._of_course(course) or self.healthy(f"{course.words()}; no rate to compare with")
        if at_base(record) > 3 * high:
            return None
        if course.won >= STILL:
            return self._of_course(course, faster=3 * at_base(record) <= high) or self.healthy(self._falling(course))
        seen = f"{course.words()}: {percent(max(course.won, 0.0))} of what could be won"
        other = self._other_cause(record, course, low)
        if other:
            return self.healthy(f"{seen}, but {other}; {words(record)}")
        cure = f"raise optim.lr towards {least(record):.2g}; look whether the encoder's parameters are trained at all"
        return self.ill(f"{seen}; {words(record)}", cure)

    def _other_cause(self, record: Record, course: Course, low: float) -> str:
        """Why longer steps would not help; empty if they might."""
        if course.won < -STILL:
            return "it rose: longer steps are no cure"
        if at_base(record) >= low:
            return "not because of the rate, which is no lower than others: the cause is elsewhere"
        hot = TemperatureHigh()(record)
        return "the temperature is too high for any rate" if hot is not None and hot.status == "ill" else ""

    def _of_course(self, course: Course, *, faster: bool = False) -> Finding | None:
        """A fall that goes on."""
        if course.falling <= 0.15:
            return None
        return self.watch(
            self._falling(course), "train longer (train.epochs)" + (", or raise optim.lr by 2 to 3" if faster else "")
        )

    def _falling(self, course: Course) -> str:
        return f"{course.words()}, the last fifth of the run brought {percent(max(course.falling, 0.0))} of the fall"
