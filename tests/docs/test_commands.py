"""Every command in README, CONTRIBUTING and docs is run, in its smoke form (smoke.py); those in sentences are parsed.

`make test` runs the first of each shape, `make test-all` all of them.

Commands run in this process, one after another in a folder with a user's files in it; torchrun and python in their own.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from kontrast.cli import app
from tests.cli.asking import Answer, ask, process, run_cells_here
from tests.docs import smoke
from tests.docs.commands import PROGRAMS, ROOT, Block, Command, all_commands, blocks, commands, inline

COMMANDS = all_commands()
ALONE = re.compile(r"cuda|--gpus|\bray\b|/shared|slurm|srun|sbatch|pretrained=|--weights", re.IGNORECASE)
"""What needs other machines, or the network."""


ALIKE = ("--seeds", "-o", "--out")  # options that lead nowhere else in the program


def _shape(command: Command) -> tuple[str, ...]:
    """What a command says without its values: program, subcommand, and the names of options and settings.

    Settings of a sweep and of a search do not count, where each process that is started takes seconds.
    """
    words = [word for word in command.words if word not in ("python", "-m")]
    names = {re.split("[= ]", word)[0] for word in words[2:] if word.startswith("-") or "=" in word}
    if words[1:2] in (["reproduce"], ["tune"]):
        names = {name for name in names if name.startswith("-")}
    return (*words[:2], *sorted(names - {*ALIKE}))


def _first_of_each_shape() -> list[Any]:
    """Every command that can be run; one that repeats the shape of an earlier one is left to `make test-all`."""
    seen, found = set[tuple[str, ...]](), []
    for command in COMMANDS:
        if command.mark is None:
            repeats = (shape := _shape(command)) in seen
            found.append(pytest.param(command, id=str(command), marks=[pytest.mark.slow] if repeats else []))
            seen.add(shape)
    return found


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files of every kind that pages name; finished runs are added when they are asked for."""
    folder = tmp_path_factory.mktemp("workshop")
    smoke.fill(folder)
    return folder


@pytest.mark.filterwarnings("ignore:.*images are few", "ignore:without labels there is no accuracy")
@pytest.mark.parametrize("command", _first_of_each_shape())
def test_runs(
    command: Command, workshop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.program in PROGRAMS, f"{command.program} is run by no test; mark the block: <!-- not run: … -->"
    smoke.fill(workshop)
    monkeypatch.chdir(workshop)
    monkeypatch.setattr("kontrast.pipeline.write_page", lambda run, **_: None)  # it takes longer than the two steps
    run_cells_here(monkeypatch)
    words, to = _redirected(command.words)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    if words[:3] in (["python", "-m", "kontrast"], ["python3", "-m", "kontrast"]):
        words = words[2:]
    if words[0] == "kontrast":
        made = smoke.small(words[1:], workshop)
        if smoke.SWEEP in made and not Path(smoke.SWEEP).exists():
            assert ask(monkeypatch, capsys, "reproduce", "graf-toy", "--preset", "smoke", "--seeds", "1").status == 0
        done = ask(monkeypatch, capsys, *made)
    elif words[0] == "torchrun":
        done = _launched(tuple(_launch(words[1:], workshop)))
    elif words[0] == "make":
        done = _make(words[1:])
        for line in done.out.splitlines():
            if "/kontrast " in line:
                done = ask(monkeypatch, capsys, *smoke.small(line.split()[1:], workshop))
    elif words[0] == "pip":
        done = _pip(words[1:])
    elif words[0] in ("python", "python3"):
        done = _called(sys.executable, *smoke.script(words[1:], ROOT))
    else:
        pytest.fail(f"{words[0]} is run by no test; mark the block: <!-- not run: … -->")
    ill = words[:2] == ["kontrast", "doctor"]  # status 1: a run of two steps may well be
    assert done.status in ((0, 1) if ill else (0,)), done.err or done.out
    if to is not None:
        (workshop / to).write_text(done.out, encoding="utf-8")


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.mark is not None and c.program == "kontrast"], ids=str)
def test_only_what_cannot_run_here_is_marked_so(command: Command) -> None:
    assert ALONE.search(" ".join(command.words)), f"it needs no other machine: take the mark {command.mark!r} away"


@pytest.mark.parametrize("command", [*inline(), *(c for c in COMMANDS if c.program == "kontrast")], ids=str)
def test_names_a_command_and_options_that_there_are(command: Command) -> None:
    """Those in sentences too, whose arguments are words like RUN; marked ones as well."""
    root: Any = typer.main.get_command(app)
    words = command.words[command.words.index("kontrast") + 1 :]
    while words and words[0].startswith("--"):
        assert words.pop(0) in _options(root)
    if not words or words[0] in ("COMMAND", "…"):
        return
    assert words[0] in root.commands, f"there is no such command; there are {', '.join(root.commands)}"
    named = root.commands[words.pop(0)]
    if hasattr(named, "commands") and words:  # kontrast ledger add
        assert words[0] in named.commands, f"there is no such command; there are {', '.join(named.commands)}"
        named = named.commands[words.pop(0)]
    known = _options(named)
    for word in words:
        if re.match(r"--?[a-z]", word):
            assert word.partition("=")[0] in known, f"{named.name} has no {word}; it has {', '.join(known)}"


