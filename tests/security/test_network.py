"""Nothing asks the network for anything: not an import, not training, not a report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_demo import TINY
from tests.security.listening import cut_off, run

EVERY = """
import importlib, pkgutil, warnings, kontrast
warnings.simplefilter("ignore")
names = [m.name for m in pkgutil.walk_packages(kontrast.__path__, "kontrast.") if m.name != "kontrast.__main__"]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def test_importing_every_module(tmp_path: Path) -> None:
    done = run(tmp_path, "-c", EVERY)
    assert done.status == 0, done.said
    assert int(done.said.split()[-1]) > 100, "all of them were imported"
    assert done.tried == []


@pytest.mark.slow  # its representatives: the other tests here, and tests/cli/test_demo.py
def test_demo_and_report(tmp_path: Path) -> None:
    """Training with labels and without, evaluation, the doctor, pages; then a page again, with its charts as files."""
    demo = run(tmp_path, "-m", "kontrast", "demo", "--out", "runs", *TINY)
    assert demo.status == 0, demo.said
    assert demo.tried == []
    runs = sorted(path for path in (tmp_path / "runs").iterdir() if path.is_dir())
    assert len(runs) == 2
    assert (tmp_path / "runs" / "report.html").stat().st_size > 100_000
    words = ("report", *(str(path) for path in runs), "--out", "again.html", "--figures", "png")
    report = run(tmp_path, "-m", "kontrast", *words)
    assert report.status == 0, report.said
    assert report.tried == []
    assert list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    "code",
    [
        "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')",
        "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
        "import socket; socket.gethostbyname('example.org')",
        "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', "
        "'import urllib.request as r; r.urlopen(chr(104) + \"ttp://127.0.0.1:9\")'], check=True)",
    ],
    ids=["web", "address", "name", "datagram", "child"],
)
def test_who_tries_is_heard(tmp_path: Path, code: str) -> None:
    for alone in (True, False):
        done = run(tmp_path, "-W", "ignore", "-c", code, alone=alone)
        assert done.tried, "the guard hears"
        assert done.status != 0, "and refuses"


def test_compiled_libraries_are_cut_off_too(tmp_path: Path) -> None:
    """The charts' renderer asks by itself, unseen by Python; there the network is not there."""
    if not cut_off():
        pytest.skip("this kernel gives no network namespace to an ordinary user")
    done = run(
        tmp_path, "-c", "print(sorted(line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line))"
    )
    assert done.said.strip() == "['lo']", "no interface but the loop, which is down"


def test_a_local_machine_socket_is_no_network(tmp_path: Path) -> None:
    code = (
        "import socket; a, b = (socket.socket(socket.AF_UNIX) for _ in 'ab'); a.bind('s'); a.listen(); b.connect('s')"
    )
    done = run(tmp_path, "-W", "ignore", "-c", code)
    assert (done.status, done.tried) == (0, [])
