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
    run: {device: auto}              how it is run: no part of the hash

The hash is over everything but the name, its description, ``run`` and ``evaluate.batch_size``, so the same recipe under
another name, on other workers or in another folder is the same run. Overrides are ``key=value`` with dots, the value as
YAML has it; one of ``train.epochs`` and ``train.steps`` takes the place of the other.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from kontrast.overrides import parse, place, unknown_key
from kontrast.plain import check_plain, format_validation_error, from_file, to_yaml
from kontrast.registry import quoted
from kontrast.vocabulary import STRENGTHS

one_is_a_list = BeforeValidator(lambda value: (value,) if isinstance(value, str | dict) else value)
LENGTHS = ("train.epochs", "train.steps")  # one of the two
Word = Annotated[str, Field(max_length=200)]
Place = Annotated[str, Field(max_length=4096)]  # of a file or folder; systems take no longer ones
Names = Annotated[tuple[Word, ...], one_is_a_list]
NOT_DECISIVE: Any = {"name": True, "about": True, "run": True, "evaluate": {"batch_size"}}
LONGEST_NAME = 200  # bytes: a file system takes 255, and the hash comes behind it


class Section(BaseModel):
    """A part of the recipe with fixed keys; an unknown one is an error. A plain word is its name."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) and "name" in cls.model_fields else value


class Part(Section):
    """Something chosen by name, with options of its own: those are checked against what the name stands for.

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
    ``validation`` holds out that fraction of the training rows. ``split`` is what the encoder learns from.
    ``given`` and ``digest`` are set where the data came from Python, as an object: what it was, and the digest of its
    content.
    """

    name: Place = "fashion-mini"
    split: Literal["train", "unlabelled"] = "train"
    size: int | None = Field(None, ge=1)
    channels: Literal[1, 3] | None = None
    labelled: bool | None = None
    limit: int | None = Field(None, ge=1)
    test_limit: int | None = Field(None, ge=1)
    noise: float = Field(0.0, ge=0.0, le=1.0)
    noise_kind: Literal["changed", "redrawn"] = "changed"
    validation: float = Field(0.0, ge=0.0, lt=1.0)
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
        """Says what a view may be; pydantic would tell of every alternative."""
        for i, view in enumerate(views if isinstance(views, list | tuple) else ()):
            steps = view if isinstance(view, list | tuple) else [view]
            wrong = [step for step in steps if not isinstance(step, str | Mapping | Part)]
            if wrong:
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
    """How long and on what batches; ``batch_size`` is the global one, whatever the number of processes.

    Either ``epochs`` or ``steps``. ``micro_batch`` splits the encoder's work into parts of so many images (gradient
    caching; see `kontrast.train.gradients`); ``auto`` works it out from the free memory (`kontrast.train.micro_batch`).
    ``patience`` stops early: after so many validations (one every
    ``validate_every`` epochs, on the part that ``data.validation`` holds out) without a better one. ``fit_every`` asks,
    every so many steps, whether the training labels are fitted, and stops when they are (`kontrast.train.fitting`).
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

    @field_validator("micro_batch", mode="before")
    @classmethod
    def _rows_or_auto(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0 and value >= 1
        if value is None or value == "auto" or number:
            return value
        raise ValueError(f"expected a whole number of at least 1, or auto, seen {quoted(value)}")

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError(f"give either epochs or steps; seen epochs={self.epochs}, steps={self.steps}")
        return self


class Evaluate(Section):
    """Which protocols end a run (``kontrast list protocols``), and whether raw pixels stand beside them.

    A protocol is a name, or a name with its options: ``{name: wang-liu, epochs: 5}``. ``baselines`` is whether kNN and
    the probe are also computed of raw pixels; None: where that costs seconds (`kontrast.evaluate.affordable`).

    ``batch_size`` is how many rows go through the encoder at once wherever it is only asked (evaluation, baselines,
    monitors, analysis); None measures it on one row (`kontrast.evaluate.activations`). It is no part of the hash: it
    changes results by rounding alone, and a run whose evaluation did not fit memory is resumed with a smaller one.

    ``head`` is whether the protocols are also run on the head's output (result.json, "head"), to say what a projector
    keeps and what it gives up; None: no.
    """

    protocols: Annotated[tuple[Part, ...], one_is_a_list] = (Part(name="knn20"), Part(name="probe"))
    head: bool | None = None
    baselines: bool | None = None
    batch_size: int | None = Field(None, ge=1)


class Run(Section):
    """How it is run; none of this is in the hash, for none of it is meant to change the result.

    ``compile`` is the exception: compiled kernels add up in another order, so ``compile=true`` counts in the hash.
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
                f"a run's folder is called after it; expected 1 to {LONGEST_NAME} bytes of letters, digits, spaces and "
                f"signs, without / and not beginning with a dot, seen {quoted(name)}"
            )
        return name

    @model_validator(mode="after")
    def _patience_needs_validation(self) -> Self:
        if self.train.patience is not None and not self.data.validation:
            raise ValueError("train.patience needs rows to validate on: set data.validation, such as 0.1")
        return self

    @property
    def hash(self) -> str:
        """Eight digits over everything that decides the result.

        What is not asked for (None) is left out, so that options to come do not rename the runs there are. Of data from
        Python the content counts, not what the object was or is called.
        """
        decisive = self.model_dump(mode="json", exclude=NOT_DECISIVE, exclude_none=True)
        # Baselines stand beside the result and do not change it: where they are automatic, the hash is as without them.
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
        """From a mapping; what is wrong in it is one `ValueError` that says where, and names the nearest known key."""
        check_plain(values)
        _check_keys(values, cls, "")
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ValueError(format_validation_error(error)) from None

    @classmethod
    def read(cls, path: str | Path) -> Recipe:
        """From a YAML file."""
        path = Path(path)
        values = from_file(path)
        if not isinstance(values, Mapping):
            seen = "is empty" if values is None else f"holds {type(values).__name__}"
            raise ValueError(f"{path} {seen}; expected a mapping with data, method, train, …")
        try:
            return cls.of({"name": path.stem, **values})
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def override(self, changes: Iterable[str] | Mapping[str, Any]) -> Recipe:
        """With ``key=value`` settings, or a mapping of dotted keys, put in place of what stands there.

        A section given as a plain value is its name: ``encoder=resnet18``, ``data=photos/``; ``augment=weak`` makes
        every view that preset, and ``augment.jitter=0`` sets a strength of every view. A part given another name starts
        from that name's own options. ``train.steps=20`` alone takes the place of the recipe's epochs, and
        ``train.epochs=5`` that of its steps.
        """
        values = self.model_dump(mode="json")
        given = list(changes.items() if isinstance(changes, Mapping) else map(parse, changes))
        # Names come first, whatever their order: a part's options are those of its name.
        for key, value in sorted(given, key=lambda change: "." in change[0].removesuffix(".name")):
            _put(values, key, copy.deepcopy(value))  # a later key may reach into it
        whole = [value for key, value in given if key == "train" and isinstance(value, Mapping)]
        lengths = {f"train.{key}": value for section in whole for key, value in section.items()} | dict(given)
        for key, other in (LENGTHS, LENGTHS[::-1]):
            if lengths.get(key) is not None and other not in lengths:
                _put(values, other, None)
        return Recipe.of(values)

    def to_yaml(self) -> str:
        """As YAML that `read` takes back."""
        return to_yaml(self.model_dump(mode="json"))


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    """Sets what a dotted key names, in place."""
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
        where |= {"given": None, "digest": None}  # they are of the data before
    if path[1:] == ["name"] and field.annotation is Part and where.get("name") != value:
        where.clear()  # the old name's options are not the new one's
    where[place(where, path[-1], ".".join(path[:-1]), new=True)] = value


def _strengthen(views: list[Any], option: str, value: Any) -> None:
    """Sets one strength of every view, in place; a view that is a list of operations has none."""
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
    """An unknown key is an error that names the nearest known one."""
    if not isinstance(values, Mapping) or model is Part:
        return
    for key, value in values.items():
        if key not in model.model_fields:
            raise ValueError(unknown_key(str(key), list(model.model_fields), path or "the recipe"))
        inner = model.model_fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            _check_keys(value, inner, f"{path}.{key}" if path else key)
