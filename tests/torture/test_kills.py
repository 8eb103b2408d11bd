"""The kill storm: its hook strikes where it should, it finds what a bad program loses, and a short storm of the real
ones (all of it: ``make torture``)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kontrast.train import run_recipe
from tests.train.small import recipe

ROOT = Path(__file__).parents[2]
with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(ROOT / "torture"))
    import kills
    from storm import crew, kinds, rounds, same
    from storm.crew import Crew, Moment
    from storm.kinds import Kind
    from storm.rounds import Storm

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


# ------------------------------------------------------------------------------------------------ the storm's own parts

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
    (killed / "state.json").unlink()  # where its log ends depends on the clock's digits
    shutil.copy(whole / "state.json", killed / "state.json")
    return same.runs(whole, killed)


def counting(name: str, how: str) -> Kind:
    """A program that counts in a file, and goes on where its state says; only with ``cut`` it is right to do so."""
    working = Moment("working"), Moment("state", r"state\.json", most=5)
    return Kind(
        name,
        "training",
        "counts",
        lambda inputs, out: [sys.executable, "-c", COUNTING, str(out), how],
        differences,
        (Moment("starting"), *working, *working, working[0]),
        crew={"starting": 0.05},
    )


def storm_of(monkeypatch: pytest.MonkeyPatch, folder: Path, *chosen: Kind) -> Storm:
    monkeypatch.setattr(rounds, "KINDS", chosen)
    monkeypatch.setattr(rounds, "BY_NAME", {kind.name: kind for kind in chosen})
    monkeypatch.setattr(kills, "KINDS", chosen)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Storm.of(ROOT / "src", folder)


def test_a_sound_program_ends_the_same_and_an_unsound_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = counting("good", "cut"), counting("bad", "go on")
    storm = storm_of(monkeypatch, tmp_path, good, bad)
    assert storm.rage({"good": 6}, jobs=1, until=time.monotonic() + 300) == []
    (failure,) = storm.rage({"bad": 6}, jobs=1, until=time.monotonic() + 300)
    assert failure["round"] == "bad-0"
    assert "lines; expected 80" in failure["differences"][0]
    found = storm.count(good)
    # A round is over early where a program was done before the kill came; then there is a second one.
    recorded = storm.rounds(good)
    assert (found["rounds"], found["differences"]) == (len(recorded), 0)
    assert found["kills"] == sum(len((path / "kills.jsonl").read_text().splitlines()) for path in recorded) >= 6
    assert found["aimed"] >= 2
    assert storm.rage({"good": 6}, jobs=1, until=time.monotonic() + 300) == []  # nothing is left to do
    assert storm.count(good) == found

    page = f"# Title\n\n{kills.BEGIN}stale\n{kills.END}\nand after"
    made = kills.filled(page, storm)
    assert "stale" not in made
    assert f"| good | counts | {found['kills']} | {found['aimed']} | {found['rounds']} | 0 |" in made
    (row,) = (line for line in made.splitlines() if line.startswith("| bad |"))
    assert int(row.split("|")[-2]) == len(failure["differences"]) > 0
    assert made.startswith("# Title\n")
    assert made.endswith("\nand after")
    assert kills.filled(made, storm) == made


def test_a_stopped_storm_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = counting("good", "cut")
    storm, real, calls = storm_of(monkeypatch, tmp_path, kind), Crew.kill, 0

    def stopped(self: Crew, *arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return real(self, *arguments)

    monkeypatch.setattr(Crew, "kill", stopped)
    with pytest.raises(KeyboardInterrupt):
        storm.rage({"good": 6}, jobs=1, until=time.monotonic() + 300)
    assert storm.count(kind)["kills"] == 0  # no end, and so nothing that counts
    recorded = storm.folder / "rounds" / "good-0" / "kills.jsonl"
    before = recorded.read_text().splitlines()
    assert len(before) == 2
    again = Storm.of(ROOT / "src", tmp_path)
    assert again.rage({"good": 6}, jobs=1, until=time.monotonic() + 300) == []
    assert recorded.read_text().splitlines()[:2] == before
    assert again.count(kind)["kills"] >= 6


def test_a_program_that_fails_by_itself_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = counting("good", "cut")
    broken = replace(good, command=lambda inputs, out: [*good.command(inputs, out)[:2], "raise SystemExit('no way')"])
    storm = storm_of(monkeypatch, tmp_path, good)
    storm.rage({"good": 1}, jobs=1, until=time.monotonic() + 300)
    storm = storm_of(monkeypatch, tmp_path, broken)
    (failure,) = storm.rage({"good": 12}, jobs=1, until=time.monotonic() + 300)
    assert "ended with status 1: no way" in failure["differences"][0]


def test_every_kind_has_its_kills() -> None:
    asked = kills.wanted(list(kinds.KINDS), 200)
    groups = {group: sum(asked[k.name] for k in kinds.KINDS if k.group == group) for group in ("training", "sweep")}
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


def test_a_short_storm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The momentum kind, killed in writing a checkpoint; the image cache, killed in writing it."""
    chosen = {kind.name: kind for kind in kinds.KINDS}
    momentum = replace(chosen["momentum"], plan=(kinds.CHECKPOINT,))
    cache = replace(chosen["cache"], plan=(kinds.CACHE,))
    storm = storm_of(monkeypatch, tmp_path, momentum, cache)
    assert storm.rage({"momentum": 1, "cache": 1}, jobs=2, until=time.monotonic() + 600) == []
    assert storm.count(momentum)["kills"] == 1
    assert storm.count(cache)["kills"] == 1


@pytest.mark.slow
def test_a_storm_of_every_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One round each."""
    storm = storm_of(monkeypatch, tmp_path, *kinds.KINDS)
    assert storm.rage({kind.name: 1 for kind in kinds.KINDS}, jobs=2, until=time.monotonic() + 3600) == []
    for kind in kinds.KINDS:
        assert storm.count(kind)["kills"] >= 1, kind.name


def test_the_page_tells_of_two_hundred_kills_and_no_difference() -> None:
    _, begin, rest = kills.PAGE.read_text().partition(kills.BEGIN)
    recorded, end, _ = rest.partition(kills.END)
    assert begin
    assert end
    rows = [line.split("|") for line in recorded.splitlines() if line.startswith("|") and "---" not in line]
    assert {row[-2].strip() for row in rows[1:]} == {"0"}
    assert len(rows) == 1 + len(kinds.KINDS) + 1
    assert int(recorded.partition(" kills of training runs")[0].split()[-1]) >= 200
