"""tune.json: every phase and trial of a search, why it stopped, the setting chosen and how to train with it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kontrast.experiments.intervals import Interval, interval
from kontrast.experiments.tune.remark import against, remark
from kontrast.experiments.tune.search import Ending, Phase, Score, Setting
from kontrast.experiments.tune.trials import HELD_OUT, Outcome
from kontrast.files import read_json, write_json

if TYPE_CHECKING:
    from kontrast.experiments.tune.tuning import Tuning


@dataclass
class Record:
    """tune.json as it grows; written after every trial."""

    tuning: Tuning
    phases: list[dict[str, Any]] = field(default_factory=list)
    tried: list[tuple[Setting, Score]] = field(default_factory=list)
    outcomes: list[list[Outcome]] = field(default_factory=list)

    def begin(self, phase: Phase) -> None:
        """A phase begins."""
        self.phases.append({"name": phase.name, "why": phase.why, "trials": []})

    def add(self, setting: Setting, score: Score, outcomes: list[Outcome]) -> None:
        """What came of a setting."""
        self.tried.append((setting, score))
        self.outcomes.append(outcomes)
        found = interval(score.values) if score.state == "done" else None
        difference = against(score, self.tried[0][1], self.tuning.seeds)
        self.phases[-1]["trials"].append(
            {
                "setting": dict(setting),
                "state": score.state,
                "note": score.note,
                "score": _plain(found),
                "values": list(score.values),
                "against_first": {"verdict": difference.verdict, "difference": _plain(difference.difference)},
                "folders": [str(outcome.folder) for outcome in outcomes],
            }
        )
        self._write({"status": "running"})

    def end(self, ending: Ending, told: Callable[[str], None]) -> dict[str, Any]:
        """The search has ended."""
        more: dict[str, Any] = {"status": "done", "stopped": ending.why, "chosen": None, "command": None}
        if self.tuning.what == "k" and self.tuning.recipe.method.name == "tcl":
            words, each = remark(self.tried, self.tuning.seeds)
            verdicts = {f"{k1:g}": {"verdict": a.verdict, "difference": _plain(a.difference)} for k1, a in each.items()}
            more["remark"] = {"words": words, "k1": verdicts}
            told(f"any k1 below 5000 beats SupCon: {words}")
        if ending.chosen is not None:
            more["chosen"] = dict(ending.chosen)
            options = [f"method.{name}={value:g}" for name, value in ending.chosen.items()]
            out = [] if self.tuning.out == Path("runs") else ["--out", str(self.tuning.out)]
            more["command"] = shlex.join(["kontrast", "train", *self.tuning.asked, *options, *out])
        told(f"stopped: {ending.why}")
        return self._write(more)

    def _write(self, more: dict[str, Any]) -> dict[str, Any]:
        t = self.tuning
        done = [outcome for found in self.outcomes for outcome in found if outcome.state == "done"]
        record = {
            "recipe": t.recipe.name,
            "for": t.what,
            "seeds": list(t.seeds),
            "held_out": t.recipe.data.validation,
            "by": f"{done[0].by}; {HELD_OUT}" if done else None,
            "accuracy": done[0].accuracy if done else None,
            "phases": self.phases,
            **more,
        }
        file = t.folder / "tune.json"
        known = read_json(file, "remove it, and it is written anew") if file.exists() else {}
        if known != record and (more["status"] == "done" or known.get("status") != "done"):
            t.folder.mkdir(parents=True, exist_ok=True)
            write_json(file, record)
        return record


def in_words(score: Score) -> str:
    """Mean, interval and number of seeds; or why there is none."""
    if math.isnan(score.mean):
        return f"{score.state}, {score.note}"
    return f"{interval(score.values):.4f}"


def _plain(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else {"mean": found.mean, "half": found.half, "n": found.n}
