"""The registry: every kind of part, its names, its options and one line about each, without importing what they name.

A *family* is the parts of one kind. `FAMILIES` has them all; lists, recipes, shell completion, documentation and tests
ask the same objects. Members come from one of two sources:

- **Files.** A package with a file for each part: ``losses/tcl.py`` is ``"tcl"``, and the one public class of the file
  is the part. Nothing is listed twice: a new file is a new part. A name with an underscore in front is not a part.
- **Tables.** A file (of a package, or a single module) may name several parts of one class or function, each with its
  own defaults: ``ENTRIES = {"knn20": (NearestNeighbours, {"k": 20}, "kNN with 20 neighbours."), …}``. What Python has
  to compute (recipes, experiments) is a mapping of objects, which is imported when it is needed.

Names, options and summaries of files and ``ENTRIES`` are read from the source, so a misspelt recipe is refused, and a
shell completes, before torch is imported (which takes seconds). ``tests/test_registry.py`` compares what is read with
what the imported parts have.

>>> losses = FAMILIES["loss"]
>>> losses["tcl"].__name__, losses.options("tcl")["k1"]
('TCLLoss', 5000.0)
>>> losses["tlc"]
Traceback (most recent call last):
    ...
ValueError: no loss 'tlc'; did you mean 'tcl'? Known: cross-entropy, ...
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import importlib.util
import inspect
import os
import reprlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# ------------------------------------------------------------------------------------------------ words of errors


def nearest(name: object, known: Iterable[str], cutoff: float = 0.5) -> str:
    """The end of a sentence about an unknown name: the nearest known one, or a full stop.

    Args:
        name: The unknown name.
        known: The known names.
        cutoff: How similar a name must be, from 0 to 1.

    Returns:
        The end of the sentence.

    >>> nearest("supcom", ["supcon", "tcl"]), nearest("xyz", ["supcon", "tcl"])
    ("; did you mean 'supcon'?", '.')
    """
    near = difflib.get_close_matches(str(name).lower(), list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else "."


def quoted(value: object) -> str:
    """A value as an error quotes it: on one line, and shortened if it is long.

    Args:
        value: Any object.

    Returns:
        The text.

    >>> quoted("supcon"), quoted([1, 2.5]), quoted("x" * 1000)
    ("'supcon'", '[1, 2.5]', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxx...xxxxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    """
    try:
        text = " ".join(_SHORT.repr(value).split())
    except Exception:  # a number of more digits than Python prints, or an object whose __repr__ fails
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 200 else f"{text[:100]} ... {text[-90:]}"


def one_line(text: str) -> str:
    r"""A text, such as a file's name, with unprintable characters escaped: no line breaks, no terminal commands.

    Args:
        text: Any text.

    Returns:
        The text on one line.

    >>> print(one_line("two\nlines"), one_line("sounds\x07"), one_line("日本語.png"))
    two\nlines sounds\x07 日本語.png
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlong = 3, 62, 62, 40


# ------------------------------------------------------------------------------------------------ a family


class PartError(ImportError):
    """A file of a part that cannot be used: it is no Python, cannot be imported, or does not declare what it must."""


NOT_PARTS = ("functional",)
"""Modules beside the parts: `kontrast.losses.functional` has every loss as a function."""

LONGEST_LIST = 257
"""Characters of a list of names in an error; of a family with more, the error names the command that lists them."""


class Member(NamedTuple):
    """Where a part is in the source, and what its entry in a table adds."""

    module: str
    file: Path
    target: str | None = None  # a class or function of the module; None: its one public class
    preset: dict[str, Any] = {}  # noqa: RUF012 (never changed)
    about: str = ""


class Signature(NamedTuple):
    """The arguments that a class or function takes."""

    names: set[str]
    defaults: dict[str, Any]  # of keyword-only arguments, and of others with a default; None if not a plain value
    is_open: bool  # whether it passes unknown arguments on (timm's encoders)
    required: frozenset[str] = frozenset()  # keyword-only arguments, and fields of a dataclass, without a default
    whole: frozenset[str] = frozenset()  # arguments that are annotated as int


class Family(Mapping[str, Any]):
    """The parts of one kind, by name; hyphens and underscores are equal.

    ``family[name]`` (the same as `find`) is the class, function or object itself, `make` an instance with the defaults
    of this name.

    Args:
        kind: what one part is called in errors: ``"loss"``.
        source: a package with a file for each part, or a module with a table.
        table: an attribute of ``source`` that is, or returns, a mapping of objects or a list of objects with a name; it
            is imported to be read. Without it, everything is read from the source (files, and ``ENTRIES`` in them).
        plural: the name for ``kontrast list``; ``kind`` with an s by default.
        aliases: other names for ``kontrast list``.
        supplied: arguments that the data or the run decide, so that they are not options.
        base: the name of the class that every part inherits from; None if there is none.
        required: options that may lack a default, because recipes always have them.
        dataclasses: whether every part must be a dataclass, whose fields are its options.
        common: options of every part, which the family itself takes care of, with their defaults. Their values are
            checked there.
        common_to: an argument; only parts that take it have the common options.
        typed: whether a value must be of the same kind as the default (`check`).
        shown: how ``kontrast list`` writes a name.

    >>> FAMILIES["head"].names()[:3], FAMILIES["head"].options("tcl")["out"]
    (['none', 'wang-liu', 'tcl'], 128)
    """

    def __init__(
        self,
        kind: str,
        source: str,
        *,
        table: str | None = None,
        plural: str | None = None,
        aliases: Sequence[str] = (),
        supplied: Sequence[str] = (),
        base: str | None = None,
        required: Sequence[str] = (),
        dataclasses: bool = False,
        common: Mapping[str, Any] | None = None,
        common_to: str | None = None,
        typed: bool = True,
        shown: str = "{}",
    ) -> None:
        self.kind, self.source, self.table = kind, source, table
        self.plural, self.aliases = plural or f"{kind}s", tuple(aliases)
        self.supplied, self.common, self.common_to = frozenset(supplied), dict(common or {}), common_to
        self.typed, self.shown = typed, shown
        self.base, self.required, self.dataclasses = base, frozenset(required), dataclasses

    __eq__, __hash__ = object.__eq__, object.__hash__  # a Mapping would compare, and so import, every part

    def __repr__(self) -> str:
        return f"Family({self.kind!r}, {self.source!r})"

    # -------------------------------------------------------------------------------------------- names

    def names(self) -> list[str]:
        """Every name, as one writes it; ``timm/…`` stands for all names that begin so.

        >>> FAMILIES["optimiser"].names()
        ['adamw', 'lars', 'sgd']
        """
        return list(self._objects() if self.table else self._members())

    def canonical(self, name: str) -> str:
        """The name in its usual spelling.

        Raises:
            ValueError: an unknown name; the error lists the known ones and the nearest.

        >>> FAMILIES["schedule"].canonical("multi_step")
        'multi-step'
        """
        return self._resolve(name)[0]

    def __contains__(self, name: object) -> bool:
        try:
            self.canonical(name)  # type: ignore[arg-type]
        except ValueError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    # -------------------------------------------------------------------------------------------- the parts

    def find(self, name: str) -> Any:
        """The class, function or object of this name; its module is imported.

        Raises:
            ValueError: an unknown name; the error lists the known ones and the nearest.
            PartError: the file cannot be imported, or its class is none of this family or lacks a method; the error
                names it.

        >>> FAMILIES["method"].find("spucon")
        Traceback (most recent call last):
            ...
        ValueError: no method 'spucon'; did you mean 'supcon'? Known: ce, ce-fix, ...
        """
        _, member, _ = self._resolve(name)
        if not isinstance(member, Member):
            return member
        self._check_declaration(member)
        target = member.target or _public_class(member.file)
        try:
            part = getattr(importlib.import_module(member.module), target)
        except Exception as error:
            raise PartError(f"{member.file} cannot be imported: {type(error).__name__}: {error}") from error
        undefined = sorted(getattr(part, "__abstractmethods__", ()))
        if undefined:
            raise PartError(f"{member.file}: {target} must define {' and '.join(undefined)}")
        return part

    def __getitem__(self, name: str) -> Any:
        return self.find(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The part of this name, or the default if there is none."""
        return self.find(name) if name in self else default

    def make(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call the class or function of this name, with the defaults of its entry.

        Raises:
            ValueError: an unknown name or option; the error lists the known ones and the nearest.

        >>> FAMILIES["protocol"].make("knn200")
        NearestNeighbours(k=200, temperature=0.07)
        """
        _, member, rest = self._resolve(name)
        part = self.find(name)
        if isinstance(member, Member):
            signature = _signature(member)
            if not signature.is_open:
                self._check_names(name, [option for option in options if option not in signature.names], nearest)
            options = {**member.preset, **options}
        return part(*([rest] if rest else []), *arguments, **options)

    # -------------------------------------------------------------------------------------------- what they say

    def options(self, name: str) -> dict[str, Any]:
        """The options of a part with their defaults; None for a default that is not a plain value.

        Raises:
            ValueError: an unknown name.
            PartError: the part's file cannot be read, or its class is none of this family; the error names the file.

        >>> FAMILIES["encoder"].options("mlp")
        {'hidden': 256, 'features': 128, 'depth': 2, ..., 'pretrained': None, 'norm': None, 'allow_missing': None}
        """
        _, member, _ = self._resolve(name)
        if not isinstance(member, Member):
            return {}
        self._check_declaration(member)
        signature = _signature(member)
        options = {**signature.defaults, **{k: v for k, v in member.preset.items() if k in signature.defaults}}
        common = self.common if self.common_to is None or self.common_to in signature.names else {}
        options |= {option: value for option, value in common.items() if option not in options}
        return {option: value for option, value in options.items() if option not in self.supplied}

    def summary(self, name: str) -> str:
        """What a part is, in a line: the first paragraph of its file, function or entry.

        >>> FAMILIES["monitor"].summary("uniformity")[:10]
        'How evenly'
        """
        _, member, _ = self._resolve(name)
        if not isinstance(member, Member):
            return str(getattr(member, "summary", None) or _first_paragraph(inspect.getdoc(member)))
        if member.about or member.target is None:
            return member.about or _first_paragraph(ast.get_docstring(_tree(member.file)))
        return _first_paragraph(ast.get_docstring(_declaration(member)[1]))

    def file(self, name: str) -> Path:
        """The file that declares a part; nothing is imported.

        Raises:
            ValueError: an unknown name.

        >>> FAMILIES["method"].file("tcl-self").name
        'tcl_self.py'
        """
        _, member, _ = self._resolve(name)
        return member.file if isinstance(member, Member) else _file(self.source)

    def declared(self, name: str, attribute: str) -> Any:
        """A class attribute of a part, read from its source.

        Args:
            name: The part's name.
            attribute: The attribute's name.

        Returns:
            A plain value; of a call such as ``MonitorChart(title="Norm", …)`` its keywords; None without the attribute.

        Raises:
            PartError: the file cannot be read, or the value is not written out in it; the error names the file.

        >>> FAMILIES["monitor"].declared("uniformity", "chart")["title"]
        'Uniformity'
        """
        _, member, _ = self._resolve(name)
        if not isinstance(member, Member):
            return getattr(member, attribute, None)
        for file, node in _ancestry(_declaration(member)):
            for line in node.body:
                if attribute in _targets(line) and isinstance(line, ast.Assign | ast.AnnAssign):
                    return _literal(f"{file}, line {line.lineno}: {attribute}", line.value)
        return None

    def check(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        section: str = "",
        hint: Callable[[str, Sequence[str]], str] = nearest,
    ) -> None:
        """Check a part's name and options before anything is imported for them.

        Args:
            name: the part.
            options: its options; a value must be of the kind of the default.
            section: the section of the recipe that the part is in, for errors.
            hint: what to say of an unknown option, as `nearest`.

        Raises:
            ValueError: an unknown name or option (the error names the nearest one), or a value of another kind.

        >>> FAMILIES["head"].check("tcl", {"outt": 64})
        Traceback (most recent call last):
            ...
        ValueError: head 'tcl' has no option 'outt'; did you mean 'out'? It has hidden, out, ...
        """
        defaults = self.options(name)
        _, member, _ = self._resolve(name)
        whole = _signature(member).whole if isinstance(member, Member) else frozenset()
        if not (isinstance(member, Member) and _signature(member).is_open):
            self._check_names(name, [option for option in options or {} if option not in defaults], hint)
        for option, value in (options or {}).items():
            kind = expected_kind(defaults.get(option), value)
            if option in whole and isinstance(value, float) and not value.is_integer():
                kind = "a whole number"
            if kind and self.typed and option not in self.common:
                raise ValueError(f"{section or self.kind}.{option}={quoted(value)}: must be {kind}")

    def unknown(self, name: object) -> ValueError:
        """The error for a name that there is not: it has the nearest one and lists the known."""
        names, word = self.names(), str(name).lower().replace("_", "-")
        text = f"Known: {', '.join(names)}"
        if len(text) > LONGEST_LIST:
            text = f"`kontrast list {self.plural}` has them all"
        return ValueError(f"no {self.kind} {quoted(name)}{nearest(word.removesuffix(self.kind) or word, names)} {text}")

    # -------------------------------------------------------------------------------------------- within

    def _check_declaration(self, member: Member) -> None:
        """Raise if a part is no class of this family, or has an option without a default."""
        declaration = _declaration(member)
        name = declaration[1].name
        if self.base is not None and self.base not in _ancestors(member.file, name):
            raise PartError(
                f"{member.file}: {name} must be a class that inherits from {self.base}, as every {self.kind}"
            )
        decorators = declaration[1].decorator_list
        if self.dataclasses and not any("dataclass" in ast.unparse(decorator) for decorator in decorators):
            raise PartError(f"{member.file}: {name} must be a dataclass: write @dataclass(frozen=True) above it")
        missing = _signature(member).required - self.supplied - self.required - set(member.preset)
        if missing:
            raise PartError(f"{member.file}: the option {min(missing)} of {name} must have a default")

    def _check_names(self, name: str, unknown: list[str], hint: Callable[[str, Sequence[str]], str]) -> None:
        if unknown:
            options = list(self.options(name))
            text = f"{self.kind} {name!r} has no option {quoted(unknown[0])}{hint(unknown[0], options)}"
            raise ValueError(f"{text} It has {', '.join(options) or 'none'}")

    def _resolve(self, name: str) -> tuple[str, Any, str]:
        """The canonical name, the member, and what follows the beginning of an open name (``resnet18`` of timm's)."""
        members: Mapping[str, Any] = self._objects() if self.table else self._members()
        if not isinstance(name, str):
            raise self.unknown(name)
        for canonical, member in members.items():
            start = canonical.removesuffix("…")
            if start != canonical and name.startswith(start) and name != start:
                return name, member, name.removeprefix(start)
            if canonical.replace("_", "-") == name.replace("_", "-"):
                return canonical, member, ""
        raise self.unknown(name)

    def _objects(self) -> Mapping[str, Any]:
        parts: Any = getattr(importlib.import_module(self.source), str(self.table))
        parts = parts() if callable(parts) else parts
        return parts if isinstance(parts, Mapping) else {part.name: part for part in parts}

    def _members(self) -> Mapping[str, Member]:
        folders = _folders(self.source)
        if not folders:
            return _entries(self.source, _file(self.source))
        return _members_of(self.source, tuple((str(folder), *_listing(folder)) for folder in folders))


def expected_kind(default: Any, value: Any) -> str | None:
    """What an option with this default takes, if the value is of another kind; None leaves it to the part itself.

    Args:
        default: The default of the option.
        value: The value to check.

    Returns:
        Words for an error, or None if the kind is right or unknown.

    >>> expected_kind(0.1, "high"), expected_kind(True, 1), expected_kind(0.1, 1), expected_kind(None, "file.pt")
    ('a number', 'true or false', None, None)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or default is None:
        return None
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, int | float):
        return None if is_number else "a number"
    if isinstance(default, str):
        return None if isinstance(value, str) else "a word"
    return "a list" if isinstance(default, list | tuple) and not isinstance(value, list | tuple) else None


# ------------------------------------------------------------------------------------------------ reading the source


def _folders(package: str) -> list[Path]:
    """The folders of a package, without importing it; none if it is a single file."""
    if package in sys.modules:  # the tests add folders to a package's path
        return [Path(path) for path in getattr(sys.modules[package], "__path__", ())]
    above, _, name = package.rpartition(".")
    if not above:
        spec = importlib.util.find_spec(package)
        return [Path(path) for path in (spec.submodule_search_locations if spec else None) or ()]
    return [folder / name for folder in _folders(above) if (folder / name).is_dir()]


def _file(module: str) -> Path:
    """The file of a module or package, without importing it."""
    folders = _folders(module)
    if folders:
        return folders[0] / "__init__.py"
    above, _, name = module.rpartition(".")
    return next(iter(_folders(above)), Path()) / f"{name}.py"


def _listing(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@functools.lru_cache(maxsize=512)
def _members_of(package: str, folders: tuple[tuple[str, ...], ...]) -> Mapping[str, Member]:
    """The parts in folders with these files: a lookup reads no more than the names, and a recipe takes a hundred."""
    members: dict[str, Member] = {}
    for folder, *names in folders:
        for file in (Path(folder, name) for name in names if name.endswith(".py") and name[0] != "_"):
            if file.stem not in NOT_PARTS:
                module = f"{package}.{file.stem}"
                members |= _entries(module, file) or {file.stem.replace("_", "-"): Member(module, file)}
    return dict(sorted(members.items()))


@functools.lru_cache(maxsize=512)
def _tree(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:  # a ValueError: bytes that are no text
        line = f", line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else f": {error}"
        raise PartError(f"{file} is no Python{line}") from error


@functools.lru_cache(maxsize=512)
def _entries(module: str, file: Path) -> dict[str, Member]:
    """The table of a file, ``{name: target}`` or ``{name: (target, defaults, summary)}``; empty if it has none."""
    if b"\nENTRIES" not in file.read_bytes():  # parsing takes a hundred times as long
        return {}
    try:
        body = _tree(file).body
    except PartError:  # the error of this part alone: the names of the others are known
        return {}
    members = {}
    try:
        table = next(node.value for node in body if "ENTRIES" in _targets(node))  # type: ignore[attr-defined]
        for key, value in zip(table.keys, table.values, strict=True):
            target, preset, about = [*(value.elts if isinstance(value, ast.Tuple) else [value]), None, None][:3]
            members[ast.literal_eval(key)] = Member(module, file, target.id, _value(preset) or {}, _value(about) or "")
    except (AttributeError, TypeError, ValueError) as error:
        raise PartError(
            f"{file}: ENTRIES must be written out as {{name: class}} or {{name: (class, {{option: value}}, summary)}}"
        ) from error
    return members


def _targets(node: ast.stmt) -> list[str]:
    """The names that an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _public_class(file: Path) -> str:
    """The name of the one public class of a file."""
    classes = [node.name for node in _tree(file).body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    if len(classes) != 1:
        raise PartError(f"{file} must declare exactly one public class; it declares {', '.join(classes) or 'none'}")
    return classes[0]


Declaration = tuple[Path, ast.ClassDef | ast.FunctionDef]


def _declaration(member: Member) -> Declaration:
    name = member.target or _public_class(member.file)
    declaration = _find(member.file, name)
    if declaration is None:
        raise PartError(f"{member.file} has no class or function {name}")
    return declaration


def _find(file: Path, name: str) -> Declaration | None:
    """A class or function by the name that a file uses for it: declared there, or imported from this package."""
    for node in _tree(file).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return file, node
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == __package__:
            for alias in node.names:
                if (alias.asname or alias.name) == name and (source := _file(str(node.module))).exists():
                    return _find(source, alias.name)
    return None


def _ancestry(declaration: Declaration) -> Iterator[Declaration]:
    """A class and those of this package that it inherits from, nearest first; torch's are left out."""
    yield declaration
    file, node = declaration
    for base in getattr(node, "bases", ()):
        if (ancestor := _find_base(file, base)) is not None:
            yield from _ancestry(ancestor)


def _find_base(file: Path, base: ast.expr) -> Declaration | None:
    """The class that ``Name`` or ``module.Name`` stands for in a file, if it is one of this package."""
    if isinstance(base, ast.Name):
        return _find(file, base.id)
    if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
        for node in _tree(file).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == __package__:
                for alias in node.names:
                    source = _file(f"{node.module}.{alias.name}")
                    if (alias.asname or alias.name) == base.value.id and source.exists():
                        return _find(source, base.attr)
    return None


@functools.lru_cache(maxsize=512)
def _ancestors(file: Path, target: str) -> frozenset[str]:
    """The names of a class and of all that it inherits from within this package; none for a function."""
    node = _find(file, target)
    if node is None or isinstance(node[1], ast.FunctionDef):
        return frozenset()
    return frozenset(ancestor.name for _, ancestor in _ancestry(node))


@functools.lru_cache(maxsize=512)
def _signature_of(file: Path, target: str | None) -> Signature:
    declaration = _declaration(Member("", file, target))
    if isinstance(declaration[1], ast.FunctionDef):
        return _of_arguments([declaration[1].args])
    constructors, is_dataclass = [], False
    for _, node in _ancestry(declaration):
        is_dataclass |= any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        constructor = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if constructor is not None:
            constructors.append(constructor.args)
            if constructor.args.kwarg is None:
                break
    if constructors:
        return _of_arguments(constructors)
    fields = _fields(declaration) if is_dataclass else {}
    required = frozenset(name for name, value in fields.items() if value is None)
    return Signature(set(fields), {name: _value(value) for name, value in fields.items()}, False, required)


def _signature(member: Member) -> Signature:
    return _signature_of(member.file, member.target)


def _of_arguments(constructors: Sequence[ast.arguments]) -> Signature:
    """Of a constructor, and, if it passes ``**more`` on, of those above it."""
    names: set[str] = set()
    defaults: dict[str, Any] = {}
    required: set[str] = set()
    whole: set[str] = set()
    for arguments in constructors:
        plain = [*arguments.posonlyargs, *arguments.args]
        names |= {argument.arg for argument in [*plain, *arguments.kwonlyargs]} - {"self"}
        with_default = plain[len(plain) - len(arguments.defaults) :]
        pairs: list[tuple[ast.arg, ast.expr | None]] = [
            *zip(with_default, arguments.defaults, strict=True),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if argument.arg not in defaults:
                required |= {argument.arg} if default is None else set()
                whole |= {argument.arg} if _is_int(argument.annotation) else set()
            defaults.setdefault(argument.arg, _value(default))
    return Signature(names, defaults, constructors[-1].kwarg is not None, frozenset(required), frozenset(whole))


def _is_int(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) in ("int", "int | None")


def _fields(declaration: Declaration) -> dict[str, ast.expr | None]:
    """The fields of a dataclass with their defaults, if they have one; inherited ones come first."""
    fields: dict[str, ast.expr | None] = {}
    for _, node in reversed(list(_ancestry(declaration))):
        for field in (field for field in node.body if isinstance(field, ast.AnnAssign)):
            if isinstance(field.target, ast.Name) and not ast.unparse(field.annotation).startswith("ClassVar"):
                fields[field.target.id] = field.value
    return fields


def _value(node: ast.expr | None) -> Any:
    """A default as a plain value; None if it is not one. Fractions, such as 4 / 3, are plain values too."""
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return ast.literal_eval(node.left) / ast.literal_eval(node.right)
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def _literal(what: str, node: ast.expr | None) -> Any:
    """A plain value, or the keywords of a call; if they are not written out, an error that begins with ``what``."""
    try:
        if not isinstance(node, ast.Call):
            return None if node is None else ast.literal_eval(node)
        words = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        if node.args or None in words:
            raise ValueError
    except (TypeError, ValueError):
        raise PartError(
            f"{what} must have literal values, because it is read without importing the file. Write out each word and "
            "number, and in a call each by its keyword"
        ) from None
    return words


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


# ------------------------------------------------------------------------------------------------ all families

STRENGTHS = ("scale", "jitter", "grayscale", "blur", "flip")
"""Options of every preset for images; ``augment.jitter=0`` sets one for all views."""

FAMILIES: dict[str, Family] = {
    family.kind: family
    for family in (
        Family("recipe", "kontrast.recipes", table="RECIPES"),
        Family("experiment", "kontrast.experiments", table="table"),
        Family("claim", "kontrast.experiments.claims", table="CLAIMS"),
        Family("loss", "kontrast.losses", plural="losses", base="Loss"),
        Family("method", "kontrast.methods", supplied=("setting",), base="Method"),
        Family(
            "data set",
            "kontrast.data.sets",
            plural="datasets",
            aliases=("sets", "data-sets", "data"),
            supplied=("options",),
            base="NamedSet",
        ),
        Family("sampler", "kontrast.data.loader", supplied=("seed", "steps", "drop_last", "classes")),
        Family(
            "encoder",
            "kontrast.models.encoders",
            aliases=("models", "backbones"),
            supplied=("in_channels", "image_size", "in_features"),
            base="Encoder",
            common={"pretrained": None, "norm": None, "allow_missing": None},
        ),
        Family("head", "kontrast.models.heads", aliases=("projectors",), supplied=("in_dim",)),
        Family(
            "preset",
            "kontrast.augment.presets",
            plural="augmentations",
            aliases=("presets", "views"),
            common=dict.fromkeys(STRENGTHS),
            common_to="size",
            supplied=("size",),
        ),
        # A range may be given as a number, so the operation itself checks its values. Some operations are called as a
        # preset is; the brackets are those of a view that is a list.
        Family(
            "operation",
            "kontrast.augment.operations",
            plural="augmentations",
            aliases=("operations",),
            supplied=("size", "interpolation"),
            base="Operation",
            dataclasses=True,
            typed=False,
            shown="[{}]",
        ),
        Family(
            "optimiser",
            "kontrast.optim.optimizers",
            plural="optimizers",
            aliases=("optimisers",),
            required=("lr",),
            common={"layer_decay": None, "head_lr": None},
        ),
        Family(
            "schedule",
            "kontrast.optim.schedules",
            aliases=("schedulers",),
            supplied=("total_steps", "steps_per_epoch"),
            base="Schedule",
        ),
        Family("protocol", "kontrast.evaluate.protocols", aliases=("probes",), base="Protocol", dataclasses=True),
        Family("monitor", "kontrast.train.monitors", base="Monitor"),
        Family("logger", "kontrast.train.loggers", base="Logger"),
        Family("export", "kontrast.train.exports", aliases=("targets",), base="Target"),
        Family("engine", "kontrast.experiments.engines"),
        Family("rule", "kontrast.doctor.rules", plural="rules", aliases=("diseases",), base="Rule"),
        Family("check", "kontrast.theory", table="checks", aliases=("theorems",)),
    )
}
"""Every family, by what one of its parts is called."""


def families(word: str) -> list[Family]:
    """The families that ``kontrast list WORD`` lists: by one or many (``method``, ``methods``), in either spelling.

    Args:
        word: What the user wrote.

    Returns:
        The families, at least one.

    Raises:
        ValueError: no family is called so; the error names the nearest.

    >>> families("optimisers"), families("data_set")[0].plural
    ([Family('optimiser', 'kontrast.optim.optimizers')], 'datasets')
    """
    name = word.lower().replace("_", "-").replace(" ", "-")
    for spelling in (name, f"{name}s", f"{name}es"):
        for family in FAMILIES.values():
            if spelling in (family.plural, *family.aliases, family.kind.replace(" ", "-")):
                return [f for f in FAMILIES.values() if f.plural == family.plural]
    plurals = list(dict.fromkeys(f.plural for f in FAMILIES.values()))
    words = [*plurals, *(alias for f in FAMILIES.values() for alias in f.aliases)]
    raise ValueError(f"there is no list of {quoted(word)}{nearest(name, words)} Known: {', '.join(plurals)}")


def check_operation(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Check an operation of a view. Some frequent mistakes (a preset's name, a size) have errors of their own.

    Args:
        name: The name of the operation.
        options: Its options.

    Raises:
        ValueError: an unknown name or option; the error names the nearest one.

    >>> check_operation("filp")
    Traceback (most recent call last):
        ...
    ValueError: no operation 'filp'; did you mean 'flip'? Known: autoaugment, blur, color-jitter, crop, ...
    """
    if name in ("normalize", "normalise"):
        raise ValueError(f"operation {name!r}: normalisation is added to every view by itself; leave it out")
    family = FAMILIES["operation"]
    if name not in family and name in FAMILIES["preset"]:
        raise ValueError(
            f"no operation {name!r}; that is a preset, which is a view of its own: [{name}, …] beside other views, not "
            f"inside one. Operations: {', '.join(family.names())}"
        )
    if "size" in (options or {}):
        why = "the size is the data's: set data.size, or augment.size for images of several sizes"
        raise ValueError(f"operation {name!r} has no option 'size'; {why}")
    family.check(name, options)
