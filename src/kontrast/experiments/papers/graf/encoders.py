"""Trained encoders of Graf et al.: test errors, how near a regular simplex they come, capacity and projectors.

S1 (mean off the origin), S2 (lengths differ) and S3 (distances differ) are all shown; each alone is 0 for points that
form no simplex. What decides is `kontrast.geometry.simplex`'s (4), all three together,

    (1)  off = √(S1² + S2² + S3²)

and for "close to the simplex" how far that is above the least that the features' sign and dimension allow, in units
that do not depend on the number of classes:

    (2)  excess = √K (off − least)        least = 0, or 1/√K for features ≥ 0 (an orthogonal frame is their best)

K random directions, or an orthogonal frame, have off ≈ 1/√K; so, of features that can take both signs, an excess of 1
is no structure, and 0 the simplex. `CLOSE` = 1/2, chosen before any run was judged by it, asks for the nearer half.
Features ≥ 0 start with nearly equal class means, off ≈ 1, which is √K − 1 (2.2 for ten classes, 9 for a hundred) above
their best. Behind too few dimensions the least is not known, and there is no excess.

The first two of the paper's open questions are here: is the encoder powerful enough (capacity), and what does a
projector do? The third, why SC is slow on random labels, is in `random_labels`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kontrast import recipes
from kontrast.experiments import claims, outcome
from kontrast.experiments.cell import At
from kontrast.experiments.experiment import Chart, Experiment, Measure, Row, by_seed
from kontrast.experiments.papers import BESIDE, paper_value, per_set, presets, shorten
from kontrast.intervals import interval
from kontrast.recipe import Recipe
from kontrast.recipes import published
from kontrast.runs import Run

# ---------------------------------------------------------------------------------------------- sizes of the small runs


# What pilots decide about the preset `cpu`, in one place.
WIDTH = 32  # of small-resnet: 128 features; a simplex of 100 classes needs 99
IMAGES = 10_000  # training images at most; of the test split all
# With 128 images of 100 classes a row has about one partner, and at the paper's 0.1·((T−i)/T)⁵ SC had hardly begun to
# learn after 4,000 steps; CE is alike at either rate (held-out rows, docs/experiments/trials.md).
STEPS, BATCH, RATE, SCHEDULE = 6000, 256, 0.4, "cosine"
SEEDS = 5

SETS = ("cifar10", "cifar100")
METHODS = ("ce", "ce-fix", "sc")
CE, CE_FIX, SC = ({"method": method} for method in METHODS)

ERROR = outcome.accuracy("error", "retrained linear classifier", "graf-linear", error=True)
PROBE = outcome.accuracy("probe", "linear probe, rate chosen on held-out rows", "probe", error=True, optional=True)
ABOUT_CPU = (
    f"Against the paper: at most {IMAGES:,} images of fashion-mini, or of your own by data=, and small-resnet (width "
    f"{WIDTH}, {4 * WIDTH} features) for the whole sets and ResNet-18 (512); {STEPS:,} steps of {BATCH} images for "
    f"100,000 of 256, at a rate of {RATE} that falls as a cosine, for 0.1·((T−i)/T)⁵: with that SC hardly learns in so "
    "few steps, and CE is alike."
)


def cpu(method: str, data: Any, changes: dict[str, Any]) -> Recipe:
    """The small recipe of a method."""
    common = {
        "name": f"graf-{method}",
        "data": data,
        "train.epochs": None,
        "data.limit": IMAGES,
        "encoder.width": WIDTH,
        "train.steps": STEPS,
        "train.batch_size": BATCH,
        "optim.lr": RATE,
        "schedule": SCHEDULE,
        "evaluate.protocols": ["graf-linear", "probe", "knn20"],
    }
    return recipes.find(f"{method}-fashion-mini").override({**common, **changes})


def smoke(recipe: Recipe, width: int | None = 4) -> Recipe:
    """The smoke run of a recipe; ``width=None`` keeps the encoder's width."""
    changes: dict[str, Any] = {"train.steps": 4} | ({} if width is None else {"encoder.width": width})
    if recipe.evaluate.protocols:
        changes["evaluate.protocols"] = [{"name": "graf-linear", "iterations": 50}, "knn20"]
    if recipe.train.fit_every is not None:
        changes["train.fit_every"] = 2
    return shorten(recipe, changes)


def views(augmented: bool) -> dict[str, Any]:
    """One view, cropped and flipped or as it is."""
    return {"augment.views": [{"name": "crop-flip" if augmented else "none"}]}


