"""Tables and cards of made-up runs."""

from __future__ import annotations

from pathlib import Path

from kontrast.report import comparison
from kontrast.report.page import Mark, Numbers, Text
from tests.report.comparison.made_up import parts, tables, words, write_run


def test_a_small_difference_is_not_called_better(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / name, name=name, value=value) for name, value in (("a", 0.80), ("b", 0.82), ("c", 0.7))
    ]
    page = comparison.page(made)
    (cards,) = [part for part in parts(page, "Which is better") if isinstance(part, Numbers)]
    assert "b, not clearly above a" in cards.items[0].about
    assert cards.items[0].tone == ""
    (table,) = tables(page, "Which is better")
    assert words(table) == [["a", "80.0 ± 1.0 level"], ["b", "82.0 ± 1.0 level"], ["c", "70.0 ± 1.0"]]


def test_the_best_is_marked_by_word_and_colour(tmp_path: Path) -> None:
    page = comparison.page([write_run(tmp_path / n, name=n, value=v) for n, v in (("a", 0.80), ("b", 0.9))])
    (table,) = tables(page, "Which is better")
    assert table.rows[1][1] == Mark("90.0 ± 1.0 best", "good")


def test_other_protocols_are_not_compared(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / "a", name="a", value=0.5),
        write_run(tmp_path / "b", name="b", value=0.9, protocol="kNN, k = 200"),
    ]
    page = comparison.page(made)
    assert not [part for part in parts(page, "Which is better") if isinstance(part, Numbers)]
    (table,) = tables(page, "Which is better")
    assert words(table) == [["a", "50.0 ± 1.0", "–"], ["b", "–", "90.0 ± 1.0"]]


def test_recipes_on_the_same_seeds_have_a_paired_interval(tmp_path: Path) -> None:
    """Differences 1, 2, 3 points: mean 2, s = 1, half-width t(2, 0.975) / √3 = 4.3027 / 1.7321 = 2.484."""
    made = []
    for seed, ahead in enumerate((0.01, 0.02, 0.03)):
        made.append(
            write_run(tmp_path / f"a{seed}", name="a", seed=seed, value=0.8 + ahead, encoder="e", method={"k1": 1})
        )
        made.append(write_run(tmp_path / f"b{seed}", name="b", seed=seed, value=0.8, encoder="e", method={"k1": 2}))
    made.append(
        write_run(tmp_path / "b3", name="b", seed=3, value=0.1, encoder="e", method={"k1": 2})
    )  # a has no such seed
    page = comparison.page(made)
    table = tables(page, "Paired statistics")[0]
    assert words(table) == [["a − b", "knn20", "+2.00 ± 2.48", "3", "○ contains 0: not resolved", "method.k1"]]
    over_seeds = tables(page, "Which is better")[0]
    assert words(over_seeds)[0] == ["a", "82.00 ± 2.48", "3"]
    assert words(tables(page, "What differs")[0]) == [["method.k1", "1", "2"], ["seeds", "0, 1, 2", "0, 1, 2, 3"]]


def test_one_seed_has_no_interval_and_rows_are_paired(tmp_path: Path) -> None:
    a = [True] * 28 + [False] * 2
    b = [True] * 14 + [False] * 14 + [True] * 2
    page = comparison.page([write_run(tmp_path / "a", name="a", right=a), write_run(tmp_path / "b", name="b", right=b)])
    (table,) = tables(page, "Paired statistics")
    # 14 against 2: 2 (1 + 16 + 120) / 2^16 = 0.00418
    assert words(table) == [["a", "b", "+40.0 ± 11.2", "14", "2", "0.004", "a is right more often"]]
    said = " ".join(part.text for part in parts(page, "Paired statistics") if isinstance(part, Text))
    assert "nothing about seeds" in said
    assert "Student" not in said


def test_protocols_of_several_data_sets_are_told_apart(tmp_path: Path) -> None:
    made = [write_run(tmp_path / n, name=n, data={"name": f"sets/{n}.npz"}) for n in "ab"]
    (table,) = tables(comparison.page(made), "Which is better")
    assert table.columns == ["run", "knn20, a.npz (%)", "knn20, b.npz (%)"]
    more = [write_run(tmp_path / n, name=n, data={"name": f"sets/{n}.npz"}) for n in "cdef"]
    found = tables(comparison.page([*made, *more]), "Which is better")
    assert [words(table) for table in found] == [[[n, "80.0 ± 1.0"]] for n in "abcdef"], "a table for each"
    assert {tuple(table.columns) for table in found} == {("run", "knn20 (%)")}


def test_tables_of_many_recipes_keep_their_words_and_fit_paper(tmp_path: Path) -> None:
    made = [write_run(tmp_path / str(i), name="x", encoder="e", method={"k1": i}) for i in range(12)]
    page = comparison.page(made)
    differ, near = tables(page, "What differs")[:-1], tables(page, "Geometry")  # the last is folded: what is common
    assert [len(table.columns) for table in differ] == [5, 5, 5]
    assert [table.columns[-2:] for table in near] == [["theory", "if"]] * 3, "the words stay beside the value"
    assert [row[1] for table in differ for row in words(table)[:1]] == ["0", "4", "8"]
    assert [table.caption for table in differ] == [f"recipes {i} to {i + 3} of 12" for i in (1, 5, 9)]
