r"""Worse than where it began: a pretrained encoder that its training has spoiled.

The run evaluates the encoder before the first step too, by the same protocol (kNN, k = 20) on the same test rows
(`kontrast.train.start`). With the difference d = end − start and its standard error s from the paired rows:

Ill: d below −0.01 and below −2 s.
Watch: d below −0.01 and below −s; or, in a recipe, a pretrained start with encoder.norm=train.
Why: a start that is as good as the end makes d < −2 s in 2 % of all runs. Below one point nobody changes a recipe for
it. EfficientNet-Lite0 with ImageNet weights, 600 photos at 128 pixels, SupCon for 2 epochs at a rate of 0.001: 87.0 %
at the start, 82.5 % with encoder.norm=train, 89.5 % with frozen: small, strongly augmented batches have other
statistics than the plain images that the encoder is used on.
Reads: result.json (start), recipe (encoder.pretrained, encoder.norm).
"""

from __future__ import annotations

from typing import ClassVar

from kontrast.doctor.finding import Finding
from kontrast.doctor.record import Missing, Patient, Record
from kontrast.doctor.rules._base import Rule, above

LEAST = 0.01
KEEP = "keep the statistics of batch norm (encoder.norm=frozen)"


class WorseThanStart(Rule):
    """Compares the end with the start."""

    patients: ClassVar[tuple[Patient, ...]] = ("run", "recipe")
    disease: ClassVar[str] = "worse than where it began"

    def examine(self, record: Record) -> Finding | None:
        """Of pretrained starts: what random weights give is not worth keeping."""
        options = record.recipe.encoder.options
        if options.get("pretrained") is None:
            return None
        moving = options.get("norm") == "train"
        if record.patient == "recipe":
            seen = f"a pretrained start with encoder.norm={options.get('norm')}"
            if moving:
                return self.watch(f"{seen}: the statistics of batch norm will drift from those of the file", KEEP)
            return self.healthy(seen)
        start = record.result.get("start")
        if start is None:
            raise Missing("result.json has no start: the run has not ended, has no labels, or is of an older version")
        before, d, error = start["result"]["value"], start["difference"]["value"], start["difference"]["error"]
        seen = (
            f"kNN (k = 20) {before:.1%} at the start, {before + d:.1%} at the end: {100 * d:+.1f} ± {100 * error:.1f} "
            "points on the same test rows"
        )
        errors = 0.0 if d >= -LEAST else -d / max(error, 1e-9)  # the error is 0 where every row was lost
        lr = record.recipe.optim.options["lr"]
        slower = (
            f"a smaller rate (optim.lr={lr / 10:.2g}), fewer steps, early stopping (data.validation=0.1 "
            "train.patience=3), or the start as it is"
        )
        cure = f"{KEEP}; then {slower}" if moving else slower
        return self.by(above(errors, ill=2.0, watch=1.0), seen, cure)
