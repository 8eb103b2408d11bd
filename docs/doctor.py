"""Write the table of rules in docs/doctor.md, from the rules' own docstrings.

python docs/doctor.py
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

from kontrast.doctor.rules import RULES

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- rules: written by python docs/doctor.py -->\n", "<!-- end of rules -->\n"
PARTS = ("Problem", "Warning", "Why", "Reads")


def parts(name: str) -> dict[str, str]:
    """What a rule's docstring says under each of its words."""
    text = inspect.getdoc(importlib.import_module(f"kontrast.doctor.rules.{name.replace('-', '_')}")) or ""
    found = re.split(rf"^({'|'.join(PARTS)}):", text, flags=re.MULTILINE)
    said = dict(zip(found[1::2], (" ".join(part.split()) for part in found[2::2]), strict=True))
    missing = [part for part in PARTS if part not in said]
    if missing:
        raise ValueError(f"rules/{name}.py does not say {', '.join(missing)}")
    return said


def table() -> str:
    """A row for each rule."""
    rows = ["| rule | looks for | examined in | problem | warning |", "|---|---|---|---|---|"]
    for name in RULES:
        rule, said = RULES[name], parts(name)
        words = (f"`{name}`", rule.title, ", ".join(rule.patients), said["Problem"], said["Warning"])
        rows.append("| " + " | ".join(word.replace("|", "\\|") for word in words) + " |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with the table anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
