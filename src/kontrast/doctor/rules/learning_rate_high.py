"""The learning rate is too high: the loss is not finite, rises again, or never falls.

Problem: a NonFiniteLoss; more than 0.3 of the fall lost again at the end; less than a quarter of what could be gained
is gained, with a rate 10 times above the published ones; in a recipe, such a rate.
Warning: more than 0.15 lost again; a rate more than 3 times above the published ones; a batch of 1,024 or more without
warm-up.
Why: of 222 finished runs none has lost more than 0.1 again (`_learned`, equation 1). Where a target moves with the
network (ReSSL, SCE), its entropy falls and the loss above it may rise in good runs: there only the rate counts. Rates
are compared at a batch of 256 by the linear rule, which holds up to some thousands with warm-up (Goyal et al.).
Reads: run.json (error), metrics.jsonl (loss, bound, lr), recipe (optimiser, batch, schedule).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above, percent
from kontrast.doctor.rules._learned import course_of
from kontrast.doctor.rules._setup import describe_rate, rate_at_base, rate_of, scales_with_batch, usual_rates

LARGE = 1024


class LearningRateHigh(Rule):
    """Looks at the course of the loss, and at the rate."""

    patients = ("run", "recipe")
    title = "learning rate too high"

    def examine(self, record: Record) -> Finding | None:
        if "NonFiniteLoss" in str(record.state.error or ""):
            return self.problem(f"{record.state.error}", _advice(record))
        if record.patient == "recipe":
            return self._of_recipe(record)
        course = course_of(record)
        evidence = f"{course.describe()}, {percent(max(course.risen, 0.0))} of the fall lost again"
        moves = "target_temperature" in record.options
        grade = "ok" if moves else above(course.risen, problem=0.3, warning=0.15)
        if grade != "problem" and self._of_recipe(record).status == "problem":
            gained = f"{percent(max(course.gained, 0.0))} of what could be gained"
            return self.graded(
                "problem" if course.gained < 0.25 else "warning",
                f"{course.describe()}, {gained}; {describe_rate(record)}",
                _advice(record),
            )
        return self.graded(grade, evidence, _advice(record))

    def _of_recipe(self, record: Record) -> Finding:
        try:
            ratio = rate_at_base(record) / usual_rates(record.recipe.optim.name)[1]
        except Missing:
            if record.patient == "run":
                return self.ok("no rate to compare with")
            raise
        schedule, batch = record.recipe.schedule, record.recipe.train.batch_size
        warm = schedule.options.get("warmup_epochs", 0) or schedule.options.get("warmup", 0)
        grade = above(ratio, problem=10.0, warning=3.0)
        if grade == "ok" and batch >= LARGE and not warm and scales_with_batch(record.recipe.optim.name):
            return self.warning(
                f"batches of {batch} without warm-up; {describe_rate(record)}", "schedule=warmup-cosine"
            )
        return self.graded(grade, describe_rate(record), _advice(record))


def _advice(record: Record) -> str:
    try:
        key, _ = rate_of(record)
    except Missing:
        key = "optim.lr"
    return f"lower {key} by 3 to 10, or warm it up (schedule=warmup-cosine)"
