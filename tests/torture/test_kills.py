"""Kills: the hook strikes where it should, a program that loses lines is found, and a short storm of the real ones."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import kills
from kontrast.pipeline import run_recipe
from storm import crew, kinds, same
from storm.crew import Moment
from storm.kinds import Kind
from tests.train.small import recipe

ROOT = Path(__file__).parents[2]
# ------------------------------------------------------------------------------------------------ the hook

WRITER = """
from pathlib import Path
from kontrast.files import write_atomically
for i in range(3):
    write_atomically(Path("x"), str(i).encode())
"""


@pytest.mark.parametrize(
    ("point", "content", "parts"),
    [("opening", b"0", 0), ("writing", None, None), ("flushing", b"0", 1), ("renaming", b"0", 1), ("renamed", b"1", 0)],
)
def test_the_hook_kills_at_its_point(tmp_path: Path, point: str, content: bytes | None, parts: int | None) -> None:
    """At the second file; one that is killed a moment after its opening has come to no certain point."""
    strike = {"files": r"x", "point": point, "count": 2, "delay": 0.0, "log": str(tmp_path / "log")}
    environment = {**os.environ, "KONTRAST_STRIKE": json.dumps(strike)}
    environment["PYTHONPATH"] = os.pathsep.join([str(crew.HOOK), str(ROOT / "src")])
    place = tmp_path / "place"
    place.mkdir()
    call = [sys.executable, "-c", WRITER]
    for times in (1, 2):
        log = tmp_path / "log"
        environment["KONTRAST_STRIKES"] = str(log.stat().st_size if log.exists() else 0)
        done = subprocess.run(call, cwd=place, env=environment, capture_output=True, text=True)
        assert done.returncode == -signal.SIGKILL, done.stderr
        (*_, hit) = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        assert hit["point"] == point
        left = [path.name for path in place.iterdir() if path.suffix == ".part"]
        if content is not None:
            assert (place / "x").read_bytes() == content
            assert len(left) == parts, f"after kill {times}: {left}"
        assert len(left) <= 1  # what the first kill left is not there after the second
    del environment["KONTRAST_STRIKE"]
    subprocess.run(call, cwd=place, env=environment, check=True)
    assert [path.name for path in place.iterdir()] == ["x"]
    assert (place / "x").read_bytes() == b"2"


# ------------------------------------------------------------------------------------------------ rounds

COUNTING = """
import json, sys, time
from pathlib import Path
from kontrast.files import write_json
out, cut = Path(sys.argv[1]), sys.argv[2] == "cut"
out.mkdir(parents=True, exist_ok=True)
state = json.loads((out / "state.json").read_text()) if (out / "state.json").exists() else {"i": 0, "offset": 0}
with (out / "metrics.jsonl").open("ab") as log:
    if cut:
        log.truncate(state["offset"])
    for i in range(state["i"], 40):
        for half in (0, 1):
            log.write((json.dumps({"i": i, "half": half, "time": time.time()}) + "\\n").encode())
            log.flush()
            time.sleep(0.01)
        write_json(out / "state.json", {"i": i + 1, "offset": log.tell()})
