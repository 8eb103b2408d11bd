"""Ranges of settings: what is one, what is an ordinary override, and errors that say what to write."""

from __future__ import annotations

import pytest

from kontrast.experiments.ranges import grid_of, parse_range, split_ranges


@pytest.mark.parametrize(
    ("text", "low", "high", "step", "log", "whole"),
    [
        ("0.01..1", 0.01, 1.0, None, False, False),
        ("log:1e-4..1e-1", 1e-4, 0.1, None, True, False),
        ("int:64..256", 64.0, 256.0, 1.0, False, True),
        ("int:64..256:64", 64.0, 256.0, 64.0, False, True),
        ("int:64..250:64", 64.0, 192.0, 64.0, False, True),
        ("1..5", 1.0, 5.0, None, False, False),
        ("-1..0.5:0.5", -1.0, 0.5, 0.5, False, False),
    ],
)
def test_numbers(text: str, low: float, high: float, step: float | None, log: bool, whole: bool) -> None:
    found = parse_range("key", text)
    assert found is not None
    assert (found.low, found.high, found.step, found.log, found.whole) == (low, high, step, log, whole)


@pytest.mark.parametrize("text", ["0.1", "../photos", "[weak, strong]", '"a,b"', "cosine", "{a: 1, b: 2}", "a..b", ""])
def test_one_value_is_no_range(text: str) -> None:
    assert parse_range("data", text) is None


def test_lists_keep_brackets_and_quotes_together() -> None:
    found = parse_range("augment.views", '[weak, weak],[weak, strong],"a,b"')
    assert found is not None
    assert found.values == ("[weak, weak]", "[weak, strong]", '"a,b"')
    assert found.examples() == [["weak", "weak"], ["weak", "strong"], "a,b"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "optim.lr=1..0.1",
            r"optim\.lr=1\.\.0\.1: must be low\.\.high with the lower number first\. Use optim\.lr=0\.1\.\.1",
        ),
        ("optim.lr=log:0..1", "must start above 0 when the range is logarithmic"),
        ("optim.lr=log:0.1..1:0.1", "without a step when it is logarithmic"),
        ("optim.lr=0..1:2", "with a step above 0 that fits into it"),
        ("train.batch_size=int:6.5..8", "must have whole numbers after int:"),
        ("optim.lr=log:high", r"must be low\.\.high, two numbers"),
        ("optim.lr=0.1..", r"must be low\.\.high, two numbers"),
        ("optim.lr=..1", r"must be low\.\.high, two numbers"),
        ("optim.lr=0.1,,0.2", "one is empty"),
        ("optim.lr=0.1,0.1", "must be different values"),
        (
            "seed=0,1,2",
            "seed=0,1,2: must be one value, because every setting is trained on the same seeds. Use --seeds",
        ),
        ("data.validation=0.1,0.2", "must be one value, because every setting is scored on the same held-out rows"),
        ("evaluate.protocols=knn20,probe", "Use --by to choose the protocol"),
        ("run.threads=1,2", "must be one value, because it changes no result"),
    ],
)
def test_mistakes(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_ranges([setting])


def test_a_key_has_one_range_and_no_value() -> None:
    with pytest.raises(ValueError, match=r"must be one range, and there is optim\.lr=0\.1,0\.2 too"):
        split_ranges(["optim.lr=0.1,0.2", "optim.lr=0..1"])
    with pytest.raises(ValueError, match=r"optim\.lr=0\.1: must not be set, because it is searched"):
        split_ranges(["optim.lr=0.1", "optim.lr=0.1,0.2"])


def test_drawn_numbers_have_three_digits_and_stay_inside() -> None:
    found = parse_range("optim.lr", "0.012345..1")
    assert found is not None
    assert [found.value(x) for x in (0.0371234, 0.0123451, 1.0)] == [0.0371, 0.012345, 1.0]


def test_a_grid_needs_lists_or_steps() -> None:
    assert len(grid_of(split_ranges(["optim.lr=0.1,0.2", "train.batch_size=int:64..256:64"])[1])) == 8
    with pytest.raises(ValueError, match=r"optim\.lr=log:0\.01\.\.1: must be a list of values or have a step"):
        grid_of(split_ranges(["optim.lr=log:0.01..1"])[1])
