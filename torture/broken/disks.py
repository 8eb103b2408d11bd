"""Disks that are full or cannot be written to, under a run that needs them.

A small file system in memory is mounted in a name space of its own (`unshare`, no rights needed where user name spaces
are allowed); the run stops for want of room, the disk is made larger, and the same call goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from broken.outcome import Row
from broken.runs import Lab, judged, placed
from kontrast.train import RunFolder

PAGE = 4096
INSIDE = ["unshare", "-rm", sys.executable]


def possible(folder: Path) -> bool:
    """Whether a file system can be mounted here."""
    if shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    return subprocess.run(tried, capture_output=True).returncode == 0


def outside(script: Path, folder: Path, cases: int) -> list[Row]:
    """Starts `inside` in a name space of its own, by the script's flag --disk."""
    asked = [*INSIDE, str(script), "--disk", str(folder), "--cases", str(cases)]
    ended = subprocess.run(asked, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"the cases of full disks ended with {ended.returncode}: {ended.stderr}")
    rows = []
    for record in json.loads(ended.stdout.splitlines()[-1]):
        row = Row(record["what"], record["fault"], faults=record["faults"])
        row.counts.update(record["counts"])
        rows.append(row)
    return rows


def inside(folder: Path, cases: int) -> list[Row]:
    """Full disks of several sizes, and one that becomes read-only."""
    lab = Lab(folder)
    recipe = lab.recipe()
    used = sum(-(-path.stat().st_size // PAGE) * PAGE for path in lab.whole(recipe).rglob("*"))
    full, locked = Row("run folder", "disk full; made larger"), Row("run folder", "disk read-only; then not")
    for i in range(cases):
        out = lab.place()
        out.mkdir()
        room = PAGE * max(2, round(used * (i + 0.5) / cases / PAGE))
        _mount(out, f"size={room}")
        judged(full, lab, placed(recipe, out), str(out), f"{room} bytes", partial(_mount, out, "remount,size=64m"))
    for begun in (False, True):
        out = lab.place()
        out.mkdir()
        _mount(out, "size=64m")
        here = placed(recipe, out)
        if begun:
            shutil.copytree(RunFolder.of(lab.half(recipe)[0]).path, RunFolder.of(here).path)
        _mount(out, "remount,ro")
        what = "half-way" if begun else "at the beginning"
        judged(locked, lab, here, str(out), what, partial(_mount, out, "remount,rw"))
    return [full, locked]


def _mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def _answer(writer: int) -> None:
    os.write(writer, b"refused")
    os._exit(0)


def permission(lab: Lab) -> Row:
    """A run folder of somebody else, begun or not: who may write anywhere (root) tries as nobody."""
    row = Row("run folder", "no permission; then given")
    for begun in (False, True):
        recipe, folder = lab.half(lab.recipe()) if begun else (placed(lab.recipe(), lab.place()), None)
        out = Path(recipe.run.out)
        out.mkdir(exist_ok=True)
        harmed = [out] if folder is None else [out, folder.path, folder.last.parent, folder.path / ".lock"]
        modes = {path: path.stat().st_mode for path in harmed if path.exists()}
        for path, mode in modes.items():
            path.chmod(mode & 0o555)
        reader, writer = os.pipe()
        if (child := os.fork()) == 0:
            tried = Row(row.what, row.fault)
            if os.geteuid() == 0:
                os.setresuid(65534, 65534, 65534)
            judged(tried, lab, recipe, str(out), "refused", partial(_answer, writer))
            os.write(writer, "; ".join(tried.faults).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        with os.fdopen(reader) as answer:
            said = answer.read()
        for path, mode in modes.items():
            path.chmod(mode)
        differences = lab.ended(recipe) if said == "refused" else [said]
        row.add("missed" if differences else "went on", f"{'begun' if begun else 'new'}: {differences}")
    return row
