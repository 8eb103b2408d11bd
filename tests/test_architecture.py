"""The arrow holds: a stage imports only what stands left of it, and every public module has its test."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kontrast

SOURCE = Path(kontrast.__file__).parent
TESTS = Path(__file__).parent
INDEPENDENT = kontrast.ARROW[:4]
MODULES = sorted(SOURCE.rglob("*.py"))
LAZY = {
    "kontrast.runs.actions": {"train", "models", "report", "pipeline"},
    "kontrast.runs.displayed": {"report"},
}
"""The one exception: what one does with a `Run` in Python. `Run.encoder()` is `kontrast.load(run)`, `Run.report()` is
`kontrast.pipeline.report`: such a method imports its stage when it is called, and names the type that it returns."""


def dotted(path: Path) -> str:
    """``kontrast.losses.tcl`` for its file, ``kontrast.losses`` for the package's."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Every module a file imports, at its top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import; the arrow is read from absolute ones"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def stage(module: str) -> str | None:
    """The second part of a dotted name: ``losses`` of ``kontrast.losses.tcl.TCLLoss``; None outside the package."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "kontrast" else None


def allowed(importer: str) -> set[str]:
    """What a stage may import: itself, the root modules, and what stands left of it (the first four: nothing)."""
    if importer in kontrast.ROOT:
        return set(kontrast.ROOT)
    if importer == "__main__":
        return {"cli"}
    if importer in kontrast.SHELLS:
        return {*kontrast.ROOT, *kontrast.ARROW, importer}
    left = set(kontrast.ARROW[: kontrast.ARROW.index(importer)])
    return {*kontrast.ROOT, importer, *(set() if importer in INDEPENDENT else left)}


def test_imports_point_left() -> None:
    wrong = {}
    for path in MODULES:
        module = dotted(path)
        mine = stage(module)
        wanted = {s for s in map(stage, imports(path)) if s} - LAZY.get(module, set())
        if not mine:  # the package itself names its stages lazily
            assert not wanted
            continue
        places = (*kontrast.ROOT, *kontrast.ARROW, *kontrast.SHELLS, "__main__")
        assert mine in places, f"{mine} has no place in the arrow"
        if not wanted <= allowed(mine):
            wrong[module] = sorted(wanted - allowed(mine))
    assert not wrong, "these import stages that stand right of them"


def is_private_of_another(importer: str, imported: str) -> bool:
    """Whether a module of one stage imports a module, or a name, of another stage that has an underscore in front."""
    hidden = [part for part in imported.split(".") if part.startswith("_") and not part.startswith("__")]
    return bool(hidden) and stage(imported) is not None and stage(imported) != stage(importer)


def test_no_stage_imports_a_private_module_of_another() -> None:
    wrong = [
        f"{dotted(path)} imports {name}"
        for path in MODULES
        for name in sorted(imports(path))
        if is_private_of_another(dotted(path), name)
    ]
    assert not wrong, "\n".join(wrong)
    assert is_private_of_another("kontrast.train.encoder_files", "kontrast.models.encoders._base.ImageEncoder")
    assert not is_private_of_another("kontrast.models.heads", "kontrast.models.encoders._base.seeded")


def test_the_check_can_fail() -> None:
    assert "geometry" not in allowed("losses")
    assert "models" not in allowed("losses"), "the first four do not import each other"
    assert "losses" in allowed("geometry")
    assert "losses" not in allowed("registry")
    assert stage("kontrast.report.page") == "report"
    assert {"train", "doctor", "report", "recipes"} <= allowed("pipeline"), "the main job joins them"
    assert not [left for left in kontrast.ARROW[: kontrast.ARROW.index("pipeline")] if "pipeline" in allowed(left)]


def test_the_arrow_is_drawn_as_it_is() -> None:
    drawn = kontrast.__doc__.partition("::")[2].partition("\n\n")[2].partition("\n\n")[0]
    assert tuple(drawn.replace("→", " ").split()) == kontrast.ARROW


def test_report_and_runs_are_free_of_torch() -> None:
    paths = [path for path in MODULES if stage(dotted(path)) in ("report", "runs")]
    assert paths
    heavy = {"torch", "torchvision"}
    assert not [path for path in paths if {name.partition(".")[0] for name in imports(path)} & heavy]


def test_every_public_module_has_a_test() -> None:
    missing = []
    for path in MODULES:
        relative = path.relative_to(SOURCE)
        if path.name != "__init__.py" and not any(part.startswith("_") for part in relative.parts):
            test = TESTS / relative.parent / f"test_{path.name}"
            if not test.exists():
                missing.append(str(test.relative_to(TESTS.parent)))
    assert missing == []


def test_every_module_says_what_it_is() -> None:
    assert not [
        path for path in MODULES if path.name != "__main__.py" and not ast.get_docstring(ast.parse(path.read_text()))
    ]


def test_no_file_named_for_nothing() -> None:
    nothing = {"utils.py", "helpers.py", "common.py", "misc.py", "tools.py"}
    assert not [p for p in MODULES if p.name in nothing]


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_kontrast_loads_no_torch_until_something_needs_it() -> None:
    heavy = "[m for m in ('torch', 'numpy', 'torchvision') if m in sys.modules]"
    assert run(f"import sys, kontrast; print({heavy})") == "[]"
    assert run("import kontrast; print(kontrast.losses.SupConLoss.__name__)") == "SupConLoss"


def test_unknown_attribute_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kontrast' has no attribute 'lossses'"):
        kontrast.lossses  # noqa: B018
