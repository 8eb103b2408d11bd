"""Any of timm's encoders, as ``timm/<its name>``; needs the extra (``pip install kontrast[timm]``).

timm is asked for the model without its classifier, so that the call gives its pooled features. It adapts the first
layer to other numbers of channels itself.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import torch
from torch import Tensor, nn

from kontrast.checks import size
from kontrast.models.encoders._base import LOAD, ImageEncoder, ImageSize, height_and_width, keywords, loading_code
from kontrast.models.preprocessing import INTERPOLATIONS, Preprocessing
from kontrast.models.published import Published
from kontrast.models.weights import read_tensors
from kontrast.registry import nearest, quoted

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
        _check_model(model)
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

    @classmethod
    def published(cls, name: str, weights: str | None = None) -> Published | None:
        config = _config(name, weights)
        if config is None:
            return None
        address, file, is_on_hub = _place(config)

        def read(network: nn.Module) -> Mapping[str, Any]:
            assert isinstance(network, TimmEncoder)
            return _read(network.net, config, file())

        folder = f"`hf download {config.hf_hub_id}` does" if is_on_hub else str(_in_torch_hub(config.url))
        preprocessing = _preprocessing(config)
        return Published(
            f"timm/{config.architecture}.{config.tag}", address, folder, preprocessing, read, lambda: bool(file())
        )

    @classmethod
    def preprocessing_of_file(cls, name: str, file: Path) -> Preprocessing | None:
        config = _config(name)
        return None if config is None else _preprocessing(config)

    def converted(self, table: Mapping[str, Tensor]) -> Mapping[str, Tensor] | None:
        """By timm's own filter of this kind of network: other projects' names, position embeddings of another size."""
        filters = (
            getattr(sys.modules[kind.__module__], "checkpoint_filter_fn", None) for kind in type(self.net).__mro__
        )
        convert = next((filter_ for filter_ in filters if filter_ is not None), None)
        if convert is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = convert(dict(table), self.net)
            return {name: value for name, value in found.items() if isinstance(value, Tensor)}
        except Exception:  # of a file that it is not made for, anything: then there is no conversion
            return None

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


def _check_model(model: str) -> None:
    """Raise ValueError if timm has no model of this name."""
    timm = _timm()
    if not timm.is_model(model):
        near = difflib.get_close_matches(model.partition(".")[0], timm.list_models(), n=3)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else "."
        raise ValueError(f"timm {timm.__version__} has no model {model!r}{hint} timm.list_models() has them all")


def _config(name: str, weights: str | None = None) -> Any:
    """timm's configuration of the weights of a name and tag; None if it publishes none for the name.

    Raises:
        ValueError: There are weights for the name, but none of this tag.
    """
    timm = _timm()
    model, _, tag = name.removeprefix("timm/").partition(".")
    tag = weights or tag
    _check_model(model)
    tags = [known.partition(".")[2] for known in timm.list_pretrained(f"{model}.*")] or (
        [""] if timm.is_model_pretrained(model) else []
    )
    if tag and tag not in tags:
        text = f"Known: {', '.join(tags)}" if tags else "It has none"
        raise ValueError(f"timm {timm.__version__} has no weights {quoted(tag)} of {model}{nearest(tag, tags)} {text}")
    return timm.get_pretrained_cfg(f"{model}.{tag}" if tag else model) if tags else None


def _preprocessing(config: Any) -> Preprocessing:
    """What timm's evaluation does with images, by the configuration of the weights.

    A few are evaluated on images squeezed into a square (``crop_mode="squash"``); here they get the middle square too.
    """
    how: Any = config.interpolation if config.interpolation in INTERPOLATIONS else "bicubic"
    return Preprocessing(
        min(config.input_size[1:]), tuple(config.mean), tuple(config.std), how, min(config.crop_pct, 1.0)
    )


def _place(config: Any) -> tuple[str, Callable[[], str | None], bool]:
    """The address of the weights, what finds their file in the cache, and whether they come from the hub."""
    hub = importlib.util.find_spec("huggingface_hub") if config.hf_hub_id else None
    if hub is None:
        return config.url, lambda: str(file) if (file := _in_torch_hub(config.url)).is_file() else None, False
    import huggingface_hub
    from huggingface_hub.constants import ENDPOINT

    names = [config.hf_hub_filename] if config.hf_hub_filename else ["model.safetensors", "pytorch_model.bin"]
    repository, _, revision = config.hf_hub_id.partition("@")

    def file() -> str | None:
        for name in names:
            found = huggingface_hub.try_to_load_from_cache(repository, name, revision=revision or None)
            if isinstance(found, str):
                return found
        return None

    return f"{ENDPOINT}/{repository}/resolve/{revision or 'main'}/{names[0]}", file, True


def _in_torch_hub(url: str) -> Path:
    return Path(torch.hub.get_dir(), "checkpoints", Path(urlparse(url).path).name)


def _read(net: nn.Module, config: Any, file: str | None) -> Mapping[str, Any]:
    """The tensors that timm loads, from its cache or from the network."""
    if file is not None and not config.custom_load:
        return read_tensors(Path(file))
    timm = _timm()
    found: dict[str, Any] = {}

    def keep(state: dict[str, Any], model: nn.Module) -> dict[str, Any]:
        found.update(state)
        return {}

    about = {**config.to_dict(), "first_conv": None, "classifier": None}  # both are ours to fit
    if file is not None:
        about["file"] = file
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timm.models.load_pretrained(net, about, num_classes=0, filter_fn=keep, strict=False)
    return found or net.state_dict()  # networks with a format of their own load it themselves


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
