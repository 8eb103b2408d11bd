"""What each file of a run folder, a task folder and an experiment folder holds: one pydantic model per file.

| file | model |
|---|---|
| run.json | `State` |
| result.json of a run or a task | `Result` |
| analysis.json | `Analysis` |
| model.json | `ModelCard` |
| doctor.json | `Examination` |
| task.json | `TaskCall` |
| result.json of an experiment | `Summary` |

A line of metrics.jsonl is a `MetricsLine`: numbers by name. Every field that a reader can do without has a default, so
files of older versions and of unfinished runs fit. null means the same as a missing field. NaN and infinity, which JSON
does not have, are read as None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
    model_validator,
)

from kontrast.registry import quoted
from kontrast.runs.displayed import Html

FORMAT = 1
"""Version of the run folder's format, written to run.json. Runs of kontrast 0.1 have none and can be read."""
LARGEST = 3.4e38  # what float32 holds: charts and tensors take no larger number


def _number(value: Any) -> int | float | None:
    if value is None or (isinstance(value, float) and not abs(value) < float("inf")):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise ValueError("must be a number")
    return value


def _scalar(value: Any) -> str | bool | int | float | None:
    if isinstance(value, str | bool):
        return value
    try:
        return _number(value)
    except ValueError:
        raise ValueError("must be a string, a number, true or false") from None


def _all_or_nothing(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Report a wrong item as an error of the list: the places of the others must not move."""
    try:
        return handler(value)
    except ValidationError as error:
        raise ValueError(f"must be a list without wrong items ({error.error_count()} are wrong)") from None


Number = Annotated[int | float | None, PlainValidator(_number)]
Scalar = Annotated[str | bool | int | float | None, PlainValidator(_scalar)]
Names = Annotated[list[Scalar], WrapValidator(_all_or_nothing)]
Numbers = Annotated[list[Number], WrapValidator(_all_or_nothing)]
Count = Annotated[int, Field(ge=0, lt=2**40)]
Counts = Annotated[list[list[Count]], WrapValidator(_all_or_nothing)]
MetricsLine = dict[str, int | float | None]
METRICS_LINE: TypeAdapter[MetricsLine] = TypeAdapter(dict[str, Number])


@dataclass(frozen=True, kw_only=True)
class MonitorChart:
    """How pages draw the values that a monitor writes into metrics.jsonl as ``monitor/<key>``.

    A monitor has it as the class attribute ``chart``, with literal values only: reports read it from the source,
    without importing torch.

    Args:
        title: Title of the chart on a run's page.
        series: The lines of that chart: the label of each key.
        compared: Charts on the page of several runs, one for each key: its title, and what the value is.
        format: ``"%"`` for shares.
        not_drawn: Keys that are logged for programs and get no chart.
        order: Charts with smaller numbers come first.

    Raises:
        ValueError: ``series`` or ``compared`` is not a mapping of that kind.

    >>> MonitorChart(title="Norm", series={"norm": "embeddings"}).series
    {'norm': 'embeddings'}
    """

    title: str
    series: Mapping[str, str]
    compared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    format: str = ""
    not_drawn: tuple[str, ...] = ()
    order: int = 100

    def __post_init__(self) -> None:
        if not isinstance(self.series, Mapping):
            raise ValueError(f"series={quoted(self.series)}: must be a dict, such as {{'norm': 'embeddings'}}")
        values = self.compared.values() if isinstance(self.compared, Mapping) else [self.compared]
        if not all(isinstance(words, tuple) and len(words) == 2 for words in values):
            raise ValueError(
                f"compared={quoted(self.compared)}: must be a dict of pairs, such as {{'norm': ('Norm', 'embeddings')}}"
            )


class FileModel(Html, BaseModel):
    """Base of the models: strict types, unknown keys are ignored, null counts as missing; Jupyter shows tables."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        if isinstance(values, dict):
            return {key: value for key, value in values.items() if value is not None}
        return values


# ------------------------------------------------------------------------------------------------------------- run.json


class State(FileModel):
    """run.json: the status of a run, and where it ran.

    Attributes:
        format: Version of the folder's format; 0 for runs of kontrast 0.1.
        status: training, evaluating, done, interrupted or failed (a task: running); None before the start.
        hash: The recipe's hash.
        data_file: Digest of the data file, if the data are one file.
        sources: Digests of the source files of the method and of the loss that the recipe names, as the run began.
        seconds: Working time so far, without interruptions.
        machine: Where it ran: folder, system, processor, cores, threads, device, processes.
        files: SHA-256 of each file that the finished run wrote, by name.
        pretrained: Which tensors of a pretrained encoder were loaded.
        adapt: Of `kontrast adapt`: the request (a hash), and the minutes that it was given.
        micro_batch: Which recipe asked for ``train.micro_batch=auto``, and the size that was chosen.
        origin: What the recipe was chosen by, for data without a recipe's name: data, files, settings, minutes.
        held_out: Held-out rows of a tuning trial; None if its score is no accuracy.
        note: Why a tuning trial was stopped early.
        diverged: Whether a tuning trial failed because the loss was not finite.
    """

    model_config = ConfigDict(extra="allow")

    format: int = 0
    status: str | None = None
    error: str | None = None
    name: str | None = None
    hash: str | None = None
    seed: int | None = None
    started: str | None = None
    updated: str | None = None
    finished: str | None = None
    data_file: str | None = None
    sources: dict[str, str] = Field(default_factory=dict)
    step: int | None = None
    total_steps: int | None = None
    seconds: Number = None
    versions: dict[str, Scalar] = Field(default_factory=dict)
    machine: dict[str, Scalar] = Field(default_factory=dict)
    command: list[Scalar] = Field(default_factory=list)
    files: dict[str, str] = Field(default_factory=dict)
    pretrained: dict[str, Any] | None = None
    adapt: dict[str, Any] | None = None
    micro_batch: dict[str, Any] | None = None
    origin: dict[str, Any] | None = None
    held_out: int | None = None
    note: str | None = None
    diverged: bool = False

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: int) -> int:
        if value > FORMAT:
            raise ValueError(f"must be at most {FORMAT}: the run was written by a newer version of kontrast")
        return value


