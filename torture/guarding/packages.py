"""The packages that are installed: which, under which licence, whether they are whole and fit together.

A wheel lists its files with their SHA-256 (RECORD). The digest of that list, without what pip adds, is the same where
the same wheel was installed, so `requirements.sha256` pins what was tested, file by file. It is not the hash of the
wheel, which pip's ``--require-hashes`` asks for: that takes the wheel itself.
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
LOCK, HASHES = ROOT / "requirements.lock", ROOT / "requirements.sha256"
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


def locked() -> dict[str, str]:
    """Name and version of each line of the lock."""
    lines = (line.partition("#")[0].strip() for line in LOCK.read_text(encoding="utf-8").splitlines())
    return {plain(name): version for name, _, version in (line.partition("==") for line in lines if line)}


def installed() -> dict[str, Distribution]:
    """What is in this environment."""
    return {plain(found.metadata["Name"]): found for found in distributions()}


def digest(package: Distribution) -> str:
    """Of the list of files that its wheel had; an error if it has no such list."""
    return hashlib.sha256("".join(f"{path},{sum_}\n" for path, sum_ in sorted(listed(package))).encode()).hexdigest()


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


def hashes() -> str:
    """`requirements.sha256`, made anew: a line a package of the lock."""
    there = installed()
    lines = [f"{name}=={version} {digest(there[name])}" for name, version in sorted(locked().items())]
    head = "# SHA-256 of each wheel's list of files (RECORD), as installed: python torture/security.py --compare\n"
    return head + "\n".join(lines) + "\n"


def compared() -> list[str]:
    """How this environment differs from `requirements.sha256`: a line each."""
    there, differ = installed(), []
    for line in HASHES.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        pinned, _, expected = line.partition(" ")
        name, _, version = pinned.partition("==")
        if name not in there:
            differ.append(f"{name} is not installed")
        elif there[name].version != version:
            differ.append(f"{name} is {there[name].version}, {version} was tested")
        elif digest(there[name]) != expected:
            differ.append(f"{name} {version} has other files than the one that was tested (another platform's wheel?)")
        elif wrong := changed(there[name]):
            differ.append(f"{name} {version}: {len(wrong)} files are not as its wheel had them, {wrong[0]} for one")
    return differ


def listed(package: Distribution) -> list[tuple[str, str]]:
    """The files that its wheel had, each with its hash as the wheel says it."""
    record = package.read_text("RECORD")
    if record is None:
        raise ValueError(f"{package.metadata['Name']} was not installed from a wheel: it has no RECORD")
    rows = csv.reader(record.splitlines())
    return [(row[0], row[1]) for row in rows if len(row) > 1 and row[1] and not ADDED.match(row[0])]