"""


def differences(whole: Path, killed: Path) -> list[str]:
    shutil.copy(whole / "state.json", killed / "state.json")  # the offset depends on the digits of the times
    return same.runs(whole, killed)


def counting(name: str, how: str) -> Kind:
    """A program that counts in a file and resumes at its state; it is right only with "cut"."""
    working = Moment("working"), Moment("state", r"state\.json", most=5)
    return Kind(
        name,
        "training",
        "counts",
        lambda inputs, out: [sys.executable, "-c", COUNTING, str(out), how],
        differences,
        (*working, *working, working[0]),
        crew={"starting": 0.05},
    )


def test_a_correct_program_ends_the_same_and_an_incorrect_one_does_not(tmp_path: Path) -> None:
    good, bad = kills.run_storm({"good": 5, "bad": 5}, [counting("good", "cut"), counting("bad", "append")], tmp_path)
    assert good.differences == []
    assert good.count >= 5
    assert good.in_writing >= 2
    assert "lines; expected 80" in bad.differences[0]
    assert (tmp_path / "bad" / f"round-{bad.rounds - 1}" / "out").exists(), "kept, to be looked at"
    assert not (tmp_path / "good" / "round-0").exists()
    text = kills.table([good, bad])
    assert f"| good | counts | {good.count} | {good.in_writing} | {good.rounds} | 0 |" in text
    assert f"| **all** | | {good.count + bad.count} |" in text


def test_an_error_of_the_program_is_a_difference(tmp_path: Path) -> None:
    good = counting("good", "cut")
    program = "import sys, pathlib; sys.exit('no way' if 'round' in sys.argv[1] else 0)"
    broken = replace(good, command=lambda inputs, out: [sys.executable, "-c", program, str(out)])
    tally = kills.run_rounds(broken, 5, tmp_path / "broken")
    assert "ended with status 1: no way" in tally.differences[0]


def test_every_kind_has_its_kills() -> None:
    required = kills.required_kills(kinds.KINDS, 200)
    groups = {group: sum(required[k.name] for k in kinds.KINDS if k.group == group) for group in ("training", "sweep")}
    assert groups["training"] >= 200
    assert groups["sweep"] == 24
    assert len({kind.name for kind in kinds.KINDS}) == len(kinds.KINDS)


HARM: dict[str, Callable[[Path], object]] = {
    "left behind": lambda run: (run / ".run.json.7.part").touch(),
    "weights.txt should not be there": lambda run: (run / "weights.txt").touch(),
    "result.json is missing": lambda run: (run / "result.json").unlink(),
    "metrics.jsonl: 9 lines": lambda run: change(run / "metrics.jsonl", lambda text: text + text.splitlines()[-1]),
    "metrics.jsonl: line 1 differs": lambda run: change(
        run / "metrics.jsonl", lambda text: text.replace('"loss": ', '"loss": 1', 1)
    ),
    "encoder.safetensors differs": lambda run: flip(run / "encoder.safetensors"),
    "result.json: results: 0: value: 0.5;": lambda run: change(run / "result.json", half),
    "model.json": lambda run: change(run / "model.json", lambda text: text.replace("mlp", "mlq")),
    "status ['done', 'evaluating']": lambda run: change(
        run / "run.json", lambda text: text.replace('"done"', '"evaluating"')
    ),
    "analysis.npz: ": lambda run: other_arrays(run / "analysis.npz"),
    "last.pt: step: 4; expected 6": lambda run: other_step(run / "checkpoints" / "last.pt"),
    "recipe.yaml: seed": lambda run: change(run / "recipe.yaml", lambda text: text.replace("seed: 0", "seed: 1")),
}


def change(path: Path, how: Callable[[str], str]) -> None:
    before = path.read_text()
    path.write_text(how(before))
    assert path.read_text() != before


def half(text: str) -> str:
    record = json.loads(text)
    record["results"][0]["value"] = 0.5
    return json.dumps(record)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def other_arrays(path: Path) -> None:
    import numpy as np

    with np.load(path) as read:
        arrays = dict(read)
    name = next(name for name, array in arrays.items() if array.dtype == np.float32 and array.size)
    arrays[name] = np.nextafter(arrays[name], np.float32(9))
    np.savez(path, **arrays)


def other_step(path: Path) -> None:
    from kontrast.train import checkpoint

    checkpoint.save(path, {**checkpoint.load(path), "step": 4})


def test_every_difference_is_found(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    changes = {"train.epochs": 1, "run.log_every": 1, "run.monitor_every": 3}
    run = run_recipe(recipe("supcon", whole, **changes))
    for expected, harm in HARM.items():
        shutil.rmtree(killed, ignore_errors=True)
        shutil.copytree(whole, killed)
        assert same.runs(whole, killed) == []
        harm(killed / run.path.name)
        assert any(expected in found for found in same.runs(whole, killed)), (expected, same.runs(whole, killed))


def test_of_a_table_all_is_compared_but_its_hours(tmp_path: Path) -> None:
    texts = {"whole": "12.3\nRuns: 9; 0.02 hours\n", "slow": "12.3\nRuns: 9; 1.50 hours\n", "bad": "12.4\nRuns: 9\n"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "table.md").write_text(text)
    assert same.runs(tmp_path / "whole", tmp_path / "slow") == []
    assert len(same.runs(tmp_path / "whole", tmp_path / "bad")) == 1


# ------------------------------------------------------------------------------------------------ a short storm


FEWER_STEPS = """
import sys
from kontrast import recipes
from kontrast.pipeline import run_recipe
run_recipe(recipes.recipe(sys.argv[1], **{"train.steps": 45, "run.out": sys.argv[2]}))
"""


def test_a_short_storm(tmp_path: Path) -> None:
    """The momentum kind, of fewer steps and without a page, killed in writing a checkpoint."""
    (momentum,) = (kind for kind in kinds.KINDS if kind.name == "momentum")
    chosen = replace(
        momentum,
        plan=(kinds.CHECKPOINT,),
        command=lambda inputs, out: [sys.executable, "-c", FEWER_STEPS, str(inputs / "momentum.yaml"), str(out)],
    )
    (tally,) = kills.run_storm({"momentum": 1}, [chosen], tmp_path)
    assert (tally.count, tally.differences) == (1, [])


@pytest.mark.slow
def test_a_storm_of_every_kind(tmp_path: Path) -> None:
    """One round each."""
    for tally in kills.run_storm({kind.name: 1 for kind in kinds.KINDS}, kinds.KINDS, tmp_path):
        assert tally.count >= 1, tally.kind.name
        assert tally.differences == [], tally.kind.name
