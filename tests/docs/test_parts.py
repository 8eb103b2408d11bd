"""Each part stands in the tables and sections of the pages, as docs/contributing.md says under **Then**."""

from __future__ import annotations

import re

import pytest

from kontrast import augment
from kontrast.registry import FAMILIES
from tests.docs.loading import DOCS

ROWS = {
    "operation": ("augment/README.md", "Operations"),
    "data set": ("data/README.md", "Sets by name"),
    "encoder": ("models/README.md", "Encoders"),
    "protocol": ("evaluate/README.md", "Protocols"),
    "monitor": ("report.md", "Monitors"),
}
"""The page, and the section, whose table has a row for each part of a family."""


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in ROWS for name in FAMILIES[kind]])
def test_the_table_has_a_row_for_each_part(kind: str, name: str) -> None:
    page, title = ROWS[kind]
    section = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    first = " ".join(re.findall(r"^\| (.+?) \|", section, flags=re.MULTILINE))
    shown = FAMILIES[kind][name].__name__ if kind == "operation" else name
    assert re.search(rf"`{re.escape(shown)}[`(]", first), f"docs/{page}, {title}: must have a row for `{shown}`"


@pytest.mark.parametrize("name", FAMILIES["loss"])
def test_each_loss_has_a_row_and_a_section(name: str) -> None:
    kind = FAMILIES["loss"][name].__name__
    table = (DOCS / "losses" / "README.md").read_text(encoding="utf-8")
    link = re.search(rf"^\| \[`{kind}`\]\((\w+\.md)#([\w-]+)\)", table, flags=re.MULTILINE)
    assert link, f"docs/losses/README.md must have a row for {kind}, with a link to its section"
    titles = re.findall(r"^## (.+)$", (DOCS / "losses" / link[1]).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert link[2] in [title.lower().replace(" ", "-") for title in titles], f"docs/losses/{link[1]}: section of {kind}"


@pytest.mark.parametrize("name", FAMILIES["operation"])
def test_each_operation_is_exported(name: str) -> None:
    assert FAMILIES["operation"][name].__name__ in augment.__all__, "it must be in augment/__init__.py, __all__ too"
