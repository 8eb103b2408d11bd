"""The progress of a run: on a terminal a bar, else a line now and then. Where the loss stands is part of it.

    supcon-fashion-mini  ━━━━━━━━━━━━╸━━━━━━━━━━━━  epoch 3/20, step 120/800  4,210 images/s  0:01:23 left
    loss 4.21, chance 5.54, bound 3.10, 55 % of the way, lr 0.0905

Images per second are those of the last `WINDOW` seconds, and of this process only: a resumed run does not count what
was done before. The time left is smoother than that: p steps remain,

    (1)  left = p · (s + q/n)

with s the seconds a step took on average over the last `STEADY` seconds, pauses (monitors, validation, checkpoints)
left out, and q the seconds of all pauses so far, which came in n steps. Nothing is drawn by a thread of its own, so a
call that draws nothing costs about a microsecond.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kontrast.geometry.bounds import Standing

WINDOW = 10.0  # seconds over which the rate is taken
STEADY = 60.0  # seconds over which the time left is worked out
FRAME = 0.25  # seconds between two drawings of the bar
MARK = 0.5  # seconds between two marks of where the run was, and of the shortest pause that is counted as one


class StderrConsole(Console):
    """A console on standard error; if that can no longer be written, it falls silent and the run goes on.

    Deviates: rich ends the process with status 1 when nobody reads what it prints.

    >>> console = StderrConsole(quiet=True)
    >>> console.print("not shown")
    """

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(stderr=True, quiet=quiet)

    def on_broken_pipe(self) -> None:
        """Falls silent."""
        self.quiet = True

    def _check_buffer(self) -> None:
        try:
            super()._check_buffer()
        except OSError:
            self.quiet = True
            super()._check_buffer()  # drops what could not be written


class Progress:
    """Draws the progress of a run when it is time; `update` is called after every step.

    Args:
        total_steps: Steps of the whole run.
        start_step: Steps before this process began.
        images_per_step: Images of a step.
        description: The run's name.
        console: Where it is drawn; standard error by default.
        quiet: Whether nothing is drawn at all.
        interval: The shortest time in seconds between two lines where there is no terminal.
        steps_per_epoch: Adds the epoch.
        clock: Gives seconds.

    >>> import io
    >>> out = io.StringIO()
    >>> seconds = iter(range(100))
    >>> with Progress(8, images_per_step=100, description="run", console=Console(file=out, width=100), interval=3,
    ...               clock=lambda: float(next(seconds))) as progress:
    ...     for step in range(1, 9):
    ...         progress.update(step, loss=2.0, standing=Standing(chance=3.0, collapsed=3.0, bound=1.0), lr=0.1)
    >>> print(out.getvalue().splitlines()[0])
    run: step 3/8, 100 images/s, 0:00:05 left, loss 2.00, chance 3.00, bound 1.00, 50 % of the way, lr 0.1
    """

    def __init__(
        self,
        total_steps: int,
        *,
        start_step: int = 0,
        images_per_step: int,
        description: str,
        console: Console | None = None,
        quiet: bool = False,
        interval: float = 10.0,
        steps_per_epoch: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total_steps, self.start_step, self.step = total_steps, start_step, start_step
        self.images_per_step, self.steps_per_epoch = images_per_step, steps_per_epoch
        self.description, self.quiet = description, quiet
        self.console = console or StderrConsole()
        self._bar = self.console.is_terminal and not self.console.is_dumb_terminal
        self._pause = FRAME if self._bar else interval
        self._clock = clock
        self._live: Live | None = None
        self._loss: Any = None
        self._standing: Standing | None = None
        self._lr: float | None = None
        self._last_step_on_screen: int | None = None
        self._begin()

    def _begin(self) -> None:
        now = self._clock()
        self._start, self._next, self._next_mark = now, now + self._pause, now + MARK
        self._paused, self._paused_at = 0.0, self.step  # seconds of all pauses, the step of the last one
        self._marks: deque[tuple[float, float, int]] = deque([(now, now, self.step)])  # time, time without pauses, step

    def __enter__(self) -> Self:
        self._begin()
        if self._bar and not self.quiet:
            # What is printed meanwhile goes above the bar, unless it goes to a file.
            shared = sys.stdout is not None and sys.stdout.isatty()
            frame = self._frame(self._start)
            self._live = Live(frame, console=self.console, auto_refresh=False, redirect_stdout=shared)
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.quiet and (self._last_step_on_screen != self.step or self._live is not None):
            self._draw(self._clock())
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(
        self,
        step: int,
        loss: Any = None,
        standing: Standing | None = None,
        lr: float | None = None,
    ) -> None:
        """Note that ``step`` steps are done; None leaves a value as it was. A tensor is read when it is drawn."""
        self.step = step
        if loss is not None:
            self._loss = loss
        if standing is not None:
            self._standing = standing
        if lr is not None:
            self._lr = lr
        if self.quiet:
            return
        now = self._clock()
        if now >= self._next_mark:
            self._mark(now)
        if now >= self._next:
            self._next = now + self._pause
            self._draw(now)

    @contextmanager
    def pause(self, step: int) -> Iterator[None]:
        """Time spent inside belongs to no step; ``step`` is the number of steps so far."""
        began = self._clock()
        try:
            yield
        finally:
            took = self._clock() - began
            if took >= MARK:
                self._paused, self._paused_at = self._paused + took, step

    def note(self, text: str) -> None:
        """Print a line of its own, above the bar."""
        if not self.quiet:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    @property
    def images_per_second(self) -> float | None:
        """Of the last seconds; None before the first step."""
        return self._rate(self._clock())

    def _mark(self, now: float) -> None:
        self._next_mark = now + MARK
        at_work = now - self._paused
        self._marks.append((now, at_work, self.step))
        while len(self._marks) > 2 and at_work - self._marks[1][1] >= STEADY:
            self._marks.popleft()

    def _rate(self, now: float) -> float | None:
        """Images a second of the last `WINDOW` seconds, pauses included."""
        marks = iter(self._marks)
        then, _, step = next(marks)
        for time_, _, at in marks:
            if now - time_ < WINDOW:
                break
            then, step = time_, at
        if self.step <= step or now <= then:
            return None
        return (self.step - step) * self.images_per_step / (now - then)

    def _time_left(self, now: float) -> float | None:
        """(1); None before the first step."""
        _, then, step = self._marks[0]
        at_work = now - self._paused
        if self.step <= step or at_work <= then:
            return None
        seconds = (at_work - then) / (self.step - step)
        if self._paused_at > self.start_step:
            seconds += self._paused / (self._paused_at - self.start_step)
        return (self.total_steps - self.step) * seconds

    # ---------------------------------------------------------------------------------------- what is drawn

    def _draw(self, now: float) -> None:
        self._last_step_on_screen = self.step
        if self._live is not None:
            self._live.update(self._frame(now), refresh=True)
        else:
            parts = (self._place(), *self._speed(now), *self._standing_now())
            self.note(f"{self.description}: {', '.join(parts)}")

    def _frame(self, now: float) -> Group:
        grid = Table.grid(padding=(0, 2, 0, 0))
        wide = self.console.width >= 110  # in a narrow terminal the numbers matter more than the bar
        bar = ProgressBar(total=self.total_steps, completed=self.step, width=24 if wide else 8)
        texts = (Text(part, no_wrap=True) for part in (self._place(), *self._speed(now)))
        grid.add_row(Text(self.description, no_wrap=True, overflow="ellipsis"), bar, *texts)
        return Group(grid, Text(", ".join(self._standing_now())))

    def _place(self) -> str:
        step = f"step {self.step}/{self.total_steps}"
        if not self.steps_per_epoch:
            return step
        epochs = -(-self.total_steps // self.steps_per_epoch)
        return f"epoch {min(self.step // self.steps_per_epoch + 1, epochs)}/{epochs}, {step}"

    def _speed(self, now: float) -> list[str]:
        if self.step >= self.total_steps:
            seconds = max(now - self._start, 1e-9)
            rate = (self.step - self.start_step) * self.images_per_step / seconds
            return [f"{rate:,.0f} images/s", f"{_time(seconds)} in all"]
        recent_rate, left = self._rate(now), self._time_left(now)
        if recent_rate is None or left is None:
            return []
        return [f"{recent_rate:,.0f} images/s", f"{_time(left)} left"]

    def _standing_now(self) -> list[str]:
        parts = []
        value = None if self._loss is None else float(self._loss)
        if value is None and self._standing is not None:
            value = self._standing.value
        if value is not None:
            parts.append(f"loss {value:.2f}")
        if self._standing is not None:
            parts += [f"chance {self._standing.chance:.2f}", f"bound {self._standing.bound:.2f}"]
            share = replace(self._standing, value=value).share
            if share is not None:
                parts.append(f"{100 * share:.0f} % of the way")
        if self._lr is not None:
            parts.append(f"lr {self._lr:.3g}")
        return parts


def _time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
