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
from kontrast.models.encoders._base import LOAD, ImageEncoder, ImageSize, height_and_width, keywords, loading_code

FILES = ("checkpoint_path", "pretrained_cfg", "pretrained_cfg_overlay", "cache_dir")


class TimmEncoder(ImageEncoder):
    """A model of timm with the interface of all encoders.

    Args:
        model: Its name in timm.
        in_channels: Channels of the images.
        image_size: Their sides; used by models that are built for one size (transformers).
        channels_last: The memory layout.
        **options: Those of ``timm.create_model``.

    Raises:
        ValueError: timm has no such model, or the model no such option.
        ImportError: timm is not installed.
    """

    plain_prefix = "net."

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
                f"stem={options['stem']!r}: must be left out for encoders of timm, which names stems itself"
            )
        if files := [option for option in FILES if option in options]:
            # Older versions of timm unpickle such a file, and a recipe or a model.json may be somebody else's.
            raise ValueError(
                f"{files[0]}={options[files[0]]!r}: must be left out, since timm would read a file. Use pretrained=FILE"
            )
        timm = _timm()
        if not timm.is_model(model):
            near = difflib.get_close_matches(model.partition(".")[0], timm.list_models(), n=3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else "."
            raise ValueError(f"timm {timm.__version__} has no model {model!r}{hint} timm.list_models() has them all")
        in_channels = size("in_channels", in_channels)
        sides = None if image_size is None else height_and_width(image_size)
        has_one_size = getattr(timm.get_pretrained_cfg(model), "fixed_input_size", False)  # others refuse the option
        resolution = {"img_size": sides} if sides is not None and has_one_size else {}
        try:
            self.net = timm.create_model(
                model, pretrained=False, num_classes=0, in_chans=in_channels, **resolution, **options
            )
        except TypeError as error:  # timm passes options on to the parts of each model
            text = ", ".join(f"{name}={value!r}" for name, value in options.items())
            raise ValueError(f"timm/{model} cannot be made with {text or 'no options'}: {error}") from error
        self.model, self.arguments = model, {"num_classes": 0, "in_chans": in_channels, **resolution, **options}
        self._set_layout(in_channels=in_channels, channels_last=channels_last)
        # Some of timm's models return another number than num_features, so one image is tried.
        mode, (height, width) = self.net.training, sides or self.net.default_cfg.get("input_size", (3, 224, 224))[1:]
        with torch.no_grad():
            self.feature_dim = int(self.net.eval()(torch.zeros(1, in_channels, height, width)).shape[1])
        self.net.train(mode)

    def forward(self, images: Tensor) -> Tensor:
        """``images [N, in_channels, H, W]`` → ``h [N, feature_dim]``."""
        return self.net(self._prepare(images))  # type: ignore[no-any-return]

    def loading_code(self) -> str:
        return loading_code(f"import timm\n{LOAD}", f"timm.create_model({self.model!r}, {keywords(self.arguments)})")

    def timm_model(self) -> tuple[str, dict[str, Any]]:
        return self.model, {name: value for name, value in self.arguments.items() if name != "num_classes"}


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
