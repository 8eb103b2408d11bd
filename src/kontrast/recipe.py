"""The typed recipe: everything that decides a run, as YAML or Python, with overrides and a hash.

    name: tcl-fashion-mini           what it is called; `about` says what it claims
    seed: 0
    data: {name: fashion-mini}       a set by name, or a path
    augment: {views: [{name: crop-flip}, {name: crop-flip}]}     presets, or lists of operations
    encoder: {name: small-resnet}    a *part*: a name, and the options of what it names
    method: {name: tcl, temperature: 0.1, k1: 5000.0}
    optim: {name: sgd, lr: 0.1}
    train: {epochs: 20, batch_size: 128}
    evaluate: {protocols: [knn20, probe]}
    run: {device: auto}              how it is run: not part of the hash

The hash is over everything but the name, its description, ``run`` and ``evaluate.batch_size``, so the same recipe under
another name, on other workers or in another folder is the same run. Overrides are ``key=value`` with dots, the value as
YAML; one of ``train.epochs`` and ``train.steps`` replaces the other.

A recipe holds plain values only (numbers, words, true and false, null, lists and mappings of them), so that it can be
written, read back and hashed. YAML's anchors can make a file of ten lines unfold to gigabytes, and lists can contain
themselves; the size of a recipe is limited before anything walks through it.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from kontrast.files import expanded, open_regular
from kontrast.registry import FAMILIES, STRENGTHS, check_operation, nearest, one_line, quoted

one_is_a_list = BeforeValidator(lambda value: (value,) if isinstance(value, str | dict) else value)
one_number_is_a_list = BeforeValidator(lambda value: (value,) if isinstance(value, int | float) else value)
LENGTHS = ("train.epochs", "train.steps")  # one of the two
Word = Annotated[str, Field(max_length=200)]
Place = Annotated[str, Field(max_length=4096)]  # of a file or folder; systems take no longer ones
Names = Annotated[tuple[Word, ...], one_is_a_list]
NOT_DECISIVE: Any = {"name": True, "about": True, "run": True, "evaluate": {"batch_size"}}
LONGEST_NAME = 200  # bytes: a file system takes 255, and the hash comes behind it


class Section(BaseModel):
    """A section of the recipe with fixed keys; an unknown key is an error. A plain word is the section's name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) and "name" in cls.model_fields else value


class Part(Section):
    """Something chosen by name, with options of its own (`Recipe.check_parts` checks both).

    >>> Part(name="tcl", k1=4000).options
    {'k1': 4000}
    """

    model_config = ConfigDict(extra="allow")

    name: Word

    @property
    def options(self) -> dict[str, Any]:
        """All but the name."""
        return dict(self.model_extra or {})


class Data(Section):
    """Which images or vectors. ``name`` is a set's name or a path; ``limit`` keeps so many training rows, classes even.

    ``noise`` is the fraction of training labels replaced, ``changed`` always by another class, ``redrawn`` uniformly.
    ``validation`` holds out that fraction of the training rows. ``test`` is the same for data without test rows: that
    fraction of each class is taken out of the training rows before anything else, the same rows for every seed, and the
    run is evaluated on it. ``split`` is what the encoder learns from.
    ``mean``, ``std`` (one number, or one for each channel), ``interpolation`` and ``crop`` (the share of the shorter
    side that evaluation keeps) are those of a pretrained encoder's checkpoint, else of the data, unless they are set.
    ``given`` and ``digest`` are set if the data came from Python, as an object: what it was, and a digest of its
    content.
    """

    name: Place = "fashion-mini"
    split: Literal["train", "unlabelled"] = "train"
    size: int | None = Field(None, ge=1)
    mean: Annotated[tuple[float, ...], one_number_is_a_list] | None = None
    std: Annotated[tuple[Annotated[float, Field(gt=0)], ...], one_number_is_a_list] | None = None
    interpolation: Literal["bilinear", "bicubic"] | None = None
    crop: float | None = Field(None, gt=0, le=1)
    channels: Literal[1, 3] | None = None
    labelled: bool | None = None
    limit: int | None = Field(None, ge=1)
    test_limit: int | None = Field(None, ge=1)
    noise: float = Field(0.0, ge=0.0, le=1.0)
    noise_kind: Literal["changed", "redrawn"] = "changed"
    validation: float = Field(0.0, ge=0.0, lt=1.0)
    test: float | None = Field(None, gt=0.0, lt=1.0)
    given: Word | None = None
    digest: Word | None = None


View = Part | tuple[Part, ...]
"""A preset with its options, or a list of operations, each with its options."""


