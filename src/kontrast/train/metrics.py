"""Old names of the log in `kontrast.runs`, until every stage has moved to it."""

from pathlib import Path
from typing import Any

from kontrast.runs import WALL_CLOCK
from kontrast.runs import MetricsLog as Metrics
from kontrast.runs.reading import read_metrics_file

__all__ = ["WALL_CLOCK", "Metrics", "read_metrics"]


def read_metrics(path: Path) -> list[dict[str, Any]]:
    return list(read_metrics_file(path))
