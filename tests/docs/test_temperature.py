"""docs/temperature.md: its pictures are drawn from the recorded sweeps, and show their means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.loading import DOCS, script

temperature = script("temperature")
POINT = re.compile(r"temperature τ: ([\d.]+); .+?: ([−\d.]+); colour: (\w+); .*part: data = (\S+); .*n: (\d+);")


def labels(svg: str, kind: str | None = None) -> list[str]:
    """What each mark (of this kind) says it shows."""
    marks = [e for e in ElementTree.fromstring(svg).iter() if kind in (None, e.get("aria-roledescription"))]
    return [found for element in marks if (found := element.get("aria-label"))]


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def committed(name: str) -> str:
    return (DOCS / "temperature" / f"{name}.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", temperature.PICTURES)
def test_the_committed_picture_is_what_the_script_draws(name: str) -> None:
    """By its words and by what its marks say they show: coordinates may differ in the last digit."""
    pytest.importorskip("vl_convert")
    now, then = temperature.svg(name), committed(name)
    assert (words(now), labels(now)) == (words(then), labels(then)), "run python docs/temperature.py"


@pytest.mark.parametrize("name", temperature.PICTURES)
def test_points_are_the_means_of_the_summaries(name: str) -> None:
    """To the six digits that a mark's label has; both sets, both losses, twelve temperatures."""
    chart, experiments = temperature.PICTURES[name]
    expected = set()
    for experiment, loss in experiments.items():
        for folder in (experiment, experiment + temperature.CIFAR):
            summary = json.loads((DOCS / "results" / folder / "result.json").read_text(encoding="utf-8"))
            for place in summary["places"]:
                at, cell = place["at"], place["cells"][chart.y]
                expected.add(
                    (at["data"], at.get("loss", loss), float(at["temperature"]), f"{cell['mean']:.6g}", cell["n"])
                )
    found = {
        (match[4], match[3], float(match[1]), f"{float(match[2].replace('−', '-')):.6g}", int(match[5]))
        for label in labels(committed(name), "point")
        if (match := POINT.match(label))
    }
    assert len(expected) == 48
    assert found == expected


def test_the_page_shows_every_picture_and_none_is_left_over() -> None:
    page = (DOCS / "temperature.md").read_text(encoding="utf-8")
    for name in temperature.PICTURES:
        assert f"](temperature/{name}.svg)" in page
        assert len(committed(name)) < 80_000
    assert {path.stem for path in Path(DOCS / "temperature").iterdir()} == set(temperature.PICTURES)
