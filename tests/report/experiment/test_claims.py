"""Verdicts by word, sign and colour."""

from __future__ import annotations

from kontrast.experiments.claims._verdict import FAILS, HOLDS, OPEN
from kontrast.report.experiment import claims
from kontrast.report.page import Mark
from tests.report.experiment.made_up import summary


def test_every_verdict_has_a_sign_a_word_and_a_tone() -> None:
    marks = [claims.mark(verdict) for verdict in (HOLDS, FAILS, OPEN)]
    assert [m.tone for m in marks] == ["good", "bad", "watch"]
    assert all(verdict in m.text for verdict, m in zip((HOLDS, FAILS, OPEN), marks, strict=True))
    assert len({m.text[0] for m in marks}) == 3


def test_each_finding_is_a_row() -> None:
    made = summary()
    made["claims"][0]["findings"].append({**made["claims"][0]["findings"][0], "where": "data=cifar10"})
    table = claims.table(made)
    assert len(table.rows) == 4
    assert table.rows[1] == [
        Mark("✓\N{NO-BREAK SPACE}holds", "good"),
        "claim 0",
        "data=cifar10: found 0",
        "an interval",
    ]


def test_cards_count_them() -> None:
    cards = claims.counts(summary())
    assert [card.value for card in cards] == ["1 of 3"] * 3
    assert claims.counts(summary(claims=[])) == []
