"""The pictures of docs/geometry: all are there, on their page with their caption, and the script still draws them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.loading import DOCS, script

pictures = script("pictures")  # importing it does not need altair


def words(svg: Path) -> list[str]:
    """Every text in a drawing: titles, labels, numbers on axes."""
    found = ElementTree.parse(svg).getroot().iter("{http://www.w3.org/2000/svg}text")
    return [element.text or "" for element in found]


def prose(page: str) -> str:
    """A page with its line breaks taken out."""
    return re.sub(r"\s+", " ", (DOCS / "geometry" / f"{page}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_every_picture_is_committed_and_small(name: str) -> None:
    svg = DOCS / "geometry" / f"{name}.svg"
    assert svg.exists(), f"draw it: python docs/pictures.py {name}"
    assert svg.stat().st_size < 60_000
    assert len(words(svg)) > 10


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_its_page_shows_it_with_the_caption_of_the_script(name: str) -> None:
    picture = pictures.PICTURES[name]
    page = prose(picture.page)
    assert f"]({name}.svg)" in page
    assert picture.caption in page


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in (DOCS / "geometry").glob("*.svg")} == set(pictures.PICTURES)


def test_the_script_draws_what_is_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its words, as coordinates may differ in the last digit; `bounds` is all formula, so its numbers are fixed."""
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    pictures.main(["bounds", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["bounds.svg"]
    assert "bounds.svg" in capsys.readouterr().out
    assert words(tmp_path / "bounds.svg") == words(DOCS / "geometry" / "bounds.svg")


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("altair")
    with pytest.raises(SystemExit, match="2"):
        pictures.main(["uniformty", "--out", str(tmp_path)])
    assert "no picture named uniformty; there are uniformity, tolerance" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tolerance", "alignment"])
def test_measured_points_lie_on_the_curve_they_are_drawn_with(name: str) -> None:
    """Four standard errors, and what 128 dimensions leave of the law for infinitely many."""
    rows = [row for row in pictures.PICTURES[name].rows() if "error" in row]
    assert len(rows) == 16
    for row in rows:
        assert abs(row["value"] - row["expected"]) <= 4 * row["error"] + 0.01
