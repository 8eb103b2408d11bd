"""A job: data, views, networks and batches of a recipe.

What the encoder sees is decided here once, for training, monitors and evaluation alike: the data's mean and std, the
side of the views, the crop at decoding where images have several sizes.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from kontrast import augment, distributed, evaluate, methods, models
from kontrast.data import (
    SAMPLERS,
    DataSet,
    Loader,
    Sampler,
    Split,
    Stream,
    check_in_reach,
    generator,
    load,
    seed_of,
)
from kontrast.evaluate.features import FRACTION
from kontrast.recipe import Recipe
from kontrast.train import controls, preparing
from kontrast.train.memory import explain_out_of_memory, keep_freed_memory

LARGE = 224  # pixels a side of views of images that have no one size
SMALL = 64  # pixels a side of images whose views take a good part of a step's time


@dataclass(frozen=True, eq=False)
class Job:
    """What a recipe names, loaded and constructed by `make_job`.

    Attributes:
        recipe: The resolved recipe.
        data: The data set.
        train: The rows that the encoder learns from.
        validation: The rows held out of them, if any.
        views: The augmentations of each view.
        crop: The crop that images of several sizes are read with.
        method: The method with its networks, on the device.
        sampler: Which rows are in which batch.
        size: Pixels a side of what the encoder sees in evaluation; None for vectors.
        device: Where the networks are.
        start: A pretrained encoder before the first step, on the CPU; None for a random start.
    """

    recipe: Recipe
    data: DataSet
    train: Split
    validation: Split | None
    views: augment.Views
    crop: augment.CropAtDecoding | None
    method: methods.Method
    sampler: Sampler
    size: int | None
    device: torch.device
    start: models.Encoder | None = None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input of the encoder in evaluation: ``(D,)`` or ``(C, S, S)``."""
        return shape_of_inputs(self.data, self.size)

    @property
    def preprocessing(self) -> models.Preprocessing | None:
        """How an image becomes an input in evaluation; None for vectors."""
        if self.size is None:
            return None
        data = self.data
        whole = FRACTION if self.train.inputs.shape is None else 1.0
        crop = whole if data.crop is None else data.crop
        return models.Preprocessing(self.size, data.mean, data.std, data.interpolation, crop)

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one pass over the data."""
        return self.sampler.steps

    @property
    def total_steps(self) -> int:
        """Batches of the whole run."""
        train = self.recipe.train
        return train.steps if train.steps is not None else (train.epochs or 0) * self.steps_per_epoch

    def loader(self) -> Loader:
        """This rank's part of every batch."""
        return Loader(
            self.train,
            self.sampler,
            seed=self.recipe.seed,
            rank=distributed.rank(),
            world_size=distributed.world_size(),
            workers=self.recipe.run.workers,
            crop=self.crop,
        )

    def micro_batches(self) -> int:
        """Micro-batches of a batch, the same on every rank."""
        micro = self.recipe.train.micro_batch
        if isinstance(micro, str):
            raise ValueError(
                f"train.micro_batch={micro}: must be a number here; only kontrast.run and kontrast train choose one. "
                "Use 64, say"
            )
        images = math.ceil(self.recipe.train.batch_size / distributed.world_size())
        return 1 if micro is None else math.ceil(images / micro)

    def augment(self, batch: Any) -> methods.ViewBatch:
        """The views of a batch, on the device; their random draws depend on seed, epoch and step alone."""
        batch = batch.to(self.device)
        size = augment.Operation.size_of(batch.inputs[:, 0] if batch.inputs.ndim == 5 else batch.inputs)
        params = self.views.draw(batch.total, size, batch.generator())
        views = self.views.apply(batch.inputs, params[batch.place])
        assert isinstance(views, Tensor)
        seed = seed_of(batch.seed, Stream.NETWORK, batch.epoch, batch.step)
        return methods.ViewBatch(views, batch.labels, batch.indices, seed)


