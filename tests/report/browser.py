"""Pages in a real browser: what it drew, what it said, and what it asked the network for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """The browser's; the test is skipped where there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser to look at the page with: none of {', '.join(NAMES)} is installed")
    return found


@dataclass
class Seen:
    """A page that is open, and what happened on it so far."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Notes errors, dialogs and requests from now on; data inside the page are no requests."""

        def said(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.errors.append(message.text)

        def asked(request: Any) -> None:
            if not request.url.startswith(("data:", "blob:")):
                self.requests.append(request.url)

        def stopped(dialog: Any) -> None:
            self.errors.append(f"dialog: {dialog.message}")
            dialog.dismiss()

        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", said)
        self.page.on("request", asked)
        self.page.on("dialog", stopped)

    def marks(self) -> dict[str, int]:
        """For each chart by name: how many marks it shows, axes and legends not counted."""
        script = """figures => Object.fromEntries(figures.map(f => [f.dataset.name, f.querySelectorAll(
            '.vega svg .role-mark > *, .vega svg .role-mark > g > *').length]))"""
        found: dict[str, int] = self.page.locator("figure.chart").evaluate_all(script)
        return found

    def screenshot(self, name: str, folder: Path) -> Path:
        """The whole page as a picture, in the folder of KONTRAST_SCREENSHOTS, or in ``folder``."""
        kept = Path(os.environ.get("KONTRAST_SCREENSHOTS") or folder)
        kept.mkdir(parents=True, exist_ok=True)
        path = kept / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path

    def healthy(self, file: Path) -> None:
        """Neither an error nor a request but for the file itself."""
        assert not self.errors, self.errors
        assert self.requests == [file.resolve().as_uri()]


class Browser:
    """One browser for many pages."""

    def __init__(self, chromium: Any) -> None:
        self.chromium = chromium

    @contextmanager
    def open(self, file: Path, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> Iterator[Seen]:
        """The page of a file once all its charts are drawn."""
        context = self.chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
        )
        seen = Seen(context.new_page())
        seen.listen()
        seen.page.goto(file.resolve().as_uri())
        if scripts:
            seen.page.wait_for_selector("html[data-ready=true]", state="attached", timeout=60_000)
        try:
            yield seen
        finally:
            context.close()


@contextmanager
def started() -> Iterator[Browser]:
    """Starts the browser once, for the fixture of a test module or session."""
    path = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield Browser(chromium)
        finally:
            chromium.close()
