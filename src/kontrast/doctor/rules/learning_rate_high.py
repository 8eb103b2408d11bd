"""The learning rate is too high: the loss is no number, rises again, or never falls while steps are long.

Ill: a NonFiniteLoss; more than 0.3 of the fall lost again at the end; less than a quarter of what could be won is won,
with a rate 10 times above the published ones; in a recipe, such a rate.
Watch: more than 0.15 lost again; more than 3 times the largest; a batch of 1,024 or more without warm-up.
Why: of 222 finished runs none has lost more than 0.1 again (`_course`, equation 1). Where a target moves with the
network (ReSSL, SCE), its entropy falls and the loss above it may rise in good runs: there only the rate counts. Rates
are compared at a batch of 256 by the linear rule, which holds up to some thousands with warm-up (Goyal et al.).
Reads: run.json (error), metrics.jsonl (loss, bound, lr), recipe (optimiser, batch, schedule).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above
from kontrast.doctor.rules._course import course_of
from kontrast.doctor.rules._rates import at_base, published, words
from kontrast.doctor.rules._words import percent

CURE = "lower optim.lr by 3 to 10, or warm it up (schedule=warmup-cosine)"
LARGE = 1024


class LearningRateHigh(Rule):
    """Looks at the course of the loss, and at the rate."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "learning rate too high"

    def examine(self, record: Record) -> Finding | None:
        """What happened counts more than what was asked for."""
        if "NonFiniteLoss" in str(record.run.get("error") or ""):
            return self.ill(f"{record.run['error']}", CURE)
        if record.patient == "recipe":
            return self._of_recipe(record)
        course = course_of(record)
        seen = f"{course.words()}, {percent(max(course.risen, 0.0))} of the fall lost again"
        moves = "target_temperature" in record.options
        grade = "healthy" if moves else above(course.risen, ill=0.3, watch=0.15)
        if grade != "ill" and self._of_recipe(record).status == "ill":
            won = f"{percent(max(course.won, 0.0))} of what could be won"
            return self.by("ill" if course.won < 0.25 else "watch", f"{course.words()}, {won}; {words(record)}", CURE)
        return self.by(grade, seen, CURE)

    def _of_recipe(self, record: Record) -> Finding:
        try:
            ratio = at_base(record) / published(record.recipe.optim.name)[1]
        except Missing:
            if record.patient == "run":
                return self.healthy("no rate to compare with")
            raise
        schedule, batch = record.recipe.schedule, record.recipe.train.batch_size
        warm = schedule.options.get("warmup_epochs", 0) or schedule.options.get("warmup", 0)
        grade = above(ratio, ill=10.0, watch=3.0)
        if grade == "healthy" and batch >= LARGE and not warm and record.recipe.optim.name != "adamw":
            return self.watch(f"batches of {batch} without warm-up; {words(record)}", "schedule=warmup-cosine")
        return self.by(grade, words(record), CURE)
