"""Options are checked where they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast.data.options import Options, default_root


def test_the_root_is_the_variables_or_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KONTRAST_DATA", str(tmp_path))
    assert default_root() == Options().where == tmp_path
    monkeypatch.delenv("KONTRAST_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_root() == tmp_path / ".cache" / "kontrast"
    assert Options(root=Path("here")).where == Path("here")


def test_where_caches_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert Options().cache_folder is None
    assert Options(cache="there").cache_folder == Path("there")
    assert Options(root=Path("here"), cache=True).cache_folder == Path("here/images")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Options(cache="~/there").cache_folder == tmp_path / "there"
    with pytest.raises(ValueError, match="cache is '~nobody-here/x', but there is no such user"):
        _ = Options(cache="~nobody-here/x").cache_folder


@pytest.mark.parametrize(
    ("given", "files", "limit"), [(None, 100, 10), (None, 5000, 50), (3, 5000, 3), (0, 9, 0), (0.1, 50, 5)]
)
def test_how_many_bad_files_are_allowed(given: float | None, files: int, limit: int) -> None:
    assert Options(max_bad=given).bad_limit(files) == limit


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"size": 2.5},
        {"channels": 4},
        {"check": "some"},
        {"max_bad": -1},
        {"max_bad": "few"},
        {"labelled": "no"},
        {"memory": "2GB"},
    ],
)
def test_wrong_options_say_what_is_expected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Options(**wrong)
