r"""Worse than the start: training has spoiled a pretrained encoder.

The run evaluates the encoder before the first step too, by the same protocol (kNN, k = 20) on the same test rows
(`kontrast.train.start`). With the difference d = end − start and its standard error s from the paired rows:

Problem: d below −0.01 and below −2 s.
Warning: d below −0.01 and below −s; or, in a recipe, a pretrained start with encoder.norm=train.
Why: if start and end are equally good, d < −2 s happens in 2 % of all runs. Nobody changes a recipe for less than one
point. EfficientNet-Lite0 with ImageNet weights, 600 photos at 128 pixels, SupCon for 2 epochs at a rate of 0.001: 87.0
% at the start, 82.5 % with encoder.norm=train, 89.5 % with frozen: small, strongly augmented batches have other
statistics than the plain images that the encoder is used on.
Reads: result.json (start), recipe (encoder.pretrained, encoder.norm).
"""

from __future__ import annotations

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above

LEAST = 0.01
KEEP = "keep the statistics of batch norm (encoder.norm=frozen)"


class WorseThanStart(Rule):
    """Compares the accuracy at the end with that at the start."""

    patients = ("run", "recipe")
    title = "worse than at the start"

    def examine(self, record: Record) -> Finding | None:
        options = record.recipe.encoder.options
        if options.get("pretrained") is None:
            return None
        moving = options.get("norm") == "train"
        if record.patient == "recipe":
            evidence = f"a pretrained start with encoder.norm={options.get('norm')}"
            if moving:
                return self.warning(f"{evidence}: the statistics of batch norm will drift from those of the file", KEEP)
            return self.ok(evidence)
        start = record.result.start
        if start is None or start.result.value is None:
            raise Missing("result.json has no start: the run has not ended, has no labels, or is of an older version")
        before, d, error = start.result.value, start.difference.value, start.difference.error
        evidence = (
            f"kNN (k = 20) {before:.1%} at the start, {before + d:.1%} at the end: {100 * d:+.1f} ± {100 * error:.1f} "
            "points on the same test rows"
        )
        errors = 0.0 if d >= -LEAST else -d / max(error, 1e-9)  # the error is 0 where every row was lost
        lr = record.recipe.optim.options["lr"]
        stages = "" if record.recipe.optim.options.get("layer_decay") else ", smaller still in the first stages"
        slower = (
            f"a smaller rate (optim.lr={lr / 10:.2g}){stages and f'{stages} (optim.layer_decay=0.7)'}, fewer steps, "
            "early stopping (data.validation=0.1 train.patience=3), or the start as it is"
        )
        advice = f"{KEEP}; then {slower}" if moving else slower
        return self.graded(above(errors, problem=2.0, warning=1.0), evidence, advice)
