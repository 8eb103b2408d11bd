"""The words a recipe may use, without importing what they name: the parts of each family, and their options.

The tree is the registry, so a part's name is its file's name; its options are read from the source of its class. A
misspelt recipe is therefore refused before torch is imported (some seconds), and a shell completes names and options at
once. `kontrast.train.resolve` checks the imported parts in the same words (`check_name`, `check_options`), and
``tests/test_vocabulary.py`` compares what is read here with what each imported part has.

>>> names("optimiser"), options("method", "tcl")
(['adamw', 'lars', 'sgd'], {'temperature': 0.1, 'k1': 5000.0, 'k2': 1.0})
>>> summary("method", "tcl")
"TCL with labels: SupCon's batch, its loss tuned by k1 and k2. (Animesh & Chandraker, supplement section 2.1.)"
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kontrast.files import expanded
from kontrast.overrides import suggest
from kontrast.registry import nearest, quoted

if TYPE_CHECKING:
    from kontrast.recipe import Part, Recipe

FROM_DATA = ("in_channels", "image_size", "in_features", "in_dim", "seed", "prefix")
"""Options of an encoder or head that the data or the seed decide, not the recipe."""
FROM_RUN = ("setting", "lr", "total_steps", "steps_per_epoch")
"""Options of a method, optimiser or schedule that the run decides, or that are not options of the part alone."""

SOURCE = Path(__file__).parent
FOLDERS = {
    "loss": "losses",
    "method": "methods",
    "data set": "data/sets",
    "operation": "augment/operations",
    "encoder": "models/encoders",
    "optimiser": "optim/optimizers",
    "schedule": "optim/schedules",
    "protocol": "evaluate/protocols",
    "monitor": "train/monitors",
    "logger": "train/loggers",
    "export": "train/exports",
}
"""The families with a file for each part."""
TABLES = {
    "head": ("models/heads.py", "HEADS"),
    "augmentation": ("augment/presets.py", "_PRESETS"),
}
"""The families that are a table in one file."""
STRENGTHS = ("scale", "jitter", "grayscale", "blur", "flip")
"""Options of every preset for images; ``augment.jitter=0`` sets one for all views."""
EITHER_SPELLING = ("method", "optimiser", "schedule", "monitor")
"""The families that take ``multi_step`` for ``multi-step``."""


# ------------------------------------------------------------------------------------------------ what there is


def names(family: str) -> list[str]:
    """The names of a family's parts, as one writes them; ``timm/…`` stands for all of timm's encoders.

    >>> names("head")
    ['none', 'wang-liu', 'tcl', 'tcl-ssl', 'sce', 'sce-imagenet', 'sce-predictor']
    """
    if family in TABLES:
        return list(_table(*TABLES[family]))
    files = sorted((SOURCE / FOLDERS[family]).glob("[!_]*.py"))
    found = [file.stem.replace("_", "-") for file in files]
    return ["timm/…" if (family, name) == ("encoder", "timm") else name for name in found]


def options(family: str, name: str) -> dict[str, Any] | None:
    """A part's options with their defaults, None where a default is not a plain value; None if only timm knows them.

    >>> options("encoder", "mlp")
    {'pretrained': None, 'norm': None, 'hidden': 256, 'features': 128, 'depth': 2, 'batch_norm': True}
    """
    if family in TABLES:
        return _options_in_table(family, name)
    if family == "encoder" and name.startswith("timm/"):
        return None
    declared = _class_of_part(family, name)
    if family == "protocol":
        return _fields(declared)
    if family == "operation":
        return {option: value for option, value in _fields(declared).items() if option != "size"}  # the data's
    if family == "schedule":
        return {option: value for option, value in _fields(declared).items() if option not in FROM_RUN}
    if family == "encoder":
        made_with = _parameters(declared, follow=False, keyword_only=False)
        own = {key: value for key, value in made_with.items() if key not in FROM_DATA}
        return {"pretrained": None, "norm": None, **own}
    found = _parameters(declared, follow=family == "method", keyword_only=True)
    own = {option: value for option, value in found.items() if option not in FROM_RUN}
    return {"lr": None, **own} if family == "optimiser" else own


def summary(family: str, name: str) -> str:
    """The first paragraph of what a part's file says of itself, on one line."""
    text = ast.get_docstring(_tree(_file_of_part(family, name))) or ""
    return " ".join(text.partition("\n\n")[0].split())


