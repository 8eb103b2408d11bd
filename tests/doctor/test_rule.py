"""What all rules share."""

from __future__ import annotations

from typing import Any

import pytest

from kontrast.doctor.rule import Finding, Missing, Record, Rule, above, below
from kontrast.runs import State


class Fussy(Rule):
    """Finds a problem in every record."""

    patients = ("run",)
    title = "nothing is good enough"
    of_learning = True

    def examine(self, record: Record) -> Finding | None:
        return self.problem("as always", "try again")


class Blind(Rule):
    """Needs what no record has."""

    patients = ("run",)
    title = "cannot see"

    def examine(self, record: Record) -> Finding | None:
        raise Missing("there is no light")


def test_what_is_missing_makes_a_finding_unknown() -> None:
    finding = Blind()(Record(patient="run"))
    assert finding is not None
    assert (finding.rule, finding.status, finding.evidence) == ("test-rule", "unknown", "there is no light")


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (lambda rule, record: record.rowss, "AttributeError: 'Record' object has no attribute 'rowss'"),
        (lambda rule, record: "ill", "TypeError: examine must return a Finding or None, got a str"),
        (lambda rule, record: rule.graded("bad", "x", "y"), "ValueError: status='bad': must be one of 'problem', "),
    ],
)
def test_an_error_in_a_rule_says_so_and_names_its_file(result: Any, error: str) -> None:
    class Wrong(Blind):
        examine = result

    finding = Wrong()(Record(patient="run"))
    assert finding is not None
    assert finding.status == "unknown"
    assert finding.evidence.startswith(f"the rule test-rule has an error: {error}")
    assert finding.advice == f"correct {__file__}"


def test_a_failed_run_is_never_too_short_to_judge() -> None:
    finding = Fussy()(Record(patient="run", state=State(status="failed", step=3)))
    assert finding is not None
    assert finding.status == "problem"


def test_limits_are_on_the_good_side() -> None:
    assert [above(value, problem=0.3, warning=0.1) for value in (0.3, 0.1)] == ["warning", "ok"]
    assert [below(value, problem=1.0, warning=2.0) for value in (0.9, 1.0, 2.0)] == ["problem", "warning", "ok"]
