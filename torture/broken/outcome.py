"""What came of a case.

| verdict | |
|---|---|
| told | an error, or a line on stderr, that names the file |
| same | read as if nothing had happened, and what was read is what was written (the harm hit bytes without meaning) |
| went on | told, and the same command (after the disk was seen to) went on and ended as an undisturbed run does |
| missed | anything else: another content taken for the right one, an error that does not name the file, another end |
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

VERDICTS = ("told", "same", "went on", "missed")
HARMS = ("flipped", "cut", "gone")


@dataclass
class Row:
    """A line of the table: a file, what befell it, and how many cases ended how."""

    what: str
    fault: str
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)  # of the cases that were missed, what was seen

    def add(self, verdict: str, seen: str = "") -> None:
        """Counts a case."""
        self.counts[verdict] += 1
        if verdict == "missed":
            self.faults.append(seen)

    def line(self) -> str:
        """Of a table in Markdown."""
        cells = [self.what, self.fault, self.counts.total(), *(self.counts[verdict] for verdict in VERDICTS)]
        return "| " + " | ".join(map(str, cells)) + " |"


def harmed(path: Path, harm: str, draw: random.Random) -> str:
    """Does it to the file, and says what."""
    content = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
        return f"{path.name} gone"
    if harm == "cut":
        length = draw.randrange(len(content))
        path.write_bytes(content[:length])
        return f"{path.name} cut at {length} of {len(content)}"
    bit = draw.randrange(8 * len(content))
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)
    return f"bit {bit} of {path.name} flipped"
