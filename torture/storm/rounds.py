"""Rounds of kills, recorded as they go: stopped anywhere, the storm goes on from there.

<folder>/<digest of the sources>/sources/      the copy of the package that everything is run from
                                 inputs/       recipes and images
                                 whole/KIND/   undisturbed
                                 rounds/KIND-N/out/, kills.jsonl (a line a kill), end.json (what came of it)
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from storm.kinds import KINDS, Kind

BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass
class Storm:
    """The rounds of one state of the sources."""

    folder: Path
    digest: str
    lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def of(sources: Path, folder: Path) -> Storm:
        """Begun, or gone on with; the sources are copied."""
        files = sorted(p for p in (sources / "kontrast").rglob("*") if p.is_file() and p.suffix != ".pyc")
        seen = hashlib.sha256()
        for path in files:
            seen.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes())
        storm = Storm(folder / seen.hexdigest()[:12], seen.hexdigest()[:12])
        copy = storm.folder / "sources"
        if not copy.exists():
            beside = storm.folder / f"sources.{os.getpid()}"
            for path in files:
                place = beside / path.relative_to(sources)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
            beside.rename(copy)
        return storm

    @property
    def versions(self) -> dict[str, str]:
        """Of what matters."""
        return {"python": platform.python_version(), "torch": version("torch").partition("+")[0]}

    @property
    def environment(self) -> dict[str, str]:
        """The copy, one thread a process."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("KONTRAST_")}
        return {**kept, "PYTHONPATH": str(self.folder / "sources"), "OMP_NUM_THREADS": "1"}

    # ---------------------------------------------------------------------------------------- what is recorded

    def rounds(self, kind: Kind) -> list[Path]:
        """The folders of a kind's rounds, in order."""
        name = kind.name.replace(" ", "-")
        found = (self.folder / "rounds").glob(f"{name}-[0-9]*")
        return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))

    def kills(self) -> Iterator[dict[str, Any]]:
        """Every kill of a round that has come to its end."""
        for kind in KINDS:
            for path in self.rounds(kind):
                if (path / "end.json").exists():
                    yield from _lines(path / "kills.jsonl")

    def count(self, kind: Kind) -> Counter[str]:
        """What came of a kind, of rounds that have come to their end."""
        found: Counter[str] = Counter()
        for path in self.rounds(kind):
            if (path / "end.json").exists():
                kills, end = _lines(path / "kills.jsonl"), json.loads((path / "end.json").read_text())
                found += Counter(
                    rounds=1,
                    kills=died(kills),
                    aimed=sum("file" in kill for kill in kills),
                    left=sum(kill["left"] > 0 for kill in kills),
                    differences=len(end["differences"]),
                    waited=end["waited"],
                )
        return found

    # ---------------------------------------------------------------------------------------- the storm

    def rage(self, wanted: Mapping[str, int], *, jobs: int, until: float) -> list[dict[str, Any]]:
        """Rounds of every kind until each has its kills, or the time is over; the rounds that did not end the same.

        Of kinds that still lack some, the one with the smallest part of its own is next; no kind has two rounds at once
        until its undisturbed run is there.
        """
        sys.path.insert(0, str(self.folder / "sources"))  # what compares reads files as what wrote them did
        (self.folder / "inputs").mkdir(exist_ok=True)
        begun = {name: self.count(BY_NAME[name])["kills"] for name in wanted}
        taken: set[Path] = set()
        failures: list[dict[str, Any]] = []
        for name in wanted:
            BY_NAME[name].needs(self.folder / "inputs")

        def lane() -> None:
            while time.monotonic() < until and not failures:
                with self.lock:
                    chosen = self._next(wanted, begun, taken)
                if chosen is None:
                    return
                kind, path = chosen
                end = self._round(kind, path, until)
                if end is not None:
                    done = died(_lines(path / "kills.jsonl"))
                    with self.lock:
                        begun[kind.name] += done - len(kind.plan)
                    print(f"{time.strftime('%H:%M:%S')} {path.name}: {done} kills, {_judged(end)}", flush=True)
                    if end["differences"]:
                        failures.append({"round": path.name, **end})

        with ThreadPoolExecutor(jobs) as pool:
            for ended in [pool.submit(lane) for _ in range(jobs)]:
                ended.result()
        return failures

    def _next(self, wanted: Mapping[str, int], begun: dict[str, int], taken: set[Path]) -> tuple[Kind, Path] | None:
        """A round to go on with, or a new one."""
        lacking = [name for name in wanted if begun[name] < wanted[name]]
        for kind in map(BY_NAME.__getitem__, sorted(lacking, key=lambda name: begun[name] / wanted[name])):
            rounds = self.rounds(kind)
            if any(path in taken and not (path / "end.json").exists() for path in rounds) and not self._whole(kind):
                continue
            open_ones = [path for path in rounds if path not in taken and not (path / "end.json").exists()]
            number = int(rounds[-1].name.rpartition("-")[2]) + 1 if rounds else 0
            path = open_ones[0] if open_ones else self.folder / "rounds" / f"{kind.name.replace(' ', '-')}-{number}"
            path.mkdir(parents=True, exist_ok=True)
            taken.add(path)
            begun[kind.name] += len(kind.plan)
            return kind, path
        return None

    def _whole(self, kind: Kind) -> Path | None:
        """The folder of the undisturbed run, if there is one."""
        path = self.folder / "whole" / kind.name.replace(" ", "-")
        return path if path.with_suffix(".done").exists() else None

    def _round(self, kind: Kind, path: Path, until: float) -> dict[str, Any] | None:
        """Kills, the end, the comparison; None if the time was over before."""
        inputs, out = self.folder / "inputs", path / "out"
        whole = self._whole(kind) or self._undisturbed(kind)
        crew = kind.made(inputs, out, path, self.environment)
        misses = 0
        try:
            done = len(_lines(path / "kills.jsonl"))
            while done < len(kind.plan) and misses < 3:
                if time.monotonic() > until:
                    return None
                draw = random.Random(f"{path.name} {done} {misses}")
                hit = crew.kill(kind.plan[done], draw)
                misses = misses + 1 if hit is None else 0
                if hit is not None:
                    done += 1
                    with (path / "kills.jsonl").open("a") as file:
                        file.write(json.dumps(hit) + "\n")
            crew.finish()
            found = kind.differences(whole, out)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        finally:
            crew.stop()
        end = {"differences": found, "waited": crew.waited}
        (path / "end.json").write_text(json.dumps(end))
        if not found:
            shutil.rmtree(out)  # what differs is kept, to be looked at
        return end

    def _undisturbed(self, kind: Kind) -> Path:
        whole = self.folder / "whole" / kind.name.replace(" ", "-")
        shutil.rmtree(whole, ignore_errors=True)
        scratch = self.folder / "whole" / f"{whole.name}.printed"
        scratch.mkdir(parents=True, exist_ok=True)
        crew = kind.made(self.folder / "inputs", whole, scratch, self.environment)
        crew.size = 1
        try:
            crew.finish()
        finally:
            crew.stop()
        whole.with_suffix(".done").touch()
        return whole


def died(kills: Iterable[Mapping[str, Any]]) -> int:
    """How many processes were killed, with those beside the one that was aimed at."""
    return sum(1 + kill.get("others", 0) for kill in kills)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _judged(end: Mapping[str, Any]) -> str:
    return "DIFFERS: " + "; ".join(end["differences"])[:3000] if end["differences"] else "the same"
