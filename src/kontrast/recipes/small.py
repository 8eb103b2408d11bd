"""Recipes for two CPU cores: one per method on the bundled set, and SimCLR on 10,000 colour images. No paper's figures.

The settings follow each method's paper where they carry over (loss, temperatures, momentum, head), with a small encoder
and fewer epochs. Rates and views were chosen by trials on rows held out of the training rows
(docs/experiments/trials.md). Those on fashion-mini take a few minutes, `simclr-cifar10-10k` half an hour at most.
"""

from __future__ import annotations

from typing import Any

from kontrast.recipe import Recipe

SUPERVISED: dict[str, Any] = {
    "augment": ["crop-flip", "crop-flip"],
    "head": "tcl",
    "optim": {"name": "sgd", "lr": 0.1, "weight_decay": 1e-4},
    "train": {"epochs": 15, "batch_size": 128},
}
ONE_VIEW: dict[str, Any] = {
    "augment": ["crop-flip"],
    "optim": {"name": "sgd", "lr": 0.1, "weight_decay": 1e-4},
    "schedule": "power",
    "train": {"epochs": 15, "batch_size": 128, "sampler": "with-replacement"},
}
# Views that keep the whole object: on held-out rows kNN was about 2 points above that of resized crops (one trial
# each).
TWO_VIEWS: dict[str, Any] = {
    "augment": ["whole-object", "whole-object"],
    "head": {"name": "sce", "hidden": 256, "out": 128},
    "optim": {"name": "sgd", "lr": 0.15, "weight_decay": 1e-4, "nesterov": True},
    "schedule": {"name": "warmup-cosine", "warmup_epochs": 0.5},
    "train": {"epochs": 15, "batch_size": 128},
}
# A thousand steps: the target must follow faster than at the papers' 0.99, and a short queue keeps its keys fresh (with
# 0.99, 2,048 keys and a rate of 0.12 kNN was 2 to 7 points lower on held-out rows).
MOMENTUM: dict[str, Any] = {**TWO_VIEWS, "optim": {**TWO_VIEWS["optim"], "lr": 0.3}}
FOLLOWS: dict[str, Any] = {"queue": 1024, "momentum": 0.9}
WIDE: dict[str, Any] = {"features": 256}  # of the encoder
BANK: dict[str, Any] = {
    "augment": ["wang-liu"],
    "head": "wang-liu",
    "optim": {"name": "sgd", "lr": 0.1, "weight_decay": 1e-4},
    "schedule": {"name": "warmup-cosine", "warmup_epochs": 0.5},
    "train": {"epochs": 15, "batch_size": 128},
}


# For 10,000 colour images of 32 × 32 pixels and half an hour. Without blur, which leaves little of images so small.
# Views of 24 × 24 pixels: more images a second, and a crop shows objects about as large as the whole image does.
COLOUR: dict[str, Any] = {
    **TWO_VIEWS,
    "augment": {"views": [{"name": "strong", "blur": 0}] * 2, "size": 24},
    "train": {"epochs": 120, "batch_size": 128},
}


def _recipe(
    method: str,
    base: dict[str, Any],
    about: str,
    *,
    on: str = "fashion-mini",
    data: dict[str, Any] | None = None,
    encoder: dict[str, Any] | None = None,
    **options: Any,
) -> Recipe:
    return Recipe.of(
        {
            **base,
            "name": f"{method}-{on}",
            "about": about,
            "data": data or {"name": on},
            "encoder": {"name": "small-resnet", **(encoder or {})},
            "method": {"name": method, **options},
        }
    )


_ALL = [
    _recipe("supcon", SUPERVISED, "SupCon, two views, as tcl's baseline."),
    _recipe("tcl", SUPERVISED, "TCL with labels, two views, k1 = 5000 and k2 = 1 as on FMNIST.", k1=5000.0, k2=1.0),
    _recipe(
        "tcl-self", {**TWO_VIEWS, "augment": ["whole-object"] * 3}, "TCL without labels, three views.", encoder=WIDE
    ),
    _recipe(
        "simclr", TWO_VIEWS, "SimCLR: NT-Xent on two views that keep the whole object.", encoder=WIDE, temperature=0.1
    ),
    _recipe("moco", MOMENTUM, "MoCo: InfoNCE against a queue.", encoder=WIDE, temperature=0.2, **FOLLOWS),
    _recipe(
        "ressl",
        {**MOMENTUM, "augment": ["crop-flip", "whole-object"]},
        "ReSSL: relations to a queue, seen by a weak target.",
        encoder=WIDE,
        **FOLLOWS,
    ),
    _recipe(
        "sce",
        MOMENTUM,
        "SCE: relations and the positive, λ = 0.5.",
        encoder=WIDE,
        temperature=0.2,
        target_temperature=0.1,
        **FOLLOWS,
    ),
    _recipe(
        "instance",
        BANK,
        "Instance discrimination with a memory bank (Wang & Liu), τ = 0.1.",
        temperature=0.1,
    ),
    _recipe("sc", ONE_VIEW, "Graf et al.'s SC: one view, no projector, batches with replacement."),
    _recipe("ce", ONE_VIEW, "Cross-entropy, no bias (Graf et al.)."),
    _recipe("ce-l2", ONE_VIEW, "Cross-entropy with the penalty λ‖W‖² (Graf et al.)."),
    _recipe("ce-fix", ONE_VIEW, "Cross-entropy with weights fixed at a simplex (Graf et al.)."),
    _recipe(
        "simclr",
        COLOUR,
        "SimCLR on 10,000 images of CIFAR-10, or your small colour images by data=.",
        on="cifar10-10k",
        data={"name": "cifar10", "limit": 10_000},
        encoder=WIDE,
        temperature=0.2,
    ),
]
RECIPES = {recipe.name: recipe for recipe in _ALL}
