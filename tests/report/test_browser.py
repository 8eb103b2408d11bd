"""The page of a run in a real browser: every chart is drawn, nothing is asked of the network, nothing foreign runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kontrast import report
from kontrast.files import write_json
from tests.report import made
from tests.report.browser import Browser, Seen

EVIL = ("<script>alert(1)</script>", "</script><script>alert(2)</script>", '"><img src=x onerror=alert(3)>')


def background(seen: Seen) -> tuple[int, ...]:
    text: str = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(map(int, text.strip("rgb()").split(",")))


def ink(seen: Seen) -> str:
    """The colour of a chart's axis."""
    script = "getComputedStyle(document.querySelector('figure[data-name=loss] .role-axis-label text')).fill"
    found: str = seen.page.evaluate(script)
    return found


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False)])
def test_every_chart_is_drawn(browser: Browser, real_page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    with browser.open(real_page, width=width, dark=dark) as seen:
        marks = seen.marks()
        assert marks.keys() >= {"loss", "learning-rate", "knn", "per-class", "confusion", "embedding-map", "simplex"}
        assert all(marks.values()), marks
        assert marks["embedding-map"] == 1000
        seen.healthy(real_page)
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
        assert (max(background(seen)) < 60) == dark
        seen.screenshot(f"run-{width}-{'dark' if dark else 'light'}", tmp_path)


def test_the_button_changes_the_colours(browser: Browser, real_page: Path) -> None:
    with browser.open(real_page) as seen:
        before = background(seen), ink(seen)
        assert seen.page.inner_text("#theme") == "☾ Dark"
        seen.page.click("#theme")
        after = background(seen), ink(seen)
        assert max(after[0]) < 60 < min(before[0])
        assert before[1] != after[1], "charts follow without being drawn again"
        seen.page.click("#theme")
        assert (background(seen), ink(seen)) == before
        seen.healthy(real_page)


def test_a_point_shows_its_picture_and_the_map_can_be_changed(browser: Browser, real_page: Path) -> None:
    with browser.open(real_page) as seen:
        points = seen.page.locator("figure[data-name=embedding-map] .role-mark path")
        places = points.evaluate_all("points => points.slice(0, 50).map(p => p.getAttribute('transform'))")
        points.nth(500).hover(force=True)
        image = seen.page.locator("#vg-tooltip-element.visible img")
        image.wait_for()
        assert image.evaluate("image => image.src.startsWith('data:image/') && image.naturalWidth") == 28
        assert "class" in seen.page.inner_text("#vg-tooltip-element")
        seen.page.click("figure[data-name=embedding-map] input[type=radio] >> nth=1")
        seen.page.wait_for_timeout(50)
        assert points.evaluate_all("points => points.slice(0, 50).map(p => p.getAttribute('transform'))") != places
        seen.healthy(real_page)


def test_only_wrong_neighbours(browser: Browser, real_page: Path) -> None:
    with browser.open(real_page) as seen:
        good = seen.page.locator(".gallery li.good")
        if not good.count():
            pytest.fail("the run has no query without a wrong neighbour: choose another")
        assert good.first.is_visible()
        seen.page.check(".gallery input")
        assert not good.first.is_visible()
        assert seen.page.locator(".gallery li.bad").first.is_visible()


def test_on_paper(browser: Browser, real_page: Path, tmp_path: Path) -> None:
    with browser.open(real_page, dark=True) as seen:
        page: Any = seen.page
        page.emulate_media(media="print", color_scheme="dark")
        assert background(seen) == (255, 255, 255)
        assert not page.locator("nav").is_visible()
        assert not page.locator("#theme").is_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0, "what is folded is printed too"
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("details:not([open])").count() > 0
        page.set_viewport_size({"width": 700, "height": 1000})  # an A4 page between its margins
        inside = "charts => charts.every(c => c.getBoundingClientRect().right <= innerWidth + 1)"
        assert page.locator("figure.chart svg").evaluate_all(inside)
        seen.screenshot("run-print", tmp_path)
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_tables_can_be_read_without_scripts(browser: Browser, real_page: Path) -> None:
    with browser.open(real_page, scripts=False) as seen:
        text = seen.page.inner_text("main")
        assert "kNN accuracy" in text
        assert "linear probe, SGD" in text
        assert "drawn by JavaScript" in text
        assert not seen.page.locator("#theme").is_visible()


def test_nothing_foreign_runs(browser: Browser, tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run", classes=EVIL, about=" ".join(EVIL), status="done", error=EVIL[2])
    findings = [
        {"rule": EVIL[0], "status": status, "disease": EVIL[0], "evidence": EVIL[1], "cure": EVIL[2]}
        for status in ("ill", "healthy")
    ]
    write_json(run / "doctor.json", {"findings": findings})
    page = report.write([run])
    with browser.open(page) as seen:
        for fold in seen.page.locator("details").all():
            fold.evaluate("fold => { fold.open = true; }")
        # A dot of the legend, a cell, and a point of the map: names go into tooltips as well.
        for place in ("embedding-map", "confusion", "per-class"):
            seen.page.locator(f"figure[data-name={place}] .role-mark path").first.hover(force=True)
            seen.page.locator("#vg-tooltip-element.visible").wait_for()
            assert "script>" in seen.page.inner_text("#vg-tooltip-element")
        assert all(seen.marks().values())
        seen.healthy(page)  # a dialog would be an error, an image a request
        assert seen.page.locator("main script:not([type='application/json'])").count() == 0
        assert seen.page.locator("img:not([src^='data:'])").count() == 0
        assert EVIL[0] in seen.page.inner_text("main")


def test_any_of_many_classes_can_be_picked(browser: Browser, tmp_path: Path) -> None:
    page = report.write([made.folder(tmp_path / "run", classes=[*EVIL, *(f"class {i}" for i in range(27))])])
    strong = "points => points.filter(p => getComputedStyle(p).opacity > 0.5).length"
    with browser.open(page) as seen:
        assert all(seen.marks().values())
        points = seen.page.locator("figure[data-name=embedding-map] .role-mark path")
        before = points.evaluate_all(strong)
        seen.page.select_option("figure[data-name=embedding-map] select", EVIL[2])
        seen.page.wait_for_timeout(50)
        assert points.evaluate_all(strong) == 8 != before
        seen.healthy(page)


def test_what_slipped_through_would_still_be_stopped(browser: Browser, real_page: Path, tmp_path: Path) -> None:
    html = real_page.read_text().replace(
        "<main", "<script>document.title = 'ran'</script><img src=x onerror='document.title = 1'><main", 1
    )
    page = tmp_path / "page.html"
    page.write_text(html)
    with browser.open(page) as seen:
        assert seen.page.title() == "tcl-digits"
        said = " ".join(seen.errors)
        assert "inline script" in said
        assert "inline event handler" in said or "Loading the image" in said


OVER = """texts => {
    const boxes = texts.filter(t => t.textContent).map(t => [t.textContent, t.getBoundingClientRect()]);
    const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    return boxes.flatMap(([a, box], i) => boxes.slice(i + 1).filter(([_, other]) => over(box, other))
        .map(([b, _]) => `${a} × ${b}`)); }"""


@pytest.mark.parametrize("classes", [2, 3])
def test_with_few_classes_no_words_print_over_others(browser: Browser, tmp_path: Path, classes: int) -> None:
    run = made.folder(tmp_path / "run", classes=[f"c{i}" for i in range(classes)])
    page = report.write([run])
    with browser.open(page, width=400, dark=True) as seen:
        for name in ("simplex", "uniformity-tolerance"):
            words = seen.page.locator(f"figure[data-name={name}] .role-mark text")
            assert words.count() >= 2
            assert words.evaluate_all(OVER) == []
        # Every row has the same cosines here: boxes of no height, and what is seen is the median.
        high = "paths => paths.filter(p => p.getBoundingClientRect().width >= 10).map(p => getComputedStyle(p).fill)"
        ticks = seen.page.locator("figure[data-name=local-separation] .role-mark path").evaluate_all(high)
        assert {"rgb(213, 94, 0)", "rgb(0, 114, 178)"} <= set(ticks)
        assert "rgb(255, 255, 255)" not in ticks
        seen.healthy(page)


def test_a_simplex_that_cannot_be_leaves_no_empty_layer(browser: Browser, tmp_path: Path) -> None:
    run = made.folder(tmp_path / "run")
    record = json.loads((run / "analysis.json").read_text())
    record["geometry"]["simplex"]["features"]["reachable"] = False
    write_json(run / "analysis.json", record)
    page = report.write([run])
    with browser.open(page) as seen:
        seen.healthy(page)  # Vega warns of scales without data
