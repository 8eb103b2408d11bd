"""The script that counts attacks and checks packages: what it counts, and that it finds what is wrong."""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path

import pytest

import security
from guarding import packages


def test_tests_and_what_they_tried_are_counted() -> None:
    record = """<testsuites><testsuite>
    <testcase classname="tests.data.test_archives" name="a"/>
    <testcase classname="tests.data.test_archives" name="b"><failure/></testcase>
    <testcase classname="tests.security.test_readers" name="c">
    <properties><property name="tried" value="12"/></properties></testcase>
    <testcase classname="tests.security.test_network" name="d"><skipped/></testcase>
    </testsuite></testsuites>"""
    found = security.counted(record)
    assert found["tests/data/test_archives.py"] == (1, 1, 2)
    assert found["tests/security/test_readers.py"] == (1, 0, 12)
    assert found["tests/security/test_network.py"] == (0, 0, 0)
    assert "| archives (`tests/data/test_archives.py`) | 2 | 2 | 1 |" in security.table(found)


def test_the_files_of_attacks_are_there() -> None:
    assert [file for file in security.ATTACKS if not (security.ROOT / file).is_file()] == []


def test_the_page_has_its_marks_and_figures() -> None:
    text = security.PAGE.read_text(encoding="utf-8")
    assert security.page("x", text) != text
    assert "got through |" in text, "run python torture/security.py"
    with pytest.raises(ValueError, match="lacks the marks"):
        security.page("x", "no marks")


def package(folder: Path, content: str = "x = 1\n") -> Distribution:
    """An installed package of one file."""
    import base64
    import hashlib

    info = folder / "made-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (folder / "made.py").write_text(content)
    (info / "METADATA").write_text("Name: made\nVersion: 1.0\nLicense-Expression: MIT\n")
    sum_ = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).decode().rstrip("=")
    rows = [f"made.py,sha256={sum_},{len(content)}", "__pycache__/made.pyc,,", "made-1.0.dist-info/RECORD,,"]
    (info / "RECORD").write_text("\n".join(rows) + "\n")
    return PathDistribution(info)


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    made = package(tmp_path)
    assert packages.changed(made) == []
    (tmp_path / "made.py").write_text("import os\n")
    assert packages.changed(made) == ["made.py"]
    (tmp_path / "made.py").unlink()
    assert packages.changed(made) == ["made.py"]


def test_every_pinned_package_has_its_hashes() -> None:
    """Else pip would refuse the lock."""
    lock = packages.locked(packages.LOCK.read_text(encoding="utf-8"))
    assert {"torch", "numpy", "ruff"} <= set(lock)
    assert [name for name, (_, hashes) in lock.items() if not hashes] == []
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for _, hashes in lock.values() for digest in hashes)


def test_what_is_wrong_with_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, lock = package(tmp_path), tmp_path / "lock"
    monkeypatch.setattr(packages, "LOCK", lock)
    monkeypatch.setattr(packages, "installed", lambda: {"made": made})
    monkeypatch.setattr(packages, "fits", lambda: "No broken requirements found.")
    for line, said in (
        ("made==1.0 --hash=sha256:12", []),
        ("made==2.0 --hash=sha256:12", ["made is 1.0, pinned is 2.0"]),
        ("other==1.0 --hash=sha256:12", ["other is not installed"]),
        ("made==1.0", ["made has no hash in requirements.lock"]),
    ):
        lock.write_text(f"# a comment\n{line}\n")
        assert security.audited()[1] == said
    (tmp_path / "made.py").write_text("changed")
    lock.write_text("made==1.0 --hash=sha256:12\n")
    assert security.audited()[1] == ["made: made.py is not as its wheel had it"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("License-Expression: BSD-3-Clause AND MIT", "BSD and MIT"),
        ("Classifier: License :: OSI Approved :: Apache Software License", "Apache-2.0"),
        ("License: GNU Lesser General Public License", "LGPL"),
        ("License: GPL-3.0", "GPL"),
        ("Summary: nothing", "not said"),
    ],
)
def test_licences(tmp_path: Path, said: str, kind: str) -> None:
    made = package(tmp_path)
    (tmp_path / "made-1.0.dist-info" / "METADATA").write_text(f"Name: made\nVersion: 1.0\n{said}\n")
    assert packages.licence(made) == kind
