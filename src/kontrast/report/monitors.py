"""How the values of monitors are drawn. Each monitor says so itself: its class attribute ``chart``.

The attribute is read from the monitor's source, because importing a monitor would import torch.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

import kontrast
from kontrast.runs import MonitorChart
from kontrast.runs.schemas import MetricsLine

PREFIX = "monitor/"


@functools.cache
def declared() -> dict[str, MonitorChart]:
    """The chart of each monitor that has one, by the monitor's name.

    >>> declared()["uniformity"].title
    'Uniformity'
    """
    folder = Path(kontrast.__file__).parent / "train" / "monitors"
    charts = {}
    for file in sorted(folder.glob("[!_]*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Call)
                and ast.unparse(node.targets[0]) == "chart"
            ):
                keywords = {word.arg: ast.literal_eval(word.value) for word in node.value.keywords if word.arg}
                charts[file.stem.replace("_", "-")] = MonitorChart(**keywords)
    return dict(sorted(charts.items(), key=lambda item: item[1].order))


def charts_of(lines: Iterable[MetricsLine]) -> dict[str, MonitorChart]:
    """The charts of all monitors, and a plain one for each value in the log that no monitor declares.

    >>> list(charts_of([{"step": 1, "monitor/my_norm": 2.0}]))[-1]
    'my-norm'
    """
    charts = dict(declared())
    known = {key for chart in charts.values() for key in (*chart.series, *chart.compared, *chart.not_drawn)}
    keys = dict.fromkeys(key.removeprefix(PREFIX) for line in lines for key in line if key.startswith(PREFIX))
    for key in keys:
        if key not in known:
            title = key.replace("_", " ")
            chart = MonitorChart(title=title.capitalize(), series={key: title}, compared={key: (title, "")})
            charts[key.replace("_", "-")] = chart
    return charts
