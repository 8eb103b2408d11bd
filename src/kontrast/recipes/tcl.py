"""Animesh & Chandraker, "Tuned Contrastive Learning": SupCon and TCL, what they are stable against, TCL without labels.

**With labels:** 100 epochs (``-200``: 200) of SGD along a cosine, two augmented views of each image through ResNet-50
and a projector d–d–128, τ = 0.1; then 50 epochs of a linear layer (protocol ``tcl``). (Supplement, section 2.1; stem,
schedule and projector from the published code.) ``ce-tcl-…`` and ``ce-fix-tcl-…`` are cross-entropy (weights learned,
or fixed at a simplex) in the same setting: same views, epochs, rates and linear stage, no projector. Of what made up
the paper's own cross-entropy row nothing is known.

The **stability studies** (section 2.2) change one thing at a time: `encoder_study`, `batch_study`, `projector_study`
and `augmentation_study` give the recipe of a place, which at the setting they share is the plain ``<method>-cifar10``.

**Without labels** (section 2.3): ResNet-18 and a projector 2048–256, LARS at 0.4 (SGD with momentum 0.9 inside, weight
decay 1e-4), batch 256, 1000 epochs on CIFAR and 400 on ImageNet-100; k1 = 1, k2 = 1.5. What that leaves to solo-learn,
on whose code the experiments ran, is solo-learn's SimCLR: τ = 0.2, augmentation, the options of LARS (η = 0.02,
clipped, norms and biases apart), ten epochs of warm-up from 3e-5. ``simclr-…`` has solo-learn's settings and number:
the same on CIFAR; on ImageNet-100 a projector 4096–512 and a rate of 0.3.

Deviates: the set of the stability studies is not stated, CIFAR-10 here; nor are the projector's sizes, 64 … 2048 here.
Section 2.2 gives TCL's learning rates alone; SupCon has the same here.
The learning rates of batch 32 and 64 are ten times below the trend, as printed (a slip, perhaps: the code's example has
0.1 at 64). The linear stage's batch is 128 up to ten classes and 256 above, whatever the contrastive one. The code's
cosine changes once an epoch, one epoch late, to a thousandth; so does ours. ImageNet-100's images are squeezed into
224 × 224 there, and the middle square is taken here; the stem there (7×7 of stride 1, no pooling) is not selected by
the code's own script, ours is torchvision's. Without labels, which third view gives the "two positives per anchor" is
not stated, nor is the temperature; all three are drawn alike. solo-learn tells the accuracy of a classifier trained
online, beside the encoder; here it is that of a linear probe afterwards, whose setting is chosen without the test
images, and of kNN. Mixed precision there, float32 here (``train.precision=float16``).
"""

from __future__ import annotations

from typing import Any

from kontrast.recipe import Recipe
from kontrast.recipes.published import ONE_GPU, SOLO_SELF, TCL, TCL_SEEDS, Book, Claim

HARDWARE = "RTX 2080 Ti, Titan RTX and A100 (the paper's); not run here"
UNKNOWN = "the row's own number is in the main text, which we have not"
TITLES = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "fashion-mnist": "Fashion-MNIST",
    "imagenet100": "ImageNet-100",
}
# batch, learning rate of SupCon and of TCL, k1; k2 is 1
SETTINGS: dict[str, tuple[int, float, float, float]] = {
    "cifar10": (128, 0.1, 0.1, 5000.0),
    "cifar100": (256, 0.2, 0.2, 4000.0),
    "fashion-mnist": (128, 0.09, 0.09, 5000.0),
    "imagenet100": (256, 0.2, 0.3, 4000.0),
}
WORDS = {"supcon": "SupCon", "tcl": "TCL", "ce": "Cross-entropy", "ce-fix": "Cross-entropy to a fixed simplex"}
ENCODERS = {"resnet18": 0.1, "resnet34": 0.1, "resnet50": 0.1, "resnet101": 0.09}  # and their learning rates
BATCHES = {  # learning rate and k1
    32: (8e-3, 5000.0),
    64: (9e-3, 7500.0),
    128: (0.1, 5000.0),
    256: (0.2, 4000.0),
    512: (0.5, 4000.0),
    1024: (1.0, 4000.0),
}
PROJECTORS = (64, 128, 256, 512, 1024, 2048)
AUGMENTATIONS = {"autoaugment": 1.0, "simaugment": 1.2}  # and k2
STUDIED = "cifar10"
WARMUP_FROM = 3e-5  # learning rate at the first step, without labels


