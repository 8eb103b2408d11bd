"""Processes that are killed: one, or several that work in one folder at once.

A kill comes from outside, at a random moment after a process was started or since it began to work; or from inside, at
a chosen point of writing a file (`hook`). It counts if a process died of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOOK = Path(__file__).parent / "hook"
POINTS = ("opening", "writing", "flushing", "renaming", "renamed")
BUSY = "another process is working"
PATIENCE = 300.0  # seconds that nothing takes, on however loaded a machine
AGAIN = 75  # a program's status (sysexits' TEMPFAIL): nothing is wrong, and there is more to do


@dataclass(frozen=True)
class Moment:
    """When to kill: while it starts, while it works, or (``files``) while it writes files of that pattern."""

    name: str
    files: str = ""
    most: int = 8  # the one to be struck is drawn from so many
    delay: float = 0.002  # seconds; for a file that takes long to write


@dataclass
class Crew:
    """``size`` processes of one command in one folder; ``scratch`` is for what they print and the hook's log."""

    command: list[str]
    out: Path
    scratch: Path
    environment: Mapping[str, str]
    size: int = 1
    victims: tuple[str, ...] = ("first",)  # the process itself, a "child" of it, "all" of them
    alone: bool = False  # whether what a dead process started must be gone before it is started again
    starting: float = 2.0  # seconds it takes to start, about
    working: float = 0.3  # seconds of its work among which the moment is drawn
    members: list[subprocess.Popen[bytes]] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    waited: int = 0  # how often another process was still in the folder

    @property
    def log(self) -> Path:
        """What the hook writes."""
        return self.scratch / "strike.jsonl"

    def start(self, strike: Mapping[str, Any] | None = None) -> None:
        """Starts those that are missing; with the hook, if there is a strike, and the first to come to it dies."""
        while len(self.members) < self.size:
            environment = dict(self.environment)
            if strike is not None:
                path = f"{HOOK}{os.pathsep}{environment.get('PYTHONPATH', '')}"
                environment |= {"KONTRAST_STRIKE": json.dumps(strike), "PYTHONPATH": path}
                environment["KONTRAST_STRIKES"] = str(self.log.stat().st_size if self.log.exists() else 0)
            with (self.scratch / "printed.txt").open("ab") as printed:
                self.members.append(
                    subprocess.Popen(
                        self.command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, env=environment
                    )
                )

    def kill(self, moment: Moment, draw: random.Random) -> dict[str, Any] | None:
        """A kill, and what it hit; None if all ended before it came.

        Of several processes the others are often killed with it ("others" says how many): left alone they would soon be
        done with everything.
        """
        self._wait_for_orphans()
        hit = self._from_inside(moment, draw) if moment.files else self._from_outside(moment, draw)
        if hit is not None:
            if self.size > 1 and draw.random() < 0.75:
                hit["others"] = hit.get("others", 0) + self.stop()
            hit |= {"moment": moment.name, "left": self.left()}
        self._bury(excused=hit is not None)
        return hit

    def finish(self) -> None:
        """Lets them come to their end; started anew where there is more to do."""
        while True:
            self._wait_for_orphans()
            self.start()
            codes = [process.wait(PATIENCE) for process in self.members]
            self.members.clear()
            if not self._more_to_do(codes):
                return

    def stop(self) -> int:
        """Kills all that still run; how many did."""
        running = [process for process in self.members if process.poll() is None]
        for process in running:
            process.kill()
        self.members.clear()
        return sum(process.wait(PATIENCE) == -signal.SIGKILL for process in running)

    def left(self) -> int:
        """How many temporary files lie there."""
        return sum(path.suffix == ".part" for path in self.out.rglob(".*"))

    def seen(self) -> dict[str, tuple[int, int]]:
        """The files that show that it works, with size and time."""
        found = {}
        for path in [*self.out.rglob("*.jsonl"), *self.out.rglob("*.part")]:
            with contextlib.suppress(FileNotFoundError):
                state = path.stat()
                found[str(path)] = (state.st_size, state.st_mtime_ns)
        return found

    def _from_inside(self, moment: Moment, draw: random.Random) -> dict[str, Any] | None:
        others = self.stop()  # the hook comes with a process that is started
        strike = {"files": moment.files, "point": draw.choice(POINTS), "count": draw.randint(1, moment.most)}
        struck = len(self._strikes())
        self.start({**strike, "delay": moment.delay * draw.random(), "log": str(self.log)})
        self._until(lambda: self._ended() or len(self._strikes()) > struck)
        found = self._strikes()[struck:]
        if not found:
            return None
        pid = found[0].pop("pid")
        self._until(lambda: not alive(pid))
        if self.alone:  # its launcher ends what else it started, and itself
            self._until(self._ended)
        return {**found[0], "others": others}

    def _from_outside(self, moment: Moment, draw: random.Random) -> dict[str, Any] | None:
        before = self.seen()
        self.start()
        if moment.name == "starting":
            self._until(self._ended, self.starting * draw.random())
        else:
            self._until(lambda: self._ended() or self.seen() != before)
            self._until(self._ended, self.working * draw.random())
        running = [process for process in self.members if process.poll() is None]
        if not running:
            return None
        process, victim = draw.choice(running), draw.choice(self.victims)
        below = children(process.pid)
        if not below:  # nothing was started yet
            victim = "first"
        chosen = {"first": [process.pid], "child": [draw.choice(below or [0])], "all": [process.pid, *below]}[victim]
        if self.alone:
            self.orphans += below
        killed = [pid for pid in chosen if _kill(pid)]
        if process.pid in chosen and process.wait(PATIENCE) != -signal.SIGKILL:
            return None  # it ended in that very moment
        if self.alone:
            self._until(self._ended)
        return {"point": victim} if killed else None

    # ---------------------------------------------------------------------------------------- waiting

    def _ended(self) -> bool:
        return any(process.poll() is not None for process in self.members)

    def _until(self, condition: Any, seconds: float = PATIENCE) -> None:
        until = time.monotonic() + seconds
        while not condition():  # asked once a turn: it may hold for a moment only, as while a temporary file is there
            if time.monotonic() < until:
                time.sleep(0.005)
                continue
            if seconds != PATIENCE:
                return
            raise TimeoutError(f"nothing happened in {PATIENCE:.0f} s: {' '.join(self.command)}")

    def _bury(self, *, excused: bool) -> None:
        """Takes out those that have ended; one that failed by itself is an error, unless somebody was killed."""
        for process in [process for process in self.members if process.poll() is not None]:
            self.members.remove(process)
            if not excused:
                self._more_to_do([process.returncode])

    def _more_to_do(self, codes: list[int]) -> bool:
        """Whether one is to be started again; an error for one that failed by itself."""
        for code in codes:
            if code in (0, AGAIN, -signal.SIGKILL):
                continue
            printed = (self.scratch / "printed.txt").read_text(errors="replace")
            if BUSY not in printed[-2000:] or self.waited > 100:
                raise RuntimeError(f"ended with status {code}: {printed[-1500:]}")
            self.waited += 1
            time.sleep(0.5)
        return any(codes)

    def _wait_for_orphans(self) -> None:
        self._until(lambda: not any(map(alive, self.orphans)))
        self.orphans.clear()

    def _strikes(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def alive(pid: int) -> bool:
    """Whether a process is there, and not merely remembered until somebody asks how it ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The processes that a process has started and not lost."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
