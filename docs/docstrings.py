"""Docstrings as the reference shows them: an extension of griffe, named in mkdocs.yml."""

from __future__ import annotations

import re
from typing import Any

import griffe

# Each up to the next empty line.
EXAMPLE = re.compile(r"^>>>.*(?:\n.+)*", re.MULTILINE)
FOLDER = re.compile(r"^<\w+>/.*(?:\n.+)*", re.MULTILINE)  # <out>/<recipe>/ and what lies in it


class Doctests(griffe.Extension):
    """Examples become blocks of code, not quotations as in Markdown; so do folders, which it takes for HTML."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Each module, class and function as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = shown(obj.docstring.value)


def shown(docstring: str) -> str:
    r"""A docstring as Markdown.

    >>> shown("Half of it::\n\n    x / 2\n\n>>> half(4)\n2.0")
    'Half of it:\n\n    x / 2\n\n\n```pycon\n>>> half(4)\n2.0\n```\n'
    """
    text = re.sub(r"::$", ":", docstring, flags=re.MULTILINE)
    text = FOLDER.sub(lambda found: f"```\n{found[0]}\n```", text)
    return EXAMPLE.sub(lambda found: f"\n```pycon\n{found[0]}\n```\n", text)
