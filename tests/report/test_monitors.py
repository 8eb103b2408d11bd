"""The charts of monitors: declared by the monitors, read without importing them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kontrast.report.monitors import charts_of, declared
from kontrast.runs import MonitorChart
from kontrast.train import monitors


def test_what_is_read_is_what_the_monitors_have() -> None:
    assert declared() == {name: chart for name in monitors.names() if (chart := monitors.find(name).chart) is not None}


def test_every_value_of_a_monitor_is_drawn_or_said_to_be_left_out() -> None:
    """TCL's values with labels: the most that monitors write."""
    draw = torch.Generator().manual_seed(0)
    x, z, y = torch.randn(40, 8, generator=draw), torch.randn(40, 2, 4, generator=draw), torch.arange(40) % 4
    snapshot = monitors.Snapshot(
        features=x, embeddings=z, labels=y, reference=x, reference_labels=y, temperature=0.1, k1=5.0, k2=1.0
    )
    lines = [{"step": 1, **monitors.measure(monitors.names(), snapshot)}]
    assert set(charts_of(lines)) == set(declared())


CHART = 'MonitorChart(title="Spread", series={"spread": "features"})'


@pytest.mark.parametrize(
    ("chart", "message"),
    [
        (CHART.replace('"Spread"', '"Spread" + " x"'), r"spread\.py, line 4: chart must have literal values"),
        (CHART.replace("series=", "**"), r"spread\.py, line 4: chart must have literal values"),
        ("TABLE", r"spread\.py, line 4: chart must have literal values"),
        (CHART.replace("series", "serie"), r"spread\.py: chart: .* unexpected keyword argument 'serie'"),
        (
            CHART.replace('{"spread": "features"}', '["spread"]'),
            r"spread\.py: chart: series=\['spread'\]: must be a dict",
        ),
        (
            CHART.replace(")", ', compared={"spread": "Spread"})'),
            r"spread\.py: chart: compared=.* must be a dict of pairs",
        ),
        ('"', r"spread\.py is no Python, line 4"),
    ],
)
def test_a_chart_that_cannot_be_read_is_a_warning_and_the_others_stay(
    chart: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = declared()
    (tmp_path / "spread.py").write_text(
        f"from kontrast.train.monitors import Monitor\n\nclass Spread(Monitor):\n    chart = {chart}\n"
    )
    monkeypatch.setattr(monitors, "__path__", [*monitors.__path__, str(tmp_path)])
    declared.cache_clear()
    try:
        with pytest.warns(UserWarning, match=message):
            assert declared() == before
        assert charts_of([{"step": 1, "monitor/spread": 2.0}])["spread"].title == "Spread"
    finally:
        declared.cache_clear()


def test_a_value_that_no_monitor_declares_gets_a_plain_chart() -> None:
    charts = charts_of([{"step": 1, "loss": 2.0, "monitor/my_norm": 2.0}])
    assert charts["my-norm"] == MonitorChart(
        title="My norm", series={"my_norm": "my norm"}, compared={"my_norm": ("my norm", "")}
    )
