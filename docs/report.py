"""The picture of README and of docs/report.md, docs/report.png: parts of the report of one run, side by side.

    python docs/report.py                 trains tcl-fashion-mini into runs/ (some minutes), then takes the picture
    python docs/report.py --run RUN       takes the picture of a finished run

The page is the run's own report.html, opened in Chromium. Left: title, result and health; right: map and neighbours.
Needs Chromium and playwright.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

PICTURE = Path(__file__).with_suffix(".png")
RECIPE = "tcl-fashion-mini"
LEFT = ("header", "#result", "#health-and-what-next")  # parts of the page, by CSS selector
RIGHT = ("#embedding-map", "#nearest-neighbours")
WIDTH, SCALE, GAP = 1120, 1, 12  # width of the page in CSS pixels; device pixels per CSS pixel; space between parts
COLOURS = 256  # of the palette: a third of the size of the file


def train() -> Path:
    """Run `kontrast train` and return the run's folder."""
    subprocess.run([sys.executable, "-m", "kontrast", "train", RECIPE], check=True)
    return max(Path("runs").glob(f"{RECIPE}-*"), key=lambda run: run.stat().st_mtime)


def photograph(page: Path, parts: Sequence[str], *, click: str = "") -> list[Image.Image]:
    """Take a picture of each part of an HTML page, in the light theme, after a click on the first ``click``."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(
            viewport={"width": WIDTH, "height": 1200}, device_scale_factor=SCALE, color_scheme="light"
        )
        view.goto(page.resolve().as_uri())
        view.wait_for_timeout(2000)  # the charts are drawn by a script
        view.add_style_tag(content="nav { display: none !important; }")
        if click:
            view.click(f"{click} >> nth=0")
            view.wait_for_timeout(500)
        images = [Image.open(BytesIO(view.locator(part).first.screenshot())).convert("RGB") for part in parts]
        browser.close()
    return images


def compose(left: Sequence[Image.Image], right: Sequence[Image.Image]) -> Image.Image:
    """Stack the parts in two columns; the right one is cut at the end of the left one."""
    background = left[0].getpixel((0, 0))
    height = sum(image.height for image in left) + GAP * (len(left) + 1)
    width = max(image.width for image in (*left, *right))
    picture = Image.new("RGB", (2 * width + 3 * GAP, height), background)
    for x, column in ((GAP, left), (width + 2 * GAP, right)):
        y = GAP
        for image in column:
            picture.paste(image.crop((0, 0, image.width, min(image.height, height - GAP - y))), (x, y))
            y += image.height + GAP
            if y >= height - GAP:
                break
    return picture


def main(arguments: Sequence[str] | None = None) -> None:
    """Train unless a run is named, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="RUN", help="a finished run, instead of training one")
    parser.add_argument("--out", type=Path, default=PICTURE, help="where the picture is written")
    options = parser.parse_args(arguments)
    page = (options.run or train()) / "report.html"
    images = photograph(page, (*LEFT, *RIGHT))
    picture = compose(images[: len(LEFT)], images[len(LEFT) :])
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(options.out, optimize=True)
    print(f"{options.out}  {picture.width} × {picture.height}, {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
