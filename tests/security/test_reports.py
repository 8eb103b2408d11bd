"""Whatever text a page is given, its markup is the same as with harmless text, and the text comes back as it was."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kontrast import report
from kontrast.files import write_json
from kontrast.report.figures import draw
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
    render,
)
from tests.data.serving import serving
from tests.report import made
from tests.report.experiment import made_up

EXAMPLES = 150
PIECES = [
    "<", ">", "&", '"', "'", "`", "/", "=", "\\", "\0", "\n", "\r", "\u2028", "\ufeff", "&lt;", "&#x3c;", "%3C",
    "\\u003c", "<script>", "</script>", "</SCRIPT >", "<!--", "-->", "<![CDATA[", "]]>", "<svg/onload=alert(1)>",
    "</style>", "</title>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "data:text/html,<script>",
    "' onfocus=alert(1) autofocus='",
    "</textarea>", "<base href=//x>", "{{7*7}}", "${alert(1)}", "<iframe srcdoc='", "é", "猫", "\U0001f600", "a", " ",
]  # fmt: skip
hostile = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), min_size=1, max_size=6).map("".join)
# What is in a file of JSON or YAML can be any of these; a lone surrogate cannot be written into a page at all.
writable = hostile.filter(lambda text: text.strip() and not any("\ud800" <= sign <= "\udfff" for sign in text))


class Skeleton(HTMLParser):
    """Tags and the names of their attributes, in order; JSON blocks apart."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.blocks: list[str] = []
        self.texts: list[str] = []
        self.inside = False
        self.feed(html.partition("<footer>")[0])  # below it are the package's own scripts, a million letters
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.inside = ("type", "application/json") in attrs
        self.texts += [value or "" for _, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", ()))
        self.inside = False

    def handle_comment(self, data: str) -> None:
        self.tags.append(("!--", ()))

    def handle_decl(self, decl: str) -> None:
        self.tags.append(("!", ()))

    def unknown_decl(self, data: str) -> None:
        self.tags.append(("![", ()))

    def handle_pi(self, data: str) -> None:
        self.tags.append(("?", ()))

    def handle_data(self, data: str) -> None:
        (self.blocks if self.inside else self.texts).append(data)


def every_part(text: str) -> Page:
    """A page with the text in every place that takes one."""
    picture = Picture("data:image/png;base64,", text, "bad")
    spec = {"mark": "bar", "title": text, "data": {"values": [{text: text}]}, "encoding": {"x": {"field": text}}}
    parts: list[Part] = [
        *(Text(text, kind) for kind in ("plain", "note", "code")),
        Text(f"a heading {text}", text),
        Numbers([Number(text, text, text, text)]),
        Table([text, text], [[text, Mark(text, text)], ["words", "words"]], text),  # else "<" makes it one of numbers
        Figure(text, spec, text),
        Widget(text, "<b>own</b>", "", {text: [text]}, text),
        Gallery([Strip(picture, [picture], text)], text, text),
        Fold(text, [Text(text)]),
    ]
    return Page(text, text, [Section(text, parts), Section(text, parts, open=False)])


PLAIN = Skeleton(render(every_part("harmless"))).tags


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(writable)
def test_markup_does_not_depend_on_text(text: str) -> None:
    seen = Skeleton(render(every_part(text)))
    assert seen.tags == PLAIN
    assert json.loads(seen.blocks[1]) == {text: [text]}, "data come back as they were"


def hostile_run(place: Path, text: str) -> Path:
    run = made.folder(place, classes=(text, f"{text}2", "owl"), about=text, status="done", error=text, note=text)
    finding = {"rule": text, "status": "problem", "title": text, "evidence": text, "advice": text}
    write_json(run / "doctor.json", {"findings": [finding]})
    return run


def pages_of(text: str) -> list[Skeleton]:
    """A run's page, and that of two runs."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [hostile_run(Path(folder, name), text) for name in ("one", "two")]
        written = [report.write(runs[:1]), report.write(runs, out=Path(folder, "both.html"))]
        return [Skeleton(page.read_text(encoding="utf-8")) for page in written]


def test_pages_of_runs(record_property: Callable[[str, object], None]) -> None:
    """The markup of a run's page follows its numbers, never its words: every piece, in four orders."""
    before = [page.tags for page in pages_of("harmless")]
    for seed in range(4):
        text = "".join(random.Random(seed).sample(PIECES, len(PIECES)))
        assert [page.tags for page in pages_of(" ".join(text.split()))] == before
    record_property("tried", 4 * len(PIECES))


def test_the_skeleton_tells() -> None:
    """Without escaping the property fails for most of the pieces."""
    plain = Skeleton("<p>harmless</p>").tags
    caught = [piece for piece in PIECES if Skeleton(f"<p>{piece}</p>").tags != plain]
    assert {"<script>", "<!--", "<![CDATA[", "<svg/onload=alert(1)>", "</title>"} <= set(caught)


ADDRESSES: dict[str, Callable[[str], dict[str, Any]]] = {
    "data": lambda url: {"data": {"url": url}, "mark": "bar"},
    "lookup": lambda url: {
        "data": {"values": []}, "mark": "bar",
        "transform": [{"lookup": "a", "from": {"data": {"url": url}, "key": "a", "fields": ["b"]}}],
    },
    "layer": lambda url: {"layer": [{"data": {"url": url}, "mark": "bar"}]},
    "picture": lambda url: {"data": {"values": [{}]}, "mark": {"type": "image", "url": url}},
    "field of pictures": lambda url: {
        "data": {"values": [{"u": url}]}, "mark": "image", "encoding": {"url": {"field": "u"}},
    },
    "configuration": lambda url: {"data": {"values": [{}]}, "mark": "image", "config": {"image": {"url": url}}},
    "link": lambda url: {"data": {"values": [{}]}, "mark": "bar", "encoding": {"href": {"value": url}}},
}  # fmt: skip


@pytest.mark.parametrize("place", ADDRESSES)
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_loads_nothing(place: str, kind: str) -> None:
    """The renderer would fetch pictures even where it is told to allow no address."""
    with (
        serving() as server,
        pytest.raises(ValueError, match="which loads or opens something; its data must"),
    ):
        draw(ADDRESSES[place](f"{server.url}/x"), kind)
    assert server.asked == []


CARELESS = "import json, sys, vl_convert; vl_convert.vegalite_to_png(json.loads(sys.argv[1]), allowed_base_urls=[])"


def test_left_to_itself_the_renderer_fetches() -> None:
    """So the refusal above is needed; in a process of its own, as the renderer holds Python's lock while it waits."""
    with serving() as server:
        spec = {**ADDRESSES["picture"](f"{server.url}/x.png"), "width": 20, "height": 20}
        spec["mark"] |= {"width": 9, "height": 9}
        subprocess.run([sys.executable, "-c", CARELESS, json.dumps(spec)], check=False, capture_output=True)
        assert server.asked == ["/x.png"]


@pytest.mark.parametrize("place", ADDRESSES)
def test_a_chart_of_somebody_elses_folder(place: str, tmp_path: Path) -> None:
    folder = made_up.write_experiment(tmp_path)
    write_json(folder / "evil.vl.json", ADDRESSES[place]("http://192.0.2.1/x"))
    with pytest.raises(ValueError, match=r"the chart 'evil' in .* has the key '(url|href)', with which a chart loads"):
        report.write([folder])


def test_settings_for_the_embedder_are_dropped() -> None:
    spec = {"mark": "bar", "usermeta": {"embedOptions": {"ast": False, "actions": True, "editorUrl": "http://x"}}}
    html = render(Page("a", "b", [Section("c", [Figure("d", spec)])]))
    assert "usermeta" not in "".join(Skeleton(html).blocks)
