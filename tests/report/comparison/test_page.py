"""The page of several runs: what it says of made-up numbers, and how a browser shows real runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.report import comparison
from kontrast.report.figures import COLOURS, drawn
from kontrast.report.page import Figure, Fold, Mark, Numbers, Page, Part, Table, Text, figures, render
from tests.report.browser import Browser, started
from tests.report.comparison.made_up import write_run

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script>"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of the bundled set, a second each."""
    from kontrast import recipes
    from kontrast.train import run_recipe

    small: dict[str, Any] = {
        "data.limit": 200,
        "data.test_limit": 100,
        "train.epochs": 1,
        "train.batch_size": 64,
        "encoder.width": 4,
    }
    small |= {"run.out": str(tmp_path_factory.mktemp("runs")), "run.progress": False, "run.log_every": 1}
    made = [recipes.find(name).override(small) for name in ("supcon-fashion-mini", "tcl-fashion-mini")]
    return [run_recipe(recipe).path for recipe in made]


def parts(page: Page, title: str) -> list[Part]:
    """Of a section, folded ones too."""

    def inside(found: list[Part]) -> list[Part]:
        return [p for part in found for p in (inside(list(part.parts)) if isinstance(part, Fold) else [part])]

    return inside([part for section in page.sections if section.title == title for part in section.parts])


def tables(page: Page, title: str) -> list[Table]:
    return [part for part in parts(page, title) if isinstance(part, Table)]


def words(table: Table) -> list[list[str]]:
    return [[cell.text if isinstance(cell, Mark) else cell for cell in row] for row in table.rows]


def test_a_small_difference_is_not_called_better(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / name, name=name, value=value) for name, value in (("a", 0.80), ("b", 0.82), ("c", 0.7))
    ]
    page = comparison.page(made)
    (cards,) = [part for part in parts(page, "Which is better") if isinstance(part, Numbers)]
    assert "b, not told apart from a" in cards.items[0].about
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
    assert words(table) == [["a − b", "knn20", "+2.00 ± 2.48", "3", "○ holds 0: not resolved", "method.k1"]]
    over_seeds = tables(page, "Which is better")[0]
    assert words(over_seeds)[0] == ["a", "82.00 ± 2.48", "3"]
    assert words(tables(page, "What differs")[0]) == [["method.k1", "1", "2"], ["seeds", "0, 1, 2", "0, 1, 2, 3"]]


def test_one_seed_has_no_interval_and_rows_are_paired(tmp_path: Path) -> None:
    a = [True] * 28 + [False] * 2
    b = [True] * 14 + [False] * 14 + [True] * 2
    page = comparison.page([write_run(tmp_path / "a", name="a", right=a), write_run(tmp_path / "b", name="b", right=b)])
    (table,) = tables(page, "Paired statistics")
    # 14 against 2: 2 (1 + 16 + 120) / 2^16 = 0.00418
    assert words(table) == [["a", "b", "14", "2", "0.004", "a has more right"]]
    said = " ".join(part.text for part in parts(page, "Paired statistics") if isinstance(part, Text))
    assert "nothing about seeds" in said
    assert "Student" not in said


def test_losses_of_one_scale_share_a_chart_and_others_do_not(tmp_path: Path) -> None:
    made = [
        write_run(tmp_path / "a", name="a", method={"k1": 1}),
        write_run(tmp_path / "b", name="b", method={"k1": 2}),
    ]
    assert [f.name for f in figures(comparison.page(made)) if f.name.startswith("loss")] == ["loss"]
    made.append(write_run(tmp_path / "c", name="c", chance=9.0))
    names = [f.name for f in figures(comparison.page(made)) if f.name.startswith("loss")]
    assert names == ["loss-place", "loss-1", "loss-2"]


def figure(page: Page, name: str) -> Figure:
    return next(one for one in figures(page) if one.name == name)


def test_protocols_of_several_data_sets_are_told_apart(tmp_path: Path) -> None:
    made = [write_run(tmp_path / n, name=n, data={"name": f"sets/{n}.npz"}) for n in "ab"]
    (table,) = tables(comparison.page(made), "Which is better")
    assert table.columns == ["run", "knn20, a.npz (%)", "knn20, b.npz (%)"]
    more = [write_run(tmp_path / n, name=n, data={"name": f"sets/{n}.npz"}) for n in "cdef"]
    found = tables(comparison.page([*made, *more]), "Which is better")
    assert [words(table) for table in found] == [[[n, "80.0 ± 1.0"]] for n in "abcdef"], "a table for each"
    assert {tuple(table.columns) for table in found} == {("run", "knn20 (%)")}


