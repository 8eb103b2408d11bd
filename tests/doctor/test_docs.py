"""docs/doctor.md has every rule as its docstring states it."""

from __future__ import annotations

from kontrast import doctor
from tests.docs.commands import ROOT
from tests.docs.loading import script


def test_the_page_is_what_the_script_writes() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert page == script("doctor").page(page), "run python docs/doctor.py"


def test_no_rule_is_missing() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert [name for name in doctor.names() if f"| `{name}` |" not in page] == []
