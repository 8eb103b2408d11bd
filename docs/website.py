"""The hook of mkdocs, named in mkdocs.yml: pages outside docs/, links, navigation, weights in the search.

A link in a page is written for the code host, relative to its file. On the site the same link leads to a page:

    docs/losses/supervised.md → itself   README.md → the home page, other pages of the root → pages of their own
    src/kontrast/losses/tcl.py → its page of the reference, which is generated from the docstrings
    examples/plain_loop.py → a page that shows it
"""

from __future__ import annotations

import ast
import os.path
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "kontrast"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "habits.md", "CHANGELOG.md": "changelog.md",
           "SECURITY.md": "security.md"}  # fmt: skip
API = "api"
GUIDES = ("getting-started", "your-images", "your-embeddings", "choosing-a-loss", "temperature", "report", "doctor",
          "explore", "adapt", "python", "sklearn")  # fmt: skip
RECORDS = ("api/", "results/", "benchmarks/", "reliability/", "changelog.md")  # long, with every word there is
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
REFERENCE = """# {title}

::: {module}
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace folders of the navigation by their pages."""
    config.nav = expand_nav(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/: README and others of the root, examples, the reference."""
    from mkdocs.structure.files import File

    for name, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for file in EXAMPLES:
        content = f"# {file.name}\n\n```python\n{file.read_text(encoding='utf-8')}\n```\n"
        files.append(File.generated(config, f"examples/{file.stem}.md", content=content))
    for module, page in reference().items():
        title = module.removeprefix("kontrast.")
        content = REFERENCE.format(title=title, module=module) + modules_table(module)
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Convert the links of a page and set its weight in the search."""
    page.meta["search"] = {"boost": search_weight(page.file.src_uri), **page.meta.get("search", {})}
    return site_links(markdown, page.file.src_uri)


def search_weight(page: str) -> float:
    """The weight of a page among the results of a search: guides first, records last.

    >>> [search_weight(page) for page in ("temperature.md", "losses/supervised.md", "results/wl-table-1-cpu/README.md")]
    [3.0, 1.0, 0.1]
    """
    if page.startswith(RECORDS):
        return 0.1
    if page.startswith("examples/"):
        return 0.3
    return 3.0 if page.removesuffix(".md") in GUIDES else 1.0


def site_links(markdown: str, page: str) -> str:
    """Convert the links of a page that lead out of docs/ into links of the site.

    >>> site_links("[code](../../src/kontrast/losses/tcl.py), [home](../../README.md#losses)", "losses/supervised.md")
    '[code](../api/losses/tcl.md), [home](../index.md#losses)'
    >>> site_links("[losses](docs/losses/README.md), [paper](https://arxiv.org)", "index.md")
    '[losses](losses/README.md), [paper](https://arxiv.org)'
    """
    outside = {where: name for name, where in OUTSIDE.items()}
    here = PurePosixPath(outside.get(page, f"docs/{page}")).parent

    def target(match: re.Match[str]) -> str:
        to = os.path.normpath(here / match[1])
        if to in OUTSIDE:
            to = OUTSIDE[to]
        elif to.startswith("src/kontrast"):
            to = _reference_page(PurePosixPath(to).relative_to("src/kontrast"))
        elif to.startswith("examples/"):
            to = f"{to.removesuffix('.py')}.md"
        elif to.startswith("docs/"):
            to = to.removeprefix("docs/")
        else:
            return match[0]
        return f"]({os.path.relpath(to, PurePosixPath(page).parent)}{match[2] or ''})"

    return LINK.sub(target, markdown)


def expand_nav(nav: list[Any]) -> list[Any]:
    """Replace each folder of the navigation by its README and pages, and api/ by the tree of modules."""
    entries: list[Any] = []
    for entry in nav:
        ((title, under),) = entry.items() if isinstance(entry, dict) else ((None, entry),)
        if isinstance(under, list):
            under = expand_nav(under)
        elif under == f"{API}/":
            under = _modules(SOURCE)
        elif under == "examples/":
            under = [f"examples/{file.stem}.md" for file in EXAMPLES]
        elif under.endswith("/"):
            under = _pages(DOCS / under)
        entries.append(under if title is None else {title: under})
    return entries


def reference() -> dict[str, str]:
    """Every public module and its page of the reference.

    >>> reference()["kontrast.losses.tcl"], reference()["kontrast.losses"]
    ('api/losses/tcl.md', 'api/losses/index.md')
    """
    pages = {}
    for file in sorted(SOURCE.rglob("*.py")):
        inside = file.relative_to(SOURCE)
        parts = inside.parts[:-1] if inside.name == "__init__.py" else (*inside.parts[:-1], inside.stem)
        if not any(part.startswith("_") for part in parts):
            pages[".".join(("kontrast", *parts))] = _reference_page(inside)
    return pages


def modules_table(module: str) -> str:
    """The public modules of a package, each with the first paragraph of its docstring; nothing for a module.

    >>> modules_table("kontrast.losses.tcl")
    ''
    >>> modules_table("kontrast.losses").splitlines()[-1]
    '| [`tcl`](tcl.md) | TCL, tuned contrastive learning: SupCon whose denominator is tuned by k1 and k2. |'
    """
    folder = SOURCE.joinpath(*module.split(".")[1:])
    if not folder.is_dir():
        return ""
    rows = ["", "## Modules", "", "| module | what |", "|---|---|"]
    for entry in sorted(folder.iterdir()):
        file = entry / "__init__.py" if entry.is_dir() else entry
        if entry.name.startswith("_") or file.suffix != ".py" or not file.exists():
            continue
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        summary = " ".join(docstring.partition("\n\n")[0].split()).replace("|", "&#124;").replace("<", "&lt;")
        link = f"{entry.name}/index.md" if entry.is_dir() else f"{entry.stem}.md"
        rows.append(f"| [`{entry.stem}`]({link}) | {summary} |")
    return "\n".join(rows) + "\n" if len(rows) > 5 else ""


def _reference_page(inside: PurePosixPath | Path) -> str:
    """The page of a file or package of src/kontrast."""
    if inside.name == "__init__.py" or not inside.suffix:
        return (
            PurePosixPath(API) / inside.with_name("index.md") if inside.suffix else API / inside / "index.md"
        ).as_posix()
    return (PurePosixPath(API) / inside.with_suffix(".md")).as_posix()


def _pages(folder: Path) -> list[Any]:
    """The pages of a folder: README first, then pages by name, then subfolders."""
    entries: list[Any] = [file.relative_to(DOCS).as_posix() for file in folder.glob("README.md")]
    entries += sorted(file.relative_to(DOCS).as_posix() for file in folder.glob("*.md") if file.name != "README.md")
    return entries + [{sub.name: _pages(sub)[0]} for sub in sorted(folder.iterdir()) if (sub / "README.md").exists()]


def _modules(folder: Path) -> list[Any]:
    """A package's own page, then its modules and packages by name."""
    entries: list[Any] = [_reference_page((folder / "__init__.py").relative_to(SOURCE))]
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("_"):
            continue
        if (entry / "__init__.py").exists():
            entries.append({entry.name: _modules(entry)})
        elif entry.suffix == ".py":
            entries.append({entry.stem: _reference_page(entry.relative_to(SOURCE))})
    return entries