class Augment(Section):
    """The views of each image; momentum methods take the first as the target's.

    A view is a preset with its options, ``{name: weak, scale: 0.5}``, or a list of operations,
    ``[{name: resized-crop, scale: [0.5, 1]}, flip]``. ``size`` is the views' side in pixels; left out it is the data's,
    or 224 for images of several sizes. Views smaller than the images make training quicker; images of one size are
    evaluated at their own.

    >>> Augment(views=["weak", [{"name": "resized-crop", "scale": [0.5, 1]}, "flip"]]).described
    [{'name': 'weak'}, [{'name': 'resized-crop', 'scale': [0.5, 1]}, {'name': 'flip'}]]
    """

    views: tuple[View, ...] = (Part(name="none"),)
    size: int | None = Field(None, ge=1)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        return {"views": value} if isinstance(value, list | tuple) else value

    @field_validator("views", mode="before")
    @classmethod
    def _each_a_view(cls, views: Any) -> Any:
        """One error that says what a view may be; pydantic would report every alternative."""
        for i, view in enumerate(views if isinstance(views, list | tuple) else ()):
            steps = view if isinstance(view, list | tuple) else [view]
            if not all(isinstance(step, str | Mapping | Part) for step in steps):
                raise ValueError(
                    f"view {i} is {quoted(view)}; expected a preset (weak, or {{name: weak, scale: 0.5}}) or a list of "
                    "operations ([{name: resized-crop, scale: [0.5, 1]}, flip])"
                )
        return views

    @property
    def described(self) -> list[dict[str, Any] | list[dict[str, Any]]]:
        """The views as plain values, as `kontrast.augment.view` takes them."""
        return [
            view.model_dump() if isinstance(view, Part) else [step.model_dump() for step in view] for view in self.views
        ]


class Train(Section):
    """How long and on what batches; ``batch_size`` is that of all processes together.

    Either ``epochs`` or ``steps``. ``micro_batch`` splits the encoder's work into parts of so many images (gradient
    caching; see `kontrast.train.gradients`); ``auto`` computes it from the free memory (`kontrast.train.micro_batch`).
    ``patience`` stops early, after so many validations without a better one (one validation every ``validate_every``
    epochs, on the rows that ``data.validation`` holds out). ``fit_every`` tests every so many steps whether the
    training labels are fitted, and stops when they are (`kontrast.train.fitting`).

    What follows adapts an encoder to other data (`kontrast.train.controls`). ``freeze`` keeps so many of its first
    stages as they are, or ``all`` of it. In the first ``head_first`` epochs only the head learns. ``clip`` is the
    largest norm of the gradient. ``average`` is the momentum of a moving average of the weights, which is what is
    evaluated and exported. ``checkpoint_activations`` computes the activations of the encoder's blocks once more in
    backward, to save memory.
    """

    epochs: int | None = Field(None, ge=1)
    steps: int | None = Field(None, ge=1)
    batch_size: int = Field(256, ge=1)
    micro_batch: int | Literal["auto"] | None = None
    sampler: Literal["shuffled", "with-replacement", "class-balanced"] = "shuffled"
    batch_norm: Literal["sync", "local"] = "sync"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    validate_every: int = Field(1, ge=1)
    patience: int | None = Field(None, ge=1)
    fit_every: int | None = Field(None, ge=1)
    freeze: int | Literal["all"] | None = None
    head_first: float | None = Field(None, gt=0.0)
    clip: float | None = Field(None, gt=0.0)
    average: float | None = Field(None, gt=0.0, lt=1.0)
    checkpoint_activations: bool | None = None

    @field_validator("micro_batch", "freeze", mode="before")
    @classmethod
    def _number_or_word(cls, value: Any, info: ValidationInfo) -> Any:
        word = {"micro_batch": "auto", "freeze": "all"}[str(info.field_name)]
        number = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0 and value >= 1
        if value is None or value == word or number:
            return value
        raise ValueError(f"must be a whole number of at least 1, or {word}")

    @field_validator("checkpoint_activations")
    @classmethod
    def _false_is_none(cls, value: bool | None) -> bool | None:
        return value or None  # the hash leaves out what is None: false is the default, and has its hash

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(f"give either epochs or steps; got epochs={self.epochs}, steps={self.steps}")
        return self


