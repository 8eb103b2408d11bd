"""A recorded part of a page in docs/reliability: the text between two comments, which a script writes again."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reliability"


def replace_part(page: str, part: str, script: str, text: str) -> str:
    """Replace the text of one recorded part.

    Raises:
        ValueError: The page has no such part.

    >>> page = "before\\n<!-- kills: written by python torture/x.py -->\\nold\\n<!-- end of kills -->\\nafter"
    >>> print(replace_part(page, "kills", "x.py", "new\\n"))
    before
    <!-- kills: written by python torture/x.py -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end of kills -->
    after
    """
    begin, end = f"<!-- {part}: written by python torture/{script} -->\n", f"<!-- end of {part} -->\n"
    before, found, rest = page.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"the page has no part {part!r}: put {begin.strip()} and {end.strip()} into it")
    return f"{before}{begin}\n{text}\n{end}{after}"


def write_part(part: str, script: str, text: str, *, page: Path | None = None) -> None:
    """Write a part into its page: docs/reliability/<name of the script>.md by default."""
    path = page or FOLDER / Path(script).with_suffix(".md").name
    path.write_text(replace_part(path.read_text(encoding="utf-8"), part, script, text), encoding="utf-8")


def setting() -> str:
    """The commit and the versions that a figure was measured with."""
    call = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    torch = version("torch").partition("+")[0]
    return f"Measured at commit {commit}; torch {torch}, Python {platform.python_version()}."
