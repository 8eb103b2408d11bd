"""Any of timm's encoders, as ``timm/<its name>``; needs the extra (``pip install kontrast[timm]``).

timm is asked for the model without its classifier, so that the call gives its pooled features. It adapts the first
layer to other numbers of channels itself.
"""

from __future__ import annotations

import difflib
import warnings
from typing import Any

import torch
from torch import Tensor

from kontrast.checks import size
from kontrast.models.encoders._base import ImageEncoder, ImageSize, height_and_width

FILES = ("checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir")


class TimmEncoder(ImageEncoder):
    """``timm.create_model`` behind the call that all encoders have; ``options`` are timm's.

    ``image_size`` reaches the models that need it before they are made (transformers); ``stem`` is for our own
    ResNets, timm has names for such variants.
    """

    def __init__(
        self,
        model: str,
        *,
        in_channels: int = 3,
        image_size: ImageSize | None = None,
        channels_last: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        if "stem" in options:
            raise ValueError(
                f"stem={options['stem']!r} is for resnet18 … resnet101 and small-resnet; timm's stems go with its names"
            )
        if named := [option for option in FILES if option in options]:
            # Older versions of timm unpickle whatever lies there, and a recipe or a model.json may be another's.
            raise ValueError(
                f"{named[0]} is not taken: timm would read a file by it. Start from weights by pretrained=…"
            )
        timm = _timm()
        if not timm.is_model(model):
            near = difflib.get_close_matches(model.partition(".")[0], timm.list_models(), n=3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else "."
            raise ValueError(f"timm {timm.__version__} has no model {model!r}{hint} timm.list_models() has them all")
        in_channels = size("in_channels", in_channels)
        sides = None if image_size is None else height_and_width(image_size)
        resolution = {} if sides is None or not _takes_size(timm, model) else {"img_size": sides}
        try:
            self.net = timm.create_model(
                model, pretrained=False, num_classes=0, in_chans=in_channels, **resolution, **options
            )
        except TypeError as error:  # timm hands options on, through several calls, to what each model is made of
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise ValueError(f"timm/{model} cannot be made with {given or 'no options'}: {error}") from error
        self._as_declared(in_channels=in_channels, channels_last=channels_last)
        # What timm calls num_features is not what all of its models return, so one image is asked.
        mode, (height, width) = self.net.training, sides or self.net.default_cfg.get("input_size", (3, 224, 224))[1:]
        with torch.no_grad():
            self.feature_dim = int(self.net.eval()(torch.zeros(1, in_channels, height, width)).shape[1])
        self.net.train(mode)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        return self.net(self._prepared(images))  # type: ignore[no-any-return]


ENTRIES: dict[str, tuple[type[TimmEncoder], dict[str, Any], str]] = {
    "timm/…": (TimmEncoder, {}, "Any of timm's encoders; needs the extra (pip install kontrast[timm]).")
}


def _timm() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # timm warns of its own old names
            import timm
    except ImportError as error:
        raise ImportError("encoders named timm/… need timm: pip install kontrast[timm]") from error
    return timm


def _takes_size(timm: Any, model: str) -> bool:
    """Whether a model is made for one size of image; convolutional ones refuse the option."""
    return bool(getattr(timm.get_pretrained_cfg(model), "fixed_input_size", False))
