"""The commands of README, CONTRIBUTING and docs: what a reader is told to type.

A fenced block without language, or in sh, bash, shell or console, is one of commands if its first line is a command;
then every line is one, but for comments. Where lines begin with `$ `, those are the commands and the rest is output.
A block that cannot run here has a comment above it, which no reader sees: <!-- not run: needs a cluster -->.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LANGUAGES = ("", "sh", "bash", "shell", "console")
PROGRAMS = ("kontrast", "make", "pip", "python", "python3", "ray", "torchrun")
FENCE = re.compile(r"^( *)(`{3,}|~{3,})\s*(\S*)")
MARK = re.compile(r"^\s*<!-- not run: (.+) -->\s*$")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
INLINE = re.compile(r"(?<!`)`(kontrast [^`]+)`(?!`)")


class Block(NamedTuple):
    page: Path
    line: int  # of its first line, from 1
    language: str
    mark: str | None  # why it is not run
    lines: list[str]


class Command(NamedTuple):
    page: Path
    line: int
    words: list[str]  # without a comment; operators as words of their own
    mark: str | None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line} {shlex.join(self.words)}"

    @property
    def program(self) -> str:
        """The first word that is no assignment to a variable."""
        return next((word for word in self.words if not ASSIGNMENT.match(word)), "")


def pages() -> list[Path]:
    """Every page that a user reads."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, text: str) -> Iterator[Block]:
    """The fenced blocks of a page, with the mark above them."""
    opened, above, last = None, None, ""
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            found = MARK.match(last)
            above = found[1] if found else None
            opened = fence[2], Block(page, number + 1, fence[3], above, [])
        elif opened is not None and fence and fence[2].startswith(opened[0]) and not fence[3]:
            yield opened[1]
            opened = None
        elif opened is not None:
            opened[1].lines.append(line.removeprefix(fence[1] if fence else ""))
        last = line


def commands(block: Block) -> list[Command]:
    """What a block tells one to type; nothing if it is no block of commands."""
    if block.language not in LANGUAGES:
        return []
    lines = _joined(block)
    if any(text.startswith("$ ") for _, text in lines):
        lines = [(number, text[2:]) for number, text in lines if text.startswith("$ ")]
    lines = [(number, text) for number, text in lines if text and not text.startswith("#")]
    found = [Command(block.page, number, _words(text), block.mark) for number, text in lines]
    known = bool(found) and (found[0].program in PROGRAMS or block.language not in ("", "console"))
    return found if known else []


def all_commands() -> list[Command]:
    """Of every page, in order."""
    return [
        command
        for page in pages()
        for block in blocks(page, page.read_text(encoding="utf-8"))
        for command in commands(block)
    ]


def inline() -> list[Command]:
    """Those in the middle of a sentence, in backticks."""
    found = []
    for page in pages():
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            found += [Command(page, number, _words(text), None) for text in INLINE.findall(line)]
    return found


def _joined(block: Block) -> list[tuple[int, str]]:
    """Lines with their numbers; one that ends in a backslash goes on in the next."""
    made: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(block.lines, block.line):
        text = line.strip()
        if goes_on:
            made[-1] = (made[-1][0], made[-1][1].removesuffix("\\") + text)
        else:
            made.append((number, text))
        goes_on = text.endswith("\\")
    return made


def _words(text: str) -> list[str]:
    """As a shell splits them, without the comment at the end."""
    split = shlex.shlex(text, posix=True, punctuation_chars="|&;>")
    split.commenters = "#"
    split.whitespace_split = True
    try:
        return list(split)
    except ValueError:  # an open quotation
        return text.split()
