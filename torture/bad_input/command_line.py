"""The command line: any words for every command, with files, folders and names among them that exist.

Commands are called in this process as a user would call them. What would take long is cut off where the words have been
understood (`Began`): training, sweeps, benchmarks, the browser; and there is no network.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import itertools
import os
import re
import shutil
import tempfile
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import typer
from hypothesis import strategies as st
from PIL import Image

import kontrast
from bad_input.judging import LONGEST, Kind, Refused
from bad_input.recipes import BASE, settings, words
from kontrast import experiments, recipes, theory
from kontrast.cli import _warnings, app, main
from kontrast.recipe import Recipe

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
BOX = re.compile(r"^[╭│╰].*?─* ?Error ─+.*$|[╭╮╰╯│─]", re.MULTILINE)


class Began(Exception):
    """The words were taken, and the work would begin."""


@functools.cache
def place() -> Path:
    """A folder with files that commands can use, a finished run among them, and broken ones beside."""
    folder = Path(tempfile.mkdtemp(prefix="kontrast-inputs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)).astype(np.float32), np.arange(40) % 4
    np.save(folder / "features.npy", x)
    np.save(folder / "labels.npy", y)
    np.save(folder / "words.npy", np.array(["a b", "<i>", "c\nd", ""])[y])
    np.save(folder / "weights.npy", rng.normal(size=(4, 5)))
    np.save(folder / "nan.npy", np.full((4, 3), np.nan))
    np.savez(folder / "both.npz", features=x, labels=y)
    np.savez(folder / "split.npz", x_train=x[:30], y_train=y[:30], x_test=x[30:], y_test=y[30:])
    np.savez(folder / "other.npz", foo=x)
    (folder / "recipe.yaml").write_text(Recipe.of(BASE).to_yaml())
    (folder / "broken.yaml").write_text("method: [")
    (folder / "broken.npy").write_bytes(b"\x93NUMPY no")
    (folder / "empty.npz").write_bytes(b"")
    (folder / "empty").mkdir()
    (folder / "a folder\nof 'two' <b>lines").mkdir()
    for i in range(6):
        (folder / "photos" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 40 * i).save(folder / "photos" / "ab"[i % 2] / f"{i}.png")
    with contextlib.chdir(folder), contextlib.redirect_stderr(io.StringIO()):
        kontrast.run({**BASE, "evaluate": {"protocols": ["knn20"]}}).path.rename(folder / "run")
    return folder


THINGS = (
    *("features.npy", "labels.npy", "words.npy", "weights.npy", "nan.npy", "both.npz", "split.npz", "other.npz", "run"),
    *("recipe.yaml", "broken.yaml", "broken.npy", "empty.npz", "empty", "a folder\nof 'two' <b>lines", "photos", "/"),
    *(
        ".",
        "..",
        "/dev/null",
        "nothing-here",
        "~",
        "~nobody-at-all/x",
        "digits",
        "fashion-mini",
        "x" * 300,
        "a/" * 3000,
    ),
    *(
        "\udcff.npy",
        "run/result.json",
        "run/encoder.safetensors",
        "file://run",
        "--",
        "-",
        "",
        " ",
        "\x1b[31mred",
        "%s%n",
    ),
    *("two\nlines", "[bold]b[/bold]", "[/]", "*", "new.npz", "out.html"),
)
NAMES = (
    *(*recipes.names()[:4], *experiments.names()[:4], "losses", "recipes", "knn20", "probe", "knn20:k=3", "knn20:k=x"),
    *("logistic:C=-1", "retrieval", "tcl-fashion-mini", "cpu", "cuda:99", "mps", "train", "test", "unlabelled", "onnx"),
    *("timm", "safetensors", "svg", "smoke", "paper", "k", "temperature", "tcl-*"),
)
numbers = st.sampled_from(
    ["0", "1", "-1", "2", "0.5", "1e-3", "nan", "inf", "-inf", "1e400", "9" * 30, "0x10", "1_000", "٣", "1,5"]
)
word = st.one_of(st.sampled_from(THINGS), st.sampled_from(NAMES), numbers, settings, words)


SENSIBLE: dict[str, list[list[str]]] = {
    "train": [["recipe.yaml", "--dry-run"], ["run"], ["tcl-fashion-mini"]],
    "evaluate": [["both.npz"], ["features.npy", "labels.npy"], ["split.npz"], ["run"], ["features.npy", "words.npy"]],
    "embed": [
        ["run", "digits", "-o", "new.npz"],
        ["run", "photos", "-o", "new.npy"],
        ["run", "features.npy", "-o", "x.npz"],
    ],
    "export": [["run", "-o", "exported"], ["run", "--to", "torchvision", "-o", "exported"]],
    "geometry": [
        ["both.npz"],
        ["features.npy", "labels.npy"],
        ["features.npy", "words.npy", "--json"],
        ["run", "--json"],
    ],
    "doctor": [["run"], ["both.npz"], ["recipe.yaml"], ["features.npy", "words.npy"]],
    "verify": [["--only", "tcl-*"], []],
    "reproduce": [["wl-table-1", "--dry-run"], ["graf-toy"]],
    "report": [["run", "--out", "page.html"], ["run", "run", "--out", "page.html"]],
    "tune": [["recipe.yaml", "--dry-run"], ["recipe.yaml"]],
    "list": [["recipes"], ["losses"]],
    "show": [["recipe.yaml"], ["run"], ["tcl-cifar10"]],
}


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A command, in half of the cases with words that it takes, then options that it has and words for them."""
    name = draw(st.sampled_from([*COMMANDS, "trian", ""]) if draw(st.integers(0, 19)) else words)
    params = COMMANDS[name].params if name in COMMANDS else []
    made = [name]
    if draw(st.booleans()):
        made += draw(st.sampled_from(SENSIBLE.get(name, [[]])))
        if draw(st.booleans()):
            return made
    else:
        for argument in params:
            if argument.param_type_name == "argument" and draw(st.integers(0, 4)):
                made += draw(st.lists(word, min_size=1, max_size=1 if argument.nargs == 1 else 3))
    options = [p for p in params if p.param_type_name == "option"]
    for option in draw(st.lists(st.sampled_from(options), max_size=2)) if options else []:
        made.append(draw(st.sampled_from(option.opts)))
        if not option.is_flag and draw(st.integers(0, 9)):
            made.append(draw(word))
    made += draw(st.lists(word | st.just("--no-such"), max_size=1))
    return [inside(text) for text in made]


