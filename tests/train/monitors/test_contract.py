"""What holds for every monitor, whichever file declares it."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest
import torch

from kontrast.train import monitors
from tests.train.monitors.snapshots import snapshot

NAMES = monitors.names()


def test_every_file_is_a_name() -> None:
    files = Path(monitors.__file__).parent.glob("[!_]*.py")
    assert sorted(file.stem.replace("_", "-") for file in files) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_finite_floats_under_one_prefix_and_the_snapshot_as_it_was(name: str) -> None:
    given = snapshot()
    before = [given.features.clone(), given.embeddings.clone()]
    for key, value in monitors.find(name).values(given).items():
        assert isinstance(value, float | int), f"monitor {name}: {key!r} must be a number, not a tensor: use .item()"
    values = monitors.measure([name], given)
    assert values
    assert all(key.startswith("monitor/") and type(value) is float for key, value in values.items())
    assert torch.tensor(list(values.values())).isfinite().all()
    assert torch.equal(given.features, before[0])
    assert torch.equal(given.embeddings, before[1])
    assert monitors.measure([name], given) == values


@pytest.mark.parametrize("name", NAMES)
def test_few_rows_give_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert monitors.measure([name], snapshot(m=8))


@pytest.mark.parametrize("name", NAMES)
def test_a_value_has_a_name_of_its_own(name: str) -> None:
    monitors.measure([name, *NAMES], snapshot())  # else an error that names both monitors


@pytest.mark.parametrize("name", NAMES)
def test_the_chart_names_values_of_its_monitor(name: str) -> None:
    monitor = monitors.find(name)
    values = monitor.values(snapshot(k1=5.0, k2=1.0))
    for field in ("series", "compared", "not_drawn") if monitor.chart else ():
        for key in getattr(monitor.chart, field):
            assert key in values, f"monitor {name}: chart.{field} has {key!r}: must be one of {sorted(values)}"


COSINES = ["effective-rank", "entropy", "gradient-response", "knn", "similarity", "tolerance", "uniformity"]


@pytest.mark.parametrize("name", COSINES)
def test_the_scale_of_rows_does_not_matter(name: str) -> None:
    """Cosines are all that these look at; in float64 a scale of 3 rounds at 1e-15, the kNN's in float32 at 1e-7."""
    given = snapshot(features=snapshot().features.double(), embeddings=snapshot().embeddings.double())
    scaled = snapshot(features=given.features * 3, embeddings=given.embeddings * 3, reference=given.reference)
    assert monitors.measure([name], scaled) == pytest.approx(monitors.measure([name], given), abs=1e-6)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize("temperature", [False, True])
@pytest.mark.parametrize("response", [False, True])
def test_the_default_ones_are_all_that_can_run(labels: bool, views: int, temperature: bool, response: bool) -> None:
    given = snapshot(
        views=views, **({} if labels else {"labels": None}), **({} if temperature else {"temperature": None})
    )
    chosen = monitors.default(labels=labels, views=views, temperature=temperature, response=response)
    monitors.measure(chosen, given)
    for name in set(NAMES) - set(chosen) - (set() if response else {"gradient-response"}):
        with pytest.raises(ValueError, match=rf"monitor '{name}' .*leave it out"):
            monitors.measure([name], given)
    assert ("gradient-response" in chosen) == (response and temperature)


def test_a_snapshot_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(ValueError, match=r"seen features \[40, 12\] and embeddings \[40, 8\]"):
        snapshot(embeddings=torch.randn(40, 8))
    with pytest.raises(ValueError, match=r"labels \[39\] for 40 images"):
        snapshot(labels=torch.zeros(39))


MONITOR = """from kontrast.train.monitors import Monitor, Snapshot

class Mine(Monitor):
    def values(self, snapshot: Snapshot) -> dict[str, float]:
        return {"mine": RESULT}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            MONITOR.replace("RESULT", "1 / 0"),
            "monitor 'mine' failed with ZeroDivisionError: division by zero; correct it",
        ),
        (MONITOR.replace("RESULT", "[1.0]"), r"monitor 'mine': its value 'mine' must be a number, got \[1\.0\]"),
        (MONITOR.replace("RESULT", "'1'"), r"monitor 'mine': its value 'mine' must be a number, got '1'"),
        (MONITOR.replace("RESULT", "snapshot.labels"), r"its value 'mine' must be a number, got tensor"),
        (MONITOR.replace('{"mine": RESULT}', "3.0"), r"monitor 'mine': values must return a dict, .* got 3\.0"),
        (MONITOR.replace('"mine": RESULT', '"uniformity": 1.0'), "monitors 'mine' and 'uniformity' both have a value"),
    ],
)
def test_a_mistake_in_a_monitor_names_it(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.setattr(monitors, "__path__", [*monitors.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{monitors.__name__}.mine", raising=False)
    with pytest.raises(ValueError, match=message):
        monitors.measure(["mine", "uniformity"], snapshot())


def test_a_chart_of_no_value_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = 'MonitorChart(title="Mine", series={"mime": "features"})'
    text = MONITOR.replace("RESULT", "1.0").replace("(Monitor):", f"(Monitor):\n    chart = {chart}")
    (tmp_path / "mine.py").write_text(f"from kontrast.runs import MonitorChart\n{text}")
    monkeypatch.setattr(monitors, "__path__", [*monitors.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{monitors.__name__}.mine", raising=False)
    message = (
        r"monitor 'mine': chart\.series has 'mime': must be a name of its values; did you mean 'mine'\? They are mine"
    )
    with pytest.warns(UserWarning, match=message):
        assert monitors.measure(["mine"], snapshot()) == {"monitor/mine": 1.0}


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no monitor 'entropi'; did you mean 'entropy'\?"):
        monitors.measure(["entropi"], snapshot())
