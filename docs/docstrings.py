"""Docstrings as the reference shows them: an extension of griffe, named in mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

import griffe

# Each up to the next empty line.
EXAMPLE = re.compile(r"^>>>.*(?:\n.+)*", re.MULTILINE)
FOLDER = re.compile(r"^<\w+>/.*(?:\n.+)*", re.MULTILINE)  # <out>/<recipe>/ and what lies in it
TABLE = re.compile(r"^=+(?: +=+)+\n(.+)\n=+(?: +=+)+\n((?:.+\n)+?)=+(?: +=+)+$", re.MULTILINE)  # of reStructuredText


class Doctests(griffe.Extension):
    """Show examples and folders as code (Markdown takes them for quotations and HTML), and tables as tables."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Convert the docstring of each module, class and function."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    r"""Convert a docstring to Markdown.

    >>> as_markdown("Half of it::\n\n    x / 2\n\n>>> half(4)\n2.0")
    'Half of it:\n\n    x / 2\n\n\n```pycon\n>>> half(4)\n2.0\n```\n'
    """
    text = re.sub(r"::$", ":", docstring, flags=re.MULTILINE)
    text = TABLE.sub(lambda match: _table([match[1], *match[2].splitlines()]), text)
    text = FOLDER.sub(lambda match: f"```\n{match[0]}\n```", text)
    return EXAMPLE.sub(lambda match: f"\n```pycon\n{match[0]}\n```\n", text)


def _table(lines: list[str]) -> str:
    """Write a table in Markdown; columns are two spaces or more apart.

    >>> _table(["before    after", "``a b``   ``c``"])
    '| before | after |\\n|---|---|\\n| ``a b`` | ``c`` |'
    """
    head, *rows = ("| " + " | ".join(re.split(r" {2,}", line.strip())) + " |" for line in lines)
    return "\n".join([head, "|---" * len(re.split(r" {2,}", lines[0].strip())) + "|", *rows])
