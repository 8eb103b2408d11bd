"""The base classes of the encoders: modules that map inputs to features h of length ``feature_dim``."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from kontrast.checks import one_of, size
from kontrast.models.preprocessing import Preprocessing
from kontrast.models.published import Published
from kontrast.models.weights import Loaded

ImageSize = int | tuple[int, int]
MOST_LAYERS = 1000  # of a network: one of a million layers would take hours to make
SMALL = 64  # up to here an image loses too much in a stem that divides its side by four
LOAD = "from safetensors.torch import load_file"


class Encoder(nn.Module):
    """Base of the encoders: ``encoder(x) → h [N, feature_dim]``, before any head and not normalised.

    With ``norm = "frozen"`` batch norm keeps its running statistics: in train mode too it normalises with them and does
    not update them; its weight and bias are trained. So fine-tuning with small or strongly augmented batches cannot
    spoil the statistics of a pretrained network. It holds after every call of ``train``, in copies of the encoder, and
    for whatever batch norm takes the place of another (across ranks, split). Batch norm without running statistics has
    nothing to keep, and stays as it is.

    >>> encoder = Encoder()
    >>> encoder.layer = nn.BatchNorm1d(2)
    >>> encoder.norm = "frozen"
    >>> encoder.train().training, encoder.layer.training
    (True, False)
    """

    feature_dim: int
    norm: str | None = None  # "frozen", or "train" (the same as None)
    loaded: Loaded | None = None  # the report of a pretrained start
    preprocessing: Preprocessing | None = None
    """How images become inputs, where the checkpoint says it: timm's configuration, torchvision's, a run's card."""
    standardisation: tuple[list[float], list[float]] | None = None
    """Mean and std of the vectors that an encoder of vectors learned from; set by `kontrast.load` for a run."""
    embedder: Callable[..., Tensor] | None = None
    """What `embed` calls with the encoder; `kontrast.load` sets it, since encoders themselves read no files."""
    largest_image: int | None = None
    """The longest side in pixels that it is made for; None for no limit. Larger images work, but slowly."""
    plain_prefix: ClassVar[str] = ""
    """Where the plain model stands in this one (``net.``); exported weights have its names, without this prefix."""

    def train(self, mode: bool = True) -> Self:
        """Set train or eval mode; batch norm with frozen statistics is always in eval mode."""
        super().train(mode)
        if self.norm == "frozen":
            for part in self.modules():
                if isinstance(part, _BatchNorm):
                    part.training = False  # not eval(): what else the part holds (timm's dropout) goes with the encoder
        return self

    def embed(
        self,
        images: Any,
        *,
        batch_size: int | None = None,
        device: str | torch.device | None = None,
        progress: Callable[[str, int, int], object] | None = None,
    ) -> Tensor:
        """The features of images (or vectors, of an encoder of vectors), as their evaluation would have them.

        Images get the encoder's own preprocessing: EXIF orientation, its channels, size, crop and normalisation.

        Args:
            images: A list of paths, PIL images or arrays (``[H, W]`` or ``[H, W, C]``; tensors ``[C, H, W]``), or one
                of them; an array of images ``[N, H, W, C]``. Vectors: ``[N, D]``, or one ``[D]``.
            batch_size: How many go through the encoder at once; None measures one and chooses.
            device: Where it runs; its own device by default.
            progress: Called with ``("features", done, of)``.

        Returns:
            float32 ``[N, feature_dim]`` on the CPU.

        Raises:
            ValueError: An image cannot be read or has another type (the error names it), there is none, or the encoder
                does not know its preprocessing.

        >>> Encoder().embed([])
        Traceback (most recent call last):
            ...
        ValueError: this encoder does not know how images become its inputs: load it with kontrast.load, as ...
        """
        if self.embedder is None:
            raise ValueError(
                "this encoder does not know how images become its inputs: load it with kontrast.load, as in "
                'kontrast.load("timm/resnet50", pretrained=True) or kontrast.load(run)'
            )
        return self.embedder(self, images, batch_size=batch_size, device=device, progress=progress)

    # ------------------------------------------------------------------------------------- what others ask it

    @classmethod
    def published(cls, name: str, weights: str | None = None) -> Published | None:
        """Weights that the encoder's library publishes; None (the default) if there are none.

        Args:
            name: The encoder's whole name, ``"timm/resnet50.a1_in1k"``.
            weights: Their name; None for the usual ones.

        Raises:
            ValueError: There are some, but none of this name.
        """
        return None

    @classmethod
    def preprocessing_of_file(cls, name: str, file: Path) -> Preprocessing | None:
        """What the images of a file of weights went through, by the encoder's name or the file's; None by default."""
        return None

    def converted(self, table: Mapping[str, Tensor]) -> Mapping[str, Tensor] | None:
        """Convert tensors with the names of the plain model, or of where it was published, to this network's sizes.

        Args:
            table: The tensors of a file.

        Returns:
            Tensors by the plain model's names, such as position embeddings of another image size; None (the default) if
            the encoder knows no conversion.
        """
        return None

    @classmethod
    def options_for(cls, feature_dim: int) -> dict[str, Any]:
        """The options that give features of this length; none by default."""
        return {}

    def loading_code(self) -> str | None:
        """Lines of Python that load encoder.safetensors without kontrast; None (the default) if only kontrast can."""
        return None

    def source_file(self) -> tuple[str, str] | None:
        """Name and text of a Python file that `loading_code` imports; None (the default) if it needs none."""
        return None

    def timm_model(self) -> tuple[str, dict[str, Any]]:
        """Name and arguments by which ``timm.create_model`` makes the same network.

        Raises:
            ValueError: timm does not have this network (the default); the error says why.
        """
        raise ValueError("timm has no such network")

    def torchvision_model(self) -> nn.Module:
        """The same network made by torchvision, with other weights.

        Raises:
            ValueError: torchvision does not have this network (the default).
        """
        raise ValueError("torchvision has no such network")


