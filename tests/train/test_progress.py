"""The progress line and bar, with a clock that the tests turn."""

from __future__ import annotations

import io
import re
from contextlib import suppress
from typing import Any

import pytest
import torch
from rich.console import Console

from kontrast.geometry.bounds import Standing
from kontrast.train import progress as module
from kontrast.train.progress import Progress

STANDING = Standing(chance=5.54, collapsed=5.54, bound=3.10, value=1.0)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock, *, terminal: bool = False, **options: Any) -> tuple[Progress, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, legacy_windows=False, _environ={"TERM": "xterm"})
    given = {"images_per_step": 64, "description": "run", "console": console, "clock": clock, **options}
    return Progress(given.pop("total_steps", 100), **given), out


def lines(out: io.StringIO) -> list[str]:
    return out.getvalue().splitlines()


def test_the_whole_line() -> None:
    clock = Clock()
    progress, out = made(clock, steps_per_epoch=25)
    with progress:
        for step in range(1, 41):
            clock.now += 0.5
            progress.update(step, 4.21, STANDING, 0.1)
    assert lines(out)[0] == (
        "run: epoch 1/4, step 20/100, 128 images/s, 0:00:40 left, "
        "loss 4.21, chance 5.54, bound 3.10, 55 % of the way, lr 0.1"
    )


def test_lines_come_at_most_every_interval_and_at_the_end() -> None:
    clock = Clock()
    progress, out = made(clock, interval=10.0)
    with progress:
        for step in range(1, 101):
            clock.now += 0.33
            progress.update(step, 1.0)
    assert [int(re.search(r"step (\d+)/", line)[1]) for line in lines(out)] == [31, 62, 93, 100]  # type: ignore[index]
    assert lines(out)[-1] == "run: step 100/100, 194 images/s, 0:00:33 in all, loss 1.00"


def test_the_end_is_said_once_and_after_an_error_too() -> None:
    clock = Clock()
    progress, out = made(clock, total_steps=2, interval=1.0)
    with progress:
        for step in (1, 2):
            clock.now += 1.0
            progress.update(step, 1.0)
    assert len(lines(out)) == 2
    progress, out = made(clock)
    with suppress(KeyboardInterrupt), progress:
        clock.now += 1.0
        progress.update(7, 1.0)
        raise KeyboardInterrupt
    assert lines(out) == ["run: step 7/100, 448 images/s, 0:00:13 left, loss 1.00"]


def test_what_was_done_before_resuming_does_not_count() -> None:
    clock = Clock()
    progress, out = made(clock, start_step=50)
    clock.now += 60.0  # between being made and being started, data may be read
    with progress:
        for step in range(51, 61):
            clock.now += 1.0
            progress.update(step, 1.0)
        assert progress.images_per_second == 64.0
        for step in range(61, 101):
            clock.now += 1.0
            progress.update(step, 1.0)
    assert lines(out)[-1] == "run: step 100/100, 64 images/s, 0:00:50 in all, loss 1.00"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    progress, _ = made(clock, total_steps=1000)
    with progress:
        assert progress.images_per_second is None
        for step in range(1, 21):
            clock.now += 2.0
            progress.update(step, 1.0)
        assert progress.images_per_second == 32.0
        for step in range(21, 221):
            clock.now += 0.1
            progress.update(step, 1.0)
    rate = progress.images_per_second
    assert rate == pytest.approx(640.0, rel=1e-6)  # 0.1 is not a binary number


def seconds_left(out: io.StringIO) -> list[float]:
    found = re.findall(r"(\d+):(\d\d):(\d\d) left", out.getvalue())
    return [3600.0 * int(h) + 60 * int(m) + int(s) for h, m, s in found]


