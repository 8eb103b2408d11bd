"""Standard output and error for as long as a command runs: closed, full, unread, or in an encoding that lacks letters.

What is said on standard error is no reason to end: if it cannot be written, the command works on in silence. Results
that cannot be written to standard output are: if nobody reads them (``kontrast list | head -1``) the command ends with
status 141 and no words, as others do; if the disk is full, with a message. What the encoding lacks is written out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO, cast

UNREAD = 141  # 128 + SIGPIPE


class _Stream(ABC):
    """A stream of text; what becomes of an error in writing is in `_failed`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        with contextlib.suppress(AttributeError, ValueError, OSError):  # what a test puts in its place has no encoding
            stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._failed(error)
            return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._failed(error)

    @abstractmethod
    def _failed(self, error: OSError) -> None:
        """What becomes of it."""

    def _into_nothing(self) -> None:
        """What is still to be written, at the latest when Python ends, goes nowhere."""
        with contextlib.suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self._stream.fileno())
            os.close(nothing)


class _Error(_Stream):
    def _failed(self, error: OSError) -> None:
        if not isinstance(error, BlockingIOError):  # one whose reader is slow may be read again
            self._into_nothing()


class _Output(_Stream):
    def _failed(self, error: OSError) -> NoReturn:
        self._into_nothing()
        if isinstance(error, BrokenPipeError):
            raise SystemExit(UNREAD) from None
        why = (error.strerror or str(error)).lower()
        raise OSError(f"standard output could not be written: {why}; what the command saved is in its files") from None


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Inside it the standard streams are as the module says; afterwards they are as before."""
    before = sys.stdout, sys.stderr
    for fd in (0, 1, 2):  # a closed one's number would go to the next file that is opened, and prints into that
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    with contextlib.ExitStack() as opened:
        now = [s or opened.enter_context(open(os.devnull, "w", encoding="utf-8")) for s in before]
        sys.stdout, sys.stderr = cast(TextIO, _Output(now[0])), cast(TextIO, _Error(now[1]))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
