"""What every measure has in common: invariances, precision, arrays, gradients, inputs left alone."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from kontrast import geometry
from kontrast.geometry import _rows
from tests.geometry.measures import MEASURES, OTHERS, D, K, Measure, N
from tests.geometry.samples import rows, turned, unit

every = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
# Sums of some thousand float64 terms in another order; the smallest singular values are roots of differences.
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def assert_same(actual: Mapping[str, Tensor], expected: Mapping[str, Tensor], **tolerance: float) -> None:
    assert actual.keys() == expected.keys()
    for name, x in expected.items():
        torch.testing.assert_close(actual[name], x, **tolerance, msg=lambda m, n=name: f"{n}: {m}")


def changed(inputs: Mapping[str, Any], names: tuple[str, ...], change: Any) -> dict[str, Any]:
    return {k: change(v) if k in names else v for k, v in inputs.items()}


def test_every_public_function_is_a_measure_under_test_or_known_not_to_be() -> None:
    public = {name for name in geometry.__all__ if inspect.isroutine(getattr(geometry, name))}
    assert public == {m.function for m in MEASURES.values()} | OTHERS


@every
def test_rotations_change_nothing(measure: Measure) -> None:
    inputs = measure.inputs()
    assert_same(measure(changed(inputs, measure.features, turned)), measure(inputs), **CLOSE)


@every
def test_positive_scaling_of_rows_changes_nothing(measure: Measure) -> None:
    """Weights are left as they are: S2 and S3 are about their lengths."""
    inputs = measure.inputs()
    names = tuple(n for n in measure.features if n != "weights")
    lengths = rows(N + 7, 1, seed=5).exp()
    assert_same(measure(changed(inputs, names, lambda x: x * lengths[: len(x)])), measure(inputs), **CLOSE)


@every
def test_rows_in_another_order_give_the_same_in_that_order(measure: Measure) -> None:
    inputs = measure.inputs()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    expected = {k: v[order] if v.ndim and len(v) == N else v for k, v in measure(inputs).items()}
    assert_same(measure(changed(inputs, measure.per_row(), lambda x: x[order])), expected, **CLOSE)


@pytest.mark.parametrize("name", [n for n, m in MEASURES.items() if m.labels and n != "tolerance per class"])
def test_classes_of_other_names_give_the_same(name: str) -> None:
    """In the order of the names, because a classifier's weights follow it."""
    measure = MEASURES[name]
    inputs = measure.inputs()
    names = torch.tensor([-5, 0, 17, 10**12])
    assert_same(measure(inputs | {"labels": names[inputs["labels"]]}), measure(inputs), rtol=0, atol=0)


@pytest.mark.parametrize("name", ["tolerance", "response", "simplex", "neural collapse"])
def test_classes_in_another_order_give_the_same(name: str) -> None:
    measure = MEASURES[name]
    inputs = measure.inputs()
    found = measure(inputs | {"labels": torch.tensor([2, 0, 3, 1])[inputs["labels"]]})
    expected = measure(inputs)
    for results in (found, expected):
        if "cosines_means" in results:
            results["cosines_means"] = results["cosines_means"].sort().values
    assert_same(found, expected, **CLOSE)


@every
def test_rows_taken_as_they_are_if_asked(measure: Measure) -> None:
    """Unit rows are the same with and without; others are not."""
    inputs = measure.inputs()
    names = tuple(n for n in measure.features if n != "weights")
    units = changed(inputs, names, unit)
    assert_same(measure(units, normalize=False), measure(inputs), **CLOSE)
    longer = measure(changed(units, names, lambda x: x * torch.linspace(1, 1.5, len(x))[:, None]), normalize=False)
    assert any(not torch.equal(x, longer[name]) for name, x in measure(inputs).items())