def _sections(
    method: str,
    data: str,
    *,
    epochs: int = 100,
    encoder: str = "resnet50",
    lr: float | None = None,
    batch: int | None = None,
    k1: float | None = None,
    k2: float = 1.0,
    out: int = 128,
    augmentation: str | None = None,
) -> dict[str, Any]:
    """A recipe's sections; a setting that is left out is that of the data set."""
    usual_batch, *rates, usual_k1 = SETTINGS[data]
    options: dict[str, Any] = {"name": method}
    if method in ("supcon", "tcl"):
        options["temperature"] = 0.1
    if method == "tcl":
        options |= {"k1": usual_k1 if k1 is None else k1, "k2": k2}
    view = augmentation or ("crop-flip" if data == "fashion-mnist" else "autoaugment")
    large = data == "imagenet100"
    return {
        "data": {"name": data, "size": 224} if large else {"name": data},
        "augment": [view, view],
        "encoder": {"name": encoder, "stem": "large" if large else "small"},
        "head": {"name": "tcl", "out": out} if method in ("supcon", "tcl") else "none",
        "method": options,
        "optim": {"name": "sgd", "lr": lr or rates[method == "tcl"], "momentum": 0.9, "weight_decay": 1e-4},
        "schedule": {"name": "cosine", "per": "epoch", "late": True, "final": 1e-3},
        "train": {"epochs": epochs, "batch_size": batch or usual_batch, "sampler": "shuffled"},
        "evaluate": {"protocols": ["tcl", "knn20"]},
    }


def _unlabelled(data: str, views: int, *, lr: float = 0.4, hidden: int = 2048, out: int = 256) -> dict[str, Any]:
    large = data == "imagenet100"
    return {
        "data": {"name": data},
        "augment": {"views": ["simclr"] * views, "size": 224} if large else ["simclr"] * views,
        "encoder": {"name": "resnet18", "stem": "large" if large else "small"},
        "head": {"name": "tcl-ssl", "hidden": hidden, "out": out},
        "optim": {
            "name": "lars",
            "lr": lr,
            "momentum": 0.9,
            "weight_decay": 1e-4,
            "eta": 0.02,
            "clip_lr": True,
            "exclude_bias_n_norm": True,
        },
        "schedule": {"name": "warmup-cosine", "warmup_epochs": 10, "start": WARMUP_FROM / lr},
        "train": {"epochs": 400 if large else 1000, "batch_size": 256},
        "evaluate": {"protocols": ["probe", "knn20"]},
    }


def _claim(method: str, data: str, epochs: int) -> Claim:
    accuracy, half = TCL[data][method, epochs + 50]
    expected = (
        f"accuracy {accuracy:.2f} % ± {half:.2f} ({TCL_SEEDS[data]} runs)" if half else f"accuracy {accuracy:g} %"
    )
    table = "Table 1" if half else "Table 2"
    what = f"{WORDS[method]} on {TITLES[data]}, {epochs} + 50 epochs"
    return Claim(what, f"TCL, supplement, {table}", expected, HARDWARE)


def _baseline(method: str, data: str) -> Claim:
    rival = TCL[data]["supcon", 150][0]
    expected = f"accuracy beside SupCon's {rival:.2f} %; {UNKNOWN}"
    what = f"{WORDS[method]} on {TITLES[data]} in TCL's setting, 100 + 50 epochs"
    return Claim(what, "TCL, main table, baseline", expected, HARDWARE)


def _studied(method: str, name: str, what: str, section: str, **changes: Any) -> Recipe:
    """A recipe of a stability study; without changes it is the plain recipe that all studies start from."""
    plain = RECIPES[f"{_one_of('method', method, ('supcon', 'tcl'))}-{STUDIED}"]
    sections = _sections(method, STUDIED, **changes)
    if Recipe.of({"name": plain.name, "about": plain.about, **sections}) == plain:
        return plain
    if (recipe := RECIPES.get(f"{plain.name}-{name}")) is not None:
        return recipe
    expected = f"accuracy beside the {TCL[STUDIED][method, 150][0]:.2f} % of the plain setting; {UNKNOWN}"
    claim = Claim(f"{WORDS[method]} on {TITLES[STUDIED]}, {what}", f"TCL, supplement, {section}", expected, HARDWARE)
    return _BOOK.add(f"{plain.name}-{name}", claim, **sections)