class Evaluate(Section):
    """By which protocols a run is evaluated (``kontrast list protocols``), and whether raw pixels are too.

    A protocol is a name, or a name with its options: ``{name: wang-liu, epochs: 5}``. ``baselines`` is whether kNN and
    the probe are also computed from raw pixels; None: if that costs seconds (`kontrast.evaluate.affordable`).

    ``batch_size`` is how many rows go through the encoder at once outside of training (evaluation, baselines, monitors,
    analysis); None measures it on one row (`kontrast.evaluate.activations`). It is not part of the hash: it changes
    results by rounding only, and a run whose evaluation did not fit in memory is resumed with a smaller one.

    ``head`` is whether the protocols are also run on the head's output (result.json, "head"), to show what a projector
    keeps and what it loses; None: no.
    """

    protocols: Annotated[tuple[Part, ...], one_is_a_list] = (Part(name="knn20"), Part(name="probe"))
    head: bool | None = None
    baselines: bool | None = None
    batch_size: int | None = Field(None, ge=1)


class Run(Section):
    """How it is run; none of this is in the hash, because none of it changes the result.

    ``compile`` is the exception: compiled kernels add in another order, so ``compile=true`` counts in the hash.
    """

    device: Word = "auto"
    workers: int = Field(0, ge=0)
    threads: int | None = Field(None, ge=1)
    out: Place = "runs"
    data_root: Place | None = None
    cache: bool = False
    compile: bool = False
    keep_memory: bool = True  # freed memory stays with the process, on a CPU
    log_every: int = Field(10, ge=1)
    monitors: Names | None = None  # None: those that can run
    monitor_every: int | None = Field(None, ge=0)  # steps; None: once an epoch; 0: never
    checkpoint_every: int | None = Field(None, ge=1)  # steps; None: once an epoch
    loggers: Names = ()
    progress: bool = True


