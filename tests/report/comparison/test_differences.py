"""`Run.compare`: differences with their errors, paired where the rows are the same; the page's own numbers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kontrast.report import comparison
from kontrast.runs import Run
from tests.report.comparison.made_up import tables, words, write_run

A = [True] * 28 + [False] * 2
B = [True] * 14 + [False] * 14 + [True] * 2
SHARP = [True] * 30


def test_on_the_same_rows_it_is_paired_with_the_numbers_of_the_page(tmp_path: Path) -> None:
    """14 rows against 2: d = 12/30 = 0.4, error √((16/30 − 0.16)/30) = 0.1116."""
    a, b = (Run(write_run(tmp_path / name, name=name, right=hits)) for name, hits in (("a", A), ("b", B)))
    found = a.compare(b)
    (difference,) = found.differences
    assert (difference.run, difference.other, difference.protocol) == ("a", "b", "knn20")
    assert difference.value == pytest.approx(0.4)
    assert difference.error == pytest.approx(0.1116, abs=1e-4)
    (table,) = tables(comparison.page([a.path, b.path]), "Paired statistics")
    assert words(table) == [["a", "b", "+40.0 ± 11.2", "14", "2", "0.004", "a is right more often"]]
    shown = next(part for part in found.parts() if hasattr(part, "rows"))
    assert words(shown) == [["knn20", "93.3 ± 1.0", "53.3 ± 1.0", "+40.0 ± 11.2", "14 : 2", "0.004", "better"]]
    back = b.compare(a).differences[0]
    assert (back.value, back.error, back.p) == (-difference.value, difference.error, difference.p)
    assert "−40.0 ± 11.2" in str(b.compare(a))
    assert "worse" in str(b.compare(a))


def test_without_predictions_both_errors_count(tmp_path: Path) -> None:
    a, b = (write_run(tmp_path / name, name=name, value=value) for name, value in (("a", 0.80), ("b", 0.82)))
    (b / "analysis.npz").unlink()
    (difference,) = Run(a).compare(b).differences
    assert (difference.test, difference.p) == (None, None)
    assert difference.error == pytest.approx(math.hypot(0.01, 0.01))
    assert "no difference found" in str(Run(a).compare(b)), "2 points, and two errors are 2.8"
    (b / "result.json").write_text((b / "result.json").read_text().replace("0.82", "0.9"))
    assert "worse" in str(Run(a).compare(b))


def test_against_several_the_chances_are_adjusted(tmp_path: Path) -> None:
    a, b, c = (
        Run(write_run(tmp_path / name, name=name, right=hits)) for name, hits in (("a", A), ("b", B), ("c", SHARP))
    )
    found = a.compare(b, c.path)
    one, other = found.differences
    assert one.test is not None
    assert other.test is not None
    assert one.p == pytest.approx(2 * one.test.p)
    assert (one.other, other.other, other.p) == ("b", "c", 0.5)
    assert "p, Holm" in str(found)


def test_what_differs_in_the_recipes_and_seeds_in_pairs(tmp_path: Path) -> None:
    made = [
        write_run(
            tmp_path / f"{name}{seed}", name=name, seed=seed, value=0.8 + ahead * (seed + 1), encoder="e", method=k
        )
        for seed in range(3)
        for name, ahead, k in (("a", 0.01, {"k1": 1}), ("b", 0.0, {"k1": 2}))
    ]
    found = Run(made[0]).compare(*made[1:])
    assert found.settings["method.k1"] == ["1", "2", "1", "2", "1", "2"]
    assert found.settings["seed"] == ["0", "0", "1", "1", "2", "2"]
    assert found.seeds is not None
    assert words(found.seeds) == [["a − b", "knn20", "+2.00 ± 2.48", "3", "○ contains 0: not resolved", "method.k1"]]
    assert Run(made[0]).compare(made[1]).seeds is None


def test_what_cannot_be_compared_says_so(tmp_path: Path) -> None:
    a = Run(write_run(tmp_path / "a", name="<b>a</b>"))
    other = write_run(tmp_path / "other", name="other", data={"name": "maxi"})
    begun = write_run(tmp_path / "begun", name="begun", status="training")
    found = a.compare(other, begun)
    assert not found.differences
    assert "there is nothing to compare" in str(found)
    assert "begun: training" in str(found)
    assert "<b>" not in found._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in found._repr_html_()
    for others in ((), (a,)):
        with pytest.raises(ValueError, match="a comparison needs at least 2 runs"):
            a.compare(*others)
    with pytest.raises(ValueError, match="there is no folder"):
        a.compare(tmp_path / "nowhere")
