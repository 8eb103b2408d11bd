"""Every measure of `kontrast.geometry` as one call over named inputs, so that what all share is tested on all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kontrast import geometry
from tests.geometry.samples import clusters, rows

N, D, K = 60, 6, 4

Inputs = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """A measure, which of its inputs are features, and how it is called."""

    function: str
    call: Callable[..., Any]
    features: tuple[str, ...] = ("features",)
    labels: bool = False

    def inputs(self, seed: int = 0) -> Inputs:
        x, labels = clusters(N, D, K, seed=seed)
        made: Inputs = {name: x if i == 0 else rows(N, D, seed=seed + 10 + i) for i, name in enumerate(self.features)}
        if "negatives" in made:
            made["negatives"] = rows(N + 7, D, seed=seed + 20)
        if "weights" in made:
            made["weights"] = rows(K, D, seed=seed + 30)
        return made | ({"labels": labels} if self.labels else {})

    def per_row(self) -> tuple[str, ...]:
        """The inputs that have a row for every sample."""
        return tuple(n for n in self.features if n not in ("negatives", "weights")) + ("labels",) * self.labels

    def __call__(self, inputs: Mapping[str, Any], **options: Any) -> dict[str, Tensor]:
        return numbers(self.call(**inputs, **options))


KEYED = ("query", "key")
MEASURES = {
    "uniformity": Measure("uniformity", lambda **k: geometry.uniformity(**k, with_error=True)),
    "tolerance": Measure("tolerance", lambda **k: geometry.tolerance(**k, with_error=True), labels=True),
    "tolerance per class": Measure("tolerance_per_class", geometry.tolerance_per_class, labels=True),
    "alignment": Measure("alignment", lambda **k: geometry.alignment(**k, with_error=True), ("x", "y")),
    "entropy": Measure("penalty_entropy", lambda **k: geometry.penalty_entropy(**k, temperature=0.3), KEYED),
    "entropies, queue": Measure(
        "penalty_entropy", lambda **k: geometry.penalty_entropy(**k, temperature=[0.1, 1.0]), (*KEYED, "negatives")
    ),
    "relative penalty": Measure(
        "relative_penalty", lambda **k: geometry.relative_penalty(**k, temperature=0.3), (*KEYED, "negatives")
    ),
    "separation": Measure("local_separation", geometry.local_separation, KEYED),
    "separation, queue": Measure("local_separation", geometry.local_separation, (*KEYED, "negatives")),
    "magnitudes": Measure("gradient_magnitudes", lambda **k: geometry.gradient_magnitudes(**k, temperature=0.3), KEYED),
    "response": Measure(
        "gradient_response",
        lambda **k: geometry.gradient_response(**k, temperature=0.3, k1=2.0, k2=1.5),
        ("embeddings",),
        labels=True,
    ),
    "simplex": Measure("simplex", geometry.simplex, labels=True),
    "simplex, weights": Measure("simplex", geometry.simplex, ("features", "weights"), labels=True),
    "spectrum": Measure("spectrum", geometry.spectrum),
    "spectrum, centred": Measure("spectrum", lambda **k: geometry.spectrum(**k, center=True)),
    "collapse": Measure("collapse", geometry.collapse),
    "neural collapse": Measure("neural_collapse", geometry.neural_collapse, labels=True),
    "neural collapse, weights": Measure("neural_collapse", geometry.neural_collapse, ("features", "weights"), True),
}
# Public functions that are no measures of features.
OTHERS = {
    "angular",
    "deviations",
    "jackknife",
    "anchor_mean",
    "mean",
    "optimum",
    "pairwise_cosines",
    "penalty_curve",
    "summary",
    "uniformity_limit",
}


def numbers(found: Any) -> dict[str, Tensor]:
    """Everything a measure gave that is a number, by name; what is not there (None) is left out."""
    if isinstance(found, Tensor):
        return {"value": found}
    if isinstance(found, float):
        return {"value": torch.tensor(found, dtype=torch.float64)}
    if isinstance(found, geometry.Estimate):
        return {"value": torch.tensor(found.value).double(), "error": torch.tensor(found.error).double()}
    if isinstance(found, dict):
        return {f"{c} {k}": v for c, estimate in found.items() for k, v in numbers(estimate).items()}
    assert dataclasses.is_dataclass(found)
    fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
    named = {k: v for k, v in fields.items() if isinstance(v, Tensor | int | float) and k != "anchors"}
    return {k: v if isinstance(v, Tensor) else torch.tensor(v, dtype=torch.float64) for k, v in named.items()}
