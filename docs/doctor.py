"""Write the table of rules in docs/doctor.md, from the rules' own docstrings.

python docs/doctor.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from kontrast.doctor.rules import RULES, Rule

PAGE = Path(__file__).with_suffix(".md")
BEGIN, END = "<!-- rules: written by python docs/doctor.py -->\n", "<!-- end of rules -->\n"
PARTS = ("Problem", "Warning", "Why", "Reads")


def parts(rule: type[Rule]) -> dict[str, str]:
    """The paragraphs of a rule's module docstring, by the word in front of each."""
    text = inspect.getdoc(inspect.getmodule(rule)) or ""
    words = re.split(rf"^({'|'.join(PARTS)}):", text, flags=re.MULTILINE)
    paragraphs = dict(zip(words[1::2], (" ".join(part.split()) for part in words[2::2]), strict=True))
    missing = [part for part in PARTS if part not in paragraphs]
    if missing:
        raise ValueError(f"{rule.__module__} has no paragraph {', '.join(missing)}")
    return paragraphs


def table() -> str:
    """A row for each rule."""
    rows = ["| rule | looks for | examined in | problem | warning |", "|---|---|---|---|---|"]
    for name, rule in RULES.items():
        paragraphs = parts(rule)
        cells = (f"`{name}`", rule.title, ", ".join(rule.patients), paragraphs["Problem"], paragraphs["Warning"])
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def page(text: str) -> str:
    """The page with the table written again."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
