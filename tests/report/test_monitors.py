"""The charts of monitors: declared by the monitors, read without importing them."""

from __future__ import annotations

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


def test_a_value_that_no_monitor_declares_gets_a_plain_chart() -> None:
    charts = charts_of([{"step": 1, "loss": 2.0, "monitor/my_norm": 2.0}])
    assert charts["my-norm"] == MonitorChart(
        title="My norm", series={"my_norm": "my norm"}, compared={"my_norm": ("my norm", "")}
    )
