"""Warnings as a user of the command line reads them: ``warning:`` and the text, each text once a process.

Where in the source it was raised says nothing to them; with ``kontrast --debug`` Python's own form is printed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kontrast.cli._console import err, paragraph
from kontrast.cli._status import debugging

said: set[str] = set()


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Inside it warnings are lines on standard error; afterwards they are shown as before."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if debugging():
            before(message, category, *where, **more)
            return
        text = str(message)
        if text not in said:
            said.add(text)
            err.print(f"[yellow]warning:[/] {paragraph(text)}", highlight=False, soft_wrap=True)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before
