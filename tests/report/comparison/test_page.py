"""The page of several runs: what it says of made-up numbers, and how a browser shows real runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.report import comparison
from kontrast.report.page import Text, figures, render
from tests.report.browser import Browser, started
from tests.report.comparison.made_up import parts, write_run

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</script>"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of the bundled set, a second each."""
    from kontrast import recipes
    from kontrast.pipeline import run_recipe

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


def test_an_unfinished_run_says_so_and_the_rest_stands(tmp_path: Path) -> None:
    failed = write_run(tmp_path / "f", name="failing", status="failed", why="RuntimeError: <nan>")
    page = comparison.page([failed, write_run(tmp_path / "w", name="whole")])
    first = parts(page, "Which is better")[0]
    assert first == Text("failing: failed. RuntimeError: <nan>", "bad")
    assert any(figure.name == "loss" for figure in figures(page))


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