def encoder_study(encoder: str, method: str) -> Recipe:
    """The recipe with another encoder.

    >>> encoder_study("resnet101", "tcl").name, encoder_study("resnet50", "tcl").name
    ('tcl-cifar10-resnet101', 'tcl-cifar10')
    """
    lr = ENCODERS[_one_of("encoder", encoder, ENCODERS)]
    return _studied(method, encoder, f"encoder {encoder}", "section 2.2.1", encoder=encoder, lr=lr)


def batch_study(batch_size: int, method: str) -> Recipe:
    """The recipe with another batch size, with its learning rate and k1.

    >>> batch_study(64, "tcl").method.options["k1"]
    7500.0
    """
    lr, k1 = BATCHES[_one_of("batch_size", batch_size, BATCHES)]
    name, what = f"batch{batch_size}", f"batch {batch_size}"
    return _studied(method, name, what, "section 2.2.2", batch=batch_size, lr=lr, k1=k1)


def projector_study(out: int, method: str) -> Recipe:
    """The recipe with another size of the projector's output.

    >>> projector_study(64, "supcon").head
    Part(name='tcl', out=64)
    """
    _one_of("out", out, PROJECTORS)
    return _studied(method, f"out{out}", f"projector output {out}", "section 2.2.3", out=out)


def augmentation_study(augmentation: str, method: str) -> Recipe:
    """The recipe with another augmentation, with its k2.

    >>> augmentation_study("simaugment", "tcl").method.options["k2"]
    1.2
    """
    k2 = AUGMENTATIONS[_one_of("augmentation", augmentation, AUGMENTATIONS)]
    return _studied(method, augmentation, augmentation, "section 2.2.4", augmentation=augmentation, k2=k2)


def _one_of(what: str, value: Any, allowed: Any) -> Any:
    if value not in allowed:
        raise ValueError(f"{what} is {value!r}; the study has {', '.join(map(str, allowed))}")
    return value


_BOOK = Book()
RECIPES, CLAIMS = _BOOK.recipes, _BOOK.claims
for _method in ("supcon", "tcl"):
    for _data in TITLES:
        _BOOK.add(f"{_method}-{_data}", _claim(_method, _data, 100), **_sections(_method, _data))
        _BOOK.add(f"{_method}-{_data}-200", _claim(_method, _data, 200), **_sections(_method, _data, epochs=200))
    for _encoder in ENCODERS:
        encoder_study(_encoder, _method)
    for _batch in BATCHES:
        batch_study(_batch, _method)
    for _out in PROJECTORS:
        projector_study(_out, _method)
    for _augmentation in AUGMENTATIONS:
        augmentation_study(_augmentation, _method)
for _method in ("ce", "ce-fix"):
    for _data in TITLES:
        _BOOK.add(f"{_method}-tcl-{_data}", _baseline(_method, _data), **_sections(_method, _data))
for _data in SOLO_SELF:
    _simclr = SOLO_SELF[_data]["simclr"]
    _BOOK.add(
        f"tcl-self-{_data}",
        Claim(
            f"TCL without labels on {TITLES[_data]}, three views",
            "TCL, self-supervised table",
            f"online top-1 beside SimCLR's {_simclr:.2f} %; {UNKNOWN}",
            HARDWARE,
        ),
        method={"name": "tcl-self", "temperature": 0.2, "k1": 1.0, "k2": 1.5},
        **_unlabelled(_data, 3),
    )
    _BOOK.add(
        f"simclr-{_data}",
        Claim(
            f"SimCLR on {TITLES[_data]}, TCL's baseline without labels",
            "solo-learn's README, as in TCL's self-supervised table",
            f"online top-1 {_simclr:.2f} %",
            ONE_GPU if _data != "imagenet100" else "two GPUs (solo-learn's); not run here",
        ),
        method={"name": "simclr", "temperature": 0.2},
        **(_unlabelled(_data, 2, lr=0.3, hidden=4096, out=512) if _data == "imagenet100" else _unlabelled(_data, 2)),
    )