def make_job(recipe: Recipe, device: torch.device, data_set: DataSet | None = None) -> Job:
    """Load the data and construct the networks of a resolved recipe.

    Args:
        recipe: The resolved recipe.
        device: Where the networks go.
        data_set: The data set of a recipe whose data came from Python (`kontrast.data.bind`).

    Returns:
        The job; `Training` trains it.

    Raises:
        ValueError: The parts of the recipe do not fit each other or the data, or memory does not suffice.

    >>> from kontrast.train import resolve
    >>> small = {"data": {"name": "digits", "limit": 60}, "encoder": "mlp", "method": "supcon", "augment": ["none"] * 2}
    >>> recipe = resolve(Recipe.of({**small, "train": {"epochs": 2, "batch_size": 30}}))
    >>> job = make_job(recipe, torch.device("cpu"))
    >>> job.total_steps, job.input_shape
    (4, (1, 8, 8))
    """
    data, train, validation = load_data(recipe, data_set)
    if methods.find(recipe.method.name).needs_labels:
        train.require_labels(f"method {recipe.method.name!r}")
    _check_protocols(recipe, data)
    size = view_size(recipe, data, train)
    views, crop = _views(recipe, data, recipe.augment.size or size)
    sampler: Sampler = SAMPLERS[recipe.train.sampler].of(train, recipe.train.batch_size, seed=recipe.seed)
    steps = recipe.train.steps or (recipe.train.epochs or 0) * sampler.steps
    classes = data.num_classes if train.labels is not None else None
    setting = methods.Setting(len(train), classes, steps, recipe.seed)
    with explain_out_of_memory("the encoder, head and method of the recipe", "take smaller ones (width, out, queue …)"):
        encoder = make_encoder(recipe, data, size)
        start = None if encoder.loaded is None else copy.deepcopy(encoder)
        controls.prepare(encoder, recipe)
        head = models.head(
            recipe.head.name,
            in_dim=encoder.feature_dim,
            seed=seed_of(recipe.seed, Stream.NETWORK, 1),
            **recipe.head.options,
        )
        try:
            method = methods.method(recipe.method.name, encoder, head, setting=setting, **recipe.method.options)
        except ValueError as error:
            if str(error).partition("=")[0] not in recipe.method.options:
                raise
            raise ValueError(f"method.{error}") from error  # a loss knows its own name of the option alone
    labelled = train.labels is not None
    controls.check(method, recipe, sampler.steps, steps, labelled=labelled)
    if recipe.train.batch_norm == "sync" and distributed.world_size() > 1:
        method.across_ranks()
    return Job(recipe, data, train, validation, views, crop, method.to(device), sampler, size, device, start)


def _check_protocols(recipe: Recipe, data: DataSet) -> None:
    """Refuse protocols that cannot evaluate these data before anything is trained."""
    for protocol in recipe.evaluate.protocols:
        if data.kind == "vector" and evaluate.PROTOCOLS[protocol.name].needs_encoder:
            raise ValueError(
                f"evaluate.protocols={protocol.name}: must not augment images, as {data.name!r} holds vectors. "
                "Use probe"
            )


