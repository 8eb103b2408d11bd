"""What lets nothing in: the sources looked through, the attacks of the tests counted, the packages checked.

    python torture/security.py             all of it, and docs/reliability/security.md anew; status 1 if one fails
    python torture/security.py --long      the attacks in their long form

The attacks are tests (`ATTACKS`); a test says how much it tried where that is more than one thing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

from guarding import packages, sources

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability" / "security.md"
BEGIN, END = "<!-- figures: written by python torture/security.py -->\n", "<!-- end of figures -->\n"
ATTACKS = {
    "tests/security/test_readers.py": "malicious files to readers",
    "tests/data/sets/test_pickled.py": "CIFAR's pickles",
    "tests/data/test_archives.py": "archives",
    "tests/data/test_downloads.py": "downloads",
    "tests/data/sets/test_fetching.py": "sets fetched from a server",
    "tests/security/test_reports.py": "hostile words and charts in pages",
    "tests/security/test_network.py": "the network denied",
    "tests/security/test_source.py": "forbidden calls that the search must find",
}


def attacked(long: bool = False) -> dict[str, tuple[int, int, int]]:
    """Of each file: tests passed, tests failed, and how many things they tried."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.xml"
        words = [
            "-q",
            "-n",
            "2",
            "-o",
            "junit_family=xunit1",
            *(["-m", ""] if long else []),
            f"--junitxml={record}",
            *ATTACKS,
        ]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env, check=False)
        return counted(record.read_text(encoding="utf-8"))


def counted(record: str) -> dict[str, tuple[int, int, int]]:
    """The same of pytest's record (JUnit's XML)."""
    found = dict.fromkeys(ATTACKS, (0, 0, 0))
    for case in ET.fromstring(record).iter("testcase"):
        file = next(f for f in ATTACKS if case.get("classname", "").startswith(f.removesuffix(".py").replace("/", ".")))
        good, bad, tried = found[file]
        failed = any(case.find(tag) is not None for tag in ("failure", "error"))
        skipped = case.find("skipped") is not None
        each = [int(p.get("value", "1")) for p in case.iter("property") if p.get("name") == "tried"]
        found[file] = (good + (not failed and not skipped), bad + failed, tried + (0 if skipped else sum(each) or 1))
    return found


def table(rows: dict[str, tuple[int, int, int]]) -> str:
    """Attacks as a table."""
    lines = ["| attacks | tests | tried | got through |", "|---|---:|---:|---:|"]
    lines += [
        f"| {ATTACKS[file]} (`{file}`) | {good + bad} | {tried:,} | {bad} |"
        for file, (good, bad, tried) in rows.items()
    ]
    good, bad, tried = map(sum, zip(*rows.values(), strict=True))
    return "\n".join([*lines, f"| **all** | {good + bad} | {tried:,} | {bad} |"])


def audited() -> tuple[str, list[str]]:
    """The packages in words, and what is wrong with them."""
    there, lock = packages.installed(), packages.locked(packages.LOCK.read_text(encoding="utf-8"))
    wrong = [f"{name} is not installed" for name in lock if name not in there]
    wrong += [f"{name} has no hash in requirements.lock" for name, (_, hashes) in lock.items() if not hashes]
    wrong += [
        f"{name} is {there[name].version}, pinned is {version}"
        for name, (version, _) in lock.items()
        if name in there and there[name].version != version
    ]
    fits = packages.fits()
    wrong += [] if fits == "No broken requirements found." else [f"pip check: {fits}"]
    damaged = {name: packages.changed(there[name]) for name in lock if name in there}
    wrong += [f"{name}: {files[0]} is not as its wheel had it" for name, files in damaged.items() if files]
    files = sum(len(packages.listed(there[name])) for name in lock if name in there)
    kinds = Counter(packages.licence(there[name]) for name in lock if name in there)
    said = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items(), key=lambda kind: (-kind[1], kind[0])))
    apart = sorted(name for name in there if name not in lock and name != "kontrast")
    text = (
        f"- {len(lock)} packages are pinned in requirements.lock, with the hashes of their files; {len(wrong)} of them "
        f"are missing here, of another version, damaged or at odds with others (`pip check`: {fits})\n"
        f"- {files:,} of their files compared with the SHA-256 that their wheels list: "
        f"{sum(map(len, damaged.values()))} differ\n"
        f"- licences, as the packages say: {said}\n"
        f"- not pinned, {len(apart)}: {', '.join(apart)}\n"
    )
    return text, wrong


def page(figures: str, before: str) -> str:
    """The page with new figures between the marks.

    >>> page("new", f"top\\n{BEGIN}old{END}bottom") == f"top\\n{BEGIN}\\nnew\\n{END}bottom"
    True
    """
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks the marks {BEGIN.strip()} and {END.strip()}")
    return f"{head}{BEGIN}\n{figures}\n{END}{tail}"


def main() -> int:
    """Status 1 if anything got through or is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--long", action="store_true", help="the attacks in their long form")
    asked = parser.parse_args()
    count, findings, stale = sources.scanned()
    audit, wrong = audited()
    rows = attacked(asked.long)
    for at in findings:
        wrong.append(f"src/kontrast/{at.file}:{at.line} would {at.what}: {at.code}")
    wrong += [f"an exception that nothing needs: {file} may {what}" for file, what in stale]
    bad = sum(bad for _, bad, _ in rows.values())
    figures = (
        f"Measured {datetime.date.today()}, Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}{', attacks in their long form' if asked.long else ''}.\n\n{table(rows)}\n\n"
        f"- {count} source files looked through for calls that run, unpickle, unpack or fetch: {len(findings)} found, "
        f"beside {len(sources.ALLOWED)} exceptions with their reasons (`torture/guarding/sources.py`)\n{audit}"
    )
    PAGE.write_text(page(figures, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(figures, *wrong, sep="\n")
    return int(bool(wrong or bad))


if __name__ == "__main__":
    sys.exit(main())
