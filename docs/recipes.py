"""Write docs/recipes.md: every recipe by paper, with what it claims.

python docs/recipes.py
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

from kontrast.recipes import graf, sce, small, tcl, wang_liu

INTRODUCTION = """# Recipes

A recipe is a claim: paper, table, expected number, hardware, command. `kontrast list recipes` lists them,
`kontrast show NAME` prints one in the paper's words and as YAML, `kontrast train NAME` runs it:

```
kontrast show instance-cifar10                                # what it claims, what it does, every option
kontrast train instance-cifar10 method.temperature=0.07       # another column of its table
kontrast train tcl-cifar10 seed=1                             # another run of its interval
kontrast train sce-cifar10 data=photos.npz train.epochs=20    # its settings on your images
```

The papers' tables are data, in `kontrast.recipes.published`:

```python
>>> from kontrast import recipes
>>> from kontrast.recipes import published
>>> published.WANG_LIU["cifar10"]["ordinary"][0.2], published.SCE["cifar10"][0.2, 0.1]
(83.78, 90.34)
>>> recipes.find("instance-cifar10").method
Part(name='instance', loss='ordinary', bank_momentum=0.5, temperature=0.2)

```

The stability studies of TCL are functions that give recipes:

```python
>>> from kontrast.recipes import tcl
>>> [tcl.batch_study(size, "tcl").optim.options["lr"] for size in tcl.BATCHES]
[0.008, 0.009, 0.1, 0.2, 0.5, 1.0]

```

Each recipe is run for two steps by the tests, on random pixels in its set's shape. Those of the papers have not been
run at full scale here: "expected" is what the paper says. `kontrast reproduce` runs them as tables, at full scale or
cut down.
"""
BOOKS = (wang_liu, tcl, sce, graf)


def page() -> str:
    """The introduction, and for each paper what its recipes have in common and a row for each."""
    return "\n".join([INTRODUCTION, *map(_paper, BOOKS), _bundled(), "Written by `python docs/recipes.py`.\n"])


def _paper(book: ModuleType) -> str:
    title, _, rest = (inspect.getdoc(book) or "").partition("\n\n")
    rows = [
        _row(f"`{name}`", claim.what, claim.source, claim.expected, claim.hardware)
        for name, claim in book.CLAIMS.items()
    ]
    table = ["| recipe | what | source | expected | hardware |", "|---|---|---|---|---|", *rows]
    return "\n".join([f"## {' '.join(title.split())}\n", rest.replace("``", "`"), "", *table, ""])


def _bundled() -> str:
    title, _, rest = (inspect.getdoc(small) or "").partition("\n\n")
    rows = [_row(f"`{name}`", recipe.about) for name, recipe in small.RECIPES.items()]
    return "\n".join([f"## {title}\n", rest, "", "| recipe | what |", "|---|---|", *rows, ""])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    (Path(__file__).parent / "recipes.md").write_text(page(), encoding="utf-8")