class ImageEncoder(Encoder):
    """Base of the encoders that take images ``[N, in_channels, H, W]``; channels_last is the fastest memory layout.

    >>> from kontrast.models import encoder
    >>> [isinstance(encoder(name, image_size=8), ImageEncoder) for name in ("small-resnet", "mlp")]
    [True, False]
    """

    in_channels: int
    channels_last: bool

    def _set_layout(self, *, in_channels: int, channels_last: bool) -> None:
        """Store the options and choose the memory layout; call it after all layers are made."""
        self.in_channels, self.channels_last = in_channels, channels_last
        if channels_last:
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _prepare(self, images: Tensor) -> Tensor:
        """The images in the encoder's layout, or an error that says what is wrong with them."""
        if images.ndim != 4 or images.shape[1] != self.in_channels:
            channels = images.shape[1] if images.ndim == 4 else "…"
            raise ValueError(
                f"images has shape {list(images.shape)}: must be [N, {self.in_channels}, H, W]. For other channels, "
                f"make {type(self).__name__} with in_channels={channels}"
            )
        if not images.is_floating_point():
            raise ValueError(f"images has {images.dtype}: must be floating point. Normalise first (images / 255)")
        return images.contiguous(memory_format=torch.channels_last) if self.channels_last else images


def loading_code(imports: str, model: str) -> str:
    """The lines that make a model, by an expression and perhaps further lines, and load its weights into it."""
    return f'{imports}\nmodel = {model}\nmodel.load_state_dict(load_file("encoder.safetensors"))\nmodel.eval()'


def keywords(options: dict[str, Any]) -> str:
    """Options as the arguments of a call.

    >>> keywords({"width": 16, "stem": "small"})
    "width=16, stem='small'"
    """
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def is_small(image_size: ImageSize | None, stem: str) -> bool:
    """Whether to use the small-image stem: if ``stem`` says so, or for sides of at most 64.

    >>> is_small(32, "auto"), is_small(224, "auto"), is_small(224, "small"), is_small(None, "auto")
    (True, False, True, False)
    """
    if one_of("stem", stem, ("auto", "small", "large")) != "auto":
        return stem == "small"
    return image_size is not None and max(height_and_width(image_size)) <= SMALL


def height_and_width(image_size: ImageSize) -> tuple[int, int]:
    """The two sides; one number means a square.

    >>> height_and_width(32), height_and_width((28, 40))
    ((32, 32), (28, 40))
    """
    sides = (image_size,) * 2 if isinstance(image_size, numbers.Number) else tuple(image_size)  # type: ignore[arg-type]
    if len(sides) != 2:
        raise ValueError(f"image_size={image_size!r}: must be a number of pixels or a pair (height, width)")
    height, width = (size("image_size", side) for side in sides)
    return height, width


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed torch's CPU generator inside, and restore its state afterwards.

    Modules draw their first weights on the CPU, so this fixes them for every device.

    Args:
        seed: The seed; with None nothing changes.

    Returns:
        A context.

    >>> with seeded(3):
    ...     a = torch.rand(2)
    >>> with seeded(3):
    ...     b = torch.rand(2)
    >>> torch.equal(a, b)
    True
    """
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.default_generator.manual_seed(int(seed))
        yield
