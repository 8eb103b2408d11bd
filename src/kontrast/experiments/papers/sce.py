"""SCE: the grid of temperatures with MoCo and ReSSL beside it, λ, and what becomes of ReSSL and SCE as τ_m → τ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kontrast import recipes
from kontrast.experiments import outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Preset
from kontrast.experiments.outcome import KNN, PROBE, UNIFORMITY
from kontrast.experiments.papers import AS_PAPER, BESIDE, paper_value, per_set, presets, shorten
from kontrast.recipe import Recipe
from kontrast.recipes import published

SETS = ("cifar10", "cifar100", "stl10", "tiny-imagenet")
TAU = (0.1, 0.2)
TAU_M = (0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)

LINEAR = outcome.accuracy("linear", "linear probe (the paper's where the run has it)", "sce", "probe")
RANK = outcome.geometry("rank", "effective rank", "effective rank of test embeddings")

# The `cpu` scale, for 10,000 images: what a pilot decides stands here.
SMALL: dict[str, Any] = {
    # Views of 24 × 24 pixels and 256 features learn more in the same time (docs/experiments/trials.md).
    "augment": {"views": ["weak", "strong"], "size": 24},
    "encoder.width": 16,  # in equal time better than 32, which has half the epochs
    "encoder.features": 256,
    "train.epochs": 120,
    "train.batch_size": 256,
    "optim.lr": 0.12,
    "optim.weight_decay": 5e-4,
    "optim.nesterov": False,
    "schedule.warmup_epochs": 2,
    "method.queue": 2048,
    "method.momentum": 0.99,
    "method.temperature": 0.1,  # where an axis does not say
    "head": {"name": "sce", "hidden": 256, "out": 128},
    "evaluate.protocols": ["sce", "probe", "knn20"],
}
COLLAPSE: dict[str, Any] = {"train.epochs": 30}  # of sce-collapse: geometry shows earlier
SMALL_TARGETS = (0.04, 0.07, 0.1)
TARGET = 0.05  # of SCE, where an axis does not say

ABOUT_CPU = (
    "Against the paper: 10,000 images, and small-resnet (width {width}, {features} features) for ResNet-18; training "
    "views of {size} pixels a side, evaluation at the images' own; {epochs} epochs for 200 with "
    "{warmup_epochs} of warm-up for five; learning rate {lr} for 0.06; a queue of {queue} for 4,096, and a projector "
    "{hidden}–{out} for 512–256. The paper's probe gives the linear accuracy; one whose rate is chosen on held-out "
    "training rows stands beside it."
)


def options(at: At) -> dict[str, Any]:
    """What a place says of the method."""
    names = {"temperature": "temperature", "target": "target_temperature", "weight": "contrastive_weight"}
    return {f"method.{names[axis]}": at[axis] for axis in names if at.get(axis) is not None}


def paper(at: At) -> Recipe:
    """The paper's run at a place."""
    return recipes.find(f"{at['method']}-{at['data']}").override(options(at))


def cpu(at: At, changes: Mapping[str, Any] | None = None) -> Recipe:
    """The same method on a small encoder; ``changes`` are an experiment's own, against `SMALL`."""
    method = str(at["method"])
    about = "A cell of SCE's experiments at a small scale."
    common = {"name": f"sce-study-{method}", "about": about, "data": at["data"], **SMALL, **(changes or {})}
    if method == "sce":
        common["method.target_temperature"] = TARGET
    return recipes.find(f"{method}-fashion-mini").override({**common, **options(at)})


def smoke(recipe: Recipe) -> Recipe:
    """The smoke run of a recipe."""
    few = {"train.epochs": 1, "encoder.width": 4, "method.queue": 128, "schedule.warmup_epochs": 0}
    return shorten(recipe, few)


def study(
    about: str = "", changes: Mapping[str, Any] | None = None, full: str = "", **options: Any
) -> dict[str, Preset]:
    """The three scales; ``changes`` are the cpu's against `SMALL`."""
    values = {key.rpartition(".")[2]: value for key, value in {**SMALL, **(changes or {})}.items()}
    scale = ABOUT_CPU.format(**values, **SMALL["augment"], **SMALL["head"])
    return presets(
        paper,
        lambda at: cpu(at, changes),
        smoke,
        about=f"{scale} {about}".strip(),
        full=f"{AS_PAPER} {full}".strip(),
        **options,
    )


def grid(at: At) -> bool:
    """MoCo has no target temperature; SCE and ReSSL have one."""
    return (at["method"] == "moco") == (at["target"] is None)


