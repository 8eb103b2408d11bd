"""Arrays of an analysis are what their names say, or left out and told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kontrast.pipeline import run_recipe
from kontrast.report import write
from kontrast.runs.arrays import FORMS, fit_arrays, read_arrays
from tests.train.small import recipe

HARM: dict[str, Any] = {
    "gone": lambda x: None,
    "empty": lambda x: x[:0],
    "short": lambda x: x[: len(x) // 2],
    "transposed": lambda x: x.T,
    "one axis more": lambda x: x[..., None],
    "no number": lambda x: np.full(x.shape, np.nan),
    "words": lambda x: np.full(x.shape, "x"),
    "huge": lambda x: np.full(x.shape, 2**40),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_recipe(recipe("simclr", tmp_path_factory.mktemp("run"))).path


def test_what_a_run_writes_fits(run: Path) -> None:
    messages: list[str] = []
    found = read_arrays(run / "analysis.npz", messages)
    assert messages == []
    with np.load(run / "analysis.npz") as written:
        assert set(written.files) == set(found) <= set(FORMS)
    assert set(read_arrays(run / "analysis.npz", messages, ["labels"])) == {"labels"}


@pytest.mark.parametrize("how", [name for name in HARM if name != "gone"])
def test_what_does_not_fit_is_named(run: Path, how: str) -> None:
    """Alone it may be right: half of the cosines are cosines. With another of its axes it is not."""
    whole = read_arrays(run / "analysis.npz", [])
    harmed = HARM[how](whole["labels"])
    messages: list[str] = []
    found = fit_arrays({**whole, "labels": harmed}, messages)
    if how in ("transposed", "huge"):
        assert messages == [], "of one axis, and whole numbers"
    elif how == "empty":
        assert (messages, "labels" in found) == ([], False)
    else:
        assert "labels" not in found
        assert messages[0].startswith(f"labels is {harmed.dtype} {list(harmed.shape)}; expected whole numbers [100]")


def test_rows_that_there_are_not() -> None:
    messages: list[str] = []
    arrays = {"features": np.zeros((3, 2), np.float32), "thumbnail_rows": np.array([0, 3])}
    assert set(fit_arrays(arrays, messages)) == {"features"}
    assert messages == ["thumbnail_rows points to rows that do not exist"]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_page_is_drawn_whatever_the_arrays_are(run: Path, tmp_path: Path, name: str) -> None:
    whole = read_arrays(run / "analysis.npz", [])
    for file in run.iterdir():
        if file.is_file() and file.name != "analysis.npz":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    for how, harm in HARM.items():
        arrays = {key: harm(x) if key == name else x for key, x in whole.items()}
        np.savez(tmp_path / "analysis.npz", **{key: x for key, x in arrays.items() if x is not None})  # type: ignore[arg-type]
        assert write([tmp_path]).stat().st_size > 10_000, how
