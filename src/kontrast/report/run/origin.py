"""Where the run came from: how to make it again, the recipe, versions and machine."""

from __future__ import annotations

import shlex
from typing import Any

from kontrast.report.page import Fold, Part, Section, Table, Text
from kontrast.report.run.collect import Run

COMMANDS = ("train", "reproduce", "demo", "tune")  # those that leave runs


def section(run: Run) -> Section:
    """The command first; everything else is folded."""
    again = f"kontrast train {shlex.quote(run.shown_path)} --out again"
    parts: list[Part] = [
        Text("The same run once more, in another folder; on the same machine and versions, to the bit:", "note"),
        Text(again, "code"),
    ]
    started = command(run)
    if started:
        parts += [Text("As it was started:", "note"), Text(started, "code")]
    parts.append(Table(["", ""], _facts(run)))
    if run.recipe_text:
        parts.append(Fold("The recipe, resolved", [Text(run.recipe_text.rstrip(), "code")]))
    return Section("Reproduce", parts)


def command(run: Run) -> str:
    """What was typed; empty if it was not the command line."""
    words = [str(word) for word in run.state.get("command") or []]
    ours = words[:1] in (["kontrast"], ["__main__.py"]) and any(word in COMMANDS for word in words[1:3])
    return shlex.join(["kontrast", *words[1:]]) if ours else ""


def _facts(run: Run) -> list[list[str]]:
    state, recipe = run.state, run.recipe
    versions, machine = state.get("versions") or {}, state.get("machine") or {}
    seen: dict[str, Any] = {
        "run": run.path.resolve().name,
        "hash of the recipe": state.get("hash"),
        "seed": recipe.get("seed"),
        "weights": run.result.get("weights"),
        "started": state.get("started"),
        "finished": state.get("finished"),
        "steps": state.get("step"),
        "versions": ", ".join(f"{name} {value}" for name, value in versions.items() if value),
        # All but the folder: where somebody's files lie is nobody's business.
        "machine": ", ".join(f"{name} {value}" for name, value in machine.items() if name != "folder"),
    }
    return [[name, str(value)] for name, value in seen.items() if value not in (None, "")]
