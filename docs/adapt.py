"""The figures of docs/adapt.md, from docs/adapt.json, which `python scripts/adapt.py` writes.

python docs/adapt.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PAGE, FOUND = DOCS / "adapt.md", DOCS / "adapt.json"
BEGIN, END = "<!-- figures: python docs/adapt.py -->", "<!-- end of figures -->"
TITLES = {
    "svhn": "SVHN, 3,000 + 1,000 images at 96 pixels, SupCon",
    "svhn-sce": "the same, SCE: labels judge and do not teach",
    "imagenette": "Imagenette sample, 600 + 200 photos at 224 pixels, SupCon",
    "imagenette-sce": "the same, SCE",
    "unlabelled": "SVHN, 1,000 images without labels, SCE",
    "made-to-fail": "40 photos at 128 pixels, a learning rate of 0.1",
}
COLUMNS = ["data and method", "frozen kNN", "adapted kNN", "difference", "linear", "retrieval", "verdict", "minutes"]
SCHEMES = {
    "disjoint": "rows that judge have not chosen (what `adapt` does)",
    "in both directions": "each sixth judged by the epoch that all others choose",
    "shared": "the rows that chose the epoch judge it",
}


def section(found: dict[str, Any]) -> str:
    """The table of the cases, their sentences, and the simulation."""
    head = "| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|\n"
    rows = "".join(row(title, found.get(name)) for name, title in TITLES.items())
    sentences = "".join(
        f"- {title}: {found[name]['verdict']['sentence']}.\n" for name, title in TITLES.items() if name in found
    )
    return "\n".join(part for part in (head + rows, sentences, simulation(found.get("simulation"))) if part)


def row(title: str, case: dict[str, Any] | None) -> str:
    """A line of the table.

    >>> print(row("mine", None), end="")
    | mine | – | – | – | – | – | not run yet | – |
    """
    if case is None:
        return f"| {title} | – | – | – | – | – | not run yet | – |\n"
    verdict, words = case["verdict"], ["–"] * 5
    if measures := {measure["name"]: measure for measure in verdict.get("measures", [])}:
        knn = measures["knn20"]
        words = [f"{100 * knn['frozen']:.1f}", f"{100 * knn['adapted']:.1f}"]
        words += [change(measures[name]) for name in ("knn20", "logistic", "retrieval")]
    threads = case["threads"]
    minutes = (
        f"{case['wall_seconds'] / 60:.1f} ({threads} thread{'s' * (threads > 1)}, CPU {case['cpu_seconds'] / 60:.1f})"
    )
    return "| " + " | ".join([title, *words, f"{verdict['status']}: {verdict['shipped']}", minutes]) + " |\n"


def change(measure: dict[str, Any]) -> str:
    """A difference with half of its interval, in points.

    >>> change({"difference": -0.003, "low": -0.009, "high": 0.003})
    '−0.3 ± 0.6'
    """
    return f"{100 * measure['difference']:+.1f} ± {50 * (measure['high'] - measure['low']):.1f}".replace("-", "−")


def simulation(record: dict[str, Any] | None) -> str:
    """How often something ships that is no better."""
    if record is None:
        return ""
    lines = "".join(f"| {SCHEMES[name]} | {100 * share:.1f} % |\n" for name, share in record["shipped"].items())
    about = (
        f"{record['cases']:,} simulated adaptations, none better than frozen: {record['epochs']} epochs, "
        f"{record['rows']} held-out rows, a share of {record['changed']:g} of the answers changed by each epoch. "
        "May ship: 2.5 %."
    )
    return f"{about}\n\n| rows | shipped |\n|---|---|\n{lines}"


def main() -> None:
    """Write the figures into the page."""
    found = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else {}
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{section(found)}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
