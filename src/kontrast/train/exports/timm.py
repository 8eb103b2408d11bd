"""timm: a folder that ``timm.create_model("local-dir:FOLDER", pretrained=True)`` loads, like one of a hub.

config.json names timm's architecture, what it is made with, and how its inputs are resized, cropped and normalised, so
that timm's own ``resolve_data_config`` finds it; model.safetensors has the weights. ``num_classes=10`` puts a new
classifier on top. timm's ResNets have torchvision's names and are the same network; the small-image stem has no name in
timm.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save

from kontrast.files import write_atomically, write_json
from kontrast.train.encoder_files import plain_state
from kontrast.train.exports._target import Source, Target

LINES = """import timm
model = timm.create_model("local-dir:FOLDER", pretrained=True)  # FOLDER: this one, as a path
model.eval()"""


class Timm(Target):
    """config.json and model.safetensors."""

    library = "timm"

    def refusal(self, source: Source) -> str | None:
        try:
            source.encoder.timm_model()
        except ValueError as error:
            return str(error)
        return None

    def write(self, source: Source, folder: Path) -> str:
        timm = _timm()
        architecture, arguments = source.encoder.timm_model()
        defaults = timm.get_pretrained_cfg(architecture, allow_unregistered=True)
        inputs = source.card["input"]
        rgb = source.shape[0] == 3  # timm takes the weights of a first layer for RGB, and adapts them to other channels
        about = {
            "architecture": architecture,
            "num_classes": 0,
            "num_features": source.card["feature_dim"],
            "model_args": arguments,
            "pretrained_cfg": {
                "tag": f"kontrast-{source.card['hash']}",
                "input_size": list(source.shape),
                "fixed_input_size": bool(getattr(defaults, "fixed_input_size", False)),
                "mean": inputs["mean"],
                "std": inputs["std"],
                "interpolation": inputs.get("interpolation") or "bilinear",
                **({"crop_pct": inputs["crop"], "crop_mode": "center"} if "crop" in inputs else {}),
                "num_classes": 0,
                "first_conv": getattr(defaults, "first_conv", None) if rgb else None,
                "classifier": getattr(defaults, "classifier", None),
            },
        }
        write_json(folder / "config.json", about)
        state = plain_state(source.encoder)
        write_atomically(folder / "model.safetensors", save(state, metadata={"format": "pt"}))
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):  # a network's first weights are drawn
            warnings.simplefilter("ignore")  # timm warns of its own old names
            model = timm.create_model(f"local-dir:{folder}", pretrained=True)
        source.check_features(model.eval(), "timm's model")
        return LINES


def _timm() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import timm
    except ImportError as error:
        raise ImportError("the export to timm is checked by timm itself: pip install kontrast[timm]") from error
    return timm