class Recipe(Section):
    """A whole recipe. Made from YAML with `Recipe.read`, from a mapping with `Recipe.of`, changed with `override`.

    >>> recipe = Recipe.of({"name": "mine", "method": "supcon", "train": {"epochs": 5}})
    >>> recipe.override(["optim.lr=0.2", "encoder=resnet18"]).encoder
    Part(name='resnet18')
    >>> recipe.override(["train.epoch=5"])
    Traceback (most recent call last):
        ...
    ValueError: train has no key 'epoch'; did you mean 'epochs'? Known: epochs, steps, batch_size, ...
    """

    name: str = "recipe"
    about: str = ""
    seed: int = Field(0, ge=0, lt=2**63)
    data: Data = Data()
    augment: Augment = Augment()
    encoder: Part = Part(name="small-resnet")
    head: Part = Part(name="none")
    method: Part
    optim: Part = Part(name="sgd", lr=0.1)
    schedule: Part = Part(name="cosine")
    train: Train
    evaluate: Evaluate = Evaluate()
    run: Run = Run()

    @field_validator("name")
    @classmethod
    def _one_folder(cls, name: str) -> str:
        length = len(name.encode(errors="replace"))
        if not name or name.startswith(".") or "/" in name or not name.isprintable() or length > LONGEST_NAME:
            raise ValueError(
                f"must be 1 to {LONGEST_NAME} bytes of letters, digits, spaces and signs, without / and without a dot "
                "at the beginning, as the run folder has this name"
            )
        return name

    @model_validator(mode="after")
    def _patience_needs_validation(self) -> Self:
        if self.train.patience is not None and not self.data.validation:
            raise ValueError("train.patience needs rows to validate on: set data.validation, such as 0.1")
        return self

    @model_validator(mode="after")
    def _controls_fit_each_other(self) -> Self:
        train = self.train
        if train.freeze == "all" and train.head_first is not None:
            raise ValueError(
                f"train.head_first={train.head_first:g}: must be left out with train.freeze=all, where only the head "
                "ever learns. Leave one of them out"
            )
        if train.checkpoint_activations and self.run.compile:
            raise ValueError(
                "train.checkpoint_activations=true: must be used without run.compile=true, which decides itself what "
                "is kept. Leave one of them out"
            )
        return self

    @property
    def summary(self) -> str:
        """The description without hardware and command: its line in ``kontrast list recipes``."""
        return self.about.partition(" Hardware:")[0]

    @property
    def hash(self) -> str:
        """Eight digits over everything that decides the result.

        Options that are None are left out, so that new options do not rename existing runs. For data from Python the
        content counts, not the type or name of the object.
        """
        decisive = self.model_dump(mode="json", exclude=NOT_DECISIVE, exclude_none=True)
        # Baselines are beside the result and do not change it: if they are automatic, the hash is as without them.
        decisive["evaluate"].setdefault("baselines", False)
        if self.run.compile:  # another order of sums: other bits, so another run
            decisive["compile"] = True
        if self.data.digest is not None:
            decisive["data"] = {k: v for k, v in decisive["data"].items() if k not in ("name", "given")}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:8]

    @property
    def folder(self) -> str:
        """The name of its run folder: ``<recipe>-<hash>``."""
        return f"{self.name}-{self.hash}"

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Recipe:
        """From a mapping.

        Raises:
            ValueError: an unknown key (the error names the nearest one) or a wrong value; the error says where.

        >>> Recipe.of({"method": "supcon", "train": {"steps": 20}}).train.steps
        20
        """
        check_plain(values)
        _check_keys(values, cls, "")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(format_validation_error(error)) from None

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """From a YAML file.

        Raises:
            ValueError: the file is not YAML, or not a recipe (see `of`).
        """
        path = Path(path)
        values = read_yaml(path)
        if not isinstance(values, Mapping):
            content = "is empty" if values is None else f"holds {type(values).__name__}"
            raise ValueError(f"{path} {content}; expected a mapping with data, method, train, …")
        try:
            return cls.of({"name": path.stem, **values})
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def override(self, changes: Iterable[str] | Mapping[str, Any]) -> Recipe:
        """A copy with ``key=value`` settings, or a mapping of dotted keys, replaced.

        A plain value for a section is its name: ``encoder=resnet18``, ``data=photos/``; ``augment=weak`` makes every
        view that preset, and ``augment.jitter=0`` sets a strength of every view. A part with a new name starts from the
        options of that name; with another method the recipe's claim (``about``) is dropped, unless a new one is given.
        ``train.steps=20`` alone replaces the recipe's epochs, and ``train.epochs=5`` its steps.

        Raises:
            ValueError: an unknown key (the error names the nearest one) or a wrong value.

        >>> recipe = Recipe.of({"method": {"name": "tcl", "k1": 10}, "train": {"epochs": 5}})
        >>> recipe.override(["method=supcon", "train.steps=20"]).train.epochs is None
        True
        """
        values = self.model_dump(mode="json")
        pairs = list(changes.items() if isinstance(changes, Mapping) else map(parse, changes))
        # Names come first, whatever their order: a part's options are those of its name.
        for key, value in sorted(pairs, key=lambda change: "." in change[0].removesuffix(".name")):
            _put(values, key, copy.deepcopy(value))  # a later key may reach into it
        whole = [value for key, value in pairs if key == "train" and isinstance(value, Mapping)]
        lengths = {f"train.{key}": value for section in whole for key, value in section.items()} | dict(pairs)
        for key, other in (LENGTHS, LENGTHS[::-1]):
            if lengths.get(key) is not None and other not in lengths:
                _put(values, other, None)
        recipe = Recipe.of(values)
        claims_another = recipe.method.name.replace("_", "-") != self.method.name.replace("_", "-")
        return recipe.model_copy(update={"about": ""}) if claims_another and "about" not in dict(pairs) else recipe

    def check_parts(self) -> Recipe:
        """The recipe itself, if every part and option that it names exists; nothing is imported for it.

        Raises:
            ValueError: an unknown name or option (the error names the nearest one), or a value of another kind.

        >>> Recipe.of({"method": {"name": "tcl", "temprature": 1}, "train": {"epochs": 1}}).check_parts()
        Traceback (most recent call last):
            ...
        ValueError: method 'tcl' has no option 'temprature'; did you mean 'temperature'? It has temperature, k1, k2
        """
        for protocol in self.evaluate.protocols:
            _check_part("protocol", protocol)
        for name in self.run.monitors or ():
            FAMILIES["monitor"].canonical(name)
        for name in self.run.loggers:
            FAMILIES["logger"].canonical(name)
        for section, family in PARTS.items():
            _check_part(family, getattr(self, section), section)
        views = self.augment.described
        for i, view in enumerate(views):
            try:
                _check_view(view, views)
            except ValueError as error:
                raise ValueError(f"augment.views.{i}: {error}") from None
        return self

    def check_data(self) -> None:
        """Check that the data are a set's name or a path that exists.

        Raises:
            ValueError: they are neither; the error names the nearest set.

        >>> Recipe.of({"data": "fashion-mny", "method": "supcon", "train": {"epochs": 1}}).check_data()
        Traceback (most recent call last):
            ...
        ValueError: 'fashion-mny' is neither a set nor a path that exists; did you mean 'fashion-mini'? Sets: ...
        """
        name = self.data.name
        if name not in FAMILIES["data set"] and not expanded(name).exists():
            raise ValueError(no_such_data(name))

    def to_yaml(self) -> str:
        """As YAML that `read` reads."""
        return to_yaml(self.model_dump(mode="json"))


