"""What SupCon and TCL are stable against: one thing changes at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kontrast.experiments.cell import At, Value
from kontrast.experiments.experiment import Chart, Experiment
from kontrast.experiments.outcome import KNN, PROBE
from kontrast.experiments.papers.tcl._scale import LINEAR, METHODS, SMALL, STUDY, about_cpu, cpu, presets, tcl_wins
from kontrast.recipe import Recipe
from kontrast.recipes import tcl as book

RATES = "SupCon has TCL's learning rates, which alone are in print for these studies: an assumption."


def _study(
    name: str,
    axis: str,
    title: str,
    section: str,
    values: Sequence[Value],
    paper: Callable[[At], Recipe],
    small: Callable[[At], Mapping[str, Any]],
    small_values: Sequence[Value],
    about: str,
    *,
    log_x: bool = False,
) -> Experiment:
    """One of the stability studies: SupCon and TCL while one thing changes."""
    axes: dict[str, Sequence[Value]] = {"data": ("fashion-mini",), axis: small_values}
    return Experiment(
        name=name,
        title=title,
        source=f"TCL, supplement, section {section}",
        axes={"data": (book.STUDIED,), axis: values, "method": METHODS},
        presets=presets(
            lambda at: _on(paper(at), at),
            lambda at: cpu(str(at["method"]), at, {**STUDY, **small(at)}),
            axes=axes,
            few={axis: small_values[:2]},
            about=f"{about_cpu(STUDY)} {about} {RATES}",
            full=RATES,
        ),
        measures=(LINEAR, PROBE, KNN),
        rows=axis,
        claims=tcl_wins(within=(axis,)),
        charts=[
            Chart(
                "accuracy", "Linear accuracy (%)", "line" if log_x else "points", axis, "linear", "method", log_x=log_x
            )
        ],
    )


def _on(made: Recipe, at: At) -> Recipe:
    """The paper's recipe on other data than the study's, where the place names some."""
    return made if at["data"] == book.STUDIED else made.override({"data": at["data"]})


def _whole(value: Value) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no whole number")
    return value


def _batch(at: At) -> dict[str, Any]:
    size = _whole(at["batch"])
    k1 = {"method.k1": book.BATCHES[size][1]} if at["method"] == "tcl" and size in book.BATCHES else {}
    # The 600 steps that 60 epochs of 10,000 images have at 1,024 are too few to learn (docs/experiments/trials.md).
    epochs = max(SMALL["train.epochs"], SMALL["train.epochs"] * size // 256)
    return {"train.batch_size": size, "optim.lr": 0.1 * size / 128, "train.epochs": epochs, **k1}


def _width(at: At) -> dict[str, Any]:
    name = str(at["encoder"])
    if not name.startswith("width "):
        return {"encoder": name}
    width, depth = name.removeprefix("width ").split(" depth ")
    return {"encoder.width": int(width), "encoder.depth": int(depth)}


def _augmentation(at: At) -> dict[str, Any]:
    sharper = {"method.k2": 1.2} if at["method"] == "tcl" and at["augmentation"] == "simaugment" else {}
    return {"augment": [at["augmentation"]] * 2, **sharper}


STUDIES = [
    _study(
        "tcl-encoders",
        "encoder",
        "Encoders",
        "2.2.1",
        tuple(book.ENCODERS),
        lambda at: book.encoder_study(str(at["encoder"]), str(at["method"])),
        _width,
        ("width 8 depth 1", "width 16 depth 1", "width 16 depth 2", "width 24 depth 1"),
        "Small-resnets of several widths and depths for ResNet-18, 34, 50 and 101.",
    ),
    _study(
        "tcl-batch-sizes",
        "batch",
        "Batch sizes",
        "2.2.2",
        tuple(book.BATCHES),
        lambda at: book.batch_study(_whole(at["batch"]), str(at["method"])),
        _batch,
        (32, 64, 128, 256, 512, 1024),
        "Learning rate 0.1·batch/128 throughout (the paper's at 32 and 64 are ten times below that trend). Batches of "
        "512 have twice, of 1,024 four times the epochs: as many steps as those of 256.",
        log_x=True,
    ),
    _study(
        "tcl-projector",
        "out",
        "Projector output sizes",
        "2.2.3",
        tuple(book.PROJECTORS),
        lambda at: book.projector_study(_whole(at["out"]), str(at["method"])),
        lambda at: {"head.out": at["out"]},
        (16, 32, 64, 128, 256),
        "Sizes 16 to 256.",
        log_x=True,
    ),
    _study(
        "tcl-augmentations",
        "augmentation",
        "Augmentations",
        "2.2.4",
        tuple(book.AUGMENTATIONS),
        lambda at: book.augmentation_study(str(at["augmentation"]), str(at["method"])),
        _augmentation,
        ("crop-flip", "autoaugment", "simaugment"),
        "Crop and flip beside the two.",
    ),
]
