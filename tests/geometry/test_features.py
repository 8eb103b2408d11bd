"""What no measure accepts, said in a ValueError; and what is measured with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from kontrast import geometry
from tests.geometry.measures import MEASURES, D, K, Measure, N
from tests.geometry.samples import clusters, rows

every = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
labelled = pytest.mark.parametrize(
    "measure", [m for m in MEASURES.values() if m.labels], ids=[n for n, m in MEASURES.items() if m.labels]
)
keyed = pytest.mark.parametrize(
    "measure",
    [m for m in MEASURES.values() if "query" in m.features],
    ids=[n for n, m in MEASURES.items() if "query" in m.features],
)


def wrong(measure: Measure, message: str, **inputs: Any) -> None:
    """The measure with some inputs replaced is a ValueError that says so."""
    with pytest.raises(ValueError, match=message):
        measure(measure.inputs() | inputs)


@every
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_rows_that_are_not_finite(measure: Measure, bad: float) -> None:
    """The message names the input, how many rows and the first, and what to do."""
    for name in measure.features:
        x = measure.inputs()[name].clone()
        x[[2, 3], 1] = bad
        wrong(
            measure,
            rf"^{name} holds NaN or infinity in 2 of {len(x)} rows \(first: row 2\): leave them out",
            **{name: x},
        )


@every
def test_wrong_ranks(measure: Measure) -> None:
    for name in measure.features:
        x = measure.inputs()[name]
        for bad in (x[0], x[None], x.sum()):
            shape = str(list(bad.shape)).replace("[", r"\[").replace("]", r"\]")
            wrong(measure, rf"{name} has shape {shape}; accepted: \[N, D\]", **{name: bad})


@every
def test_nothing_to_measure(measure: Measure) -> None:
    for name in measure.features:
        wrong(measure, rf"{name} has shape \[0, {D}\]: there is nothing to measure", **{name: torch.empty(0, D)})
        wrong(measure, rf"{name} has shape \[{N}, 0\]", **{name: torch.empty(N, 0)})


@every
def test_other_things_than_floating_point_rows(measure: Measure) -> None:
    for name in measure.features:
        wrong(measure, f"{name} must hold floating point numbers, got torch.int64", **{name: torch.ones(N, D).long()})
        wrong(measure, f"{name} must hold floating .*, got an array of int64", **{name: np.ones((N, D), int)})
        wrong(measure, f"{name} must hold floating point numbers, got torch.complex64", **{name: torch.ones(N, D) * 1j})
        wrong(measure, f"{name} must be .*, got list", **{name: [[1.0] * D] * N})


@every
def test_arrays_that_torch_does_not_know(measure: Measure) -> None:
    """A ValueError that names the input, as for every other wrong input."""
    for name in measure.features:
        wrong(measure, name, **{name: np.full((N, D), "a")})
        wrong(measure, name, **{name: np.full((N, D), None)})


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="here they are float64")
def test_arrays_of_long_doubles_are_taken_as_float64() -> None:
    x = np.random.default_rng(0).normal(size=(40, D))
    assert geometry.uniformity(x.astype(np.longdouble)) == geometry.uniformity(x)


@every
def test_widths_that_do_not_fit(measure: Measure) -> None:
    for name in measure.features[1:]:
        x = measure.inputs()[name]
        wrong(measure, f"{name} has shape .* does not fit .*: the last sizes must agree", **{name: x[:, :-1]})


@keyed
def test_query_and_key_of_different_lengths(measure: Measure) -> None:
    key = measure.inputs()["key"]
    wrong(measure, rf"query has shape \[{N}, {D}\] and key \[{N - 1}, {D}\]; they must be the same", key=key[:-1])


def test_views_of_different_lengths() -> None:
    with pytest.raises(ValueError, match=r"x has shape \[40, 3\] and y \[39, 3\]; they must be the same"):
        geometry.alignment(rows(40, 3), rows(39, 3))


@labelled
def test_labels_of_another_length_or_kind(measure: Measure) -> None:
    labels = measure.inputs()["labels"]
    wrong(measure, rf"labels has shape \[{N - 1}\]; expected \[{N}\]", labels=labels[:-1])
    wrong(measure, rf"labels has shape \[{N}, 1\]; expected \[{N}\]", labels=labels[:, None])
    wrong(measure, r"labels must be integers, got torch.float64: convert with labels.long\(\)", labels=labels.double())
    wrong(measure, "labels must be integers", labels=[0.5] * N)
    wrong(measure, "labels", labels=None)


@labelled
@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, lambda x: np.array(x, np.uint8), lambda x: torch.tensor(x).int()]
)
def test_labels_of_any_integer_kind(measure: Measure, kind: Callable[[list[int]], Any]) -> None:
    inputs = measure.inputs()
    expected = measure(inputs)
    found = measure(inputs | {"labels": kind(inputs["labels"].tolist())})
    assert all(torch.equal(found[name], x) for name, x in expected.items())


@pytest.mark.parametrize("function", [geometry.simplex, geometry.neural_collapse])
def test_one_class_alone(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"labels hold 1 class \(\[7\]\); .* at least 2"):
        function(rows(40, 3), [7] * 40)


@pytest.mark.parametrize(
    "function", [geometry.tolerance, lambda x, y: geometry.gradient_response(x, y, temperature=1.0, k1=0.0, k2=1.0)]
)
def test_nobody_shares_a_class(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"no (class has two samples|anchor has a positive).*40"):
        function(rows(40, 3), range(40))


@pytest.mark.parametrize("function", [geometry.simplex, geometry.neural_collapse])
def test_weights_for_other_classes_than_there_are(function: Callable[..., Any]) -> None:
    x, labels = clusters(40, 3, 3)
    with pytest.raises(
        ValueError, match=r"weights has shape \[4, 3\], one row a class, but labels hold 3 classes: pass"
    ):
        function(x, labels, rows(4, 3))


@keyed
def test_own_index(measure: Measure) -> None:
    negatives = rows(N + 2, D)
    index = torch.arange(N)
    for bad in (index + 3, index - 1):
        wrong(
            measure,
            rf"own_index holds {int(bad.min())} … {int(bad.max())}, but negatives has rows 0 … {N + 1}",
            negatives=negatives,
            own_index=bad,
        )
    wrong(measure, rf"own_index has shape \[{N - 1}\]; expected \[{N}\]", negatives=negatives, own_index=index[:-1])
    wrong(measure, "own_index must be integers", negatives=negatives, own_index=index.double())
    wrong(measure, "own_index names rows of negatives, but negatives is None", negatives=None, own_index=index)


@keyed
def test_anchors_without_any_negative(measure: Measure) -> None:
    one = rows(1, D)
    wrong(measure, "no negatives: pass more rows, or negatives", query=one, key=one, negatives=None)
    wrong(
        measure,
        "nothing is left to compare with",
        query=one,
        key=one,
        negatives=rows(1, D),
        own_index=torch.tensor([0]),
    )


@keyed
def test_a_queue_in_another_precision(measure: Measure) -> None:
    """The widest precision counts: a float32 queue of float64 anchors."""
    inputs = measure.inputs() | {"negatives": rows(N + 7, D, seed=9, dtype=torch.float32)}
    expected = measure(inputs | {"negatives": inputs["negatives"].double()})
    for name, x in measure(inputs).items():
        # The queue is normalised in its own precision, 6e-8, and a temperature of 0.1 divides that.
        torch.testing.assert_close(x, expected[name], rtol=1e-5, atol=1e-5)


# --------------------------------------------------------------------------------------------- too few samples

FEW: dict[str, tuple[Callable[[int], Any], str]] = {
    "uniformity": (lambda n: geometry.uniformity(rows(n, 3)), "rows that uniformity is computed on: 29, fewer than 30"),
    "alignment": (
        lambda n: geometry.alignment(rows(n, 3), rows(n, 3)),
        "pairs that alignment is computed on: 29, fewer than 30",
    ),
    "tolerance": (
        lambda n: geometry.tolerance(rows(n, 3), [0] * n),
        "rows with another of their class that tolerance is computed on: 29, fewer than 30",
    ),
    "separation": (
        lambda n: geometry.local_separation(rows(n, 3), rows(n, 3)),
        "anchors that local separation is computed on: 29, fewer than 30",
    ),
    "spectrum": (
        lambda n: geometry.spectrum(rows(n, 30)),
        "rows for the rank of features of this many dimensions: 29, fewer than 30",
    ),
    "collapse": (
        lambda n: geometry.collapse(rows(n, 30)),
        "rows for the rank of features of this many dimensions: 29, fewer than 30",
    ),
    "simplex": (
        lambda n: geometry.simplex(rows(n, 3), torch.arange(n) % 6),
        "samples in the smallest class that simplex is computed on: 4, fewer than 5",
    ),
    "neural collapse": (
        lambda n: geometry.neural_collapse(rows(n, 3), torch.arange(n) % 6),
        "samples in the smallest class that neural collapse is computed on: 4, fewer than 5",
    ),
}


@pytest.mark.parametrize("name", FEW)
def test_too_few_samples_are_warned_of_at_the_callers_line(name: str) -> None:
    """One warning, that names this file: where the user can do something about it."""
    call, message = FEW[name]
    with pytest.warns(geometry.TooFewSamples, match=message) as seen:
        call(29)
    assert [w.filename for w in seen] == [__file__]


@pytest.mark.parametrize("name", FEW)
def test_enough_samples_are_not_warned_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FEW[name][0](30)


@pytest.mark.parametrize("name", FEW)
def test_the_warning_can_be_silenced_alone(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", geometry.TooFewSamples)
        FEW[name][0](29)


def test_the_warning_changes_no_value() -> None:
    """Two opposite points: log e^{−4t}."""
    with pytest.warns(geometry.TooFewSamples):
        found = geometry.uniformity(torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64))
    assert found == pytest.approx(-8.0, rel=1e-12)


def test_the_numbers_of_classes_in_the_table_are_large_enough() -> None:
    """Else every test above would test the warning."""
    assert int(clusters(N, D, K)[1].bincount().min()) >= 5


@every
def test_masked_arrays_hide_something(measure: Measure) -> None:
    """What is masked would be measured all the same; a mask that hides nothing is none."""
    inputs = measure.inputs()
    for name in (*measure.features, *(("labels",) if measure.labels else ())):
        whole = inputs[name].numpy()
        wrong(measure, f"{name} has 2 masked entries; expected none. Leave", **{name: _masked(whole, 2)})
        found, expected = measure(inputs | {name: _masked(whole, 0)}), measure(inputs)
        assert all(torch.equal(found[key], x) for key, x in expected.items())


def _masked(x: np.ndarray[Any, Any], hidden: int) -> Any:
    return np.ma.masked_array(x, mask=np.arange(x.size).reshape(x.shape) < hidden)  # type: ignore[no-untyped-call]