# ------------------------------------------------------------------------------------------------ names and options


PARTS = {"method": "method", "encoder": "encoder", "head": "head", "optim": "optimiser", "schedule": "schedule"}
"""Sections of a recipe that are a part, and the family of each."""


def _check_part(family: str, part: Part, section: str | None = None) -> None:
    section = section or family
    FAMILIES[family].check(
        part.name, part.options, section=section, hint=lambda option, known: suggest(option, known, section)
    )


def _check_view(view: dict[str, Any] | list[dict[str, Any]], views: Sequence[Any]) -> None:
    """A view is a preset, or a list of operations; say so if one is written as the other."""
    if not isinstance(view, dict):
        for step in view:
            check_operation(step["name"], {key: value for key, value in step.items() if key != "name"})
        return
    name = view["name"]
    if name in FAMILIES["operation"] and name not in FAMILIES["preset"]:
        listed = ", ".join(str(other.get("name")) for other in views if isinstance(other, dict))
        raise ValueError(
            f"no preset {name!r}; it is an operation, and a view of operations is a list: "
            f"augment.views=[[{listed}], …], one list for each view"
        )
    FAMILIES["preset"].check(name, {key: value for key, value in view.items() if key != "name"})


def no_such_data(name: str) -> str:
    """The error for data that do not exist.

    >>> no_such_data("rows.npy")
    'there is no file rows.npy; expected a .npz or .npy file'
    """
    if name.lower().endswith((".npz", ".npy")):
        return f"there is no file {expanded(name)}; expected a .npz or .npy file"
    known = FAMILIES["data set"].names()
    hint = nearest(name.replace("_", "-"), known)
    return f"{name!r} is neither a set nor a path that exists{hint} Sets: {', '.join(known)}"


# ------------------------------------------------------------------------------------------------ overrides


SYNONYMS = {
    "seed": ("random_seed", "manual_seed"),
    "data": ("dataset", "datasets", "data_dir", "data_path", "data_name", "dataset_name", "dataset_path", "train_dir"),
    "data.size": ("image_size", "img_size", "input_size", "resolution"),
    "data.limit": ("max_samples", "num_samples", "subset"),
    "data.validation": ("val_split", "validation_split", "val_fraction", "val_size"),
    "data.test": ("test_split", "test_fraction", "test_size", "holdout"),
    "data.noise": ("label_noise", "noise_rate"),
    "augment": ("augmentation", "augmentations", "aug", "transform", "transforms", "views"),
    "augment.jitter": ("color_jitter", "colour_jitter", "color", "colour"),
    "augment.grayscale": ("greyscale", "gray", "grey"),
    "augment.scale": ("crop", "crop_scale", "min_scale"),
    "encoder": ("model", "backbone", "arch", "architecture", "network", "net", "base_encoder", "model_name"),
    "encoder.pretrained": ("weights", "checkpoint", "ckpt", "init_from", "pretrained_weights"),
    "head": ("projector", "projection", "projection_head", "proj_head"),
    "head.out": ("proj_dim", "projection_dim", "proj_output_dim", "feat_dim", "embedding_dim", "embed_dim", "out_dim"),
    "head.hidden": ("proj_hidden_dim", "hidden_dim"),
    "method": ("loss", "criterion", "algorithm", "objective"),
    "method.temperature": ("tau", "temp", "t", "softmax_temperature"),
    "method.target_temperature": ("tau_m", "target_temp", "teacher_temperature", "temperature_t"),
    "method.contrastive_weight": ("lambda", "lam", "coeff"),
    "method.queue": ("queue_size", "queue_length", "memory_bank_size", "bank_size"),
    "method.k1": (),
    "method.k2": (),
    "optim": ("optimizer", "optimiser", "opt"),
    "optim.lr": ("learning_rate", "base_lr", "init_lr", "learningrate", "backbone_lr", "encoder_lr", "lr_backbone"),
    "optim.momentum": ("sgd_momentum",),
    "optim.weight_decay": ("wd", "l2", "decay"),
    "optim.layer_decay": ("llrd", "layerwise_lr_decay", "layer_wise_lr_decay", "lr_layer_decay", "layerwise_decay"),
    "optim.head_lr": ("lr_head", "head_learning_rate", "classifier_lr", "projector_lr"),
    "schedule": ("scheduler", "lr_scheduler", "lr_schedule", "learning_rate_schedule"),
    "schedule.warmup_epochs": ("warmup", "warmup_steps"),
    "train.epochs": ("max_epochs", "num_epochs", "n_epochs", "num_train_epochs", "epoch"),
    "train.steps": ("max_steps", "num_steps", "iterations", "max_iter"),
    "train.batch_size": ("batchsize", "bs", "batch", "train_batch_size", "per_device_train_batch_size"),
    "train.micro_batch": ("accumulate_grad_batches", "gradient_accumulation_steps", "accumulation_steps", "chunk_size"),
    "train.precision": ("amp", "fp16", "bf16", "mixed_precision", "half"),
    "train.patience": ("early_stopping", "early_stopping_patience"),
    "train.freeze": (
        "freeze_backbone",
        "freeze_encoder",
        "frozen_stages",
        "freeze_layers",
        "freeze_at",
        "linear_probe",
    ),
    "train.head_first": ("freeze_epochs", "freeze_backbone_epochs", "unfreeze_epoch", "head_warmup", "warmup_head"),
    "train.clip": (
        "grad_clip",
        "clip_grad",
        "gradient_clip",
        "gradient_clip_val",
        "gradient_clipping",
        "clip_grad_norm",
        "max_norm",
        "max_grad_norm",
    ),
    "train.average": ("ema", "ema_decay", "ema_momentum", "model_ema", "model_ema_decay", "weight_averaging", "swa"),
    "train.checkpoint_activations": (
        "gradient_checkpointing",
        "grad_checkpointing",
        "activation_checkpointing",
        "checkpointing",
        "grad_checkpoint",
    ),
    "evaluate": ("eval", "evaluation"),
    "evaluate.protocols": ("protocol", "metrics"),
    "run.device": ("gpu", "gpus", "cuda", "accelerator", "devices"),
    "run.workers": ("num_workers", "n_workers", "dataloader_num_workers"),
    "run.threads": ("num_threads", "n_threads"),
    "run.out": ("save_dir", "output_dir", "out_dir", "log_dir", "output", "save_folder", "results_dir"),
    "run.loggers": ("logger", "wandb", "tensorboard", "mlflow"),
    "run.monitors": ("monitor",),
    "run.log_every": ("log_interval", "log_freq", "print_freq", "log_every_n_steps"),
    "run.checkpoint_every": ("save_freq", "save_interval", "save_every", "checkpoint_frequency"),
}
"""Keys of a recipe, and what other tools call them; the last word of a key is one of its names too."""
_KEYS_BY_NAME = {
    name: key for key, others in reversed(SYNONYMS.items()) for name in (*others, key.rpartition(".")[2])
}  # where two keys have a name, the first of the table


