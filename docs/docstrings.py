"""Docstrings as the reference shows them: an extension of griffe, named in mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

import griffe

# Each up to the next empty line.
EXAMPLE = re.compile(r"^>>>.*(?:\n.+)*", re.MULTILINE)
FOLDER = re.compile(r"^<\w+>/.*(?:\n.+)*", re.MULTILINE)  # <out>/<recipe>/ and what lies in it


class Doctests(griffe.Extension):
    """Show examples and folders as blocks of code: Markdown takes them for quotations and HTML."""

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
    text = FOLDER.sub(lambda match: f"```\n{match[0]}\n```", text)
    return EXAMPLE.sub(lambda match: f"\n```pycon\n{match[0]}\n```\n", text)