# ------------------------------------------------------------------------------------------- result.json, analysis.json


class Measure(FileModel):
    """One measure of the geometry, such as uniformity, with its standard error and the value that theory expects."""

    name: str
    value: Number = None
    error: Number = None
    theory: Number = None
    meaning: str | None = None


class Neighbours(FileModel):
    """Whose nearest neighbours analysis.npz has, and among how many training rows they were searched."""

    queries: str | None = None
    searched: Number = None


class GeometryProtocol(FileModel):
    """How the geometry was measured."""

    split: str | None = None
    rows: Number = None
    embeddings: str | None = None
    simplex: str | None = None
    neighbours: Neighbours | None = None
    temperature: Number = None
    anchors: Number = None
    seed: int | None = None


class Geometry(FileModel):
    """Geometry of the features and the embeddings; ``simplex`` has the scalars of `kontrast.geometry.simplex`."""

    features: list[Measure] = Field(default_factory=list)
    embeddings: list[Measure] = Field(default_factory=list)
    simplex: dict[str, dict[str, Scalar]] = Field(default_factory=dict)
    protocol: GeometryProtocol = GeometryProtocol()

    def measure(self, where: Literal["features", "embeddings"], name: str) -> Measure | None:
        """The first measure with a value whose name starts with ``name``.

        >>> geometry = Geometry.model_validate({"features": [{"name": "uniformity, t = 2", "value": -2.5}]})
        >>> geometry.measure("features", "uniformity").value
        -2.5
        """
        lines: list[Measure] = getattr(self, where)
        return next((line for line in lines if line.name.startswith(name) and line.value is not None), None)


class ProtocolResult(FileModel):
    """The accuracy by one protocol. ``per_class`` and ``confusion`` are in the order of ``class_names``."""

    name: str
    protocol: str
    split: str | None = None
    value: Number = None
    error: Number = None
    top5: Number = None
    train_rows: int | None = None
    test_rows: int | None = None
    per_class: Numbers | None = None
    confusion: Counts | None = None
    class_names: Names | None = None
    seeds: list[int] = Field(default_factory=list)

    @field_validator("confusion")
    @classmethod
    def _square(cls, rows: list[list[int]] | None) -> list[list[int]] | None:
        if rows is not None and any(len(row) != len(rows) for row in rows):
            raise ValueError("must have as many rows as columns")
        return rows


class Difference(FileModel):
    """Accuracy at the end minus accuracy at the start, on the same test rows, with its standard error."""

    value: float
    error: float
    lost: int | None = None
    won: int | None = None
    test_rows: int | None = None
    name: str | None = None
    protocol: str | None = None


class Start(FileModel):
    """The evaluation of a pretrained encoder before the first step."""

    result: ProtocolResult
    difference: Difference
    weights: str | None = None
    norm: str | None = None