def suggest(key: str, known: Sequence[str], where: str = "") -> str:
    """The end of a sentence about an unknown key: our key for another tool's name, or the nearest known key.

    ``where`` is the section in which the key was written; empty for the recipe itself.

    >>> suggest("learning_rate", ["lr", "momentum"], "optim"), suggest("lr", ["epochs", "steps"], "train")
    ("; did you mean 'lr'?", "; did you mean 'optim.lr'?")
    >>> suggest("epochz", ["epochs", "steps"], "train"), suggest("xyz", ["epochs", "steps"], "train")
    ("; did you mean 'epochs'?", '.')
    """
    our_key = _KEYS_BY_NAME.get(key.lower().replace("-", "_"))
    if our_key is None:
        return nearest(key, known)
    section, _, last = our_key.rpartition(".")
    if our_key == where:
        return f"; did you mean {where}=…?"
    if last in known:
        return f"; did you mean {last!r}?"
    return f"; did you mean {our_key!r}?" if section != where else nearest(key, known)


def parse(setting: str) -> tuple[str, Any]:
    """``"optim.lr=0.2"`` → key and value, the value as YAML.

    Raises:
        ValueError: there is no ``=``, no key before it, or a list or mapping whose brackets are not closed.

    >>> parse("train.epochs=5"), parse("augment.views=[weak, strong]"), parse("optim.lr=1e-3")
    (('train.epochs', 5), ('augment.views', ['weak', 'strong']), ('optim.lr', 0.001))
    """
    key, equals, text = setting.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{quoted(setting)} is not a setting; expected key=value, such as optim.lr=0.2")
    try:
        value = from_yaml(text)
    except ValueError:
        _check_brackets(key.strip(), text.strip())
        value = text
    value = None if value == "None" else value
    if isinstance(value, str):  # YAML 1.1 reads 1e-3 as a word
        with contextlib.suppress(ValueError):
            value = float(value)
    return key.strip(), value


