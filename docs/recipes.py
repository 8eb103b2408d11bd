"""Write docs/recipes.md: every recipe by paper, with what it claims, and what the small ones reach (docs/goals.py).

python docs/recipes.py
"""

from __future__ import annotations

import importlib.util
import inspect
import os.path
import re
from pathlib import Path
from types import ModuleType

from kontrast.recipes import graf, sce, small, tcl, wang_liu

DOCS = Path(__file__).parent
INTRODUCTION = """# Recipes

A recipe is everything that decides a run. Those of a paper name its table and the number that the paper expects ("–":
the number is in a main text that we do not have). They have not been run at full scale here. `kontrast reproduce` runs
them as tables, at full scale or reduced.

```
kontrast list recipes --all                                   # without --all: those for two CPU cores
kontrast show instance-cifar10                                # its claim and every option
kontrast train instance-cifar10 method.temperature=0.07       # another column of its table
kontrast train tcl-cifar10 seed=1                             # another run of its interval
kontrast train sce-cifar10 data=photos.npz train.epochs=20    # its settings on your images
```

The papers' tables are data, in `kontrast.recipes.published`; TCL's stability studies are functions that give recipes:

```python
>>> from kontrast.recipes import published, tcl
>>> published.WANG_LIU["cifar10"]["ordinary"][0.2], published.SCE["cifar10"][0.2, 0.1]
(83.78, 90.34)
>>> [tcl.batch_study(size, "tcl").optim.options["lr"] for size in tcl.BATCHES]
[0.008, 0.009, 0.1, 0.2, 0.5, 1.0]

```
"""
BOOKS = (wang_liu, tcl, sce, graf)
PAPERS = ("Wang & Liu, ", "TCL, ", "SCE, ", "Graf et al., ")  # as sources begin; the section names the paper
ABSENT = "; the row's own number is in the main text, which we have not"


def page() -> str:
    """The introduction, the recipes for two CPU cores, and those of each paper."""
    return "\n".join(
        [INTRODUCTION, _bundled(), _goals().section(), *map(_paper, BOOKS), "Written by `python docs/recipes.py`.\n"]
    )


def _goals() -> ModuleType:
    """docs/goals.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("docs_goals", DOCS / "goals.py")
    if spec is None or spec.loader is None:
        raise ImportError(DOCS / "goals.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _paper(book: ModuleType) -> str:
    """What a paper's recipes have in common, and a row for each; those with the same claim share one."""
    title, summary, *_ = (inspect.getdoc(book) or "").split("\n\n")
    source = (
        f"Settings and deviations: [`{Path(book.__file__ or '').name}`]({os.path.relpath(book.__file__ or '', DOCS)})."
    )
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, claim in book.CLAIMS.items():
        expected = claim.expected.partition(" (")[0] if claim.expected.count(" at ") > 2 else claim.expected
        shared = expected.startswith("accuracy beside")
        place = claim.source.partition(", ")[2] if claim.source.startswith(PAPERS) else claim.source
        rows.setdefault((place, "–" if shared else expected.removesuffix(ABSENT)), []).append(f"`{name}`")
    table = ["| recipe | source | expected |", "|---|---|---|"]
    table += [_row(", ".join(names), *cells) for cells, names in rows.items()]
    return "\n".join([*_heading(title), summary.replace("``", "`"), "", source, "", *table, ""])


def _heading(title: str) -> list[str]:
    """The first sentence of a book's docstring: a heading up to the colon, then a paragraph.

    >>> _heading("Small recipes: one per method.")
    ['## Small recipes\\n', 'One per method.\\n']
    """
    heading, _, rest = " ".join(title.split()).partition(": ")
    return [f"## {heading}\n", f"{rest[:1].upper()}{rest[1:]}\n"]


def _bundled() -> str:
    title, summary, *_ = (inspect.getdoc(small) or "").split("\n\n")
    rows = [_row(f"`{name}`", recipe.about) for name, recipe in small.RECIPES.items()]
    summary = re.sub(r"docs/(experiments/(\w+)\.md)", r"[\2](\1)", summary)
    return "\n".join([*_heading(title), summary, "", "| recipe | what |", "|---|---|", *rows, ""])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    (DOCS / "recipes.md").write_text(page(), encoding="utf-8")