class MeasureVerdict(FileModel):
    """The frozen and the adapted encoder by one measure, on the rows of the verdict.

    Attributes:
        name: The measure: knn20, logistic or retrieval.
        title: In words.
        frozen: The share of rows that the frozen encoder has right.
        adapted: The share that the adapted encoder has right.
        difference: Adapted minus frozen.
        low: Lower end of the difference's 95 % interval (paired bootstrap).
        high: Its upper end.
        won: Rows that only the adapted encoder has right.
        lost: Rows that only the frozen encoder has right.
        rows: How many rows.
        p: Chance of so many won among those that differ if neither were better (exact McNemar test, one-sided).
        smallest: The smallest difference that these rows show in four cases of five.
    """

    name: str
    title: str = ""
    frozen: float
    adapted: float
    difference: float
    low: float
    high: float
    won: int
    lost: int
    rows: int
    p: float
    smallest: float


class Verdict(FileModel):
    """What `kontrast adapt` decided: which encoder is in the folder, and why.

    Attributes:
        shipped: The encoder in encoder.safetensors: adapted or frozen.
        status: better, not better, worse elsewhere (by another measure), diverged, not trained (time ran out before the
            first epoch ended), not judged (no labels), or accepted (not judged, and shipped because it was asked for).
        sentence: The verdict in a sentence, with its numbers.
        measures: The first decides; another one that is worse forbids. Empty if nothing was judged.
        epoch: The epoch of the adapted encoder.
        rows: How many rows learned, chose and judged.
        protocol: How it was judged.

    >>> verdict = Verdict(shipped="frozen", status="not judged", sentence="not judged, as there are no labels")
    >>> print(verdict)
    not judged, as there are no labels
    """

    shipped: Literal["adapted", "frozen"]
    status: Literal["better", "not better", "worse elsewhere", "diverged", "not trained", "not judged", "accepted"]
    sentence: str
    measures: list[MeasureVerdict] = Field(default_factory=list)
    epoch: Number = None
    rows: dict[str, int] = Field(default_factory=dict)
    protocol: str = ""

    def __str__(self) -> str:
        return self.sentence


class Result(FileModel):
    """result.json of a run: every number with its protocol. A task has keys of its own, in ``model_extra``.

    Attributes:
        weights: Which weights were evaluated: the last, or the best in validation.
        results: One entry for each protocol and baseline.
        head: The same protocols on the head's output, if the recipe asked for them.
        fitted_at: The step at which all training labels were fitted; None if the steps did not suffice.
        note: Why there are no results.
        score: A tuning trial's score, and ``by`` what it is.
        verdict: Of `kontrast adapt`: whether the adapted encoder is better than the frozen one.
    """

    model_config = ConfigDict(extra="allow")

    recipe: str | None = None
    hash: str | None = None
    seed: int | None = None
    weights: str | None = None
    results: list[ProtocolResult] = Field(default_factory=list)
    geometry: Geometry | None = None
    head: list[ProtocolResult] = Field(default_factory=list)
    start: Start | None = None
    fitted_at: int | None = None
    steps: int | None = None
    note: str | None = None
    score: Number = None
    by: str | None = None
    verdict: Verdict | None = None


class Analysis(FileModel):
    """analysis.json: the geometry, and the names of the classes."""

    geometry: Geometry | None = None
    class_names: Names | None = None
    kind: str | None = None


# ---------------------------------------------------------------------------------------------- model.json, doctor.json


class ModelInput(FileModel):
    """What an exported encoder takes: the shape of one input, and how it is cropped, resized and normalised."""

    kind: Literal["vector", "image"]
    shape: list[Annotated[int, Field(ge=1)]]
    mean: list[Annotated[float, Field(allow_inf_nan=False)]]
    std: list[Annotated[float, Field(allow_inf_nan=False)]]
    range: str | None = None
    crop: float | None = None
    interpolation: Literal["bilinear", "bicubic"] | None = None
    resize: str | None = None

    @field_validator("shape")
    @classmethod
    def _length(cls, shape: list[int], info: Any) -> list[int]:
        expected = {"vector": 1, "image": 3}.get(info.data.get("kind"))
        if expected is not None and len(shape) != expected:
            raise ValueError(f"must have {expected} numbers")
        return shape


class NamedOptions(FileModel):
    """A part by its name; its options are in ``model_extra``."""

    model_config = ConfigDict(extra="allow")

    name: str

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, values: Any) -> Any:
        return values  # None is a value of an option


