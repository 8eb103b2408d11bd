"""How the values of monitors are drawn. Each monitor says so itself: its class attribute ``chart``.

The attribute is read from the monitor's source, because importing a monitor would import torch. A monitor whose chart
cannot be read gets a warning, and a plain chart for each of its values, as one without a chart.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable

from kontrast.registry import FAMILIES, PartError
from kontrast.runs import MonitorChart
from kontrast.runs.schemas import MetricsLine

PREFIX = "monitor/"


@functools.cache
def declared() -> dict[str, MonitorChart]:
    """The chart of each monitor that has one, by the monitor's name.

    >>> declared()["uniformity"].title
    'Uniformity'
    """
    family, charts = FAMILIES["monitor"], {}
    for name in family:
        try:
            if chart := family.declared(name, "chart"):
                charts[name] = MonitorChart(**chart)
        except (PartError, TypeError, ValueError) as error:
            problem = str(error) if isinstance(error, PartError) else f"{family.file(name)}: chart: {error}"
            warnings.warn(f"{problem}. Reports draw the monitor's values without it", UserWarning, stacklevel=2)
    return dict(sorted(charts.items(), key=lambda item: item[1].order))


def charts_of(lines: Iterable[MetricsLine]) -> dict[str, MonitorChart]:
    """The charts of all monitors, and a plain one for each value in the log that no monitor declares.

    >>> list(charts_of([{"step": 1, "monitor/my_norm": 2.0}]))[-1]
    'my-norm'
    """
    charts = dict(declared())
    declared_keys = {key for chart in charts.values() for key in (*chart.series, *chart.compared, *chart.not_drawn)}
    keys = dict.fromkeys(key.removeprefix(PREFIX) for line in lines for key in line if key.startswith(PREFIX))
    for key in keys:
        if key not in declared_keys:
            title = key.replace("_", " ")
            chart = MonitorChart(title=title.capitalize(), series={key: title}, compared={key: (title, "")})
            charts[key.replace("_", "-")] = chart
    return charts
