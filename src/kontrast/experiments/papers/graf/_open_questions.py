"""Graf et al.'s first two open questions: is the encoder powerful enough, and what does a projector do?

The third, why SC is slow on random labels, is `_random_labels.INTERACTION`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Preset
from kontrast.experiments.papers.graf._distance import BEFORE, EXCESS, OFF, S1, S2, S3, keep_cosines
from kontrast.experiments.papers.graf._geometry import (
    COSINES,
    DEVIATION_CHART,
    PROJECTOR,
    geometry_cpu,
    geometry_paper,
)
from kontrast.experiments.papers.graf._scale import (
    ABOUT_CPU,
    BATCH,
    ERROR,
    IMAGES,
    SEEDS,
    SETS,
    SMOKE,
    STEPS,
    cpu,
    smoke,
    views,
)
from kontrast.recipe import Recipe

# --------------------------------------------------------------------------------- 1: is the encoder powerful enough?

WIDTHS, DEPTHS = (16, 32, 48), (1, 2)
CAPACITY_SEEDS = 3


def _shape(at: At) -> dict[str, Any]:
    """Signed, so that it is the size that decides and not the sign."""
    return {"encoder.width": at["width"], "encoder.depth": at["depth"], "encoder.signed": True}


def _capacity_cpu(at: At) -> Recipe:
    name = f"graf-{at['method']}-capacity"
    return cpu(str(at["method"]), at["data"], {**views(True), **_shape(at), "name": name})


def _capacity_paper(at: At) -> Recipe:
    encoder = {"encoder": {"name": "small-resnet"}, **_shape(at)}
    return recipes.find(f"{at['method']}-{at['data']}").override(encoder)


CAPACITY = Experiment(
    name="graf-capacity",
    title="Is the encoder powerful enough? Width and depth against the distance to the simplex",
    source="Graf et al., open question 1; no numbers in the paper",
    axes={"data": SETS, "method": ("ce", "sc"), "width": WIDTHS, "depth": DEPTHS},
    presets={
        "paper": Preset(
            "The paper asks and has no runs. Its sets, batches and 100,000 steps, with small-resnet of 128, 256 and "
            "512 features (512 are ResNet-18's), one and two blocks a stage; three seeds.",
            _capacity_paper,
            seeds=3,
            axes={"width": (32, 64, 128)},
        ),
        "cpu": Preset(
            f"The paper asks and has no runs. At most {IMAGES:,} images of fashion-mini, or of your own by data=; "
            f"{STEPS:,} steps of {BATCH} with crop and flip; small-resnet of 64, 128 and 192 features, one and two "
            "blocks a stage, its last layer signed, so that size decides and not sign. Width 16 has 64 features, which "
            "cannot hold a simplex of 100 classes.",
            _capacity_cpu,
            seeds=CAPACITY_SEEDS,
            axes={"data": ("fashion-mini",)},
        ),
        "smoke": Preset(
            SMOKE,
            lambda at: smoke(_capacity_cpu(at), width=None),
            seeds=2,
            axes={"data": ("fashion-mini",), "width": (4, 8), "depth": (1,)},
        ),
    },
    measures=(OFF, S1, S2, S3, EXCESS, ERROR),
    rows="width",
    claims=[
        claims.falls("a wider encoder comes closer to the simplex", "off", "width", within=("data", "method")),
        claims.lower(
            "a deeper encoder comes closer to the simplex", "off", {"depth": 2}, {"depth": 1}, within=("data", "method")
        ),
    ],
    charts=[
        Chart("width", "√(S1² + S2² + S3²) against width", "line", "width", "off", "depth", "method", log_x=True),
        Chart("error", "Test error (%) against √(S1² + S2² + S3²)", "points", "off", "error", "method"),
    ],
)

# ------------------------------------------------------------------------------------- 2: what does a projector do?

BEHIND = ("sc", f"sc{PROJECTOR}", "ce", f"ce{PROJECTOR}")


def _head_error(folder: Path) -> float | None:
    """Of the same classifier on the projector's output; without a projector, the encoder's."""
    found = outcome.result(folder)
    values = {record["name"]: record["value"] for record in found.get("head", found["results"])}
    return 100 * (1 - values["graf-linear"]) if "graf-linear" in values else None


def _difference(first: Measure, second: Measure, name: str, title: str, digits: int) -> Measure:
    def read(folder: Path) -> float | None:
        one, other = first.read(folder), second.read(folder)
        return None if one is None or other is None else one - other

    return Measure(name, title, read, digits, protocols=first.protocols or second.protocols)


AFTER_ERROR = Measure("head_error", "error (%) from the projector's output", _head_error, 2, protocols=("graf-linear",))
NEARER = _difference(BEFORE, OFF, "nearer", "how much nearer the simplex it is after the projector", 3)
LOST = _difference(AFTER_ERROR, ERROR, "lost", "error (%) after the projector minus before it", 2)

PROJECTED = Experiment(
    name="graf-projector",
    title="What a projector does to the simplex: before and after it",
    source="Graf et al., open question 2; no numbers in the paper",
    axes={"data": SETS, "method": BEHIND},
    presets={
        "paper": Preset(
            "The paper asks and has no runs: its recipes with TCL's projector (two layers, 128 outputs); three seeds.",
            geometry_paper,
            seeds=3,
        ),
        "cpu": Preset(
            ABOUT_CPU
            + " With crop and flip; the projector has two layers and 128 outputs. The runs of graf-geometry where it "
            "has them.",
            geometry_cpu,
            seeds=SEEDS,
            axes={"data": ("fashion-mini",)},
        ),
        "smoke": Preset(SMOKE, lambda at: smoke(geometry_cpu(at)), seeds=2, axes={"data": ("fashion-mini",)}),
    },
    measures=(BEFORE, OFF, NEARER, ERROR, AFTER_ERROR, LOST, S1, S2, S3),
    rows="method",
    claims=[
        claims.stays(
            "SC's classes are closer to the simplex after the projector than before it",
            "nearer",
            0.0,
            {"method": f"sc{PROJECTOR}"},
            within=("data",),
        ),
        claims.higher(
            "behind a projector SC's own features are further from the simplex than without one",
            "before",
            {"method": f"sc{PROJECTOR}"},
            {"method": "sc"},
            within=("data",),
        ),
        claims.stays(
            "the features before SC's projector err less than what comes after it",
            "lost",
            0.0,
            {"method": f"sc{PROJECTOR}"},
            within=("data",),
        ),
    ],
    charts=[COSINES, DEVIATION_CHART],
    keeps=keep_cosines,
)
