"""A family's folder is its registry: the file name is the key of the class it declares.

``losses/tcl.py`` declares one public class, and that class is ``"tcl"``. Nothing is listed twice: a new
file is known as soon as it exists. Files whose name begins with an underscore are the family's own tools.

>>> from kontrast.registry import Family
>>> losses = Family("kontrast.losses")
>>> losses.names()[:3]
['cross_entropy', 'hard_contrastive', 'info_nce']
>>> losses["tcl"].__name__
'TCLLoss'
>>> losses["tlc"]
Traceback (most recent call last):
    ...
KeyError: "no 'tlc' in kontrast.losses; did you mean 'tcl'? Known: cross_entropy, hard_contrastive, info_nce, nt_xent, ressl, sce, simple_contrastive, simplex_cross_entropy, supcon, tcl"
"""  # noqa: E501 (the error is shown whole)

from __future__ import annotations

import difflib
import importlib
import inspect
import pkgutil
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def nearest(name: object, known: Iterable[str], cutoff: float = 0.5) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or a full stop.

    >>> nearest("supcom", ["supcon", "tcl"]), nearest("xyz", ["supcon", "tcl"])
    ("; did you mean 'supcon'?", '.')
    """
    near = difflib.get_close_matches(str(name).lower(), list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else "."


def quoted(value: object) -> str:
    """A value as an error quotes it: on one line, and cut short where it is long, whatever it holds.

    >>> quoted("supcon"), quoted([1, 2.5]), quoted("x" * 1000)
    ("'supcon'", '[1, 2.5]', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    """
    try:
        said = " ".join(_SHORT.repr(value).split())
    except Exception:  # a number of more digits than Python prints, an object whose own words fail
        return f"a {type(value).__name__} that cannot be printed"
    return said if len(said) <= 200 else f"{said[:100]} ... {said[-90:]}"


def one_line(text: str) -> str:
    r"""A text, such as a file's name, with what cannot be printed written out: no line breaks, no terminal's commands.

    >>> print(one_line("two\nlines"), one_line("sounds\x07"), one_line("日本語.png"))
    two\nlines sounds\x07 日本語.png
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 3, 62, 62, 40


class Family(Mapping[str, type[Any]]):
    """The classes of one package, by the name of the file that declares them. Files load when asked for."""

    def __init__(self, package: str) -> None:
        self.package = package

    def names(self) -> list[str]:
        """Every key, sorted, without importing the files."""
        path = importlib.import_module(self.package).__path__
        return sorted(m.name for m in pkgutil.iter_modules(path) if not m.name.startswith("_"))

    def __getitem__(self, name: str) -> type[Any]:
        known = self.names()
        key = str(name).replace("-", "_")
        if key not in known:
            hint = nearest(key.lower().removesuffix("loss"), known)
            raise KeyError(f"no {name!r} in {self.package}{hint} Known: {', '.join(known)}")
        module = importlib.import_module(f"{self.package}.{key}")
        declared = [
            value
            for attribute, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__ and not attribute.startswith("_")
        ]
        if len(declared) != 1:
            found = ", ".join(c.__name__ for c in declared) or "none"
            raise TypeError(f"{module.__name__} must declare exactly one public class; it declares {found}")
        return declared[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())
