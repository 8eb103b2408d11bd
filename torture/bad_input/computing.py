"""Losses, measures and evaluation on rows and labels of any kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from bad_input.arrays import LABELS, Case, inputs, labelled, labels_of, length
from bad_input.judging import Kind
from kontrast import doctor, evaluate, geometry
from kontrast.losses import FAMILY


@st.composite
def for_losses(draw: st.DrawFn) -> Case:
    """A loss with options and embeddings of any kind."""
    x, other = (draw(inputs(draw(st.sampled_from([2, 2, 2, 3])))) for _ in range(2))
    tensor = [torch.from_numpy(np.array(v)) if _tensorlike(v) and draw(st.integers(0, 9)) else v for v in (x, other)]
    option = draw(
        st.sampled_from(
            [
                {},
                {},
                {},
                {"temperature": 0.05},
                {"temperature": 0},
                {"temperature": "x"},
                {"reduction": "all"},
                {"reduction": "none"},
            ]
        )
    )
    made = {"loss": draw(st.sampled_from(sorted(FAMILY))), "x": tensor[0], "options": option}
    made["other"] = tensor[1] if draw(st.booleans()) else tensor[0]
    return {**made, "y": labels_of(draw(st.sampled_from(LABELS)), length(x))}


def _tensorlike(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        and value.dtype.kind in "fiub"
        and value.dtype.isnative
        and value.dtype != np.longdouble
    )


def through_a_loss(case: Case) -> None:
    """Finite embeddings give a finite loss and gradient."""
    kind, x, other = FAMILY[case["loss"]], case["x"], case["other"]
    if case["loss"] in ("cross-entropy", "simplex-cross-entropy"):
        loss = kind(3, 6, **{k: v for k, v in case["options"].items() if k != "temperature"})
        second = case["y"]
    else:
        options = {} if case["loss"] == "simple-contrastive" else case["options"]
        loss, second = kind(**options), case["y"] if case["loss"] in ("supcon", "tcl") else other
    floating = isinstance(x, torch.Tensor) and x.is_floating_point()
    x = x.clone().requires_grad_() if floating else x
    value = loss(x, second)
    finite = all(bool(torch.isfinite(v).all()) for v in (x, other) if isinstance(v, torch.Tensor))
    value.sum().backward()
    if finite and math.sqrt(3.4e38) > float(x.detach().abs().max() if x.numel() else 0):
        assert bool(torch.isfinite(value).all()), "the loss of finite rows is not finite"
        assert x.grad is None or bool(torch.isfinite(x.grad).all()), "the gradient of finite rows is not finite"


def measured(case: Case) -> None:
    """`geometry.summary` and the doctor."""
    lines = geometry.summary(case["x"], case["y"])
    assert all(isinstance(line.value, float) for line in lines)
    assert doctor.examine_features(case["x"], case["y"])


def probed(case: Case) -> None:
    """kNN and a probe on features; an accuracy is a share."""
    x_test, y_test = (case["x"], case["y"]) if case["x_test"] is None else (case["x_test"], case["y_test"])
    subject = evaluate.Subject.from_features(case["x"], case["y"], x_test, y_test)
    for protocol in ("knn20", "graf-means", "retrieval"):
        result = evaluate.evaluate(subject, protocol)
        assert 0 <= result.value <= 1


KINDS = [
    Kind("losses", "every loss on embeddings and labels of any kind", for_losses(), through_a_loss),
    Kind("measures", "geometry and the doctor on features and labels of any kind", labelled(2), measured, cost=4),
    Kind("evaluation", "kNN, class means and retrieval on features and labels of any kind", labelled(2), probed, 2),
]
