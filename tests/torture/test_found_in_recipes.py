"""What `torture/inputs.py` found in recipes and commands, and stays mended: tracebacks, errors nobody could read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import kontrast
from kontrast import augment, losses, models, recipes, report
from kontrast.cli._console import LONGEST, paragraph
from kontrast.doctor import examine_run
from kontrast.recipe import LONGEST_NAME, Recipe, parse
from kontrast.train import resolve
from kontrast.train.job import make_job
from tests.cli.asking import ask, one_paragraph

SHORT: dict[str, Any] = {"method": "supcon", "train": {"epochs": 1}, "augment": ["none", "none"]}

# ------------------------------------------------------------------------------------------------------------ recipes


@pytest.mark.parametrize(
    "name", ["", "a/b", "../b", ".", ".hidden", "two\nlines", "\x1b[2J", "\ud800", "x" * (LONGEST_NAME + 1), "ü" * 101]
)
def test_a_recipes_name_is_one_folder(name: str) -> None:
    """``a/../../b`` led out of the folder of runs; the others could be no folder's name, or not be printed."""
    with pytest.raises(ValueError, match=r"name=.*: must be 1 to 200 bytes") as caught:
        Recipe.of({**SHORT, "name": name})
    assert str(caught.value).isprintable()
    assert Recipe.of({**SHORT, "name": "Two words, ünïcödé (3)"}).folder.startswith("Two words, ünïcödé (3)-")


@pytest.mark.parametrize(
    "change",
    [
        {"x" * 9000: 1},
        {"about": ["y" * 9000]},
        {"method": "z" * 9000},
        {"seed": 10**4000},
        {"train": {"epochs": "1" * 9000}},
        {"optim": {"name": "sgd", "w" * 9000: 1}},
        {"optim": {"name": "sgd", "lr": "v" * 9000}},
    ],
)
def test_long_values_are_not_printed_back(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"has no|should|must be|expected") as caught:
        resolve(Recipe.of({**SHORT, **change}))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; expected a mapping"),
        (b"\xff\xfe", "is not YAML: invalid start byte at byte 0; expected a recipe in UTF-8"),
        (b"train: !!int many", "is not YAML: invalid literal"),
        (b"[" * 100_000, "is not YAML: it is nested too deep"),
        (b"method: supcon\ntrain: {epochs: 1}\nabout: &x [*x]", "expected a recipe"),
        (b"method: {name: tcl, k1: 2024-01-01}\ntrain: {epochs: 1}", "a date; expected a number"),
    ],
)
def test_a_file_that_is_no_recipe_says_which(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "given.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        Recipe.read(path)
    assert str(caught.value).startswith(str(path))


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("method: supcon\ntrain: {epochs: 1}\n", encoding="utf-8-sig")
    assert Recipe.read(tmp_path / "a.yaml").method.name == "supcon"


@pytest.mark.parametrize("word", ["!!int x", "!!timestamp x", "[" * 2000, "9" * 5000, "{? [a] : b}"])
def test_a_setting_that_is_no_yaml_is_a_word(word: str) -> None:
    value = parse(f"about={word}")[1]
    assert value == word or isinstance(value, float)  # a number of 5,000 digits is infinite as a float


@pytest.mark.parametrize("place", ["²", "-1", "9" * 5000])
def test_a_views_number_is_decimal(place: str) -> None:
    with pytest.raises(ValueError, match="must be a number from 0 to 1"):
        Recipe.of(SHORT).override([f"augment.views.{place}=none"])


def test_a_user_that_is_none_is_said() -> None:
    for use in (recipes.recipe, report.write, examine_run, kontrast.load):
        given = ["~nobody-at-all/x"] if use is report.write else "~nobody-at-all/x"
        with pytest.raises(ValueError, match="but there is no such user; expected a path"):
            use(given)  # type: ignore[operator]


def test_a_heads_name_is_a_word() -> None:
    with pytest.raises(ValueError, match=r"no head \{'a': 1\}\. Known: none, wang-liu"):
        models.head({"a": 1}, in_dim=4)  # type: ignore[arg-type]


def test_a_part_without_its_name_can_be_given_one() -> None:
    changed = Recipe.of(SHORT).override(["method={k1: 5}", "method=tcl"])
    assert (changed.method.name, changed.method.options) == ("tcl", {})


@pytest.mark.parametrize(
    ("part", "option", "value", "expected"),
    [
        ("method", "temperature", "high", "a number"),
        ("method", "temperature", True, "a number"),
        ("method", "temperature", [0.1], "a number"),
        ("encoder", "channels_last", "yes please", "true or false"),
        ("encoder", "channels_last", 1, "true or false"),
        ("encoder", "stem", 3, "a word"),
        ("schedule", "milestones", 3, "a list"),
    ],
)
def test_an_option_of_another_kind_is_refused(part: str, option: str, value: Any, expected: str) -> None:
    names = {"method": "supcon", "encoder": "resnet18", "schedule": "multi-step"}
    asked = Recipe.of({**SHORT, part: {"name": names[part], option: value}})
    with pytest.raises(ValueError, match=rf"^{part}.{option}=.*: must be {expected}$"):
        resolve(asked)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"encoder": {"name": "mlp", "depth": 10**9}},
            "depth=1000000000: must be a whole number of at least 1 and at most 1,000",
        ),
        (
            {"encoder": {"name": "small-resnet", "depth": 10**9}},
            "depth=1000000000: must be a whole number of at least 1 and at most 1,000",
        ),
        (
            {"head": {"name": "tcl", "layers": 10**9}},
            "layers=1000000000: must be a whole number of at least 1 and at most 1,000",
        ),
        (
            {"head": {"name": "tcl", "out": 10**12}},
            "out=1000000000000: must be a whole number of at least 1 and at most 2,147,483,647",
        ),
        ({"head": {"name": "tcl", "out": 10**30}}, "head.out is 1000000000000000000000000000000; expected"),
        ({"encoder": {"name": "mlp", "pretrained": 3}}, "encoder.pretrained=3: must be true, a file"),
        (
            {"method": {"name": "supcon", "temperature": 1e30}},
            "temperature=1e+30: must lie between 1e-06 and 1e+15",
        ),
        ({"optim": {"name": "lars", "lr": 1e151}}, "optim.lr is 1e+151; expected a finite number of at most 3.4e+38"),
        (
            {"augment": [{"name": "crop-flip", "padding": 1e30}] * 2},
            "padding=1e+30: must be a finite number of at least 0 and of at most 1e+06",
        ),
        ({"augment": [{"name": "sce-imagenet", "view": 0}] * 2}, "view is 0; expected 1 (blur always) or 2"),
    ],
)
def test_sizes_without_end_are_refused_before_anything_is_made(change: dict[str, Any], says: str) -> None:
    """A network of a billion layers was begun, and would have been made for days."""
    with pytest.raises(ValueError, match=re.escape(says)):
        make_job(resolve(Recipe.of({**SHORT, "data": {"name": "digits", "limit": 300}, **change})), torch.device("cpu"))


