"""docs/recipes.md is what docs/recipes.py writes: no recipe missing, no number typed by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from kontrast import recipes

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_script_writes() -> None:
    spec = importlib.util.spec_from_file_location("recipes_page", DOCS / "recipes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (DOCS / "recipes.md").read_text(encoding="utf-8")
    assert page == module.page(), "run python docs/recipes.py"
    assert all(f"`{name}`" in page for name in recipes.names())