def load_data(
    recipe: Recipe, data_set: DataSet | None = None, preprocessing: models.Preprocessing | None = None
) -> tuple[DataSet, Split, Split | None]:
    """Load the data of a recipe, read as its encoder's checkpoint wants them, unless the recipe says otherwise.

    Args:
        recipe: The recipe.
        data_set: The data set of a recipe whose data came from Python (`kontrast.data.bind`).
        preprocessing: How images are read, whatever the recipe says: that of a finished run. None: as the checkpoint of
            ``encoder.pretrained`` and the recipe say.

    Returns:
        The data set, the rows that the encoder learns from, and those held out of them (None without validation).

    Raises:
        ValueError: The data cannot be read, or lack a split.
    """
    section, run = recipe.data, recipe.run
    if data_set is None:
        check_in_reach(recipe)
    weights = models.find_weights(recipe.encoder.name, recipe.encoder.options.get("pretrained"))
    checkpoint = None if weights is None else weights.preprocessing
    options: dict[str, Any] = {"root": run.data_root, "cache": run.cache or None}
    for name in ("size", "channels", "labelled", "limit", "test_limit"):
        options[name] = getattr(section, name)
    if section.size is not None:
        how = preprocessing or checkpoint
        options["interpolation"] = section.interpolation or ("bilinear" if how is None else how.interpolation)
    source: Any = section.name if data_set is None else data_set
    if section.test is not None:  # before limit and noise: test rows are all there, and their labels right
        whole = {name: value for name, value in options.items() if name not in ("limit", "test_limit")}
        source = with_test_rows(load(source, **whole), section.test)
    data = load(
        source,
        seed=recipe.seed,
        noise=section.noise,
        noise_kind=section.noise_kind,
        **options,
    )
    if preprocessing is None:
        data = _prepare(recipe, data, checkpoint)
    elif data.kind == "image":
        data = preparing.prepare(data, preprocessing)
    if section.split == "train":
        train = data.train
    else:
        if data.unlabelled is None:
            raise ValueError(f"data.split=unlabelled: must be train, as {section.name} has no unlabelled split")
        train = data.unlabelled
    if not section.validation:
        return data, train, None
    is_held_out = held_out(train, section.validation, recipe.seed)
    return data, train.subset((~is_held_out).nonzero()[:, 0]), train.subset(is_held_out.nonzero()[:, 0])


def with_test_rows(data: DataSet, fraction: float) -> DataSet:
    """The data with a fraction of each class taken out of the training rows, as test rows.

    The rows do not depend on a recipe's seed, so that runs of several seeds are evaluated on the same ones, and no run
    learns from rows that test another. A class with one row keeps it.

    Args:
        data: Data without labelled test rows.
        fraction: Of the rows of each class.

    Raises:
        ValueError: The data have test rows, or no labels, or no class with two rows.

    >>> from kontrast.data import Memory
    >>> split = Split(Memory(torch.zeros(20, 1)), torch.arange(20) % 2)
    >>> with_test_rows(DataSet(name="rows", train=split, kind="vector", mean=(0.0,), std=(1.0,)), 0.2)
    DataSet 'rows': 16 vectors (1,), 4 for testing in 2 classes
    """
    if data.test is not None and data.test.labels is not None:
        raise ValueError(
            f"data.test={fraction}: must be left out, as {data.name!r} has {len(data.test):,} test rows. To hold rows "
            "out of the training rows while training, use data.validation"
        )
    labels = data.train.labels
    if labels is None:
        raise ValueError(f"data.test={fraction}: must be left out, as {data.name!r} has no labels to test with")
    try:
        stay, test = evaluate.hold_out(labels, fraction)
    except ValueError as error:
        raise ValueError(f"data.test={fraction}: {error}") from None
    return replace(data, train=data.train.subset(stay), test=data.train.subset(test))


def _prepare(recipe: Recipe, data: DataSet, preprocessing: models.Preprocessing | None) -> DataSet:
    """The data set, read as the checkpoint's images were, and then as the recipe says."""
    section = recipe.data
    asked: dict[str, Any] = {}
    if preprocessing is not None and data.kind == "image":
        data = preparing.prepare(data, preprocessing, whole=section.size is not None)
        if recipe.augment.size is not None and section.size is None:
            asked["size"] = recipe.augment.size
    for name in ("mean", "std"):
        values = getattr(section, name)
        if values is not None:
            if len(values) not in (1, len(data.mean)):
                raise ValueError(
                    f"data.{name}={list(values)}: must be one number, or {len(data.mean)}, one for each "
                    f"{'channel' if data.kind == 'image' else 'feature'} of {data.name!r}"
                )
            asked[name] = values * len(data.mean) if len(values) == 1 else values
    for name in ("interpolation", "crop"):
        if getattr(section, name) is not None:
            if data.kind == "vector":
                raise ValueError(f"data.{name}: must be left out for {data.name!r}, which holds vectors")
            asked[name] = getattr(section, name)
    return replace(data, **asked) if asked else data


