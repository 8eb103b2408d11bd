"""docs/report.py, which makes the picture of README: its two columns, and its size."""

from __future__ import annotations

from PIL import Image

from tests.docs.loading import DOCS, script

report = script("report")  # importing it does not need playwright


def test_the_right_column_is_cut_where_the_left_one_ends() -> None:
    left = [Image.new("RGB", (40, height), colour) for height, colour in ((30, "red"), (50, "blue"))]
    right = [Image.new("RGB", (40, height), colour) for height, colour in ((60, "green"), (500, "black"))]
    picture, gap = report.compose(left, right), report.GAP
    assert picture.size == (2 * 40 + 3 * gap, 30 + 50 + 3 * gap)
    at = {
        "red": (gap, gap + 29),
        "blue": (gap, 30 + 2 * gap),
        "green": (40 + 2 * gap, gap),
        "black": (79 + 2 * gap, picture.height - gap - 1),
    }
    for colour, place in at.items():
        assert picture.getpixel(place) == Image.new("RGB", (1, 1), colour).getpixel((0, 0)), colour
    assert picture.getpixel((60, picture.height - 1)) == left[0].getpixel((0, 0)), "the space around the parts"


def test_the_committed_picture_is_small() -> None:
    assert report.PICTURE == DOCS / "report.png"
    assert report.PICTURE.stat().st_size < 200_000
    with Image.open(report.PICTURE) as picture:
        assert picture.width > 1600
