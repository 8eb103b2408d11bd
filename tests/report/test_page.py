"""A page is one file: what it holds is escaped, and it forbids itself everything else."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from kontrast.report.page import (
    Figure,
    Fold,
    Gallery,
    Mark,
    Number,
    Numbers,
    Page,
    Part,
    Picture,
    Section,
    Strip,
    Table,
    Text,
    Widget,
    data_url,
    figures,
    render,
)

EVIL = "<script>alert(1)</script>\u2028\"><img src=x onerror='alert(1)'>&amp;"
BAR = {"mark": "bar", "data": {"values": [{"x": EVIL}]}, "encoding": {"x": {"field": "x"}}, "title": EVIL}


def page(*parts: Part, title: str = "A page", opened: bool = True) -> str:
    return render(Page(title, "about it", [Section("Some parts", parts, opened)]))


def body(html: str) -> str:
    """What stands before the package's own scripts."""
    return html[html.index("<body>") : html.rindex("<footer>")]


class _Tags(HTMLParser):
    """Every tag with its attributes, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_everything_of_a_user_is_escaped() -> None:
    picture = Picture("data:image/png;base64,", EVIL, "bad")
    parts: list[Part] = [
        *(Text(EVIL, kind) for kind in ("plain", "note", "good", "bad", "watch", "code")),
        Text(f"{EVIL}\n{EVIL}", "bad"),
        Numbers([Number(EVIL, EVIL, EVIL)]),
        Table([EVIL], [[EVIL], [Mark(EVIL, "bad")]], EVIL),
        Figure(EVIL, BAR, EVIL),
        Widget(EVIL, "<b>own</b>", "", {"name": EVIL}, EVIL),
        Gallery([Strip(picture, [picture])], EVIL, EVIL),
        Fold(EVIL, [Text(EVIL)]),
    ]
    html = body(render(Page(EVIL, EVIL, [Section(EVIL, parts), Section(EVIL, parts, open=False)])))
    seen = _Tags()
    seen.feed(html)
    for tag, attributes in seen.found:
        assert tag != "script" or attributes == {"type": "application/json"}
        assert tag != "img" or str(attributes["src"]).startswith("data:")
        assert not [name for name in attributes if name.startswith("on")]
    assert len([tag for tag, _ in seen.found if tag == "img"]) == 4
    assert html.count("<b>own</b>") == 2, "the package's own markup stays"
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_data_come_back_as_they_were() -> None:
    html = page(Figure("bar", BAR))
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text)["data"]["values"] == [{"x": EVIL}]
    (null,) = re.findall(r'<script type="application/json">(.*?)</script>', page(Widget("w", "", "", [float("nan")])))
    assert null == "[null]", "JSON has no NaN"


def test_only_the_scripts_it_names_may_run() -> None:
    html = page(Figure("bar", BAR), Widget("w", "<i></i>", "root.hidden = data;", True))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 2
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert rules["script-src"].split() == [f"'sha256-{found}'" for found in hashes]
    assert "unsafe-eval" not in policy
    assert "root.hidden = data;" in scripts[1]


def test_a_page_without_charts_has_no_library() -> None:
    html = page(Text("only words"))
    assert len(html) < 40_000, "the library has 900,000 letters"
    assert html.count("<script>") == 1


def test_a_widget_cannot_end_the_script() -> None:
    with pytest.raises(ValueError, match=r"the script of the widget 'w' must not contain </script"):
        page(Widget("w", "", "const x = '</SCRIPT>';", None))


def test_links_lead_to_sections_each_once() -> None:
    titles = ["A part", "a PART", "?!", "Content", "theme"]
    html = render(Page("t", "s", [Section(title, []) for title in titles]))
    links = re.findall(r'<a href="#([^"]*)">', html)
    assert len(set(links)) == len(titles)
    for link in links:
        assert html.count(f'id="{link}"') == 1


def test_columns_of_numbers_stand_right() -> None:
    rows = [["a", "1.5 ± 0.2", "12,000", "3 %"], ["b", "–", "7", "−4 %"]]
    html = page(Table(["name", "value", "rows", "share"], rows))
    assert re.findall(r'<th scope="col"([^>]*)>', html) == ["", ' class="right"', ' class="right"', ' class="right"']
    assert "<thead>" not in page(Table(["", ""], [["a", "b"]]))


def test_neighbouring_figures_share_a_grid() -> None:
    one = Figure("one", BAR)
    html = page(one, one, Text("between"), one)
    assert html.count('class="figures"') == 2


def test_a_closed_section_is_a_fold_with_its_heading() -> None:
    assert re.search(r"<details><summary><h2>Some parts</h2></summary>", page(opened=False))
    assert "<details>" not in page()


def test_a_chart_is_described_by_title_and_caption() -> None:
    html = page(Figure("bar", {**BAR, "title": "Loss"}, 'Falls to "3".'), Figure("bare", {**BAR, "title": "Loss."}))
    assert re.findall(r'aria-label="(Loss[^"]*)"', html) == ["Loss. Falls to &quot;3&quot;.", "Loss"]
    assert "<noscript>Loss (drawn by JavaScript)</noscript>" in html, "the caption stands below it anyway"


def test_panels_can_be_scrolled() -> None:
    html = page(Figure("bar", BAR), Figure("panels", {"facet": {"field": "x"}, "spec": BAR}))
    kinds = re.findall(r'<figure class="([^"]*)"[^>]*><div class="vega" role="img"( tabindex="0")?', html)
    assert kinds == [("chart", ""), ("chart panels", ' tabindex="0"')]


def test_figures_are_found_in_folds_too() -> None:
    one, two, three = (Figure(name, {}) for name in ("one", "two", "three"))
    sections = [Section("a", [Text("…"), one, Fold("more", [two, Fold("still more", [three])])]), Section("b", [one])]
    assert [figure.name for figure in figures(Page("", "", sections))] == ["one", "two", "three", "one"]


def test_parts_stay_as_they_are() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Text("a").text = "b"  # type: ignore[misc]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_a_picture_comes_back(channels: int) -> None:
    pixels = np.zeros((channels, 6, 9), dtype=np.uint8)
    pixels[:, :, 4:] = 200
    kind, _, text = data_url(pixels).partition(";base64,")
    assert kind.startswith("data:image/")
    seen = np.asarray(Image.open(io.BytesIO(base64.b64decode(text))).convert("L")).astype(int)
    assert seen.shape == (6, 9)
    # Lossy, and 4:2:0 in blocks: flat areas away from the edge come back within a few of 256 levels.
    assert abs(seen[:, 0] - 0).max() <= 16
    assert abs(seen[:, 8] - 200).max() <= 16


def test_what_is_no_picture() -> None:
    with pytest.raises(ValueError, match=r"pixels: float64 \[2, 2\] must be uint8 \[C, H, W\]"):
        data_url(np.zeros((2, 2)))  # type: ignore[arg-type]