# ------------------------------------------------------------------------------------------------ what is refused


def check(recipe: Recipe) -> None:
    """Raise a `ValueError` if the recipe names a part or an option that does not exist; nothing is imported for it.

    >>> from kontrast.recipe import Recipe
    >>> check(Recipe.of({"method": {"name": "tcl", "temprature": 1}, "train": {"epochs": 1}}))
    Traceback (most recent call last):
        ...
    ValueError: method 'tcl' has no option 'temprature'; did you mean 'temperature'? It has temperature, k1, k2
    """
    for protocol in recipe.evaluate.protocols:
        _check_part("protocol", "protocol", protocol)
    for family, chosen in (("monitor", recipe.run.monitors or ()), ("logger", recipe.run.loggers)):
        for name in chosen:
            check_name(family, name, names(family))
    _check_part("method", "method", recipe.method)
    _check_part("encoder", "encoder", recipe.encoder)
    _check_part("head", "head", recipe.head)
    _check_part("optimiser", "optim", recipe.optim)
    _check_part("schedule", "schedule", recipe.schedule)
    check_views(recipe)


def check_views(recipe: Recipe) -> None:
    """Raise a `ValueError` that says which view names a preset, operation or option that does not exist."""
    described = recipe.augment.described
    for i, view in enumerate(described):
        try:
            if isinstance(view, dict):
                check_preset(**view)
            else:
                for step in view:
                    check_operation(**step)
        except ValueError as error:
            name = view["name"] if isinstance(view, dict) else None
            if name in names("operation") and name not in names("augmentation"):
                listed = ", ".join(str(view.get("name")) for view in described if isinstance(view, dict))
                raise ValueError(
                    f"augment.views.{i}: no preset {name!r}; it is an operation, and a view of operations is a list: "
                    f"augment.views=[[{listed}], …], one list a view"
                ) from None
            raise ValueError(f"augment.views.{i}: {error}") from None


def check_preset(name: str, **given: Any) -> None:
    """Raise a `ValueError` if there is no such preset of augmentations, or it has no such option.

    >>> check_preset("weak", scales=0.5)
    Traceback (most recent call last):
        ...
    ValueError: preset 'weak' has no option 'scales'; did you mean 'scale'? It has scale, jitter, grayscale, blur, flip
    """
    check_name("preset", name, sorted(names("augmentation")))
    known = options("augmentation", name) or {}
    # A strength takes several kinds of value, whatever its default; the preset says what is wrong with one.
    check_options("preset", name, given, {key: None if key in STRENGTHS else value for key, value in known.items()})


def check_operation(name: str, **given: Any) -> None:
    """Raise a `ValueError` if there is no such operation on images or vectors, or it has no such option.

    >>> check_operation("filp")
    Traceback (most recent call last):
        ...
    ValueError: no operation 'filp'; did you mean 'flip'? Known: autoaugment, blur, color-jitter, crop, ...
    """
    known = names("operation")
    if name in ("normalize", "normalise"):
        raise ValueError(f"operation {name!r}: normalisation is added to every view by itself; leave it out")
    if name not in known and name in names("augmentation"):
        raise ValueError(
            f"no operation {name!r}; that is a preset, which is a view of its own: [{name}, …] beside other views, not "
            f"inside one. Operations: {', '.join(known)}"
        )
    check_name("operation", name, known)
    if "size" in given:
        why = "the size is the data's: set data.size, or augment.size for images of several sizes"
        raise ValueError(f"operation {name!r} has no option 'size'; {why}")
    # A range may be given as a number; the operation says what is wrong with a value.
    check_options("operation", name, given, dict.fromkeys(options("operation", name) or {}))


