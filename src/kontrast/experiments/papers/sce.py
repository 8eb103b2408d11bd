"""SCE: the grid of temperatures with MoCo and ReSSL beside it, λ, and what becomes of ReSSL and SCE as τ_m → τ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At, Value
from kontrast.experiments.experiment import Chart, Experiment, Preset
from kontrast.experiments.outcome import KNN, UNIFORMITY
from kontrast.recipe import Recipe
from kontrast.recipes import published

SETS = ("cifar10", "cifar100", "stl10", "tiny-imagenet")
TAU = (0.1, 0.2)
TAU_M = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)

LINEAR = outcome.accuracy("linear", "linear probe", "sce", "probe")
RANK = outcome.geometry("rank", "effective rank", "effective rank of test embeddings")

ABOUT_CPU = (
    "Against the paper: fashion-mini and small-resnet (width 16) for the whole sets and ResNet-18; 10 epochs for 200 "
    "with half an epoch of warm-up; learning rate 0.12; a queue of 2,048, and a projector 256–128 for 512–256; "
    "a probe whose rate is chosen on held-out training rows for one at rate 30."
)


def options(at: At) -> dict[str, Any]:
    """What a place says of the method."""
    names = {"temperature": "temperature", "target": "target_temperature", "weight": "contrastive_weight"}
    return {f"method.{names[axis]}": at[axis] for axis in names if at.get(axis) is not None}


def paper(at: At) -> Recipe:
    """The paper's run at a place."""
    return recipes.find(f"{at['method']}-{at['data']}").override(options(at))


def cpu(at: At) -> Recipe:
    """A run of about half a minute on two cores."""
    method = str(at["method"])
    common = {"name": f"sce-study-{method}", "data": at["data"], "train.epochs": 10}
    return recipes.find(f"{method}-fashion-mini").override({**common, **options(at)})


def smoke(at: At) -> Recipe:
    """A run of a second or two."""
    small = {"data.limit": 200, "data.test_limit": 100, "train.epochs": 1, "train.batch_size": 64, "encoder.width": 4}
    protocols = ["knn20", {"name": "probe", "epochs": 2}]
    return cpu(at).override({**small, "method.queue": 128, "evaluate.protocols": protocols})


def presets(
    axes: Mapping[str, Sequence[Value]], few: Mapping[str, Sequence[Value]], about: str = "", *, full: str = ""
) -> dict[str, Preset]:
    """The three scales; ``axes`` are the cpu's, ``few`` the smoke's."""
    small = {"data": ("fashion-mini",)}
    return {
        "paper": Preset(f"As the paper; see the recipes for what is not stated there. {full}".strip(), paper, seeds=3),
        "cpu": Preset(f"{ABOUT_CPU} {about}".strip(), cpu, seeds=3, axes={**small, **axes}),
        "smoke": Preset(
            "A few steps on 200 images, to see that everything runs.", smoke, seeds=2, axes={**small, **few}
        ),
    }


def grid(at: At) -> bool:
    """MoCo has no target temperature; SCE and ReSSL have one."""
    return (at["method"] == "moco") == (at["target"] is None)


def grid_value(at: At, measure: str) -> float | None:
    """The supplement's Table 2."""
    if measure != "linear" or at["method"] != "sce":
        return None
    data = str(at["data"]) if at["data"] in published.SCE else "cifar10"
    return published.SCE[data].get((at["temperature"], at["target"]))  # type: ignore[arg-type]


def lambda_value(at: At, measure: str) -> float | None:
    """Three values for ImageNet-100, second-hand."""
    found: Callable[[Any], float | None] = published.SCE_LAMBDA["imagenet100"].get
    return found(at["weight"]) if measure == "linear" and at["data"] == "imagenet100" else None


NEAR = (0.04, 0.06, 0.08, 0.09, 0.1)

