"""The page of an experiment: what it says, and how a browser shows graf-toy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kontrast.experiments.claims import FAILS, HOLDS, OPEN
from kontrast.report import experiment
from kontrast.report.page import Figure, Mark, Numbers, Table, Text, Widget, figures, render
from kontrast.runs import Summary
from tests.report.browser import Browser, started
from tests.report.experiment.made_up import summary, write_experiment, write_points


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as one:
        yield one


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """graf-toy's smoke preset and its page: two or three seconds."""
    from kontrast import experiments
    from kontrast.experiments.sweep import Sweep

    sweep = Sweep.of(experiments.find("graf-toy"), "smoke", out=tmp_path_factory.mktemp("runs"))
    for cell in sweep.cells:
        cell.perform()
    sweep.write()
    (sweep.cells[0].path / "report.html").touch()
    file = sweep.folder / "report.html"
    file.write_text(render(experiment.page(sweep.folder)))
    return file


def test_the_page_answers_in_order(tmp_path: Path) -> None:
    page = experiment.page(write_experiment(tmp_path))
    assert (page.title, page.subtitle) == ("A <demonstration>", "nobody, Table 1 · preset cpu · 2 seeds · demo")
    titles = [section.title for section in page.sections]
    assert titles == [
        "At a glance",
        "Claims and verdicts",
        "The paper's table, with ours",
        "Figures from our runs",
        "What failed",
        "Make it again",
        "Runs",
    ]
    glance = page.sections[0].parts
    assert isinstance(glance[0], Numbers)
    done = glance[0].items[-1]
    assert (done.value, done.tone) == ("2 of 3", "bad")
    assert done.about == "1 failed, seeds 0, 1, 2.0 hours of work"
    failed = page.sections[4].parts[0]
    assert isinstance(failed, Table)
    assert failed.rows == [["loss = supcon", "0", "toy-9", Mark("RuntimeError: <b>nan</b>", "bad")]]
    again = page.sections[5].parts
    assert isinstance(again[0], Text)
    assert again[0].text.startswith("kontrast reproduce demo --preset cpu\n")
    assert isinstance(again[1], Text)
    assert "commit abc1234" in again[1].text


def test_what_is_missing_or_empty_leaves_its_section_out(tmp_path: Path) -> None:
    made = summary(claims=[], settings=["temperature=[0.1]"])
    made["places"][1]["runs"][0] |= {"status": "missing", "error": None}
    folder = write_experiment(tmp_path, made)
    (folder / "squares.vl.json").unlink()
    page = experiment.page(folder)
    assert [s.title for s in page.sections] == ["At a glance", "The paper's table, with ours", "Make it again", "Runs"]
    glance = page.sections[0].parts
    assert isinstance(glance[0], Numbers)
    assert glance[0].items[-1].about.startswith("1 missing")
    assert glance[-1] == Text("Set by hand, unlike the preset: temperature=[0.1]", "note")