def inside(text: str) -> str:
    """The word without NUL, which no system passes on, and leading nowhere that a command could write to."""
    text = text.replace("\0", "")
    return text if text in ("/", "/dev/null", "..") else text.lstrip("/").replace("../", "")


def ask(line: list[str]) -> None:
    """Runs it: status 0 or 1 is a result, 2 an error whose text is looked at, anything else a fault."""
    place()  # made before training is cut off
    said, told = io.StringIO(), io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        cut_off(),
        mock.patch("sys.argv", ["kontrast", *line]),
    ):
        for entry in place().iterdir():
            (Path(folder) / entry.name).symlink_to(entry)
        _warnings.said.clear()
        status: Any = 0
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            try:
                main()
            except SystemExit as stop:
                status = stop.code
            except Began:
                return
    text = told.getvalue()
    assert "Traceback" not in text + said.getvalue(), text[-2000:]
    assert status in (0, 1, 2, None), f"status {status}: {text[-500:]}"
    if status == 2:
        raise Refused(refusal(text))


def refusal(text: str) -> str:
    """The paragraph of an error, without what stands before it: warnings, progress, how a command is used."""
    lines = text.strip().splitlines()
    if lines and lines[0].lstrip().startswith(("Usage:", "╭─ Error")):
        return "usage: " + " ".join(BOX.sub("", "\n".join(lines)).split())[: LONGEST // 2]  # repeats the word given
    at = next((i for i, line in enumerate(lines) if line.startswith("error: ")), None)
    assert at is not None, f"status 2 without a word: {text[-500:]!r}"
    return "\n".join(lines[at:])


@contextlib.contextmanager
def cut_off() -> Iterator[None]:
    """Nothing is trained, measured for long, opened in a browser or fetched."""

    def began(*args: Any, **options: Any) -> Any:
        raise Began

    def no_network(*args: Any, **options: Any) -> Any:
        raise urllib.error.URLError("no network")

    checked = theory.verify
    with contextlib.ExitStack() as stack:
        for target in (
            "kontrast.train.run_recipe",
            "kontrast.experiments.sweep.Sweep.run",
            "kontrast.experiments.estimate.estimate",
            "kontrast.experiments.tune.Tuning.run",
            "kontrast.cli.bench.subprocess.run",
            "webbrowser.open",
        ):
            stack.enter_context(mock.patch(target, began))
        stack.enter_context(mock.patch("urllib.request.urlopen", no_network))
        first = lambda *a, **k: itertools.islice(checked(*a, **k), 1)  # noqa: E731
        stack.enter_context(mock.patch("kontrast.theory.verify", first))
        stack.enter_context(mock.patch.dict(os.environ, {"KONTRAST_DATA": str(place() / "data"), "HOME": str(place())}))
        yield


KINDS = [Kind("command lines", "any words, options and files for every command", lines(), ask, cost=2)]