def test_the_time_left_stays_within_a_quarter_where_fast_and_slow_steps_alternate() -> None:
    """12 seconds at 20 steps a second, 12 at 2: 11 a second on average."""
    clock = Clock()
    progress, out = made(clock, total_steps=10**5, interval=1.0)
    with progress:
        true, step = [], 0
        while clock.now < 1400.0:
            clock.now += 0.05 if (clock.now // 12) % 2 else 0.5
            step += 1
            before = len(seconds_left(out))
            progress.update(step)
            true += [(clock.now, (10**5 - step) / 11)] * (len(seconds_left(out)) - before)
    after_a_minute = [told / left for told, (now, left) in zip(seconds_left(out), true, strict=False) if now > 1065]
    assert len(after_a_minute) > 100
    assert 1 / 1.25 < min(after_a_minute) <= max(after_a_minute) < 1.25


def test_pauses_are_spread_over_the_steps_they_came_in() -> None:
    """Epochs of 100 steps in 20 seconds, each with 40 seconds of evaluation: a step costs 0.6 seconds in all."""
    clock = Clock()
    progress, out = made(clock, total_steps=5000, interval=1.0)
    told: list[tuple[int, float]] = []
    with progress:
        for step in range(1, 1001):
            clock.now += 0.2
            if step % 100 == 0:
                with progress.pause(step):
                    clock.now += 40.0
            progress.update(step)
            told += [(step, left) for left in seconds_left(out)[len(told) :]]
    factors = [left / (0.6 * (5000 - step)) for step, left in told if step > 100]
    assert len(factors) > 100
    assert 0.95 < min(factors) <= max(factors) < 1.05


def test_short_pauses_are_part_of_the_steps() -> None:
    clock = Clock()
    progress, out = made(clock, total_steps=100)
    with progress:
        for step in range(1, 41):
            clock.now += 0.25
            with progress.pause(step):
                clock.now += 0.25
            progress.update(step)
    assert seconds_left(out)[0] == 40.0


def test_what_is_none_stays_as_it_was_and_a_tensor_is_read_when_drawn() -> None:
    clock = Clock()
    progress, out = made(clock)
    loss = torch.tensor(0.0)
    with progress:
        progress.update(1, loss, STANDING, 0.25)
        loss.fill_(3.1)
        clock.now += 10.0
        progress.update(2)
    assert lines(out)[0].endswith("loss 3.10, chance 5.54, bound 3.10, 100 % of the way, lr 0.25")


def test_a_standing_without_a_way_to_go() -> None:
    clock = Clock()
    progress, out = made(clock)
    with progress:
        progress.update(1, None, Standing(chance=1.0, collapsed=1.0, bound=1.0))
    assert lines(out)[0].endswith("chance 1.00, bound 1.00")


@pytest.mark.parametrize("terminal", [False, True])
def test_quiet_says_nothing(terminal: bool) -> None:
    clock = Clock()
    progress, out = made(clock, terminal=terminal, quiet=True)
    with progress:
        for step in range(1, 101):
            clock.now += 1.0
            progress.update(step, 1.0, STANDING, 0.1)
        progress.note("not this either")
    assert out.getvalue() == ""


def test_notes_are_lines_as_they_are() -> None:
    progress, out = made(Clock())
    progress.note("stopped at [step 5] " + "x" * 200)
    assert lines(out) == ["stopped at [step 5] " + "x" * 200]


def test_the_bar_on_a_terminal() -> None:
    clock = Clock()
    progress, out = made(clock, terminal=True, steps_per_epoch=25)
    with progress:
        for step in range(1, 41):
            clock.now += 0.5
            progress.update(step, 4.21, STANDING, 0.1)
        progress.note("validation 0.5")
    seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.getvalue())
    assert "━" in seen
    last = [line.strip() for line in seen.replace("\r", "\n").splitlines() if line.strip()][-2:]
    assert re.fullmatch(r"run +[━╸╺]+ +epoch 2/4, step 40/100 +128 images/s +0:00:30 left", last[0])
    assert last[1] == "loss 4.21, chance 5.54, bound 3.10, 55 % of the way, lr 0.1"
    assert "validation 0.5" in seen


def test_a_bar_is_drawn_at_most_every_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    progress, _ = made(clock, terminal=True, total_steps=1000)
    drawn: list[float] = []
    whole = Progress._draw
    monkeypatch.setattr(module.Progress, "_draw", lambda self, now: (drawn.append(now), whole(self, now))[1])
    with progress:
        for step in range(1, 1001):
            clock.now += 0.01
            progress.update(step, 1.0)
    assert len(drawn) <= 10.0 / module.FRAME + 1, "ten seconds, and once at the end"
    assert len(drawn) > 30


def test_what_is_printed_to_a_file_meanwhile_goes_there(capsys: pytest.CaptureFixture[str]) -> None:
    progress, out = made(Clock(), terminal=True)
    with progress:
        print("accuracy 0.5")
    assert capsys.readouterr().out == "accuracy 0.5\n"
    assert "accuracy" not in out.getvalue()


class Gone(io.StringIO):
    """What nobody reads any more, or has no room."""

    def __init__(self, error: type[OSError], *, terminal: bool) -> None:
        super().__init__()
        self.error, self.terminal, self.asked = error, terminal, 0

    def write(self, text: str) -> int:
        self.asked += 1
        raise self.error

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("error", [BrokenPipeError, OSError])
def test_where_nothing_can_be_written_it_falls_silent(
    error: type[OSError], terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = Gone(error, terminal=terminal)
    monkeypatch.setattr("sys.stderr", gone)
    monkeypatch.setenv("TERM", "xterm")
    clock = Clock()
    with Progress(9, images_per_step=1, description="run", clock=clock) as progress:
        for step in range(1, 10):
            clock.now += 60
            progress.update(step, loss=1.0)
        progress.note("said to nobody")
    assert progress.step == 9
    assert gone.asked == 1


def test_standard_output_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    progress, out = made(Clock(), terminal=True)
    with progress:
        progress.update(1, loss=1.0)
    assert "step 1/100" in out.getvalue()
