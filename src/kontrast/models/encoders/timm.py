"""Any of timm's encoders, as ``timm/<its name>``; needs the extra (``pip install kontrast[timm]``).

timm is asked for the model without its classifier, so that the call gives its pooled features. It adapts the first
layer to other numbers of channels itself.
"""

from __future__ import annotations

import difflib
import re
import warnings
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

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

    def stage_names(self) -> list[list[str]]:
        """timm's own coarse groups of parameters: a transformer's blocks, a convolutional network's stages."""
        matcher = self._matcher(coarse=True)
        if matcher is None:
            return super().stage_names()
        groups = _groups([name for name, _ in self.net.named_parameters()], matcher)
        return [[f"{self.plain_prefix}{name}" for name in group] for group in groups]

    def recomputed_parts(self) -> list[nn.Module]:
        """timm's blocks: the modules whose whole names its fine groups of parameters are named after."""
        matcher = self._matcher(coarse=False)
        patterns = _patterns([] if matcher is None else [value for key, value in matcher.items() if key != "stem"])
        parts: dict[str, nn.Module] = {}
        for name, module in self.net.named_modules():
            is_block = any(pattern.fullmatch(name) for pattern in patterns)
            is_inside = any(name.startswith(f"{outer}.") for outer in parts)
            if is_block and not is_inside and any(True for _ in module.children()):  # a layer alone has nothing to save
                parts[name] = module
        return list(parts.values())

    def _matcher(self, *, coarse: bool) -> dict[str, Any] | None:
        """timm's patterns of the names of each group; None for a model that has none."""
        find = getattr(self.net, "group_matcher", None)
        matcher = None if find is None else find(coarse=coarse)
        return matcher if isinstance(matcher, dict) else None

    def timm_model(self) -> tuple[str, dict[str, Any]]:
        return self.model, {name: value for name, value in self.arguments.items() if name != "num_classes"}


ENTRIES: dict[str, tuple[type[TimmEncoder], dict[str, Any], str]] = {
    "timm/…": (TimmEncoder, {}, "Any of timm's encoders; needs the extra (pip install kontrast[timm]).")
}


def _groups(names: list[str], matcher: dict[str, Any]) -> list[list[str]]:
    """timm's groups of names; the stem goes with the group behind it, what matches nothing with the one before."""
    from timm.models import group_parameters

    unmatched = "no name"  # timm puts it with all that matches nothing, in a group behind the others
    named: Any = SimpleNamespace(named_parameters=lambda: [(name, None) for name in (*names, unmatched)])
    found = group_parameters(named, matcher)
    *groups, rest = ([name for name in group if name != unmatched] for _, group in sorted(found.items()))
    if not groups:
        return [rest]
    groups[-1] += rest
    stem = _patterns([matcher.get("stem")])
    if len(groups) > 1 and any(pattern.match(groups[0][0]) for pattern in stem):
        groups[:2] = [groups[0] + groups[1]]
    return groups


def _patterns(matchers: list[Any]) -> list[re.Pattern[str]]:
    """The patterns of timm's groups, each given as a pattern or as a list of pairs of a pattern and an order."""
    patterns = []
    for matcher in matchers:
        pairs = matcher if isinstance(matcher, list | tuple) else [(matcher, None)]
        patterns += [re.compile(pattern) for pattern, _ in pairs if pattern is not None]
    return patterns


def _timm() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # timm warns of its own old names
            import timm
    except ImportError as error:
        raise ImportError("encoders named timm/… need timm: pip install kontrast[timm]") from error
    return timm