# ---------------------------------------------------------------------------------------------- distance to the simplex


CLOSE = 0.5  # an excess below it counts as close to the simplex
QUANTILES = 101  # of each kind of cosine that the box plots draw


def deviation(folder: Path, of: str = "embeddings") -> float | None:
    """How far the class means are from a regular simplex (1)."""
    record = outcome.simplex_record(folder, of)
    return math.hypot(record["origin"], record["norm"], record["distance"]) if record else None


def excess(folder: Path) -> float | None:
    """How far they are above the least that their sign allows (2)."""
    record, off = outcome.simplex_record(folder), deviation(folder)
    if off is None or record.get("least") is None:
        return None
    return math.sqrt(record["num_classes"]) * (off - float(record["least"]))


S1 = outcome.simplex("s1", "origin", "S1: class means off the origin, training rows")
S2 = outcome.simplex("s2", "norm", "S2: lengths of class means differ, training rows")
S3 = outcome.simplex("s3", "distance", "S3: distances of class means differ, training rows")
OFF = Measure("off", "√(S1² + S2² + S3²) of class means, training rows; 0 at the simplex", deviation, 3)
EXCESS = Measure("excess", "√K × (that − the least that the features' sign allows)", excess, 2)
BEFORE = Measure(
    "before", "√(S1² + S2² + S3²) at the encoder's output", lambda folder: deviation(folder, "features"), 3
)
WITHIN_CLASS = outcome.simplex("within", "within", "mean cosine of samples to their class mean, training rows")
ACROSS = outcome.simplex("across", "across_means", "mean cosine of class means, training rows")


ARRAYS = ("between_means", "between_weights", "within")  # of a run's analysis


def keep_cosines(folder: Path) -> dict[str, np.ndarray]:
    """Quantiles of the cosines of class means, of weights, and of samples to their mean; and the number of classes."""
    arrays = Run(folder).arrays(ARRAYS)
    levels = np.linspace(0, 1, QUANTILES)
    cosines: dict[str, np.ndarray] = {
        key: np.quantile(arrays[key].astype(np.float64), levels).astype(np.float32)
        for key in ARRAYS
        if key in arrays and arrays[key].size
    }
    classes = outcome.simplex_record(folder).get("num_classes")
    return cosines if classes is None else {**cosines, "num_classes": np.array([classes])}


# ----------------------------------------------------------------------------------------------------------- graf-table


def _table_cpu(at: At) -> Recipe:
    return cpu(str(at["method"]), at["data"], views(bool(at["augmented"])))


def _table_paper(at: At) -> Recipe:
    return recipes.find(f"{at['method']}-{at['data']}" + ("" if at["augmented"] else "-plain"))


TABLE = Experiment(
    name="graf-table",
    title="Test error of CE, CE-fix and SC, with and without augmentation",
    source="Graf et al., the table of the slides (CIFAR-100); stored results of their code (CIFAR-10)",
    axes={"data": SETS, "augmented": (True, False), "method": METHODS},
    presets=presets(
        _table_paper,
        _table_cpu,
        smoke,
        about=f"{ABOUT_CPU} {BESIDE}",
        seeds=SEEDS,
        full="As the paper; three seeds (it has one run).",
    ),
    measures=(ERROR, PROBE, OFF, S1, S2, S3),
    rows="method",
    published=paper_value(published.GRAF, lambda at: (str(at["method"]), bool(at["augmented"])), "error"),
    claims=[
        per_set.lower(
            "with augmentation SC's error is below CE's",
            "error",
            {"method": "sc", "augmented": True},
            {"method": "ce", "augmented": True},
            pooled=True,
        ),
        per_set.lower("CE-fix's error is below CE's", "error", CE_FIX, CE, pooled=True),
        per_set.lower("augmentation lowers the error", "error", {"augmented": True}, {"augmented": False}),
    ],
    charts=[Chart("error", "Test error (%)", "points", "method", "error", "augmented", "data")],
)


# -------------------------------------------------------------------------------------------------------- graf-geometry


SIGNED, PROJECTOR = "-signed", "-projector"
OF_PAPER = ("ce", "ce-fix", "ce-random", "sc", f"sc{PROJECTOR}")
KINDS = (*OF_PAPER, f"ce{SIGNED}", f"sc{SIGNED}")