class ModelCard(FileModel):
    """model.json: all that is needed to rebuild the encoder, and a model card.

    ``load`` and ``prepare`` are lines of Python that load the weights and an image without kontrast; ``source`` (the
    key ``class``) is the file that defines ``small-resnet`` with torch alone. Cards of older versions have no
    ``weights_sha256``. ``verdict`` is that of `kontrast adapt`.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    encoder: NamedOptions
    input: ModelInput
    feature_dim: int = 0
    recipe: str | None = None
    hash: str | None = None
    method: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    kontrast: str | None = None
    load: str | None = None
    prepare: str | None = None
    source: str | None = Field(None, alias="class")
    weights_sha256: str | None = None
    verdict: Verdict | None = None


Status = Literal["problem", "warning", "unknown", "ok"]
STATUSES: tuple[Status, ...] = ("problem", "warning", "unknown", "ok")
"""In the order in which findings are shown."""
OLD_STATUSES = {"ill": "problem", "watch": "warning", "healthy": "ok"}  # of kontrast 0.1
OLD_KEYS = {"disease": "title", "cure": "advice"}


class Finding(FileModel):
    """What one rule of the doctor says about a run, features or a recipe.

    Attributes:
        rule: The rule's name.
        status: ``problem``, ``warning``, ``unknown`` or ``ok``.
        title: What the rule looks for.
        evidence: What it saw, or what is missing.
        advice: What to do; empty if there is nothing to do.

    >>> Finding.model_validate({"rule": "small-queue", "status": "ill", "disease": "queue too small"}).status
    'problem'
    """

    rule: str = ""
    status: Status = "unknown"
    title: str = ""
    evidence: str = ""
    advice: str = ""

    @model_validator(mode="before")
    @classmethod
    def _read_old_words(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = {OLD_KEYS.get(key, key): value for key, value in values.items()}
        if isinstance(status := values.get("status"), str):
            values["status"] = OLD_STATUSES.get(status, status)
        return values


class Examination(FileModel):
    """doctor.json: the findings, and the version of kontrast that made them."""

    kontrast: str | None = None
    findings: list[Finding] = Field(default_factory=list)


# ---------------------------------------------------------------------------------------------------------- experiments


class TaskCall(FileModel):
    """task.json: the function that an experiment called, and its arguments."""

    call: str
    options: dict[str, Any] = Field(default_factory=dict)


class PlaceRun(FileModel):
    """One run at a place of the grid: its seed, the name of its run folder, and what became of it."""

    seed: Any = None
    folder: str
    status: str
    error: str | None = None
    seconds: Number = None
    values: dict[str, Number] = Field(default_factory=dict)


class PlaceCell(FileModel):
    """One measure at a place: the paper's value, our mean over ``n`` seeds, the half-width of its 95 % interval."""

    paper: Number = None
    paper_half: Number = None
    paper_data: str = ""
    mean: Number = None
    half: Number = None
    n: int = 0
    difference: Number = None
    censored: int = 0


class Place(FileModel):
    """A place of the grid, without the seed: ``at`` has the value on every axis."""

    at: dict[str, Scalar]
    runs: list[PlaceRun] = Field(default_factory=list)
    cells: dict[str, PlaceCell] = Field(default_factory=dict)


class SummaryMeasure(FileModel):
    """A measure of the experiment's table: its title, and how many digits are shown."""

    name: str
    title: str
    digits: int = 1


class ClaimRecord(FileModel):
    """A claim of the paper, how it was tested, and what was found."""

    text: str
    kind: str | None = None
    statistic: str | None = None
    findings: list[dict[str, Any]] = Field(default_factory=list)


class BaselineRecord(FileModel):
    """Raw pixels or an untrained encoder beside the cells: accuracies in percent by protocol."""

    name: str
    at: dict[str, Scalar] = Field(default_factory=dict)
    seed: Any = None
    status: str | None = None
    error: str | None = None
    values: dict[str, Number] = Field(default_factory=dict)
    titles: dict[str, str] = Field(default_factory=dict)


class Summary(FileModel):
    """result.json of an experiment: places, measures, claims, baselines and how it was made."""

    experiment: str
    places: list[Place]
    title: str = ""
    source: str = ""
    preset: str = ""
    about: str = ""
    settings: Any = None
    rows: str | None = None
    axes: dict[str, list[Scalar]] = Field(default_factory=dict)
    seeds: list[Any] = Field(default_factory=list)
    measures: list[SummaryMeasure] = Field(default_factory=list)
    status: dict[str, int] = Field(default_factory=dict)
    seconds: Number = None
    claims: list[ClaimRecord] = Field(default_factory=list)
    baselines: list[BaselineRecord] = Field(default_factory=list)
    made: dict[str, Any] = Field(default_factory=dict)
    ledger: dict[str, int] | None = None