def _check_brackets(key: str, text: str) -> None:
    """Raise if a value begins as a list or a mapping and its brackets are not in pairs."""
    if not text.startswith(("[", "{")):
        return
    open_ones: list[str] = []
    for letter in text:
        if letter in "[{":
            open_ones.append("]" if letter == "[" else "}")
        elif letter in "]}" and (not open_ones or open_ones.pop() != letter):
            raise ValueError(f"{key}={quoted(text)}: must have a bracket that opens for each {letter!r}")
    if open_ones:
        closed = text + "".join(reversed(open_ones))
        raise ValueError(f"{key}={quoted(text)}: a bracket is not closed. Use {key}={quoted(closed)}")


def place(where: Any, name: str, above: str, *, new: bool) -> int | str:
    """The index or key in a list or mapping that one word of a dotted key names; ``new`` allows a key to be added.

    Raises:
        ValueError: no such index or key, or ``where`` is neither a list nor a mapping.

    >>> place(["weak", "strong"], "1", "augment.views", new=False)
    1
    """
    if isinstance(where, list):
        if not (name.isdecimal() and len(name) < 10 and int(name) < len(where)):
            raise ValueError(f"{above}: must be a number from 0 to {len(where) - 1}; got {quoted(name)}")
        return int(name)
    if not isinstance(where, dict):
        raise ValueError(f"{above} is {quoted(where)}, which has nothing inside; expected a key that ends there")
    if not new and name not in where:
        raise ValueError(unknown_key(name, list(where), above or "the recipe"))
    return name


