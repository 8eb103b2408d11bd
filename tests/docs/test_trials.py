"""docs/experiments/trials.md is what docs/trials.py writes, and no trial was scored on test rows."""

from __future__ import annotations

import json

from tests.docs.loading import script

trials = script("trials")


def test_the_page_is_what_the_script_writes() -> None:
    assert trials.PAGE.read_text(encoding="utf-8") == trials.page(), "run python docs/trials.py"


def test_every_trial_is_logged_whole() -> None:
    for line in trials.LOG.read_text(encoding="utf-8").splitlines():
        trial = json.loads(line)
        assert any(word.startswith("data.validation=") for word in trial["settings"]), trial
        assert trial["held_out"]["rows"] > 0
        assert len(trial["held_out"]["sha256"]) == 12
        assert "knn20" in trial["scores"]
