"""The page in a real browser: points draw, hover shows, a click searches, lists download, and nothing is asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from kontrast import models
from kontrast.explore import Catalogue, collect, reading, writing
from kontrast.explore.record import Exploration
from kontrast.report.page import render
from tests.explore.made import blobs
from tests.report.browser import Browser, Seen
from tests.security.test_reports import PIECES, Skeleton


@pytest.fixture(scope="module")
def found(folder: Path, encoder: models.Encoder) -> Exploration:
    """Two labels of the photos are wrong."""
    rows = reading.read(encoder, folder)
    assert rows.labels is not None
    labels = rows.labels.clone()
    labels[[5, 20]] = torch.tensor([2, 0])
    return collect(replace(rows, labels=labels))


@pytest.fixture(scope="module")
def file(found: Exploration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return writing.write(found, writing.check(tmp_path_factory.mktemp("page")))[0]


def canvas(seen: Seen) -> Any:
    return seen.page.locator(".map canvas")


def drawn(seen: Seen) -> int:
    seen.page.wait_for_timeout(80)
    return int(canvas(seen).get_attribute("data-drawn"))


def at(seen: Seen, found: Exploration, row: int) -> tuple[float, float]:
    """Where a row is on the screen, before the map was moved."""
    low, high = found.places.amin(0), found.places.amax(0)
    x, y = ((found.places[row] - (low + high) / 2) / (high - low).max()).tolist()
    box = canvas(seen).bounding_box()
    unit = 0.92 * min(box["width"], box["height"])
    return box["x"] + box["width"] / 2 + x * unit, box["y"] + box["height"] / 2 - y * unit


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False)])
def test_it_is_drawn_at_any_width(
    browser: Browser, file: Path, found: Exploration, tmp_path: Path, width: int, dark: bool
) -> None:
    with browser.open(file, width=width, dark=dark) as seen:
        assert drawn(seen) == 56
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width, "nothing sticks out"
        first = seen.page.locator("figure[data-name=duplicates] .thumb canvas").first
        assert first.get_attribute("data-drawn") == str(found.groups[0].rows[0])
        assert first.evaluate("c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size") > 50
        seen.healthy(file)
        seen.screenshot(f"explore-{width}-{'dark' if dark else 'light'}", tmp_path)


def test_a_point_shows_its_picture_and_a_click_finds_its_neighbours(
    browser: Browser, file: Path, found: Exploration
) -> None:
    with browser.open(file) as seen:
        canvas(seen).scroll_into_view_if_needed()
        row = found.groups[0].rows[0]
        seen.page.mouse.move(*at(seen, found, row))
        tip = seen.page.locator("#explore-tip")
        tip.wait_for(state="visible")
        name = tip.locator("strong").inner_text()
        shown = next(i for i in range(56) if found.catalogue.name(i) == name)
        assert abs(at(seen, found, shown)[0] - at(seen, found, row)[0]) < 6, "the one there, or one upon it"
        assert tip.locator("canvas").get_attribute("data-drawn") == str(shown)
        seen.page.mouse.click(*at(seen, found, row))
        panel = seen.page.locator(".explore .panel")
        assert panel.locator("h3").inner_text() == name
        near = [int(thumb.get_attribute("data-row")) for thumb in panel.locator(".thumb").all()]
        assert near == found.neighbours[shown].tolist()
        panel.locator(".thumb").nth(2).click()
        assert panel.locator("h3").inner_text() == found.catalogue.name(near[2]), "a picture is an example too"
        with seen.page.expect_download() as download:
            panel.locator("button", has_text="CSV").click()
        lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
        assert len(lines) == 1 + found.neighbours.shape[1]
        seen.page.keyboard.press("Escape")
        seen.healthy(file)


def test_the_map_moves_and_filters(browser: Browser, file: Path, found: Exploration) -> None:
    with browser.open(file) as seen:
        canvas(seen).scroll_into_view_if_needed()
        before = drawn(seen)
        for _ in range(4):
            seen.page.click(".zoom button >> nth=0")
        assert drawn(seen) < before, "what is outside is not drawn"
        seen.page.click(".zoom button >> nth=2")
        assert drawn(seen) == before
        box = canvas(seen).bounding_box()
        seen.page.mouse.move(box["x"] + 40, box["y"] + 40)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + 40 + box["width"], box["y"] + 40, steps=4)
        seen.page.mouse.up()
        assert drawn(seen) < before
        seen.page.click(".zoom button >> nth=2")
        canvas(seen).focus()
        seen.page.mouse.move(box["x"] + 200, box["y"] + 200)
        seen.page.mouse.wheel(0, -2000)
        assert drawn(seen) < before
        seen.page.fill(".find", "again.jpg")
        assert seen.page.inner_text(".count") == "1 of 56"
        seen.page.press(".find", "Enter")
        assert seen.page.inner_text(".panel h3") == "train/cat/again.jpg"
        seen.page.fill(".find", "")
        for mode, entries in (("split", 2), ("error", 4), ("outlier", 4), ("group", 2), ("class", 3)):
            seen.page.select_option(".colour", mode)
            assert seen.page.locator(".legend button").count() == entries
        seen.page.click(".legend button >> nth=1")
        assert seen.page.locator(".legend button[aria-pressed=true]").count() == 1
        seen.healthy(file)


def test_lists_are_those_beside_the_page(browser: Browser, file: Path, found: Exploration) -> None:
    with browser.open(file) as seen:
        for name in ("duplicates", "label-errors"):
            with seen.page.expect_download() as download:
                seen.page.click(f"figure[data-name={name}] .csv")
            assert download.value.suggested_filename == f"{name}.csv"
            beside = file.with_name(f"explore.{name}.csv").read_bytes()
            assert Path(download.value.path()).read_bytes() == beside
            assert len(beside.splitlines()) > 1
        groups = seen.page.locator("figure[data-name=duplicates] li")
        assert groups.count() == 2
        seen.page.check("figure[data-name=duplicates] .only input")
        assert groups.count() == 1
        assert "leak" in groups.first.inner_text()
        seen.healthy(file)


def test_pictures_beside_are_loaded_when_shown(
    browser: Browser, found: Exploration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "ONE_FILE", 10)
    page, *_, pictures = writing.write(found, writing.check(tmp_path / "a folder" / "my page.html"))
    with browser.open(page) as seen:
        first = seen.page.locator("figure[data-name=duplicates] .thumb canvas").first
        seen.page.wait_for_function("() => document.querySelector('.thumb canvas[data-drawn]')")
        assert first.get_attribute("data-drawn") == str(found.groups[0].rows[0])
        assert not seen.errors
        assert set(seen.requests) == {page.resolve().as_uri(), (pictures / "0000.jpg").resolve().as_uri()}


def hostile(text: str) -> Exploration:
    x, labels = blobs(80, 3, apart=6.0)
    labels = labels.clone()
    x[41], labels[9] = x[7], (labels[9] + 1) % 3
    x[50] = 6 * torch.eye(16)[9]
    names = [f"{text}{i}" for i in range(80)]
    splits = ["train"] * 40 + ["test"] * 40
    return collect(Catalogue(x, splits, names, labels, [f"{text}{k}" for k in range(3)], title=text, encoder=text))


def test_the_markup_follows_the_numbers_and_never_the_words() -> None:
    from kontrast.explore.page import page

    plain = Skeleton(render(page(hostile("harmless")))).tags
    for piece in ("".join(PIECES), "".join(reversed(PIECES))):
        html = render(page(hostile(piece)))
        assert Skeleton(html).tags == plain
        assert "<script>alert" not in html


def test_nothing_foreign_runs(browser: Browser, tmp_path: Path) -> None:
    evil = '=HYPERLINK("x")<img src=x onerror=alert(1)></script><script>alert(2)</script>'
    file = writing.write(hostile(evil), writing.check(tmp_path))[0]
    with browser.open(file) as seen:
        seen.page.fill(".find", "onerror")
        seen.page.press(".find", "Enter")
        assert seen.page.inner_text(".panel h3") == f"{evil}0"
        assert evil in seen.page.inner_text(".legend")
        assert evil in seen.page.inner_text("figure[data-name=label-errors]")
        seen.page.mouse.move(*at(seen, hostile(evil), 0))
        with seen.page.expect_download() as download:
            seen.page.click("figure[data-name=label-errors] .csv")
        assert Path(download.value.path()).read_text(encoding="utf-8").splitlines()[1].startswith("\"'=HYPERLINK")
        assert seen.page.locator("main img").count() == 0
        seen.healthy(file)


@pytest.mark.slow
def test_fifty_thousand_points_fit_a_page(browser: Browser, tmp_path: Path) -> None:
    """How long a frame takes is in benchmarks/explore.py."""
    rows = 50_000
    draw = torch.Generator().manual_seed(0)
    x, labels = blobs(60, 3)
    small = collect(Catalogue(x, ["train"] * 60, labels=labels))
    near = torch.randint(rows, (rows, 24), generator=draw)
    big = replace(
        small,
        catalogue=Catalogue(torch.randn(rows, 4, generator=draw), ["train"] * rows, labels=torch.arange(rows) % 10),
        places=torch.randn(rows, 2, generator=draw),
        neighbours=near,
        cosines=torch.rand(rows, 24, generator=draw),
        groups=[],
        outliers=replace(small.outliers, score=torch.zeros(rows), rows=[]),
        errors=None,
        overlapping=[],
    )
    file = writing.write(big, writing.check(tmp_path))[0]
    assert file.stat().st_size < 25_000_000
    with browser.open(file) as seen:
        assert drawn(seen) == rows
        canvas(seen).focus()
        seen.page.keyboard.press("+")
        assert 0 < drawn(seen) < rows
        seen.healthy(file)
