"""docs/recipes.md is what docs/recipes.py writes: no recipe missing, no number typed by hand."""

from __future__ import annotations

from kontrast import recipes
from tests.docs.loading import DOCS, script


def test_the_page_is_what_the_script_writes() -> None:
    page = (DOCS / "recipes.md").read_text(encoding="utf-8")
    assert page == script("recipes").page(), "run python docs/recipes.py"
    assert all(f"`{name}`" in page for name in recipes.names())
