"""Graf et al., "Dissecting Supervised Contrastive Learning": CE, CE-fix and SC on CIFAR, and on random labels.

ResNet-18 without projector, one view, batches of 256 drawn with replacement, 100,000 steps of SGD at 0.1·((T−i)/T)⁵
(the code calls it exponential), weight decay 1e-4; SC at τ = 0.1 on unit features, CE and CE-fix on features as they
are and without bias. With crop and flip, or without (``-plain``). The table's errors are those of a linear classifier
trained anew on the encoder's features (``graf-linear``); that of the class means stands beside it.

``-random-labels``: no augmentation, ``data.noise`` of the labels replaced (0, 0.1 … 1; 1 unless said), every 500 steps
a look whether the training set is fitted, which ends the run: what is plotted is the number of steps.

Deviates: the code normalises by the training set's own mean and std; so do we on CIFAR-100, while CIFAR-10 has the
usual std (0.2023, …), which is not that of its pixels (0.2470, …). Its CE-fix weights are only nearly a simplex; ours
are one. Its 4×4 average pooling is adaptive here, which is the same at 32 pixels. When a set counts as fitted is not
stated; of the two kinds of label noise in the code we take the one that its current script has, in which a replaced
label is always another.
"""

from __future__ import annotations

from typing import Any

from kontrast.recipes.published import GRAF, ONE_GPU, Book, Claim

TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
METHODS: dict[str, dict[str, Any]] = {
    "ce": {"name": "ce"},
    "ce-fix": {"name": "ce-fix", "radius": 1.0},
    "sc": {"name": "sc", "temperature": 0.1},
}
WORDS = {"ce": "Cross-entropy", "ce-fix": "Cross-entropy to a fixed simplex", "sc": "Supervised contrastive loss"}
SOURCES = {"cifar10": "Graf et al., notebook stored with the code", "cifar100": "Graf et al., table of CIFAR-100"}
STEPS: dict[str, Any] = {"steps": 100_000, "batch_size": 256, "sampler": "with-replacement"}
COMMON: dict[str, Any] = {
    "encoder": {"name": "resnet18", "stem": "small"},
    "head": "none",
    "optim": {"name": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": False},
    "schedule": {"name": "power", "exponent": 5.0},
}


def _claim(method: str, data: str, augmented: bool) -> Claim:
    what = f"{WORDS[method]} on {TITLES[data]}, {'crop and flip' if augmented else 'no augmentation'}"
    error = GRAF[data].get((method, augmented))
    if error is not None:
        return Claim(what, SOURCES[data], f"error {error:g} %", ONE_GPU)
    other = GRAF[data]["ce", augmented]
    return Claim(what, SOURCES[data], f"error not published for this row; that of CE is {other:g} %", ONE_GPU)


def _random(method: str, data: str) -> Claim:
    grows = "more than linearly" if method == "sc" else "about linearly"
    expected = f"a figure, 0 … 100,000 steps: those until the training set is fitted grow {grows} with the fraction"
    what = f"{WORDS[method]} on {TITLES[data]} with random labels"
    return Claim(what, "Graf et al., figure of the random labels, fractions 0 … 1", expected, ONE_GPU)


_BOOK = Book()
for _method, _options in METHODS.items():
    for _data in TITLES:
        for _augmented in (True, False):
            _BOOK.add(
                f"{_method}-{_data}" if _augmented else f"{_method}-{_data}-plain",
                _claim(_method, _data, _augmented),
                data={"name": _data},
                augment=["crop-flip" if _augmented else "none"],
                method=_options,
                train=STEPS,
                evaluate={"protocols": ["graf-linear", "graf-means"]},
                **COMMON,
            )
        _BOOK.add(
            f"{_method}-{_data}-random-labels",
            _random(_method, _data),
            data={"name": _data, "noise": 1.0, "noise_kind": "changed"},
            augment=["none"],
            method=_options,
            train={**STEPS, "fit_every": 500},
            evaluate={"protocols": [{"name": "graf-linear", "iterations": 1000}]},
            **COMMON,
        )
RECIPES, CLAIMS = _BOOK.recipes, _BOOK.claims