def held_out(split: Split, fraction: float, seed: int) -> Tensor:
    """Which rows are held out, bool ``[N]``: the fraction of each class, at least one.

    >>> from kontrast.data import Memory
    >>> held_out(Split(Memory(torch.zeros(20, 1)), torch.arange(20) % 2), 0.3, seed=0).view(10, 2).sum(0)
    tensor([3, 3])
    """
    order = torch.randperm(len(split), generator=generator(seed, Stream.HELD_OUT))
    is_held_out = torch.zeros(len(split), dtype=torch.bool)
    labels = torch.zeros(len(split), dtype=torch.int64) if split.labels is None else split.labels
    for label in torch.unique(labels):
        rows = order[labels[order] == label]
        is_held_out[rows[: max(1, round(fraction * len(rows)))]] = True
    if bool(is_held_out.all()):
        raise ValueError(f"data.validation={fraction} of {len(split)} rows leaves none for training")
    return is_held_out


def make_encoder(recipe: Recipe, data: DataSet, size: int | None) -> models.Encoder:
    """The encoder of a recipe for these data, at its random (or pretrained) start."""
    name, shape = recipe.encoder.name, shape_of_inputs(data, size)
    if data.kind == "vector" and not models.takes_vectors(name):
        raise ValueError(
            f"encoder={name}: must be an encoder of vectors, as {data.name!r} holds vectors {shape}. Use encoder=mlp"
        )
    seed = seed_of(recipe.seed, Stream.NETWORK, 0)
    return models.encoder(name, **options_of_inputs(shape), seed=seed, **recipe.encoder.options)


def shape_of_inputs(data: DataSet, size: int | None) -> tuple[int, ...]:
    """The shape of one input of the encoder in evaluation; ``size`` is the side of images, from `view_size`."""
    shape = data.train.inputs.shape if size is None else (len(data.mean), size, size)
    assert shape is not None
    return shape


def options_of_inputs(shape: Sequence[int]) -> dict[str, Any]:
    """The options of an encoder that the shape of one input decides.

    >>> options_of_inputs((64,)), options_of_inputs((3, 32, 32))
    ({'in_features': 64}, {'in_channels': 3, 'image_size': 32})
    """
    return {"in_features": shape[0]} if len(shape) == 1 else {"in_channels": shape[0], "image_size": shape[-1]}


def view_size(recipe: Recipe, data: DataSet, train: Split) -> int | None:
    """Pixels a side of what the encoder sees in evaluation; None for vectors. Training views may have another side."""
    shape = train.inputs.shape
    if data.kind == "vector":
        return None
    if data.size is not None:
        return data.size
    if shape is None:
        return recipe.augment.size or LARGE
    if shape[1] != shape[2]:
        raise ValueError(
            f"images of {shape[1]}×{shape[2]} pixels: must be square. Use data.size=S to bring them to S×S pixels"
        )
    return shape[1]


def warn_of_size(job: Job) -> None:
    """Warn if an encoder for small images gets large ones that the recipe does not ask for."""
    size, recipe, fit = job.size, job.recipe, getattr(job.method.encoder, "largest_image", None)
    if size is None or fit is None or size <= fit or distributed.rank() != 0:
        return
    if recipe.data.size is not None or recipe.augment.size is not None:
        return
    several = job.train.inputs.shape is None
    if not several and size < 2 * fit:  # a little larger, and the images' own size
        return
    why = "the images differ in size, so views" if several else "the images"
    keep = f"augment.size={size}" if several else f"data.size={size}"
    warnings.warn(
        f"{why} are {size}×{size} pixels, and encoder {recipe.encoder.name!r} is made for images of up to {fit}×{fit}: "
        f"time and memory are about {round((size / fit) ** 2)} times those of {fit}×{fit}. Use data.size={fit} or 32, "
        f"or for large images encoder=resnet18; {keep} keeps this size without a warning",
        stacklevel=2,
    )


