"""Opening loggers by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kontrast.train import loggers
from kontrast.train.loggers import mlflow, tensorboard, wandb


def test_every_file_is_a_name_and_none_is_loaded_before_it_is_asked_for() -> None:
    kinds = {"mlflow": mlflow.MLflow, "tensorboard": tensorboard.TensorBoard, "wandb": wandb.WandB}
    assert kinds.items() <= {name: loggers.find(name) for name in loggers.names()}.items()
    assert loggers.open_loggers([], folder=Path("nowhere"), name="run", recipe={}) == []


def test_unknown_names_and_options_name_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no logger 'wanb'; did you mean 'wandb'\?"):
        loggers.open_loggers(["wanb"], folder=tmp_path, name="run", recipe={})
    with pytest.raises(ValueError, match=r"'wandb' has no option 'projcet'; did you mean 'project'\? It has project"):
        loggers.open_loggers(["wandb"], folder=tmp_path, name="run", recipe={}, options={"wandb": {"projcet": "x"}})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "package"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")]
)
def test_a_package_that_is_missing_is_named(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    for part in ("mlflow.tracking", "mlflow.entities"):
        monkeypatch.setitem(__import__("sys").modules, part, None)
    with pytest.raises(ImportError, match=rf"logger {name} needs a package: pip install kontrast\[{name}\]"):
        loggers.open_loggers([name], folder=tmp_path, name="run", recipe={})


def test_if_one_cannot_be_opened_none_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Opens(loggers.Logger):
        def __init__(self, folder: Path, name: str, recipe: dict[str, Any], resume_step: int) -> None:
            pass

        def log(self, step: int, values: Any) -> None:
            pass

        def close(self) -> None:
            closed.append(True)

    class Fails(Opens):
        def __init__(self, folder: Path, name: str, recipe: dict[str, Any], resume_step: int) -> None:
            raise OSError("no space")

    kinds = {"tensorboard": Opens, "wandb": Fails}
    monkeypatch.setattr(loggers.LOGGERS, "make", lambda name, *arguments: kinds[name](*arguments))
    with pytest.raises(OSError, match="no space"):
        loggers.open_loggers(["tensorboard", "wandb"], folder=tmp_path, name="run", recipe={})
    assert closed == [True]
