"""The learning rate is too low, or the training too short: the loss hardly moved, or still falls steeply at the end.

Problem: less than 0.02 of what could be gained is gained at the end, with a rate below the published ones; in a recipe,
less than a hundredth of the smallest published rate.
Warning: the last fifth of the run brought more than 0.15 of the whole fall; in a recipe, less than a tenth of the
smallest published rate.
Why: in 254 finished runs the least gained is 0.15, and the last fifth brought at most 0.08, except for 8 of the 45 with
random labels, which were stopped on purpose (`_learned`, equations 2 and 3). A loss that does not move at a published
rate, that rises, or whose temperature is too high, does not need larger steps: MoCo on the digits, its loss rising at
0.24 for 256 images, has a kNN of 0.82 there, 0.68 (collapsed) at ten times that rate and 0.91 at a tenth. Rates more
than 3 times above the published ones get no finding: `learning-rate-high` judges them.
Reads: metrics.jsonl (loss, bound), recipe (optimiser, batch, temperature).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, below, percent
from kontrast.doctor.rules._learned import Course, course_of
from kontrast.doctor.rules._setup import describe_rate, least_rate, rate_at_base, rate_of, usual_rates
from kontrast.doctor.rules.temperature_high import TemperatureHigh

LEAST_GAIN = 0.02  # of what could be gained


class LearningRateLow(Rule):
    """Looks at the course of the loss, and at the rate."""

    patients = ("run", "recipe")
    title = "learning rate too low, or training too short"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        if record.patient == "recipe":
            low = usual_rates(record.recipe.optim.name)[0]
            grade = below(rate_at_base(record) / low, problem=0.01, warning=0.1)
            return self.graded(
                grade, describe_rate(record), f"raise {rate_of(record)[0]} towards {least_rate(record):.2g}"
            )
        course = course_of(record)
        try:
            low, high = usual_rates(record.recipe.optim.name)
        except Missing:  # no usual rates: only the course is judged
            return self._of_course(course) or self.ok(f"{course.describe()}; no rate to compare with")
        if rate_at_base(record) > 3 * high:
            return None
        if course.gained >= LEAST_GAIN:
            return self._of_course(course, faster=3 * rate_at_base(record) <= high) or self.ok(self._falling(course))
        evidence = f"{course.describe()}: {percent(max(course.gained, 0.0))} of what could be gained"
        other = self._other_cause(record, course, low)
        if other:
            return self.ok(f"{evidence}, but {other}; {describe_rate(record)}")
        advice = f"{_advice(record)}; check that the encoder's parameters are trained"
        return self.problem(f"{evidence}; {describe_rate(record)}", advice)

    def _other_cause(self, record: Record, course: Course, low: float) -> str:
        """Why larger steps would not help; empty if they might."""
        if course.gained < -LEAST_GAIN:
            return "it rose: larger steps do not help"
        if rate_at_base(record) >= low:
            return "not because of the rate, which is no lower than others: the cause is elsewhere"
        hot = TemperatureHigh()(record)
        return "the temperature is too high for any rate" if hot is not None and hot.status == "problem" else ""

    def _of_course(self, course: Course, *, faster: bool = False) -> Finding | None:
        """A warning if the loss still falls steeply; else None."""
        if course.falling <= 0.15:
            return None
        return self.warning(
            self._falling(course), "train longer (train.epochs)" + (", or raise optim.lr by 2 to 3" if faster else "")
        )

    def _falling(self, course: Course) -> str:
        return f"{course.describe()}, the last fifth of the run brought {percent(max(course.falling, 0.0))} of the fall"


def _advice(record: Record) -> str:
    return f"raise {rate_of(record)[0]} towards {least_rate(record):.2g}"
