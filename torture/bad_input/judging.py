"""What may come of an input: a right result, or an error of one paragraph that says what to do. Else it is a fault.

An error is a ``ValueError`` whose text

- is one line without control characters, so that no file name can move a terminal's cursor;
- has at most `LONGEST` characters, whatever was given: a value of a megabyte is not printed back;
- says what was expected or what to do: it has one of the words in `CURES`, and none of a library's own (`FOREIGN`).

Any other exception, a wrong result (the case's own assertions), more than `SECONDS` and more than `MEMORY` are faults.
"""

from __future__ import annotations

import re
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis.strategies import SearchStrategy

LONGEST = 1500  # the longest list of known names takes 900
SECONDS = 60  # far more than any case needs on a busy core; a loop without end is caught
MEMORY = 3 << 30  # bytes above what the process has
CURES = re.compile(
    r"expected|should|must|accepted|did you mean|known|needs|give|take|leave|remove|raise|choose|pass|say|save|mend|"
    r"is it whole|at least|cannot be|usage|install|reduce|try |set |it has |simclr has |train longer|required|put |"
    r"load with|kontrast list|is made of|check |use |repair|call |name ",
    re.IGNORECASE,
)
FOREIGN = re.compile(
    r"Traceback|errno|\bNoneType\b|enforce fail|unpack|object has no attribute|For further information"
)


@dataclass(frozen=True)
class Kind:
    """A kind of input: how cases are made, and what is tried with each; ``attempt`` asserts that a result is right.

    ``cost`` divides the number of examples, for cases that take long.
    """

    name: str
    about: str
    cases: SearchStrategy[Any]
    attempt: Callable[[Any], None]
    cost: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of a case: ``result``, ``error`` or ``fault``, and what was said."""

    verdict: str
    says: str = ""


class TooLong(BaseException):
    """A case took more than `SECONDS`."""


def judged(attempt: Callable[[Any], None], case: Any) -> Outcome:
    """Tries a case.

    >>> def refuse(case):
    ...     raise ValueError(case)
    >>> judged(refuse, "k is -1; expected at least 1").verdict, judged(refuse, "bad").verdict, judged(int, "7").verdict
    ('error', 'fault', 'result')
    >>> judged(int, None).says.partition(" in ")[0]
    "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt(case)
    except ValueError as error:
        text = str(error)
        trouble = unclear(text)
        return Outcome("error", text) if trouble is None else Outcome("fault", f"{trouble}: {text[:2000]!r}")
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome("fault", f"{type(error).__name__}: {error} in {Path(last.filename).name}:{last.lineno}")
    except TooLong:
        return Outcome("fault", f"no end after {SECONDS} s")
    return Outcome("result")


def unclear(text: str) -> str | None:
    """What is wrong with an error's text; None if it will do.

    >>> unclear("lr is 0; expected a number above 0"), unclear("two\\nlines"), unclear("division by zero")
    (None, 'control characters', 'says not what to do')
    """
    if not text.strip():
        return "says nothing"
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
        return "control characters"
    if len(text) > LONGEST:
        return f"{len(text)} characters"
    found = FOREIGN.search(text)
    if found:
        return f"a library's own words ({found[0]})"
    return None if CURES.search(text) else "says not what to do"


@contextmanager
def bounded() -> Iterator[None]:
    """Within it a case ends: by an alarm where it takes too long, by `MemoryError` where it takes too much."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TooLong

    # Of address space a browser's engine, which draws charts, sets aside far more than it uses; so data are bounded.
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text() if sys.platform == "linux" else ""
    used = 1024 * int(found[1]) if (found := re.search(r"VmData:\s+(\d+)", status)) else 0
    before = signal.signal(signal.SIGALRM, stop)
    if used:
        resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, hard))
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
        signal.signal(signal.SIGALRM, before)