def test_readme_and_pages_have_commands() -> None:
    """That the finder finds: the main ones of README, and every kind of program that pages name."""
    found = {str(c.page.relative_to(ROOT)): [] for c in COMMANDS}
    for command in COMMANDS:
        found[str(command.page.relative_to(ROOT))].append(command.words)
    assert ["make", "demo"] in found["README.md"]
    assert any(words[:2] == ["kontrast", "train"] for words in found["docs/train/README.md"])
    assert {"kontrast", "make", "torchrun", "ray"} <= {c.program for c in COMMANDS}


def test_blocks_are_found_with_their_marks() -> None:
    text = "\n".join(
        [
            *("<!-- not run: needs a cluster -->", "```sh", "ray start \\", "  --head  # here", "```"),
            *("", "```", "kontrast list losses", "```", "```python", "make = 1", "```"),
            *("```console", "$ kontrast verify", "make believe", "```", "```", "photos/1.jpg", "```"),
        ]
    )
    page = ROOT / "README.md"
    found = list(blocks(page, text))
    assert [(b.line, b.language, b.mark) for b in found] == [
        (3, "sh", "needs a cluster"),
        (8, "", None),
        (11, "python", None),
        (14, "console", None),
        (18, "", None),
    ]
    assert [[c.words for c in commands(b)] for b in found] == [
        [["ray", "start", "--head"]],
        [["kontrast", "list", "losses"]],
        [],
        [["kontrast", "verify"]],
        [],
    ]
    assert commands(Block(page, 1, "sh", None, ["srun x"]))[0].program == "srun", "a shell block is one of commands"


def test_smoke_forms(workshop: Path) -> None:
    made = smoke.small(["train", "tcl-cifar10", "train.epochs=20", "--out", "/shared/runs"], workshop)
    assert made == [
        *("train", "tcl-cifar10", "train.epochs=1", "--out", "runs", *smoke.SMALL),
        *("data=photos.npz", "encoder=small-resnet", "encoder.width=8"),
    ]
    made = smoke.small(["reproduce", "wl-table-1", "temperature=[0.5,1.0]", "--seeds", "5"], workshop)
    assert made == [
        "reproduce",
        "wl-table-1",
        "temperature=0.5",
        "data=fashion-mini",
        "--preset",
        "smoke",
        "--seeds",
        "1",
    ]
    made = smoke.small(["report", "runs/a-…", "RUN", "runs/wl-table-1-cpu", "photos/"], workshop)
    assert [re.sub(r"-\w{8}$", "", word) for word in made] == [
        *("report", "runs/finished-0", "runs/finished-1", "runs/graf-toy-smoke", "photos/"),
    ]


def _redirected(words: list[str]) -> tuple[list[str], str | None]:
    """`… > file` is taken apart; other operators of a shell are none of ours."""
    words, to = list(words), None
    if len(words) > 2 and words[-2] == ">":
        to = words.pop()
        words.pop()
    other = [word for word in words if re.fullmatch(r"[|&;>]+", word)]
    assert not other, f"{other[0]} needs a shell; write one command a line"
    return words, to


def _launch(words: list[str], folder: Path) -> list[str]:
    at = words.index("kontrast")
    before = [smoke.NUMBERS.get(words[i - 1], word) if i else word for i, word in enumerate(words[:at])]
    made = smoke.small(words[at + 1 :], folder)
    if "--out" in made:  # runs, where they go without it too
        out = made.index("--out")
        del made[out : out + 2]
    return ["--standalone", *before, "kontrast", *made]  # at a port of its own: other tests run at the same time


@functools.cache
def _launched(words: tuple[str, ...]) -> Answer:
    """Once, as processes take long to start."""
    return process(*words, python="from torch.distributed.run import main; main()")


def _make(words: list[str]) -> Answer:
    """What it would do; set up already, as here."""
    return _called("make", "--dry-run", "--directory", str(ROOT), "--old-file", ".venv/.installed", *words)


def _called(*words: str) -> Answer:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def _pip(words: list[str]) -> Answer:
    """Whether the extras that it names are there."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = [name for word in words for found in re.findall(r"\[([\w,-]+)\]", word) for name in found.split(",")]
    missing = [name for name in named if name not in extras]
    known = words[0] == "install" and bool({"."} & {word.partition("[")[0] for word in words} or "kontrast" in words[1])
    return Answer(int(bool(missing) or not known), "", f"no extra {missing}; there are {', '.join(extras)}")


def _options(command: Any) -> list[str]:
    return [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)] + ["--help"]
