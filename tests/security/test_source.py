"""The sources call nothing that runs, unpickles, unpacks or fetches what a file or an address holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarding import sources

BAD = {
    "unpickle": [
        "import pickle\npickle.load(f)",
        "from pickle import loads as innocent",
        "import torch\ntorch.load(p)",
        "import torch as t\nt.load(p, weights_only=False)",
        "from torch import load\nload(p, weights_only=flag)",
        "import numpy as np\nnp.load(p)",
        "import numpy as np\nnp.load(p, allow_pickle=True)",
        "from numpy import load as read\nread(p)",
        "import joblib",
        "import marshal",
        "def f():\n    import shelve",
        "import pandas as pd\npd.read_pickle(p)",
    ],
    "read YAML with objects": ["import yaml\nyaml.load(t)", "from yaml import unsafe_load\nunsafe_load(t)"],
    "run a file's content": [
        "eval(t)",
        "exec(t)",
        "compile(t, '', 'exec')",
        "__import__(n)",
        "import torch\ntorch.jit.load(p)",
    ],
    "start a shell": [
        "import os\nos.system(c)",
        "import subprocess\nsubprocess.run(c, shell=True)",
        "import subprocess as s\ns.Popen(c, shell=flag)",
    ],
    "unpack without looking": [
        "archive.extractall(p)",
        "import zipfile\nzipfile.ZipFile(p).extract(n)",
        "import shutil\nshutil.unpack_archive(p)",
    ],
    "ask the network": [
        "import urllib.request\nurllib.request.urlopen(u)",
        "from urllib import request\nrequest.urlopen(u)",
        "import socket",
        "import requests",
        "from http import client",
    ],
}
GOOD = [
    "import torch\ntorch.load(p, weights_only=True)",
    "import numpy as np\nnp.load(p, allow_pickle=False)",
    "import yaml\nyaml.safe_load(t)",
    "model.eval()",
    "import re\nre.compile(p)",
    "import subprocess\nsubprocess.run([c], check=True)",
]


@pytest.mark.parametrize(("what", "code"), [(what, code) for what, codes in BAD.items() for code in codes])
def test_it_is_found(what: str, code: str) -> None:
    assert what in {at.what for at in sources.found(code)}


@pytest.mark.parametrize("code", GOOD)
def test_nothing_is_found(code: str) -> None:
    assert list(sources.found(code)) == []


def test_the_sources() -> None:
    files, wrong, stale = sources.scanned()
    assert files > 300
    assert wrong == [], "see torture/guarding/sources.py: an exception needs a reason there"
    assert stale == [], "exceptions that nothing needs"


def test_the_scripts_and_documents_too() -> None:
    """Those that a reader runs: nothing unpickles there either. (They may start processes and load their own files.)"""
    root = Path(__file__).parents[2]
    for folder in ("docs", "examples", "benchmarks", "scripts"):
        _, wrong, _ = sources.scanned(root / folder)
        assert [at for at in wrong if at.what in ("unpickle", "read YAML with objects", "start a shell")] == []
