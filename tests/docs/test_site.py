"""The documentation as a site: it builds without a warning, loads nothing from elsewhere, every link leads somewhere.

Links are looked at twice: as a code host shows the pages, and as the site does (mkdocs, strict).
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.commands import ROOT, blocks, pages
from tests.docs.loading import script

website = script("website")
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


class Read(HTMLParser):
    """What a page loads, and the words in it by the tag they stand in."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.quoted = 0
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(given.get("href") or "")
        elif tag in LOADED:
            self.loads.append(given.get(LOADED[tag]) or "")
        self.quoted += tag == "blockquote"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return built(tmp_path_factory.mktemp("site"))
    shared = tmp_path_factory.getbasetemp().parent / "site"  # of all workers: the first one builds, the others wait
    with shared.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return shared if (shared / "search" / "search_index.js").exists() else built(shared)


def built(to: Path) -> Path:
    """The site, as `make docs` builds it."""
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(to)]
    silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False, env=silent)
    assert done.returncode == 0, (
        done.stderr + done.stdout
    )  # it names links that lead nowhere and pages in no navigation
    return to


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    found = {page: Read(page).loads for page in site.rglob("*.html")}
    assert len(found) > 100
    for page, loads in found.items():
        assert not [url for url in loads if re.match(r"(\w+:)?//", url)], page
        assert all(
            (page.parent / url.partition("?")[0]).exists() for url in loads if url and page.name != "404.html"
        ), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(\w+:)?//", style.read_text(encoding="utf-8")), style


def test_the_reference_has_every_public_module_and_no_other(site: Path) -> None:
    modules = website.reference()
    assert {"kontrast", "kontrast.losses.tcl", "kontrast.cli.train", "kontrast.simplex"} <= modules.keys()
    assert not [name for name in modules if "._" in name]
    for name, page in modules.items():
        assert (site / page).with_suffix(".html").exists(), name
    assert len(modules) == len(list((site / "api").rglob("*.html")))


def test_a_package_of_the_reference_lists_its_modules(site: Path) -> None:
    page = (site / "api" / "losses" / "index.html").read_text(encoding="utf-8")
    assert all(f'href="{name}.html"' in page for name in ("supcon", "tcl", "functional"))
    assert "SupCon whose denominator is tuned" in page, "with the first sentence of each"


def test_the_reference_shows_signatures_and_examples(site: Path) -> None:
    page = site / "api" / "losses" / "tcl.html"
    text = re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))
    assert re.search(r"TCLLoss\(\s*temperature:", text)
    assert "&gt;&gt;&gt; " in text, "its examples"
    assert not [page for page in (site / "api").rglob("*.html") if Read(page).quoted], "an example shown as a quotation"


def test_what_is_searched_for_is_found(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"] if "TCLLoss" in entry["text"]}
    assert {"losses/supervised.html", "api/losses/tcl.html"} <= {location.partition("#")[0] for location in found}


def test_guides_weigh_most_in_a_search_and_records_least(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    weights: dict[str, set[float]] = {}
    for entry in index["docs"]:
        weights.setdefault(entry["location"].partition("#")[0], set()).add(entry["boost"])
    assert {name: weights[f"{name}.html"] for name in website.GUIDES} == {key: {3.0} for key in website.GUIDES}
    records = [found for page, found in weights.items() if page.startswith(("api/", "results/"))]
    assert len(records) > 100
    assert all(found == {0.1} for found in records)
    assert weights["losses/supervised.html"] == {1.0}


def test_no_two_pages_of_results_have_one_title(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    titles = [e["title"] for e in index["docs"] if re.fullmatch(r"results/.+\.html", e["location"])]
    assert len(titles) > 10
    assert len(set(titles)) == len(titles)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_from_the_file_system_in_a_browser_search_answers_and_no_request_leaves(site: Path) -> None:
    sync = pytest.importorskip("playwright.sync_api")
    left, said = [], []
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: left.append(request.url) if request.url.startswith("http") else None)
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto((site / "losses" / "supervised.html").as_uri())
        page.click("input.md-search__input")
        page.get_by_text("Type to start searching").wait_for()  # it has read its index
        page.keyboard.type("uniformity")
        page.wait_for_selector(".md-search-result__item", state="attached")
        found = page.locator(".md-search-result__link").evaluate_all("links => links.map(link => link.href)")
        page.reload()  # a question, anew
        page.click("input.md-search__input")
        page.get_by_text("Type to start searching").wait_for()
        page.locator("input.md-search__input").fill("temperature too lo")
        page.keyboard.type("w")  # it asks when a key is let go: once, with all of it
        page.wait_for_selector(".md-search-result__item", state="attached")
        first = page.locator(".md-search-result__item > .md-search-result__link").evaluate_all(
            "links => links.map(link => link.href)"
        )[:5]
        browser.close()
    assert "/temperature.html" in first[0]
    assert any("/doctor.html" in link for link in first), "where it says what is wrong and what to do"
    assert not [link for link in first if "/results/" in link or "/api/" in link]
    assert any("/geometry/" in link for link in found)
    assert left == []
    assert said == []


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_on_a_code_host(page: Path) -> None:
    for target, anchor in LINK.findall(_prose(page)):
        to = (page.parent / target).resolve() if target else page
        assert to.exists(), f"{target}: there is no {to}"
        assert to.is_relative_to(ROOT), f"{target} leads out of the repository"
        if anchor:
            assert anchor in _anchors(to), f"{target}#{anchor}; there are {', '.join(_anchors(to))}"


def test_every_page_is_in_the_navigation() -> None:
    """mkdocs warns of it too, but stops at the first page that it names and does not find."""
    config = yaml.load(
        (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader
    )  # its tags are mkdocs's
    named = set(_leaves(website.expand_nav(config["nav"])))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in pages()[2:]}
    examples = [f"examples/{file.stem}.md" for file in website.EXAMPLES]
    made = {*website.OUTSIDE.values(), *website.reference().values(), *examples}
    assert sorted(there - named) == [], "in no navigation: add them to mkdocs.yml"
    assert sorted(named - there - made) == [], "in the navigation, and not there"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def _leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [leaf for entry in (nav.values() if isinstance(nav, dict) else nav) for leaf in _leaves(entry)]


def _prose(page: Path) -> str:
    """Without blocks of code, inline code, and what is drawn in them."""
    text = page.read_text(encoding="utf-8")
    lines = text.splitlines()
    for block in blocks(page, text):
        for i in range(block.line - 1, block.line - 1 + len(block.lines)):
            lines[i] = ""
    return re.sub(r"`[^`\n]*`", "`", "\n".join(lines))


def _anchors(page: Path) -> list[str]:
    """Of its headings, as code hosts make them: lower case, no punctuation, hyphens for spaces, numbered if equal."""
    made: list[str] = []
    text = page.read_text(encoding="utf-8")
    for heading in HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made.append(slug if slug not in made else f"{slug}-{made.count(slug)}")
    return made
