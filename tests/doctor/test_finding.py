"""Findings: what they are as JSON, and in which order they are told."""

from __future__ import annotations

import json

from kontrast.doctor.finding import STATUSES, Finding


def test_a_finding_is_five_words_of_json() -> None:
    finding = Finding("stale-queue", "watch", "queue too stale", "seen", "do")
    assert Finding(**json.loads(json.dumps(finding.record()))) == finding
    assert list(finding.record()) == ["rule", "status", "disease", "evidence", "cure"]


def test_the_ill_come_first_and_the_healthy_last() -> None:
    assert STATUSES == ("ill", "watch", "unknown", "healthy")