def describe_enlarging(job: Job) -> str:
    """The end of a sentence about the size of the inputs, where images of one size are enlarged to a checkpoint's."""
    size, shape = job.size, job.train.inputs.shape
    if size is None or shape is None or job.recipe.augment.size is not None or size < 2 * max(shape[1:]):
        return ""
    factor = round(size**2 / (shape[1] * shape[2]))
    return (
        f"; the images have {shape[1]}×{shape[2]}, so this is about {factor} times the work that their own size would "
        f"be: data.size={max(shape[1:])} keeps it, augment.size=S takes another"
    )


def keep_memory(job: Job) -> None:
    """Keep freed memory between the steps of this job: on a CPU, for vectors and small images, if the recipe allows it.

    A step on photos takes seconds, of which allocation is little, and the memory that is kept is fragmented: 16 views
    of 224 pixels through EfficientNet-Lite0 had a peak 5 % higher.
    """
    if job.device.type == "cpu" and job.recipe.run.keep_memory and has_small_inputs(job):
        keep_freed_memory()


def has_small_inputs(job: Job) -> bool:
    """Whether a step sees vectors or small images."""
    return job.size is None or job.size <= SMALL


def _views(recipe: Recipe, data: DataSet, size: int | None) -> tuple[augment.Views, augment.CropAtDecoding | None]:
    operations = []
    for view in recipe.augment.described:
        kind = augment.kind_of(view)
        if kind not in (data.kind, "any"):
            name = augment.title(view)
            hint = "vector-noise" if data.kind == "vector" else "a preset for images (`kontrast list augmentations`)"
            raise ValueError(f"augment.views={name}: must be for {data.kind}s, as {data.name!r} holds them. Use {hint}")
        operations.append(augment.view(view, size=size, mean=data.mean, std=data.std, interpolation=data.interpolation))
    views = augment.Views(operations)
    if data.kind == "vector":
        return views, None
    if data.train.inputs.shape is not None:
        if size is not None and data.train.inputs.shape[1:] != (size, size):
            _check_that_views_crop(recipe, views, data.train.inputs.shape, size)
        return views, None
    try:
        crop, rest = augment.at_decoding(views)
    except ValueError:
        names = " | ".join(dict.fromkeys(augment.title(view) for view in recipe.augment.described))
        raise ValueError(
            f"the images of {data.name!r} have several sizes, and {names} crops only images of one: bring "
            f"them to one with data.size={size}, or take views that begin with a random resized crop "
            "(augment=weak, say, or resized-crop as the first operation)"
        ) from None
    assert isinstance(rest, augment.Views)
    return rest, crop


def _check_that_views_crop(recipe: Recipe, views: augment.Views, shape: tuple[int, ...], size: int) -> None:
    """Raise unless every view of an image of this shape has the side that ``augment.size`` or the checkpoint wants."""
    why = f"augment.size={size}" if recipe.augment.size else f"the encoder's checkpoint takes {size}×{size} pixels"
    hint = "leave augment.size out" if recipe.augment.size else f"data.size={size}"
    try:
        result = views(torch.zeros(1, *shape))
    except ValueError as error:
        raise ValueError(f"{why}, and the views do not make that of {shape[1]}×{shape[2]} pixels: {error}") from error
    for view, pixels in zip(
        recipe.augment.described, result.unbind(1) if isinstance(result, Tensor) else result, strict=True
    ):
        if pixels.shape[-1] != size:
            raise ValueError(
                f"{why}: the view {augment.title(view)!r} does not crop, so its images stay "
                f"{shape[1]}×{shape[2]} pixels. Use views that crop (weak, crop-flip …), or {hint}"
            )
