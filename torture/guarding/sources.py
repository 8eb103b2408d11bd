"""Calls that would run, unpickle, unpack or fetch what a file or an address holds: found in the sources by syntax.

A call is known by the full name of what it calls (``import numpy as np`` makes ``np.load`` numpy.load), a module by its
import. `ALLOWED` are the exceptions, each with its reason; one that nothing needs any more is an error too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "kontrast"
BUILTINS = ("eval", "exec", "compile", "__import__", "input", "breakpoint")
CALLS = {
    "run a file's content": [
        *("torch.hub.load", "torch.jit.load", "torch.package.PackageImporter", "runpy.run_path", "runpy.run_module"),
        *("code.interact", "ctypes.CDLL", "ctypes.cdll.LoadLibrary", "importlib.util.spec_from_file_location"),
    ],
    "unpickle": [
        *("pandas.read_pickle", "numpy.lib.format.read_pickle", "torch.utils.model_zoo.load_url", "joblib.load"),
        *("torch.hub.load_state_dict_from_url", "sklearn.externals.joblib.load", "torch.distributed.checkpoint.load"),
    ],
    "read YAML with objects": [
        f"yaml.{name}" for name in ("load", "load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all")
    ],
    "start a shell": ["os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"],
    "unpack without looking": ["shutil.unpack_archive"],
    "ask the network": [
        *("urllib.request.urlopen", "urllib.request.urlretrieve", "torch.hub.download_url_to_file"),
        *("torchvision.datasets.utils.download_url", "torchvision.datasets.utils.download_and_extract_archive"),
    ],
    "race for a name": ["tempfile.mktemp"],
}
MODULES = {
    "unpickle": ["pickle", "_pickle", "cPickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"],
    "unpickle from a connection": ["multiprocessing.connection", "multiprocessing.managers"],
    "ask the network": ["socket", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "http.client", "urllib3"],
    "unpack": ["tarfile"],
}
WITH = {  # calls that need an argument to be harmless
    "torch.load": ("weights_only", True),
    "numpy.load": ("allow_pickle", False),
    "numpy.lib.format.read_array": ("allow_pickle", False),
    "numpy.lib.npyio.NpzFile": ("allow_pickle", False),
}
METHODS = ("extractall", "extract")  # of tarfile and zipfile, however the object is called

ALLOWED = {
    ("data/sets/cifar10.py", "unpickle"): "CIFAR's batches, held to their checksums; every function is a stand-in",
    ("data/downloads.py", "unpack"): "member by member, each name looked at",
    ("data/downloads.py", "ask the network"): "when a named set is asked for and not there; checksums",
    ("experiments/engines/_worker.py", "unpickle from a connection"): "from the process that started it",
    ("experiments/engines/local.py", "unpickle from a connection"): "from the processes it started",
    ("train/memory.py", "run a file's content"): "the C library that is loaded already, to give memory back",
}


@dataclass(frozen=True)
class Finding:
    """A place that would do ``what``."""

    file: str
    line: int
    what: str
    code: str


def found(source: str, file: str = "a file") -> Iterator[Finding]:
    """Everything of the lists in a file's source.

    >>> [(at.line, at.what) for at in found("import numpy as np\\nnp.load(path)\\nnp.load(path, allow_pickle=False)")]
    [(2, 'unpickle')]
    """
    tree = ast.parse(source)
    names = _names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for what, modules in MODULES.items():
                if any(_below(name, module) for name in _imported(node) for module in modules):
                    yield Finding(file, node.lineno, what, ast.unparse(node))
        elif isinstance(node, ast.Call):
            yield from (Finding(file, node.lineno, what, ast.unparse(node)[:80]) for what in _does(node, names))
        elif isinstance(node, ast.Attribute | ast.Name) and _full(node, names) in ("pickle.loads", "yaml.UnsafeLoader"):
            yield Finding(file, node.lineno, "unpickle", ast.unparse(node))


def scanned(folder: Path = SOURCE) -> tuple[int, list[Finding], list[tuple[str, str]]]:
    """How many files there are, what is found in them that is not allowed, and which exceptions nothing needs."""
    files = sorted(folder.rglob("*.py"))
    every = [
        at for path in files for at in found(path.read_text(encoding="utf-8"), path.relative_to(folder).as_posix())
    ]
    used = {(at.file, at.what) for at in every}
    return len(files), [at for at in every if (at.file, at.what) not in ALLOWED], sorted(ALLOWED.keys() - used)


def _does(call: ast.Call, names: dict[str, str]) -> Iterator[str]:
    full = _full(call.func, names)
    if isinstance(call.func, ast.Name) and full in BUILTINS:
        yield "run a file's content"
    for what, calls in CALLS.items():
        if full in calls:
            yield what
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if full in WITH:
        option, value = WITH[full]
        seen = given.get(option)
        if not (isinstance(seen, ast.Constant) and seen.value is value):
            yield "unpickle"
    shell = given.get("shell")
    if shell is not None and not (isinstance(shell, ast.Constant) and shell.value is False):
        yield "start a shell"
    if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
        yield "unpack without looking"


def _names(tree: ast.AST) -> dict[str, str]:
    """What each name of a file stands for."""
    made: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            made |= {
                a.asname or a.name.partition(".")[0]: a.name if a.asname else a.name.partition(".")[0]
                for a in node.names
            }
        elif isinstance(node, ast.ImportFrom):
            made |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return made


def _full(node: ast.AST, names: dict[str, str]) -> str:
    """``numpy.load`` of ``np.load``; "" of what is no name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        above = _full(node.value, names)
        return f"{above}.{node.attr}" if above else ""
    return ""


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]


def _below(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")
