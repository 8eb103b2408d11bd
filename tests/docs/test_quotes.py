"""Numbers that pages quote are those of their sources, and pages of results have no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kontrast.recipes import published
from tests.docs.loading import DOCS, script

quotes = script("quotes")
PAGES = quotes.pages()
# Settings that the text names, no results: temperatures, and the parameters of losses.
SETTINGS = {f"{t:g}" for t in published.WANG_LIU_TEMPERATURES} | {"0.04"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_numbers_are_those_of_their_sources(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("<!--= ") == len(quotes.QUOTE.findall(text)), "a source has nothing before it to be filled in"
    assert quotes.fill_in(text) == text, "run python docs/quotes.py"


@pytest.mark.parametrize("name", ["temperature", "choosing-a-loss"])
def test_no_other_number_with_a_point_is_in_the_text(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert DOCS / f"{name}.md" in PAGES
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|arXiv [\d.]+", " ", quotes.QUOTE.sub(" ", text), flags=re.DOTALL)
    assert set(re.findall(r"\d+\.\d+", text)) <= SETTINGS


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("wl-table-1-cpu linear", "names 12 places; name one by data, temperature"),
        ("benchmarks/training: nobody: MB", "no table with the row 'nobody' and the column 'MB'"),
    ],
)
def test_a_source_that_is_not_there_is_an_error(source: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quotes.value(source)


def test_the_sources_are_read_right() -> None:
    """Against the tables as the pages of results and benchmarks print them."""
    assert "| 0.1 | 82.20 ± 0.57 (n = 3)" in (DOCS / "results/wl-table-1-cpu/README.md").read_text(encoding="utf-8")
    assert quotes.value("wl-table-1-cpu linear temperature=0.1") == "82.20 ± 0.57"
    assert quotes.value("benchmarks/training: the whole batch at once: MB") in {
        cell.strip() for cell in (DOCS / "benchmarks/training.md").read_text(encoding="utf-8").split("|")
    }