def of_kind(kind: str) -> tuple[str, dict[str, Any]]:
    """The method and the changes of a kind: fixed random weights, a projector before the loss, a signed last layer."""
    if kind == "ce-random":
        return "ce-fix", {"method.weights": "random"}
    method, changes = kind.removesuffix(PROJECTOR).removesuffix(SIGNED), dict[str, Any]()
    if kind.endswith(PROJECTOR):
        changes |= {"head": "tcl", "evaluate.head": True}
    if SIGNED in kind:
        changes["encoder.signed"] = True
    return method, changes


def geometry_cpu(at: At) -> Recipe:
    """A kind with crop and flip, as the runs of graf-table, with which it shares them."""
    method, changes = of_kind(str(at["method"]))
    # The same name as in graf-table, and so the same folder, where the recipe is the same.
    return cpu(method, at["data"], {**views(True), **changes, "name": f"graf-{at['method']}"})


def geometry_paper(at: At) -> Recipe:
    """The paper's recipe of a kind."""
    method, changes = of_kind(str(at["method"]))
    return recipes.find(f"{method}-{at['data']}").override(changes)


QUANTILES_DRAWN = {"low": 0.05, "q1": 0.25, "cosine": 0.5, "q3": 0.75, "high": 0.95}
PANELS = {"between_means": "class means", "between_weights": "weights", "within": "samples to their mean"}