def check_name(family: str, name: str, known: Iterable[str]) -> None:
    """Raise a `ValueError` with the nearest name if ``name`` is not among ``known``.

    >>> check_name("method", "supcom", ["supcon", "tcl"])
    Traceback (most recent call last):
        ...
    ValueError: no method 'supcom'; did you mean 'supcon'? Known: supcon, tcl
    """
    listed = list(known)
    if (str(name).replace("_", "-") if family in EITHER_SPELLING else name) not in listed:
        raise ValueError(f"no {family} {quoted(name)}{nearest(name, listed)} Known: {', '.join(listed)}")


def check_options(what: str, name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Raise a `ValueError` for a given option that is not among ``defaults``, or whose value is of another kind.

    ``what`` is the section of the recipe that the part stands in, ``name`` the part's.

    >>> check_options("head", "tcl", {"outt": 64}, {"out": 128})
    Traceback (most recent call last):
        ...
    ValueError: head 'tcl' has no option 'outt'; did you mean 'out'? It has out
    """
    for option, value in given.items():
        if option not in defaults:
            hint = suggest(option, list(defaults), what)
            raise ValueError(
                f"{what} {name!r} has no option {quoted(option)}{hint} It has {', '.join(defaults) or 'none'}"
            )
        expected = expected_kind(defaults[option], value)
        if expected:
            raise ValueError(f"option {option!r} of {what} {name!r} is {quoted(value)}; expected {expected}")


def expected_kind(default: Any, value: Any) -> str | None:
    """What an option with this default takes, if the value is of another kind; None leaves it to the part itself.

    >>> expected_kind(0.1, "high"), expected_kind(True, 1), expected_kind(0.1, 1), expected_kind(None, "file.pt")
    ('a number', 'true or false', None, None)
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or default is None:
        return None
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "true or false"
    if isinstance(default, int | float):
        return None if number else "a number"
    if isinstance(default, str):
        return None if isinstance(value, str) else "a word"
    return "a list" if isinstance(default, list | tuple) and not isinstance(value, list | tuple) else None


def check_data(recipe: Recipe) -> None:
    """Raise a `ValueError` if the data are neither a set's name nor a path that exists.

    >>> from kontrast.recipe import Recipe
    >>> check_data(Recipe.of({"data": "fashion-mny", "method": "supcon", "train": {"epochs": 1}}))
    Traceback (most recent call last):
        ...
    ValueError: 'fashion-mny' is neither a set nor a path that exists; did you mean 'fashion-mini'? Sets: cifar10, ...
    """
    name = recipe.data.name
    if name.replace("_", "-") not in names("data set") and not expanded(name).exists():
        raise ValueError(no_such_data(name))


def no_such_data(name: str) -> str:
    """The sentence about data that are not there.

    >>> no_such_data("rows.npy")
    'there is no file rows.npy; expected a .npz or .npy file'
    """
    if name.lower().endswith((".npz", ".npy")):
        return f"there is no file {expanded(name)}; expected a .npz or .npy file"
    known = names("data set")
    hint = nearest(name.replace("_", "-"), known)
    return f"{name!r} is neither a set nor a path that exists{hint} Sets: {', '.join(known)}"


def _check_part(family: str, what: str, part: Part) -> None:
    if family != "encoder" or not part.name.startswith("timm/"):  # timm knows its own names and options
        check_name(family, part.name, (name for name in names(family) if "…" not in name))
        check_options(what, part.name, part.options, options(family, part.name) or {})


# ------------------------------------------------------------------------------------------------ reading the source


class _Class(NamedTuple):
    """A class in the source: its file, and its node there."""

    file: Path
    node: ast.ClassDef


@functools.lru_cache(maxsize=256)
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _file_of_part(family: str, name: str) -> Path:
    stem = "timm" if name.startswith("timm/") else name.replace("-", "_")
    return SOURCE / FOLDERS[family] / f"{stem}.py"


def _class_of_part(family: str, name: str) -> _Class:
    """The one public class of a part's file."""
    file = _file_of_part(family, name)
    found = [node for node in _tree(file).body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    return _Class(file, found[0])


def _ancestry(declared: _Class) -> Iterator[_Class]:
    """The class and those of this package that it inherits from, nearest first; torch's are left out."""
    yield declared
    for base in declared.node.bases:
        found = _find_class(declared.file, base.id) if isinstance(base, ast.Name) else None
        if found is not None:
            yield from _ancestry(found)


def _find_class(file: Path, name: str) -> _Class | None:
    """A class by the name that a file uses for it: declared there, or imported from this package."""
    for node in _tree(file).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _Class(file, node)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kontrast."):
            for alias in node.names:
                source = SOURCE.parent.joinpath(*str(node.module).split(".")).with_suffix(".py")
                if (alias.asname or alias.name) == name and source.exists():
                    return _find_class(source, alias.name)
    return None


def _parameters(declared: _Class, *, follow: bool, keyword_only: bool) -> dict[str, Any]:
    """The keyword arguments of a class's constructor, with their defaults; ``follow`` goes on through ``**more``."""
    found: dict[str, Any] = {}
    for kind in _ancestry(declared):
        made = next((n for n in kind.node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if made is None:
            continue
        for name, default in _keywords(made.args, keyword_only=keyword_only):
            found.setdefault(name, default)
        if not follow or made.args.kwarg is None:
            break
    return found


def _keywords(arguments: ast.arguments, *, keyword_only: bool) -> Iterator[tuple[str, Any]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    if not keyword_only:
        with_default = plain[len(plain) - len(arguments.defaults) :]
        for argument, default in zip(with_default, arguments.defaults, strict=True):
            yield argument.arg, _value(default)
    for argument, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_only or given is not None:
            yield argument.arg, None if given is None else _value(given)


def _fields(declared: _Class) -> dict[str, Any]:
    """The fields of a dataclass with those it inherits, which come first."""
    found: dict[str, Any] = {}
    for kind in reversed(list(_ancestry(declared))):
        fields = (node for node in kind.node.body if isinstance(node, ast.AnnAssign))
        for field in fields:
            if isinstance(field.target, ast.Name) and not ast.unparse(field.annotation).startswith("ClassVar"):
                found[field.target.id] = None if field.value is None else _value(field.value)
    return found


def _value(node: ast.expr) -> Any:
    """A default as a plain value; None where it is not one. Fractions, such as 4 / 3, are plain values too."""
    if isinstance(node, ast.Tuple):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return ast.literal_eval(node.left) / ast.literal_eval(node.right)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _table(file: str, name: str) -> dict[str, ast.expr]:
    """The entries of a module's dictionary, by key."""
    for node in _tree(SOURCE / file).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            entries = getattr(node, "value", None)
            assert isinstance(entries, ast.Dict)
            pairs = zip(entries.keys, entries.values, strict=True)
            return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    raise LookupError(f"{file} has no {name}")


def _options_in_table(family: str, name: str) -> dict[str, Any]:
    entry, file = _table(*TABLES[family])[name], SOURCE / TABLES[family][0]
    if isinstance(entry, ast.Call):  # a head: Named(its class, the options its paper has)
        kind, published = entry.args
        declared = _find_class(file, kind.id) if isinstance(kind, ast.Name) else None
        assert declared is not None
        made_with = _parameters(declared, follow=False, keyword_only=False)
        return {**{k: v for k, v in made_with.items() if k not in FROM_DATA}, **ast.literal_eval(published)}
    assert isinstance(entry, ast.Name)
    made = next(n for n in _tree(file).body if isinstance(n, ast.FunctionDef) and n.name == entry.id)
    own = dict(_keywords(made.args, keyword_only=True))
    strengths = () if name == "vector-noise" else STRENGTHS
    return own | {option: None for option in strengths if option not in own}