@every
def test_blocks_of_any_size_give_the_same(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sides that do not divide the 60 rows, and strips of 16."""
    inputs = measure.inputs()
    expected = measure(inputs)
    monkeypatch.setattr(_rows, "STRIP", 1)
    for side in (7, 16, 59):
        monkeypatch.setattr(_rows, "SIDE", side)
        assert_same(measure(inputs), expected, **CLOSE)


@every
def test_float32_is_near_float64(measure: Measure) -> None:
    """Inputs rounded to 6e-8, similarities over a temperature of 0.1 and singular values of 60 rows: a few 1e-5."""
    inputs = measure.inputs()
    found = measure(changed(inputs, measure.features, lambda x: x.float()))
    assert_same({k: v.double() for k, v in found.items()}, measure(inputs), rtol=1e-4, atol=2e-5)


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(measure: Measure, dtype: torch.dtype) -> None:
    inputs = changed(measure.inputs(), measure.features, lambda x: x.to(dtype))
    expected = measure(changed(inputs, measure.features, lambda x: x.float()))
    assert_same(measure(inputs), expected, rtol=0, atol=0)


@every
def test_autocast_does_not_reach_inside(measure: Measure) -> None:
    inputs = changed(measure.inputs(), measure.features, lambda x: x.float())
    expected = measure(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(measure(inputs), expected, rtol=0, atol=0)


@every
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", ">f8"])
def test_arrays_give_what_tensors_give(measure: Measure, dtype: str) -> None:
    """Also of the other byte order."""
    inputs = measure.inputs()
    arrays = {k: v.numpy().astype(dtype) if k in measure.features else v.numpy() for k, v in inputs.items()}
    native = np.dtype(dtype).newbyteorder("=").name
    tensors = changed(inputs, measure.features, lambda x: x.to(getattr(torch, native)))
    assert_same(measure(arrays), measure(tensors), rtol=0, atol=0)


@every
def test_arrays_of_other_layouts(measure: Measure) -> None:
    """Every second row of every second column from behind."""
    inputs = measure.inputs()
    wide = {k: np.repeat(np.repeat(v.numpy(), 2, 0), 2, 1)[::-2, ::-2] for k, v in inputs.items() if k != "labels"}
    flipped = changed(inputs, measure.features, lambda x: x.flip(0).flip(1))
    assert_same(measure(inputs | wide), measure(flipped), rtol=0, atol=0)


@every
def test_arrays_that_cannot_be_written_give_no_warning(measure: Measure) -> None:
    """``np.load(…, mmap_mode="r")`` makes such arrays; torch warns of them, but only once unless told otherwise."""
    inputs = measure.inputs()
    fixed = {k: v.numpy().copy() for k, v in inputs.items()}
    for array in fixed.values():
        array.flags.writeable = False
    expected, always = measure(inputs), torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        assert_same(measure(fixed), expected, rtol=0, atol=0)
    finally:
        torch.set_warn_always(always)


@every
def test_tensors_that_are_not_contiguous(measure: Measure) -> None:
    inputs = measure.inputs()
    apart = changed(inputs, measure.features, lambda x: x.T.contiguous().T)
    assert_same(measure(apart), measure(inputs), **CLOSE)


@every
@pytest.mark.parametrize("normalize", [True, False])
def test_inputs_stay_as_they_are(measure: Measure, normalize: bool) -> None:
    inputs = measure.inputs()
    before = {k: v.clone() for k, v in inputs.items()}
    measure(inputs, normalize=normalize)
    assert all(torch.equal(inputs[k], v) for k, v in before.items())


@every
def test_no_gradients_are_recorded(measure: Measure) -> None:
    inputs = changed(measure.inputs(), measure.features, lambda x: x.requires_grad_())
    assert all(not v.requires_grad and v.grad_fn is None for v in measure(inputs).values())
    assert torch.is_grad_enabled()


@every
def test_results_are_finite(measure: Measure) -> None:
    """Also with duplicated rows and a row of zeros."""
    inputs = measure.inputs()
    for name in measure.features:
        if name != "weights":
            inputs[name][3] = inputs[name][2]
            inputs[name][5] = 0.0
    for name, x in measure(inputs).items():
        assert bool(x.isfinite().all()), name


@every
def test_the_same_call_gives_the_same_numbers(measure: Measure) -> None:
    inputs = measure.inputs()
    assert_same(measure(inputs), measure(inputs), rtol=0, atol=0)


def test_the_tables_inputs_are_what_the_tests_think() -> None:
    inputs = MEASURES["simplex, weights"].inputs()
    assert inputs["features"].shape == (N, D)
    assert inputs["weights"].shape == (K, D)
    assert inputs["labels"].unique().tolist() == list(range(K))


SCALES = [(torch.float32, scale) for scale in (1e-25, 1e-20, 1e20, 1e30)] + [
    (torch.float64, scale) for scale in (1e-200, 1e200)
]


@every
@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_rows_of_any_size_give_what_rows_of_size_one_give(measure: Measure, dtype: torch.dtype, scale: float) -> None:
    inputs = changed(measure.inputs(), measure.features, lambda x: x.to(dtype))
    scaled = changed(inputs, measure.features, lambda x: x * scale)
    assert_same(measure(scaled), measure(inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["simplex, weights", "spectrum", "spectrum, centred", "collapse", "neural collapse"])
@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_as_they_are_too_where_size_does_not_count(name: str, dtype: torch.dtype, scale: float) -> None:
    measure = MEASURES[name]
    inputs = changed(measure.inputs(), measure.features, lambda x: x.to(dtype))
    expected = measure(inputs, normalize=False)
    found = measure(changed(inputs, measure.features, lambda x: x * scale), normalize=False)
    if "singular_values" in found:
        found["singular_values"] = found["singular_values"] / scale
    assert_same(found, expected, rtol=1e-4, atol=1e-5)
