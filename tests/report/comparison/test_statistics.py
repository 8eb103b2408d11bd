"""The statistics against literal computations."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from pathlib import Path

import numpy as np
import pytest

from kontrast.report.comparison import statistics
from kontrast.report.comparison.collect import collect
from kontrast.runs import ProtocolResult
from tests.report.comparison.made_up import write_run
from tests.train.small import recipe


def exact(b: int, c: int) -> float:
    """P(at most min(b, c) heads of b + c tosses), both sides, with whole numbers."""
    n = b + c
    return min(1.0, 2 * sum(comb(n, k) for k in range(min(b, c) + 1)) / float(2**n))


@pytest.mark.parametrize(("b", "c"), [(0, 0), (1, 0), (3, 3), (9, 1), (53, 74), (400, 310)])
def test_mcnemar_is_the_exact_binomial_test(b: int, c: int) -> None:
    first = np.array([True] * b + [False] * c + [True] * 5 + [False] * 7)
    second = np.array([False] * b + [True] * c + [True] * 5 + [False] * 7)
    found = statistics.mcnemar(first, second)
    assert (found.only_first, found.only_second, found.rows) == (b, c, b + c + 12)
    # scipy's binomial is good to about 12 digits at these sizes; ours adds nothing to it
    assert found.p == pytest.approx(exact(b, c), rel=1e-10)
    assert statistics.mcnemar(second, first).p == found.p
    difference = first.astype(float) - second
    assert found.difference == pytest.approx(difference.mean())
    # the square root takes half of the digits of a difference of equals
    assert found.error == pytest.approx(difference.std() / len(first) ** 0.5, abs=1e-8)


def test_rows_must_be_the_same() -> None:
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(4,\)"):
        statistics.mcnemar(np.ones(3, bool), np.ones(4, bool))


def test_holm_keeps_the_order_and_never_lowers() -> None:
    p = [0.04, 0.001, 0.5, 0.02]
    found = statistics.holm(p)
    assert found == pytest.approx([0.08, 0.004, 0.5, 0.06])
    order = sorted(range(4), key=lambda i: p[i])
    assert all(found[a] <= found[b] for a, b in pairwise(order))
    assert all(f >= q for f, q in zip(found, p, strict=True))


def result(value: float, error: float | None) -> ProtocolResult:
    return ProtocolResult(name="knn20", protocol="kNN", value=value, error=error)


def test_within_two_standard_errors_nobody_is_better() -> None:
    records = {"a": result(0.90, 0.01), "b": result(0.8718, 0.01)}
    assert statistics.leaders(records) == ["a", "b"]  # 2 √2 · 0.01 = 0.02828…
    records["b"] = result(0.8717, 0.01)
    assert statistics.leaders(records) == ["a"]
    records["b"] = result(0.5, None)
    assert statistics.leaders(records) == ["a", "b"], "without an error nothing is told apart"


def test_predictions_are_of_the_protocol_whose_accuracy_they_give(tmp_path: Path) -> None:
    right = [True] * 24 + [False] * 6
    runs = collect([write_run(tmp_path / "a", name="a", right=right), write_run(tmp_path / "b", name="b", value=0.31)])
    assert statistics.predictor(runs[0]) == "knn20"
    assert statistics.predictor(runs[1]) == "the first protocol"  # all are right, and no number says so


def test_rows_are_the_same_only_if_nothing_was_drawn(tmp_path: Path) -> None:
    drawn = {"test_limit": 30}
    made = [
        write_run(tmp_path / "whole-0", seed=0),
        write_run(tmp_path / "whole-1", seed=1),
        write_run(tmp_path / "drawn-0", seed=0, data=drawn),
        write_run(tmp_path / "drawn-1", seed=1, data=drawn),
        write_run(tmp_path / "drawn-0b", seed=0, data=drawn, method={"temperature": 0.5}),
        write_run(tmp_path / "other", seed=0, data={"name": "elsewhere"}),
    ]
    whole0, whole1, drawn0, drawn1, drawn0b, other = collect(made)
    assert statistics.same_rows(whole0, whole1)
    assert statistics.same_rows(drawn0, drawn0b)
    assert not statistics.same_rows(drawn0, drawn1), "another seed draws other test rows"
    assert not statistics.same_rows(whole0, drawn0)
    assert not statistics.same_rows(whole0, other)


def test_labels_of_a_part_do_not_judge_predictions_of_all(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, name=name) for name in "ab"]
    with np.load(folders[0] / "analysis.npz") as arrays:
        kept = dict(arrays)
    np.savez(folders[0] / "analysis.npz", **{**kept, "labels": kept["labels"][:10]})
    np.savez(folders[1] / "analysis.npz", **{**kept, "labels": kept["labels"][:10], "test_labels": kept["labels"]})
    few, all_ = collect(folders)
    assert statistics.right(few) is None
    found = statistics.right(all_)
    assert found is not None
    assert found[0].all()


def test_protocols_are_the_same_only_with_data_and_rows(tmp_path: Path) -> None:
    runs = collect(
        [
            write_run(tmp_path / "a", name="a"),
            write_run(tmp_path / "b", name="b"),
            write_run(tmp_path / "c", name="c", protocol="kNN, k = 200"),
            write_run(tmp_path / "d", name="d", data={"name": "elsewhere"}),
        ]
    )
    found = statistics.by_protocol(runs)
    assert [list(records) for records in found.values()] == [["a", "b"], ["c"], ["d"]]


def test_a_real_run_s_predictions_are_judged_however_few_features_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kontrast.pipeline import run_recipe

    monkeypatch.setattr("kontrast.train.analysis.MOST", 40)  # as of a test split with more than 2,000 rows
    runs = collect([run_recipe(recipe(method, tmp_path)).path for method in ("supcon", "tcl")])
    assert [len(run.arrays["labels"]) for run in runs] == [40, 40]
    for run in runs:
        found = statistics.right(run)
        assert found is not None
        assert len(found[0]) == 100
        # the record's accuracy is a float32 mean: eps 6e-8
        assert float(found[0].mean()) == pytest.approx(run.results[0].value, abs=1e-7)
        assert statistics.predictor(run) == "knn20"
    assert statistics.same_rows(*runs)
