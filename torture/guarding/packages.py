"""The packages that are installed: which, under which licence, whether they are whole and fit together.

The lock has the SHA-256 of each release's files, and pip takes no other. A wheel lists its own files with their SHA-256
(RECORD): by that what was changed after the installation is found.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import subprocess
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"
ADDED = re.compile(r"\.\./|.*/__pycache__/|.*\.pyc$|[^/]+\.dist-info/(INSTALLER|REQUESTED|RECORD|direct_url\.json)$")
KINDS = {
    "Apache-2.0": r"apache",
    "BSD": r"\bbsd|3-clause|2-clause",
    "MIT": r"\bmit\b|expat",
    "MPL-2.0": r"mpl|mozilla",
    "ISC": r"\bisc\b",
    "PSF": r"psf|python software|python-2",
    "LGPL": r"lgpl|lesser",
    "GPL": r"\bgpl|general public",
    "HPND": r"hpnd|historical",
    "Unlicense": r"unlicense|public domain",
    "zlib": r"zlib",
}


def plain(name: str) -> str:
    """A package's name as all spell it.

    >>> plain("Ast_Serialize")
    'ast-serialize'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock: str) -> dict[str, tuple[str, list[str]]]:
    """Of each package in the text of a lock: its version, and the SHA-256 that its files may have.

    >>> locked("# a comment\\nA_b==1.0 \\\\\\n    --hash=sha256:12ab \\\\\\n    --hash=sha256:34cd\\n")
    {'a-b': ('1.0', ['12ab', '34cd'])}
    """
    lines = "\n".join(line for line in lock.splitlines() if not line.startswith("#")).replace("\\\n", " ").splitlines()
    found = (line.split() for line in lines if line.strip())
    return {
        plain(name): (version, [word.removeprefix("--hash=sha256:") for word in words])
        for (name, _, version), words in ((pin.partition("=="), words) for pin, *words in found)
    }


def installed() -> dict[str, Distribution]:
    """What is in this environment."""
    return {plain(found.metadata["Name"]): found for found in distributions()}


def changed(package: Distribution) -> list[str]:
    """Files that are not as the wheel had them."""
    wrong = []
    for path, expected in listed(package):
        algorithm, _, value = expected.partition("=")
        file = Path(str(package.locate_file(path)))
        try:
            seen = hashlib.new(algorithm, file.read_bytes()).digest()
        except OSError:
            wrong.append(path)
            continue
        if base64.urlsafe_b64encode(seen).decode().rstrip("=") != value:
            wrong.append(path)
    return wrong


def licence(package: Distribution) -> str:
    """The kind of licence that a package says it has, "not said" if it does not.

    It may say several; those are joined.
    """
    told: Any = package.metadata
    said = told.get("License-Expression") or " ".join(
        line.rpartition("::")[2] for line in told.get_all("Classifier") or [] if line.startswith("License ::")
    )
    said = said.strip() or (told.get("License") or "")[:200]
    kinds = [kind for kind, pattern in KINDS.items() if re.search(pattern, said, re.IGNORECASE)]
    kinds = [kind for kind in kinds if not (kind == "GPL" and "LGPL" in kinds)]
    return " and ".join(kinds) or (said.splitlines()[0][:40] if said else "not said")


def fits() -> str:
    """What ``pip check`` says of the environment."""
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip()


def listed(package: Distribution) -> list[tuple[str, str]]:
    """The files that its wheel had, each with its hash as the wheel says it."""
    record = package.read_text("RECORD")
    if record is None:
        raise ValueError(f"{package.metadata['Name']} was not installed from a wheel: it has no RECORD")
    rows = csv.reader(record.splitlines())
    return [(row[0], row[1]) for row in rows if len(row) > 1 and row[1] and not ADDED.match(row[0])]
