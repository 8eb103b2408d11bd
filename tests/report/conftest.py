"""A browser for the modules that need one, and the page of a real run, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kontrast import report
from tests.report.browser import Browser, started
from tests.train.small import recipe


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed with its module: playwright keeps an event loop running meanwhile."""
    with started() as found:
        yield found


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TCL on some of fashion-mini, for two epochs; as many pictures as a page ever has."""
    from kontrast.pipeline import run_recipe

    changes = {"data.name": "fashion-mini", "data.limit": 300, "data.test_limit": 1000, "train.epochs": 2}
    made = recipe("tcl", tmp_path_factory.mktemp("runs"), **changes, **{"evaluate.protocols": ["knn20", "probe"]})
    return run_recipe(made).path


@pytest.fixture(scope="session")
def real_page(real_run: Path) -> Path:
    """Its report."""
    return report.write([real_run])