def cosine_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The three box plots: quantiles of cosines of the first seed, and where the simplex has them."""
    several = len({row.at.get("data") for row in rows}) > 1
    records = []
    for row in rows:
        if row.at.get("seed") != 0 or "num_classes" not in row.arrays:
            continue
        optimum = -1 / (int(row.arrays["num_classes"][0]) - 1)
        for key, name in PANELS.items():
            # A contrastive loss has no weights; Graf et al. draw its class means again.
            if (there := key if key in row.arrays else "between_means") in row.arrays:
                values = np.asarray(row.arrays[there], dtype=np.float64)
                quantiles = zip(QUANTILES_DRAWN, np.quantile(values, list(QUANTILES_DRAWN.values())), strict=True)
                theory = 1.0 if key == "within" else optimum
                panel = f"{row.at['data']}, {name}" if several else name
                shape = {name: float(x) for name, x in quantiles}
                records.append({**row.at, "panel": panel, **shape, "theory": theory})
    return records


DEVIATIONS = {"s1": "S1", "s2": "S2", "s3": "S3", "off": "√(S1²+S2²+S3²)"}


def deviation_records(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """S1–S3 and what they are together: means over seeds and 95 % intervals."""
    places: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        places.setdefault((row.at.get("data"), row.at["method"]), []).append(row)
    records = []
    for (data, method), here in places.items():
        for measure, name in DEVIATIONS.items():
            if seeds := by_seed(here, measure):
                mean = interval(seeds.values())
                spans = {"value": mean.mean, "low": mean.low, "high": mean.high, "n": mean.n}
                records.append({"method": method, "deviation": name, **spans, "panel": str(data)})
    return records


COSINES = Chart(
    "cosines",
    "Cosines of class means, of weights, of samples to their mean (quantiles, first seed; dashed: the simplex)",
    "box",
    "method",
    "cosine",
    panel="panel",
    data=cosine_records,
)
DEVIATION_CHART = Chart(
    "deviations",
    "S1–S3 of class means, and together (0: the simplex)",
    "range",
    "method",
    "value",
    "deviation",
    "panel",
    data=deviation_records,
)

GEOMETRY = Experiment(
    name="graf-geometry",
    title="How near a regular simplex the trained representations are",
    source="Graf et al., geometry of real encoders (box plots of the slides)",
    axes={"data": SETS, "method": KINDS},
    presets=presets(
        geometry_paper,
        geometry_cpu,
        smoke,
        about=ABOUT_CPU + " With crop and flip. Signed: no ReLU at the end of the encoder.",
        seeds=SEEDS,
        full="As the paper; three seeds (it has one run). ResNet-18 has no signed last layer.",
        full_axes={"method": OF_PAPER},
    ),
    measures=(OFF, S1, S2, S3, EXCESS, WITHIN_CLASS, ACROSS, ERROR),
    rows="method",
    claims=[
        per_set.collapses("CE comes close to the simplex, as far as its features' sign allows", "excess", CLOSE, CE),
        per_set.collapses("SC comes close to the simplex, as far as its features' sign allows", "excess", CLOSE, SC),
        per_set.collapses(
            "with signed features both CE and SC come close to the simplex itself",
            "excess",
            CLOSE,
            {"method": (f"ce{SIGNED}", f"sc{SIGNED}")},
        ),
        per_set.lower("SC's class means are closer to the simplex than CE's", "off", SC, CE),
        per_set.lower(
            "with signed features too, SC's class means are closer to the simplex than CE's",
            "off",
            {"method": f"sc{SIGNED}"},
            {"method": f"ce{SIGNED}"},
        ),
        per_set.lower("CE-fix's class means are closer to the simplex than CE's", "off", CE_FIX, CE),
        per_set.higher("SC's samples are closer to their class mean than CE's", "within", SC, CE),
        per_set.correlated("closeness to the simplex goes with lower error", "off", "error", 1),
        per_set.lower(
            "weights fixed at a simplex err less than weights fixed at random", "error", CE_FIX, {"method": "ce-random"}
        ),
    ],
    charts=[
        COSINES,
        DEVIATION_CHART,
        Chart("error", "Test error (%) against √(S1² + S2² + S3²)", "points", "off", "error", "method"),
    ],
    keeps=keep_cosines,
)


# ---------------------------------------------- graf-capacity, open question 1: is the encoder powerful enough?

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
    presets=presets(
        _capacity_paper,
        _capacity_cpu,
        lambda recipe: smoke(recipe, width=None),
        about=f"The paper asks and has no runs. At most {IMAGES:,} images of fashion-mini, or of your own by data=; "
        f"{STEPS:,} steps of {BATCH} with crop and flip; small-resnet of 64, 128 and 192 features, one and two blocks "
        "a stage, its last layer signed, so that size decides and not sign. Width 16 has 64 features, which cannot "
        "hold a simplex of 100 classes.",
        few={"width": (4, 8), "depth": (1,)},
        seeds=CAPACITY_SEEDS,
        full="The paper asks and has no runs. Its sets, batches and 100,000 steps, with small-resnet of 128, 256 and "
        "512 features (512 are ResNet-18's), one and two blocks a stage; three seeds.",
        full_axes={"width": (32, 64, 128)},
    ),
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

# ---------------------------------------------------- graf-projector, open question 2: what does a projector do?

BEHIND = ("sc", f"sc{PROJECTOR}", "ce", f"ce{PROJECTOR}")


def _head_error(folder: Path) -> float | None:
    """Of the same classifier on the projector's output; without a projector, the encoder's."""
    result = Run(folder).read_result()
    values = {each.name: each.value for each in result.head or result.results}
    value = values.get("graf-linear")
    return None if value is None else 100 * (1 - value)


def _difference(first: Measure, second: Measure, name: str, title: str, digits: int) -> Measure:
    def difference(folder: Path) -> float | None:
        one, other = first.read(folder), second.read(folder)
        return None if one is None or other is None else one - other

    return Measure(name, title, difference, digits, protocols=first.protocols or second.protocols)


AFTER_ERROR = Measure("head_error", "error (%) from the projector's output", _head_error, 2, protocols=("graf-linear",))
NEARER = _difference(BEFORE, OFF, "nearer", "how much nearer the simplex it is after the projector", 3)
LOST = _difference(AFTER_ERROR, ERROR, "lost", "error (%) after the projector minus before it", 2)

PROJECTED = Experiment(
    name="graf-projector",
    title="What a projector does to the simplex: before and after it",
    source="Graf et al., open question 2; no numbers in the paper",
    axes={"data": SETS, "method": BEHIND},
    presets=presets(
        geometry_paper,
        geometry_cpu,
        smoke,
        about=ABOUT_CPU + " With crop and flip; the projector has two layers and 128 outputs. The runs of "
        "graf-geometry where it has them.",
        seeds=SEEDS,
        full="The paper asks and has no runs: its recipes with TCL's projector (two layers, 128 outputs); three seeds.",
    ),
    measures=(BEFORE, OFF, NEARER, ERROR, AFTER_ERROR, LOST, S1, S2, S3),
    rows="method",
    claims=[
        per_set.stays(
            "SC's classes are closer to the simplex after the projector than before it",
            "nearer",
            0.0,
            {"method": f"sc{PROJECTOR}"},
        ),
        per_set.higher(
            "behind a projector SC's own features are further from the simplex than without one",
            "before",
            {"method": f"sc{PROJECTOR}"},
            SC,
        ),
        per_set.stays(
            "the features before SC's projector err less than what comes after it",
            "lost",
            0.0,
            {"method": f"sc{PROJECTOR}"},
        ),
    ],
    charts=[COSINES, DEVIATION_CHART],
    keeps=keep_cosines,
)
