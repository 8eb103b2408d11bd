"""`Written`: a page that was written; in Jupyter it shows itself, whole, in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

from kontrast.files import read_regular

HIGH = 800  # pixels of the frame


@dataclass(frozen=True)
class Written:
    """A page by its file; it can be passed wherever a path can.

    Args:
        path: The file.

    >>> Written(Path("runs/mine/report.html"))
    Written('runs/mine/report.html')
    """

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Written({str(self.path)!r})"

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        """Open the page in the browser."""
        import webbrowser

        webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        """The page inside the notebook: nothing else has to be there when the notebook is read later.

        The frame is sandboxed: the page's scripts run, but cannot reach the notebook.
        """
        page = escape(read_regular(self.path).decode(errors="replace"))
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" title="{escape(self.path.name)}" '
            f'style="width: 100%; height: {HIGH}px; border: 1px solid #8888; border-radius: 6px"></iframe>'
        )