EXPERIMENTS = [
    Experiment(
        name="sce-table-2",
        title="Linear accuracy over the temperatures τ and τ_m, MoCo and ReSSL beside",
        source="SCE, supplement, Table 2; baselines as in the main text, section 4.2",
        axes={"data": SETS, "method": ("sce", "ressl", "moco"), "temperature": TAU, "target": (*TAU_M, None)},
        keep=grid,
        presets=presets(
            {"target": (0.03, 0.05, 0.07, 0.1, None)},
            {"target": (0.05, None), "temperature": (0.1,)},
            "Four of the eight τ_m. For data that the paper does not have, its CIFAR-10 values stand beside ours.",
        ),
        measures=(LINEAR, KNN, UNIFORMITY),
        rows="target",
        published=grid_value,
        reference="CIFAR-10",
        claims=[
            claims.rises_then_falls(
                "SCE needs a sharper target: at τ = 0.1 accuracy is best at a τ_m below τ",
                "linear",
                "target",
                where={"method": "sce", "temperature": 0.1},
                within=("data",),
            ),
            claims.higher(
                "SCE is better than MoCo (τ = 0.1, τ_m = 0.05)",
                "linear",
                {"method": "sce", "temperature": 0.1, "target": 0.05},
                {"method": "moco", "temperature": 0.1},
                within=("data",),
            ),
            claims.higher(
                "SCE is better than ReSSL (τ = 0.1, τ_m = 0.05)",
                "linear",
                {"method": "sce", "temperature": 0.1, "target": 0.05},
                {"method": "ressl", "temperature": 0.1, "target": 0.05},
                within=("data",),
            ),
        ],
        charts=[
            Chart("accuracy", "Linear accuracy (%)", "line", "target", "linear", "method", "temperature"),
            Chart("grid", "Linear accuracy (%) over τ and τ_m", "heat", "target", "temperature", "linear", "method"),
        ],
    ),
    Experiment(
        name="sce-lambda",
        title="Linear accuracy against λ, from ReSSL with a ceiling (0) to InfoNCE (1)",
        source="SCE, main text (three values, second-hand)",
        axes={"data": ("imagenet100",), "method": ("sce",), "weight": (0.0, 0.25, 0.5, 0.75, 1.0)},
        presets=presets({}, {"weight": (0.0, 0.5, 1.0)}),
        measures=(LINEAR, KNN, UNIFORMITY),
        rows="weight",
        published=lambda_value,
        claims=[
            claims.higher("λ = 0.5 is better than λ = 1", "linear", {"weight": 0.5}, {"weight": 1.0}, within=("data",)),
            claims.higher("λ = 0.5 is better than λ = 0", "linear", {"weight": 0.5}, {"weight": 0.0}, within=("data",)),
        ],
        charts=[Chart("accuracy", "Linear accuracy (%)", "line", "weight", "linear", panel="data")],
    ),
    Experiment(
        name="sce-collapse",
        title="ReSSL and SCE as τ_m → τ = 0.1",
        source="SCE, supplement, section F",
        axes={"data": ("cifar10",), "method": ("sce", "ressl"), "temperature": (0.1,), "target": NEAR},
        presets=presets(
            {"target": NEAR},
            {"target": (0.05, 0.1)},
            full="The paper gives no numbers of ReSSL; its runs are here as SCE's with ReSSL's loss.",
        ),
        measures=(LINEAR, KNN, UNIFORMITY, RANK),
        rows="target",
        claims=[
            claims.falls(
                "ReSSL's embeddings collapse as τ_m → τ (its uniformity falls)",
                "uniformity",
                "target",
                where={"method": "ressl"},
                within=("data",),
            ),
            claims.collapses(
                "at τ_m = τ ReSSL's embeddings are collapsed (−uniformity below 0.1)",
                "uniformity",
                0.1,
                where={"method": "ressl", "target": 0.1},
                within=("data",),
            ),
            claims.stays(
                "SCE's embeddings stay spread out at every τ_m (−uniformity above 1)",
                "uniformity",
                1.0,
                where={"method": "sce"},
                within=("data",),
            ),
            claims.higher(
                "at τ_m = τ SCE's embeddings are spread out more than ReSSL's",
                "uniformity",
                {"method": "sce", "target": 0.1},
                {"method": "ressl", "target": 0.1},
                within=("data",),
            ),
            claims.higher(
                "at τ_m = τ SCE is the more accurate",
                "linear",
                {"method": "sce", "target": 0.1},
                {"method": "ressl", "target": 0.1},
                within=("data",),
            ),
        ],
        charts=[
            Chart("uniformity", "−uniformity", "line", "target", "uniformity", "method", "data"),
            Chart("accuracy", "Linear accuracy (%)", "line", "target", "linear", "method", "data"),
        ],
    ),
]