def test_corners_are_drawn_only_where_all_runs_have_the_same(tmp_path: Path) -> None:
    made = [write_run(tmp_path / n, name=n) for n in "ab"]
    said = figure(comparison.page(made), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {
        "even over the sphere",
        "classes at simplex vertices",
    }
    made.append(write_run(tmp_path / "c", name="c", simplex={"num_classes": 2}))
    said = figure(comparison.page(made), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {"even over the sphere"}
    assert said.caption.endswith("The runs have different ones, left out: classes at simplex vertices.")
    crowded = [write_run(tmp_path / n, name=n, simplex={"reachable": False}) for n in "de"]
    said = figure(comparison.page(crowded), "uniformity-tolerance")
    assert {row["says"] for row in rows(said.spec) if "says" in row} == {"even over the sphere"}


def rows(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The data of every layer."""
    inside = [row for layer in spec.get("layer", []) for row in rows(layer)]
    return [*spec.get("data", {}).get("values", []), *inside]


def test_tables_of_many_recipes_keep_their_words_and_fit_paper(tmp_path: Path) -> None:
    made = [write_run(tmp_path / str(i), name="x", encoder="e", method={"k1": i}) for i in range(12)]
    page = comparison.page(made)
    differ, near = tables(page, "What differs")[:-1], tables(page, "Geometry")  # the last is folded: what is common
    assert [len(table.columns) for table in differ] == [5, 5, 5]
    assert [table.columns[-2:] for table in near] == [["theory", "if"]] * 3, "the words stay beside the value"
    assert [row[1] for table in differ for row in words(table)[:1]] == ["0", "4", "8"]
    assert [table.caption for table in differ] == [f"recipes {i} to {i + 3} of 12" for i in (1, 5, 9)]


def test_many_recipes_are_told_apart_by_colour_with_shape_or_dash(tmp_path: Path) -> None:
    made = [write_run(tmp_path / str(i), name="x", encoder="e", method={"k1": i}) for i in range(20)]
    page = comparison.page(made)

    def scales(name: str, channel: str) -> list[Any]:
        layers = figure(page, name).spec
        found = [layer["encoding"] for layer in [*layers.get("layer", []), layers] if "encoding" in layer]
        (encoding,) = [one for one in found if channel in one]
        assert encoding[channel]["legend"] == encoding["color"]["legend"], "one legend"
        return list(
            zip(encoding["color"]["scale"]["range"], map(str, encoding[channel]["scale"]["range"]), strict=True)
        )

    for name, channel in (("loss", "strokeDash"), ("monitor-knn20", "strokeDash"), ("classes", "shape")):
        pairs = scales(name, channel)
        assert len(set(pairs)) == 20
        assert {colour for colour, _ in pairs} == set(COLOURS)
    assert len(set(scales("uniformity-tolerance", "shape"))) == 20


def test_an_unfinished_run_says_so_and_the_rest_stands(tmp_path: Path) -> None:
    failed = write_run(tmp_path / "f", name="failing", status="failed", why="RuntimeError: <nan>")
    page = comparison.page([failed, write_run(tmp_path / "w", name="whole")])
    first = parts(page, "Which is better")[0]
    assert first == Text("failing: failed. RuntimeError: <nan>", "bad")
    assert any(figure.name == "loss" for figure in figures(page))


def test_every_chart_can_be_a_file(tmp_path: Path) -> None:
    made = [write_run(tmp_path / name, name=name, right=[True] * 29 + [name == "a"]) for name in "ab"]
    found = figures(comparison.page(made))
    assert len(found) == len({figure.name for figure in found}) >= 6
    for figure in found:
        assert b"<path" in drawn(figure.spec, "svg"), figure.name


def test_no_torch_is_loaded(tmp_path: Path) -> None:
    made = [write_run(tmp_path / name, name=name) for name in "ab"]
    code = (
        "import sys; from pathlib import Path; from kontrast.report import comparison; "
        "from kontrast.report.page import render; "
        f"render(comparison.page([Path({str(made[0])!r}), Path({str(made[1])!r})])); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_users_words_stay_words(tmp_path: Path, browser: Browser) -> None:
    made = [
        write_run(
            tmp_path / str(i),
            name=f"{HOSTILE[i]} mine",
            class_names=HOSTILE,
            method={"k1": i},
            right=[True] * 29 + [i > 0],
        )
        for i in range(2)
    ]
    file = tmp_path / "report.html"
    file.write_text(render(comparison.page(made)))
    with browser.open(file) as seen:
        seen.healthy(file)
        assert seen.page.locator("img[src=x]").count() == 0
        assert HOSTILE[0] in seen.page.locator("h1").inner_text()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_draws_every_chart(real: list[Path], tmp_path: Path, browser: Browser, dark: bool) -> None:
    file = tmp_path / "report.html"
    page = comparison.page(real)
    file.write_text(render(page))
    assert file.stat().st_size < 4e6
    with browser.open(file, dark=dark) as seen:
        seen.healthy(file)
        marks = seen.marks()
        assert set(marks) == {figure.name for figure in figures(page)}
        assert {"loss-1", "loss-2", "monitor-knn20", "uniformity-tolerance", "classes", "simplex-within"} <= set(marks)
        assert all(count > 0 for count in marks.values()), marks
        assert seen.screenshot(f"comparison-{'dark' if dark else 'light'}", tmp_path).stat().st_size > 0


def test_a_phone_scrolls_only_downwards(real: list[Path], tmp_path: Path, browser: Browser) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(comparison.page(real)))
    with browser.open(file, width=400) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
        seen.screenshot("comparison-phone", tmp_path)


def test_a_run_whose_cosines_are_nearly_one_is_seen(tmp_path: Path, browser: Browser) -> None:
    made = [write_run(tmp_path / n, name=n) for n in "ab"]
    with np.load(made[0] / "analysis.npz") as arrays:
        kept = dict(arrays)
    np.savez(made[0] / "analysis.npz", **{**kept, "between_means": np.full(3, 0.9), "within": np.full(30, 0.9)})
    file = tmp_path / "report.html"
    file.write_text(render(comparison.page(made)))
    script = """paths => paths.filter(p => getComputedStyle(p).fill === 'rgb(0, 114, 178)')
        .map(p => p.getBoundingClientRect()).some(box => box.width >= 2 && box.height >= 12)"""
    covered = "paths => paths.some(p => ['var(--paper)', 'rgb(255, 255, 255)'].includes(p.getAttribute('fill')))"
    with browser.open(file) as seen:
        for name in ("simplex-between-means", "simplex-within"):
            marks = seen.page.locator(f"figure[data-name={name}] .role-mark path")
            assert marks.evaluate_all(script), "of its recipe's colour"
            assert not marks.evaluate_all(covered), "nothing of the paper's colour lies over it"


def test_many_runs_with_long_names_fit_a_phone_and_paper(tmp_path: Path, browser: Browser) -> None:
    """In print nothing can be scrolled: every table and chart ends inside a sheet's width."""
    long = "a-recipe-whose-name-goes-on-and-on-until-nobody-wants-to-read-it-any-further"
    keys = {f"a_key_with_a_long_name_{j}": "a value of some length" for j in range(12)}
    made = [
        write_run(tmp_path / str(i), name=f"{long}-{i}", method={**keys, "k1": i}, data={"name": f"set-{i % 4}"})
        for i in range(20)
    ]
    file = tmp_path / "report.html"
    file.write_text(render(comparison.page(made)))
    outside = """parts => parts.filter(part => part.getBoundingClientRect().right
        > document.documentElement.clientWidth + 1).map(part => part.textContent.slice(0, 60))"""
    with browser.open(file, width=400) as seen:
        page = seen.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator("figure.chart text").evaluate_all(outside) == [], "legends are cut, not stuck out"
        narrow = page.locator("#which-is-better td:first-child").first.evaluate("cell => cell.clientWidth")
        assert narrow >= 9 * 16, "not a few letters a line"
        seen.screenshot("comparison-many-phone", tmp_path)
    with browser.open(file) as seen:
        page = seen.page
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 688, "height": 1000})  # A4 between its margins
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.wait_for_timeout(300)
        assert page.locator("table, pre, svg").evaluate_all(outside) == []
        seen.screenshot("comparison-many-print", tmp_path)
        seen.healthy(file)