def test_no_torch_is_loaded(tmp_path: Path) -> None:
    folder = write_experiment(tmp_path)
    write_points(tmp_path / "toy-0")
    code = (
        "import sys; from pathlib import Path; from kontrast.report import experiment; "
        f"from kontrast.report.page import render; render(experiment.page(Path({str(folder)!r}))); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_users_words_stay_words(tmp_path: Path, browser: Browser) -> None:
    hostile = '"><img src=x onerror=alert(1)></script><script>alert(1)</script>'
    made = summary(title=hostile, about=hostile, source=hostile)
    made["axes"] = {"loss": [hostile, "supcon"]}
    made["places"][0]["at"] = {"loss": hostile}
    made["claims"][0]["text"] = hostile
    folder = write_experiment(tmp_path, made)
    write_points(tmp_path / "toy-0", weights=True)
    (tmp_path / "toy-0" / "report.html").touch()
    file = folder / "report.html"
    file.write_text(render(experiment.page(folder)))
    with browser.open(file) as seen:
        seen.healthy(file)
        assert seen.page.locator("img").count() == 0
        assert seen.page.locator(".sphere option").inner_text() == f"loss = {hostile}"


def drawn(seen: Any) -> str:
    """Where the first class's points are."""
    paths = seen.page.locator(".sphere .points[data-class='0']").evaluate_all(
        "all => all.map(p => p.getAttribute('d'))"
    )
    return " ".join(paths)


def later(slider: Any) -> None:
    """Waits until the second frame, or one after it."""
    from playwright.sync_api import expect

    expect(slider).to_have_value(re.compile("^([2-9]|[0-9]{2})$"), timeout=20_000)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_shows_graf_toy(toy: Path, tmp_path: Path, browser: Browser, dark: bool) -> None:
    assert toy.stat().st_size < 4e6
    with browser.open(toy, dark=dark) as seen:
        seen.healthy(toy)
        assert set(seen.marks()) == {figure.name for figure in figures(experiment.page(toy.parent))}
        assert all(count > 0 for count in seen.marks().values())
        verdicts = seen.page.locator("td.good, td.bad, td.watch").all_inner_texts()
        assert any("holds" in verdict for verdict in verdicts), "colours are never alone"
        assert drawn(seen).count("M") == 100
        assert seen.screenshot(f"graf-toy-{'dark' if dark else 'light'}", tmp_path).stat().st_size > 0


def test_the_slider_moves_time_and_a_drag_and_keys_turn(toy: Path, browser: Browser) -> None:
    with browser.open(toy) as seen:
        first = drawn(seen)
        slider = seen.page.locator(".sphere input[type=range]")
        slider.fill(slider.get_attribute("max") or "")
        last = drawn(seen)
        assert last != first
        assert "step 0 " not in seen.page.locator(".sphere output").inner_text()
        globe = seen.page.locator(".sphere .globe")
        globe.scroll_into_view_if_needed()
        box = globe.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        seen.page.mouse.move(x, y)
        seen.page.mouse.down()
        seen.page.mouse.move(x + 80, y + 30, steps=4)
        seen.page.mouse.up()
        dragged = drawn(seen)
        assert dragged != last
        seen.page.mouse.move(x - 50, y)
        assert drawn(seen) == dragged, "nothing turns once it is let go"
        globe.focus()
        globe.press("ArrowLeft")
        pressed = drawn(seen)
        assert pressed != dragged
        globe.press("Home")
        assert drawn(seen) == last
        seen.healthy(toy)


def test_play_goes_on_and_stops_when_asked(toy: Path, browser: Browser) -> None:
    with browser.open(toy) as seen:
        slider, button = seen.page.locator(".sphere input[type=range]"), seen.page.locator(".sphere button.play")
        button.click()
        assert "pause" in button.inner_text()
        later(slider)
        button.click()
        assert "play" in button.inner_text()
        at = slider.input_value()
        seen.page.wait_for_timeout(150)
        assert slider.input_value() == at


def test_every_setting_can_be_chosen(toy: Path, browser: Browser) -> None:
    with browser.open(toy) as seen:
        chooser = seen.page.locator(".sphere select")
        names = chooser.locator("option").all_inner_texts()
        assert len(names) > 1
        seen_first = drawn(seen)
        chooser.select_option(str(len(names) - 1))
        assert drawn(seen) != seen_first
        seen.healthy(toy)


def test_who_wants_no_motion_gets_frames_without_turning(toy: Path, browser: Browser) -> None:
    with browser.open(toy) as seen:
        seen.page.emulate_media(reduced_motion="reduce")
        before = seen.page.locator(".sphere .diamond").first.get_attribute("d")
        seen.page.locator(".sphere button.play").click()
        later(seen.page.locator(".sphere input[type=range]"))
        assert seen.page.locator(".sphere .diamond").first.get_attribute("d") == before


def test_without_script_the_end_is_there_as_a_still(toy: Path, browser: Browser) -> None:
    with browser.open(toy, scripts=False) as seen:
        assert seen.page.locator(".sphere .mean").count() == 4
        assert not seen.page.locator(".sphere button.play").is_visible()
        assert seen.page.locator("td.good").count() > 0


def test_the_still_is_the_last_frame_that_the_script_draws(toy: Path, browser: Browser) -> None:
    script = "all => all.map(c => [c.getAttribute('cx'), c.getAttribute('cy')]).sort()"
    with browser.open(toy, scripts=False) as seen:
        still = seen.page.locator(".sphere .mean")
        places = sorted(
            (float(x), float(y))
            for x, y in ((still.nth(i).get_attribute("cx"), still.nth(i).get_attribute("cy")) for i in range(4))
        )
    with browser.open(toy) as seen:
        seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        live = sorted((float(x), float(y)) for x, y in seen.page.locator(".sphere .mean").evaluate_all(script))
    for a, b in zip(places, live, strict=True):
        assert a == pytest.approx(b, abs=3e-4)  # 16 bits of ±2 are 6e-5, and both are rounded to four digits


def test_links_lead_to_the_runs_that_have_a_page(toy: Path, browser: Browser) -> None:
    with browser.open(toy) as seen:
        links = seen.page.locator(".run-links a")
        assert links.count() == 1
        assert str(links.first.get_attribute("href")).startswith("../toy-")


def test_a_widget_has_no_users_word_in_its_markup(tmp_path: Path) -> None:
    made = summary(axes={"loss": ["SECRETWORD", "supcon"]})
    made["places"][0]["at"] = {"loss": "SECRETWORD"}
    folder = write_experiment(tmp_path, made)
    write_points(tmp_path / "toy-0")
    (tmp_path / "toy-0" / "report.html").touch()
    widgets = [p for section in experiment.page(folder).sections for p in section.parts if isinstance(p, Widget)]
    assert [w.name for w in widgets] == ["sphere", "run-links"]
    assert all("SECRETWORD" not in w.html + w.script for w in widgets)
    assert all("SECRETWORD" in str(w.data) for w in widgets)


def test_panels_are_scrolled_on_a_phone_and_not_shrunk(tmp_path: Path, browser: Browser) -> None:
    folder = write_experiment(tmp_path)
    spec = json.loads((folder / "squares.vl.json").read_text())
    spec["data"]["values"] = [{"x": x, "panel": f"panel {p}"} for p in range(12) for x in (1, 2, 3)]
    (folder / "squares.vl.json").write_text(json.dumps(spec))
    file = folder / "report.html"
    file.write_text(render(experiment.page(folder)))
    size = "svg => 11 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    with browser.open(file, width=400) as seen:
        chart = seen.page.locator("figure[data-name=squares] svg")
        assert chart.evaluate(size) >= 9, "pixels of the smallest letters"
        box = seen.page.locator("figure[data-name=squares] .vega")
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
        seen.page.emulate_media(media="print")
        assert chart.evaluate("svg => svg.getBoundingClientRect().right <= innerWidth"), "paper cannot be scrolled"
        seen.healthy(file)


def test_a_phone_scrolls_only_downwards(toy: Path, tmp_path: Path, browser: Browser) -> None:
    with browser.open(toy, width=400) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 400
        seen.screenshot("graf-toy-phone", tmp_path)


def test_learning_curves_and_baselines_have_their_place(tmp_path: Path) -> None:
    baseline = {"name": "raw pixels", "at": {"data": "mini"}, "seed": 0, "status": "done", "error": None}
    baseline |= {"values": {"knn20": 82.25, "error:knn20": 0.5}, "titles": {"knn20": "kNN (%)"}}
    failed = {
        **baseline,
        "name": "untrained encoder",
        "status": "failed",
        "error": "no room",
        "values": {},
        "titles": {},
    }
    counts = {"cells": 3, "other_recipe": 1}
    folder = write_experiment(tmp_path, summary(baselines=[baseline, failed], ledger=counts))
    shutil.copy(folder / "squares.vl.json", folder / "learning-loss.vl.json")
    made = experiment.page(folder)
    sections = {section.title: section for section in made.sections}
    curves = [part.name for part in sections["Learning curves"].parts if isinstance(part, Figure)]
    others = [part.name for part in sections["Figures from our runs"].parts if isinstance(part, Figure)]
    assert (curves, others) == (["learning-loss"], ["squares"])
    last = [part for part in sections["The paper's table, with ours"].parts if isinstance(part, Table)][-1]
    assert last.rows[0] == ["raw pixels, data = mini", "82.25 ± 0.98"]
    assert last.rows[1][1] == Mark("failed: no room", "bad")
    notes = [part.text for part in sections["Make it again"].parts if isinstance(part, Text)]
    assert any("From the ledger: 3 runs; 1 of them ran with settings" in note for note in notes)


def test_every_verdict_has_a_sign_a_word_and_a_tone() -> None:
    marks = [experiment.mark(verdict) for verdict in (HOLDS, FAILS, OPEN)]
    assert [m.tone for m in marks] == ["good", "bad", "watch"]
    assert all(verdict in m.text for verdict, m in zip((HOLDS, FAILS, OPEN), marks, strict=True))
    assert len({m.text[0] for m in marks}) == 3


def test_each_finding_is_a_row() -> None:
    made = summary()
    made["claims"][0]["findings"].append({**made["claims"][0]["findings"][0], "where": "data=cifar10"})
    table = experiment.claims(Summary.model_validate(made))
    assert len(table.rows) == 4
    assert table.rows[1] == [
        Mark("✓\N{NO-BREAK SPACE}holds", "good"),
        "claim 0",
        "data=cifar10: found 0",
        "an interval",
    ]


def test_cards_count_them() -> None:
    cards = experiment.verdict_counts(Summary.model_validate(summary()))
    assert [card.value for card in cards] == ["1 of 3"] * 3
    assert experiment.verdict_counts(Summary.model_validate(summary(claims=[]))) == []
