"""The page of adaptations has the figures of docs/adapt.json, and its example is a sentence that a verdict has."""

from __future__ import annotations

import json

from kontrast.adaptation.verdict import judge
from tests.adaptation.test_verdict import measured
from tests.docs.loading import script

adapt = script("adapt")


def test_the_page_has_the_figures() -> None:
    page = adapt.PAGE.read_text(encoding="utf-8")
    found = json.loads(adapt.FOUND.read_text(encoding="utf-8"))
    assert f"{adapt.BEGIN}\n\n{adapt.section(found)}\n{adapt.END}" in page, "run python docs/adapt.py"


def test_a_case_fills_its_row() -> None:
    measures = judge({"knn20": measured(80, 20), "logistic": measured(9, 9), "retrieval": measured(30, 10)}).measures
    verdict = {
        "status": "better",
        "shipped": "adapted",
        "sentence": "…",
        "measures": [m.model_dump() for m in measures],
    }
    case = {"verdict": verdict, "threads": 1, "wall_seconds": 600, "cpu_seconds": 540}
    line = (
        "| mine | 93.4 | 96.4 | +3.0 ± 1.0 | +0.0 ± 0.4 | +1.0 ± 0.6 | better: adapted | 10.0 (1 thread, CPU 9.0) |\n"
    )
    assert adapt.row("mine", case) == line


def test_the_example_is_what_a_verdict_says() -> None:
    page = " ".join(adapt.PAGE.read_text(encoding="utf-8").replace("\n> ", " ").split())
    assert judge({"knn20": measured(16, 22)}).sentence in page