def test_a_network_larger_than_memory_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr("kontrast.train.job.make_encoder", full)
    recipe = resolve(Recipe.of({**SHORT, "data": {"name": "digits", "limit": 300}}))
    with pytest.raises(ValueError, match="not enough memory for the encoder, head and method"):
        make_job(recipe, torch.device("cpu"))


def test_a_padding_of_whole_pixels_may_be_a_float() -> None:
    """It was taken, and ended in a TypeError at the first batch."""
    crop = augment.RandomCrop(8, 2.0)  # type: ignore[arg-type]
    assert crop(torch.zeros(2, 1, 8, 8, dtype=torch.uint8)).shape == (2, 1, 8, 8)


@pytest.mark.parametrize("value", [10**400, -(10**400), float("nan"), float("inf")])
def test_numbers_that_no_float_holds_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="must be a finite number"):
        losses.SupConLoss(temperature=value)
    with pytest.raises(ValueError, match="must be a finite number of at least 0"):
        augment.RandomCrop(8, value)


# ------------------------------------------------------------------------------------------------------- command line


def test_no_name_moves_the_terminals_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for word in ("\x1b[2Jred", "two\nlines", "x" * 5000, "a/" * 3000, "[bold]"):
        answer = ask(monkeypatch, capsys, "geometry", f"{tmp_path}/{word}.npy")
        assert answer.status == 2
        assert one_paragraph(answer.err), repr(answer.err)
        assert all(line.isprintable() for line in answer.err.splitlines())
        assert [line.partition(" ")[0] for line in answer.err.splitlines()] == ["loading", "error:"]
        assert all(len(line) < LONGEST + 100 for line in answer.err.splitlines())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "there is not enough memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes"),
            "not enough memory",
        ),
        (PermissionError(13, "Permission denied", "x.npy"), "x.npy cannot be used: permission denied; check"),
        (OSError("no room left; choose another folder"), "no room left; choose another folder"),
        (ValueError("two\nlines"), "two lines"),
    ],
)
def test_errors_are_one_paragraph_whoever_raised_them(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*words: Any) -> None:
        raise error

    monkeypatch.setattr("kontrast.recipes.recipe", fail)
    answer = ask(monkeypatch, capsys, "show", "anything")
    assert answer.status == 2
    assert one_paragraph(answer.err)
    assert says in answer.err


def test_a_defect_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*words: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("kontrast.recipes.recipe", fail)
    with pytest.raises(RuntimeError, match="a defect"):
        ask(monkeypatch, capsys, "show", "anything")


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    said = paragraph("seen " + "x" * 10**6 + "; expected less")
    assert said.startswith("seen x")
    assert said.endswith("; expected less")
    assert "(1,000,020 characters)" in said