NEAR = (0.04, 0.06, 0.08, 0.09, 0.1)
COMPARED = 0.04  # τ_m of SCE against its baselines: that of the published configuration, and ReSSL's own
# Fixed before any run. −uniformity (t = 2) is 0 where all embeddings are equal and 3.94 where they are uniform on the
# sphere of 128 dimensions. 0.1 is a mean squared distance between embeddings of about 0.05, 1 of at least 0.5; on that
# sphere it is 2.
COLLAPSED, SPREAD = 0.1, 1.0

EXPERIMENTS = [
    Experiment(
        name="sce-table-2",
        title="Linear accuracy over the temperatures τ and τ_m, MoCo and ReSSL beside",
        source="SCE, supplement, Table 2; baselines as in the main text, section 4.2",
        axes={"data": SETS, "method": ("sce", "ressl", "moco"), "temperature": TAU, "target": (*TAU_M, None)},
        keep=grid,
        presets=study(
            f"Three of the eight τ_m. {BESIDE}",
            axes={"target": (*SMALL_TARGETS, None)},
            few={"target": (0.04, None), "temperature": (0.1,)},
        ),
        measures=(LINEAR, PROBE, KNN, UNIFORMITY),
        rows="target",
        # The supplement's Table 2.
        published=paper_value(
            published.SCE, lambda at: (at["temperature"], at["target"]) if at["method"] == "sce" else None
        ),
        claims=[
            per_set.higher(
                "SCE needs a sharper target: at τ = 0.1 a τ_m below τ (their mean) is better than τ_m = τ",
                "linear",
                {"method": "sce", "temperature": 0.1, "target": TAU_M[:-1]},
                {"method": "sce", "temperature": 0.1, "target": 0.1},
                pooled=True,
            ),
            per_set.higher(
                f"SCE is better than MoCo (τ = 0.1, τ_m = {COMPARED:g})",
                "linear",
                {"method": "sce", "temperature": 0.1, "target": COMPARED},
                {"method": "moco", "temperature": 0.1},
            ),
            per_set.higher(
                f"SCE is better than ReSSL (τ = 0.1, τ_m = {COMPARED:g})",
                "linear",
                {"method": "sce", "temperature": 0.1, "target": COMPARED},
                {"method": "ressl", "temperature": 0.1, "target": COMPARED},
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
        presets=study(BESIDE, few={"weight": (0.0, 0.5, 1.0)}),
        measures=(LINEAR, PROBE, KNN, UNIFORMITY),
        rows="weight",
        published=paper_value(published.SCE_LAMBDA, lambda at: at["weight"]),
        claims=[
            per_set.higher("λ = 0.5 is better than λ = 1", "linear", {"weight": 0.5}, {"weight": 1.0}),
            per_set.higher("λ = 0.5 is better than λ = 0", "linear", {"weight": 0.5}, {"weight": 0.0}),
        ],
        charts=[Chart("accuracy", "Linear accuracy (%)", "line", "weight", "linear", panel="data")],
    ),
    Experiment(
        name="sce-collapse",
        title="ReSSL and SCE as τ_m → τ = 0.1",
        source="SCE, supplement, section F",
        axes={"data": ("cifar10",), "method": ("sce", "ressl"), "temperature": (0.1,), "target": NEAR},
        presets=study(
            axes={"target": NEAR},
            few={"target": (0.06, 0.1)},
            changes=COLLAPSE,
            full="The paper gives no numbers of ReSSL; its runs are here as SCE's with ReSSL's loss.",
        ),
        measures=(LINEAR, PROBE, KNN, UNIFORMITY, RANK),
        rows="target",
        claims=[
            per_set.falls(
                "ReSSL's embeddings collapse as τ_m → τ (its uniformity falls)",
                "uniformity",
                "target",
                where={"method": "ressl"},
            ),
            per_set.collapses(
                f"at τ_m = τ ReSSL's embeddings are collapsed (−uniformity below {COLLAPSED:g})",
                "uniformity",
                COLLAPSED,
                where={"method": "ressl", "target": 0.1},
            ),
            per_set.stays(
                f"SCE's embeddings stay spread out at every τ_m (−uniformity above {SPREAD:g})",
                "uniformity",
                SPREAD,
                where={"method": "sce"},
            ),
            per_set.higher(
                "at τ_m = τ SCE's embeddings are spread out more than ReSSL's",
                "uniformity",
                {"method": "sce", "target": 0.1},
                {"method": "ressl", "target": 0.1},
            ),
            per_set.higher(
                "at τ_m = τ SCE is the more accurate",
                "linear",
                {"method": "sce", "target": 0.1},
                {"method": "ressl", "target": 0.1},
            ),
        ],
        charts=[
            Chart("uniformity", "−uniformity", "line", "target", "uniformity", "method", "data"),
            Chart("accuracy", "Linear accuracy (%)", "line", "target", "linear", "method", "data"),
        ],
    ),
]