def unknown_key(key: str, known: Sequence[str], where: str) -> str:
    """The error for a key that does not exist.

    >>> unknown_key("epoch", ["epochs", "steps"], "train")
    "train has no key 'epoch'; did you mean 'epochs'? Known: epochs, steps"
    """
    hint = suggest(key, known, where.removeprefix("the recipe"))
    return f"{where} has no key {quoted(key)}{hint} Known: {', '.join(known) or 'none'}"


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key, in place."""
    path = key.split(".")
    field = Recipe.model_fields.get(path[0])
    if field is None:
        raise ValueError(unknown_key(path[0], list(Recipe.model_fields), "the recipe"))
    if path == ["augment", "views"] or (path == ["augment"] and not isinstance(value, Mapping)):
        several = isinstance(value, list | tuple)
        value = list(value) if several else [copy.deepcopy(value) for _ in values["augment"]["views"]]
        path = ["augment", "views"]
    known = [*Augment.model_fields, *STRENGTHS]
    if len(path) == 2 and path[0] == "augment" and path[1] not in known:
        raise ValueError(unknown_key(path[1], known, "augment"))
    if len(path) == 2 and path[0] == "augment" and path[1] in STRENGTHS:
        _strengthen(values["augment"]["views"], path[1], value)
        return
    if len(path) == 1 and not isinstance(value, Mapping) and isinstance(values[path[0]], dict):
        path = [*path, "name"]
    where: Any = values
    for i, name in enumerate(path[:-1]):
        where = where[place(where, name, ".".join(path[:i]), new=False)]
    if path == ["data", "name"]:
        where |= {"given": None, "digest": None}  # of the previous data
    if path[1:] == ["name"] and field.annotation is Part and where.get("name") != value:
        where.clear()  # the old name's options are not the new one's
    where[place(where, path[-1], ".".join(path[:-1]), new=True)] = value


def _strengthen(views: list[Any], option: str, value: Any) -> None:
    """Set one strength of every view, in place; a view that is a list of operations has none."""
    for i, view in enumerate(views):
        if isinstance(view, str):
            views[i] = view = {"name": view}
        if not isinstance(view, dict):
            raise ValueError(
                f"augment.{option} sets an option of presets, and augment.views.{i} is a list of operations; set the "
                f"operation's own option, such as augment.views.{i}.0.scale=0.5"
            )
        view[option] = copy.deepcopy(value)


def _check_keys(values: Any, model: type[BaseModel], path: str) -> None:
    """Raise for an unknown key, with the nearest known one."""
    if not isinstance(values, Mapping) or model is Part:
        return
    for key, value in values.items():
        if key not in model.model_fields:
            raise ValueError(unknown_key(str(key), list(model.model_fields), path or "the recipe"))
        inner = model.model_fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            _check_keys(value, inner, f"{path}.{key}" if path else key)


# ------------------------------------------------------------------------------------------------ plain values and YAML


MOST_VALUES, DEEPEST = 10_000, 20  # of a recipe; ours have at most 90, four deep
MOST_BYTES = 1_000_000  # of a file; ours have at most 2,000
LARGEST = 3.4e38  # of float32
LINES = "\x85\u2028\u2029"  # PyYAML writes them unchanged, and reads them as line breaks
MOST_ERRORS = 5  # wrong values listed in one error

# What PyYAML raises for words that it cannot convert: besides its own error, those of int(), float(), its table of
# truth values and its date pattern, and RecursionError for deep nesting.
NO_YAML = (yaml.YAMLError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, RecursionError)


def from_yaml(text: str) -> Any:
    """The values of a YAML text; no tags but YAML's own, so nothing is executed.

    Raises:
        ValueError: the text is not YAML.

    >>> from_yaml("{epochs: 5}"), from_yaml("!!float many")
    Traceback (most recent call last):
        ...
    ValueError: it is not YAML: could not convert string to float: 'many'
    """
    try:
        return yaml.safe_load(text)
    except NO_YAML as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ValueError(f"it is not YAML: {reason[:300]}") from None


def read_yaml(path: Path) -> Any:
    """The values of a YAML file.

    Raises:
        ValueError: the file is not YAML, or larger than `MOST_BYTES`; the error names it.
    """
    with open_regular(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES:,} bytes; expected a recipe")
    try:
        return from_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not YAML: {error.reason} at byte {error.start}; expected a recipe in UTF-8"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path} {str(error).removeprefix('it ')}; expected a recipe") from None


def to_yaml(values: Any) -> str:
    r"""YAML that `from_yaml` reads as the same values.

    >>> to_yaml({"name": "ü", "epochs": 5}), from_yaml(to_yaml(["a\x85b"])) == ["a\x85b"]
    ('name: ü\nepochs: 5\n', True)
    """
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100)
    if not any(character in text for character in LINES):
        return text
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=False, width=100)


def check_plain(values: Any) -> None:
    """Check that values are plain, finite, and not more than a recipe may hold.

    Raises:
        ValueError: they are not; the error says where.

    >>> check_plain({"train": {"epochs": 5}})
    >>> check_plain({"method": {"k1": float("inf")}})
    Traceback (most recent call last):
        ...
    ValueError: method.k1 is inf; expected a finite number of at most 3.4e+38
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"a recipe is {quoted(values)}; expected a mapping with data, method, train, …")
    count = 0

    def look(value: Any, path: str, depth: int) -> None:
        nonlocal count
        count += 1
        if count > MOST_VALUES or depth > DEEPEST:
            raise ValueError(
                f"more than {MOST_VALUES:,} values, or more than {DEEPEST} one inside the other, with anchors written "
                "out; expected a recipe"
            )
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise ValueError(f"{one_line(path) or 'the recipe'} has the key {quoted(key)}; expected a word")
                look(inner, f"{path}.{key[:40]}" if path else key[:40], depth + 1)
        elif isinstance(value, list | tuple):
            for i, inner in enumerate(value):
                look(inner, f"{path}.{i}", depth + 1)
        elif isinstance(value, float) and not abs(value) <= LARGEST:
            raise ValueError(f"{one_line(path)} is {value:g}; expected a finite number of at most {LARGEST:.1e}")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{one_line(path)} is {quoted(value)}; expected a whole number of at most 2⁶³ − 1")
        elif not isinstance(value, str | bool | int | float | BaseModel | Path | None):
            raise ValueError(
                f"{one_line(path)} is {quoted(value)}, a {type(value).__name__}; expected a number, a word, true or "
                "false, null, or lists and mappings of them. A date or time that is meant as a word stands in quotes"
            )

    look(values, "", 0)


# ------------------------------------------------------------------------------------------------ pydantic's errors

EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}
"""What a value must be, by the type of pydantic's error."""


def describe_error(item: Mapping[str, Any]) -> str:
    """One of pydantic's errors as ``field=value: must be …``; also for the files of runs."""
    where = one_line(".".join(str(part)[:60] for part in item["loc"])) or "it"
    if item["type"] == "missing":
        return f"{where}: is missing"
    expected = EXPECTED.get(item["type"])
    message = str(item["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    text = f"must be {expected}" if expected else f"{message[0].lower()}{message[1:]}"
    return f"{where}={quoted(item['input'])}: {text}" if text.startswith("must ") else f"{where}: {text}"


def format_validation_error(error: ValidationError) -> str:
    """Describe the first errors of pydantic, and how many more there are, in one paragraph."""
    parts = [describe_error(item) for item in error.errors()[:MOST_ERRORS]]
    more = error.error_count() - MOST_ERRORS
    return "; ".join(parts) + (f"; and {more:,} more" if more > 0 else "")
