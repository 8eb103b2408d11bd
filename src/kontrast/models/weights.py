"""Start from weights on disk, whoever wrote them: ours, torchvision's, timm's, SupContrast's, MoCo's, lightly's.

It reads safetensors files (``.safetensors``), run folders (their ``encoder.safetensors``) and files of torch.save. The
last are pickles. They are read with ``weights_only=True``, tensors and containers of them, so that a file cannot run
code. Training scripts put a few harmless objects beside the tensors: options of a command line, a learning rate that
numpy computed, a configuration. Those named in `STAND_INS` are read as stand-ins that keep nothing and can do nothing;
their classes are never imported, and any other object is an error.

Every project names its tensors in another way. `fit_weights` tries each dictionary in the file (the file itself,
``state_dict``, ``model``, …), each usual prefix (``module.``, ``encoder.``, ``backbone.``, ``encoder_q.``, …, and
``0.``, the first of an nn.Sequential), and the names as they are or translated from another project's names of a
ResNet (`kontrast.models.layouts`). It takes the combination that fits most of the module's tensors by name and shape.
At a tie it prefers a network that learns to one that follows it (``student`` before ``teacher``), then names as they
are, then the shorter prefix, then the earlier dictionary. If the first layer has other input channels than the file,
its weights are adapted as timm does: summed for one channel, else repeated in turn and scaled by 3/channels.

Tensors of the file that the module does not have are not used. Heads and queues are normal; anything else suggests
that the file is of another, larger network, and then the part that fits is not a good start.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.files import RUN_AGAIN, digest, expanded
from kontrast.models.layouts import differences, layouts
from kontrast.registry import quoted
from kontrast.runs import Run

ONLINE = ["encoder", "backbone", "encoder_q", "base_encoder", "online", "online_encoder", "student", "method"]
WRAPPERS = ["module", "model", "net", "network", "trunk", "resnet", "feature_extractor", "_orig_mod"]
USUAL = frozenset([*ONLINE, *WRAPPERS])
FIRST = "0"  # the encoder in nn.Sequential(encoder, head)
FOLLOWS = re.compile(r"(?:^|_)(?:teacher|target|momentum|ema|key|k)(?:_|$)")
HEAD = re.compile(
    r"(?:^|_)(?:fc|heads?|classifier|linear|logits|mlp|proj|projector|projection|predictor|prediction|prototypes|queue)"
    r"\d*(?:_|$)"
)

STAND_INS = (
    "argparse.Namespace",  # SupContrast's "opt"
    "numpy.core.multiarray.scalar",  # a learning rate from numpy, in an optimiser's state
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.ndarray",
    "numpy.dtype",
    "pathlib.PosixPath",  # solo-learn's folders
    "pathlib.WindowsPath",
    "omegaconf.dictconfig.DictConfig",  # hyper-parameters of Lightning modules
    "omegaconf.listconfig.ListConfig",
    "omegaconf.base.ContainerMetadata",
    "omegaconf.base.Metadata",
    "omegaconf.nodes.AnyNode",
    "typing.Any",
    "builtins.dict",
    "builtins.list",
    "builtins.int",
    "collections.defaultdict",
)

FOREIGN = re.compile(r"GLOBAL (\S+) was not an allowed global")  # what torch says of an object


@dataclass(frozen=True)
class Loaded:
    """The report of `load_weights`; its names are those of the module.

    Attributes:
        source: The file.
        table: The dictionary of the file, by its keys ("method.online"); empty for the outermost.
        prefix: What stands before the module's names in it.
        loaded: Tensors that the module has now.
        adapted: Those of ``loaded`` whose input channels were adapted.
        missing: The module's tensors that the file lacks; they did not change.
        unexpected: Tensors of the file under the prefix that the module lacks.
        mismatched: Those of ``missing`` that the file has with another shape.
        layout: Which of the file's names were read as another library's; empty if none.
        notes: Other differences between the file's network and the module.
        resampled: Those of ``loaded`` that were brought to another size, such as position embeddings.
        library: The library whose names they were read as.

    >>> print(Loaded("encoder.pt", "state_dict", "module.", ["weight"], missing=["bias"]))
    1 tensors from encoder.pt, table 'state_dict', prefix 'module.' taken off; missing: bias
    """

    source: str
    table: str
    prefix: str
    loaded: list[str]
    adapted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)
    layout: str = ""
    notes: list[str] = field(default_factory=list)
    resampled: list[str] = field(default_factory=list)
    library: str = "torchvision"

    def __str__(self) -> str:
        table = f", table {self.table!r}" if self.table else ""
        prefix = f", prefix {self.prefix!r} taken off" if self.prefix else ""
        layout = f", {self.layout} read as {self.library}'s names" if self.layout else ""
        lines = [f"{len(self.loaded)} tensors from {self.source}{table}{prefix}{layout}"]
        for name in ("adapted", "resampled", "missing", "mismatched", "unexpected"):
            names = getattr(self, name)
            if names:
                lines.append(f"{name}: {_few(names)}")
        return "; ".join(lines)

    def record(self) -> dict[str, Any]:
        """For JSON: the numbers of tensors, and ``str(report)``."""
        counts = {name: len(getattr(self, name)) for name in ("adapted", "missing", "mismatched", "unexpected")}
        return {"file": self.source, "tensors": len(self.loaded), **counts, "report": str(self)}

    @property
    def foreign(self) -> list[str]:
        """Those unexpected that belong to no head or queue: the file's network has more than the module."""
        return [name for name in self.unexpected if not _is_head(name)]


def load_weights(
    module: nn.Module, source: str | Path | Mapping[str, Any], *, prefix: str | None = None, strict: bool = False
) -> Loaded:
    """Load the tensors of a file (or of a state dict) that fit into a module.

    Args:
        module: It is changed.
        source: The file, the run folder, or a state dict.
        prefix: What stands before the module's names in the file, if it is not a usual one (``"encoder_k."`` for MoCo's
            momentum encoder).
        strict: Whether it is an error, not a warning, if the module keeps tensors of its own, or the file has more than
            the module and a head.

    Returns:
        The report; `str` of it is one line.

    Raises:
        ValueError: The file cannot be read, nothing in it fits, or (``strict``) not everything fits.

    >>> import torch
    >>> saved = {"state_dict": {"module.weight": torch.ones(1, 2), "module.fc.bias": torch.zeros(3)}}
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> print(load_weights(layer, saved))
    1 tensors from a mapping, table 'state_dict', prefix 'module.' taken off; unexpected: fc.bias
    >>> layer.weight.detach()
    tensor([[1., 1.]])
    """
    report, tensors = fit_weights(module, source, prefix=prefix)
    if strict and report.missing:
        raise ValueError(" ".join([f"{type(module).__name__} is not wholly in the file: {report}.", *report.notes]))
    more = f"the file has {len(report.foreign)} tensors that {type(module).__name__} has not, of no head: is it of"
    if strict and report.foreign:
        raise ValueError(f"{more} another network? {report}. Make that one, or load with strict=False")
    take_weights(module, report, tensors)
    return report


def take_weights(module: nn.Module, report: Loaded, tensors: Mapping[str, Tensor]) -> None:
    """Load what `fit_weights` found, and warn of what does not fit."""
    if report.missing or report.foreign or report.notes:
        notes = ["Those missing keep their start."] if report.missing else []
        more = f"The file has {len(report.foreign)} tensors that {type(module).__name__} has not, of no head"
        notes += [f"{more}: is it of another network?"] if report.foreign else []
        warnings.warn(f"{report}. {' '.join([*notes, *report.notes])}", stacklevel=3)
    module.load_state_dict(tensors, strict=False)


def fit_weights(
    module: nn.Module, source: str | Path | Mapping[str, Any], *, prefix: str | None = None
) -> tuple[Loaded, dict[str, Tensor]]:
    """Find the tensors of a file that fit a module, without changing it.

    Args:
        module: Only its names and shapes are read, so it may lie on torch's meta device.
        source: As for `load_weights`.
        prefix: As for `load_weights`.

    Returns:
        The report, and the tensors by the module's names.

    Raises:
        ValueError: The file cannot be read, or nothing in it fits.

    >>> import torch
    >>> report, tensors = fit_weights(nn.Linear(2, 1, device="meta"), {"weight": torch.ones(1, 2)})
    >>> report.missing, list(tensors)
    (['bias'], ['weight'])
    """
    if not isinstance(source, str | os.PathLike | Mapping):
        raise ValueError(f"source={quoted(source)}: must be the path of a file, or a state dict")
    label = "a mapping" if isinstance(source, Mapping) else str(source)
    targets = {name: tensor for name, tensor in module.state_dict().items() if isinstance(tensor, Tensor)}
    shared = _shared_part(targets)
    best: tuple[tuple[int, bool, bool, int], Loaded, dict[str, Tensor]] | None = None
    content = source if isinstance(source, Mapping) else read_tensors(expanded(source, "the file of weights"))
    tables = dict(_tables(content))
    for path, plain in tables.items():
        learns = not any(FOLLOWS.search(key.lower()) for key in path)
        for layout in layouts(plain):
            table = layout.table
            for first in dict.fromkeys(("", shared)):  # the names of the module without their first part, too
                short = {name.removeprefix(first): tensor for name, tensor in targets.items()}
                for before in _prefixes(table, short) if prefix is None else [prefix]:
                    about: dict[str, Any] = {
                        "layout": layout.name,
                        "notes": list(layout.notes),
                        "library": layout.library,
                    }
                    empty = Loaded(label, ".".join(path), before, [], **about)
                    tensors, report = _fit(table, short, first, empty)
                    report.notes.extend(differences(content, table, before, short))
                    rank = (len(report.loaded), learns, not layout.name, -len(before))
                    if tensors and (best is None or rank > best[0]):
                        best = (rank, report, tensors)
                        fitted = table
    if best is None or best[1].missing:  # the network may know how to read it
        wanted = tables.items() if best is None else [(tuple(filter(None, best[1].table.split("."))), fitted)]
        for path, table in wanted:
            before = "" if best is None else best[1].prefix
            found = _convert(module, table, targets, Loaded(label, ".".join(path), before, []))
            if found is not None and (best is None or len(found[1].loaded) > len(best[1].loaded)):
                best = (0, False, False, 0), found[1], found[0]
    if best is None:
        raise ValueError(_nothing_fits(label, list(tables.values()), targets))
    return best[1], best[2]


def _convert(
    module: nn.Module, table: Mapping[str, Tensor], targets: Mapping[str, Tensor], report: Loaded
) -> tuple[dict[str, Tensor], Loaded] | None:
    """Fit what the network itself makes of a table (`Encoder.converted`); None if it makes nothing of it.

    If that is not all of the network, tensors that fit as they are stay as they are: a conversion of whole checkpoints
    may take an encoder without its classifier for a file of another version.
    """
    convert, inside = getattr(module, "converted", None), getattr(module, "plain_prefix", "")
    if convert is None:
        return None
    plain = {
        name.removeprefix(report.prefix).removeprefix(inside): tensor
        for name, tensor in table.items()
        if name.startswith(report.prefix)
    }
    converted = convert(plain)
    if converted is None:
        return None
    short = {name.removeprefix(inside): tensor for name, tensor in targets.items()}
    as_they_are = {name: t for name, t in plain.items() if name in short and t.shape == short[name].shape}
    empty: tuple[str, ...] = ("adapted", "missing", "unexpected", "mismatched", "resampled")
    mostly = {**{name: t for name, t in converted.items() if name in plain}, **as_they_are}
    for table in (converted, mostly):
        lists: dict[str, Any] = {name: [] for name in empty}
        tensors, found = _fit(table, short, inside, replace(report, prefix="", loaded=[], **lists))
        if not found.missing:
            break
    for name in tensors:
        was = plain.get(name.removeprefix(inside))
        if was is not None and was.shape != tensors[name].shape and name not in found.adapted:
            found.resampled.append(name)
    return (tensors, replace(found, prefix=report.prefix)) if tensors else None


def _tables(
    content: Mapping[str, Any], path: tuple[str, ...] = (), depth: int = 3
) -> Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]:
    """The dictionaries of tensors in a file, each with the keys that lead to it, the outermost first."""
    tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if tensors:
        yield path, tensors
    if depth:
        for key, value in content.items():
            if isinstance(value, Mapping):
                yield from _tables(value, (*path, str(key)), depth - 1)


# --------------------------------------------------------------------------------------------------- fitting


def _shared_part(names: Mapping[str, Tensor]) -> str:
    """The first part that all of a module's names have in common (``net.``), or nothing."""
    first = {name.partition(".")[0] for name in names}
    return f"{first.pop()}." if len(first) == 1 and all("." in name for name in names) else ""


def _prefixes(table: Mapping[str, Tensor], targets: Mapping[str, Tensor], usual: bool = True) -> list[str]:
    """The prefixes before the targets' names in a table, the most frequent first; only ``usual`` ones, if set."""
    counts: dict[str, int] = {}
    for name in table:
        parts = name.split(".")
        for count in range(len(parts)):
            if ".".join(parts[count:]) in targets and (not usual or _is_usual(parts[:count])):
                before = "".join(f"{part}." for part in parts[:count])
                counts[before] = counts.get(before, 0) + 1
    return sorted(counts, key=lambda before: (-counts[before], len(before)))


def _is_usual(before: list[str]) -> bool:
    """Whether all parts of a prefix are usual ones, or (once) the first of an nn.Sequential."""
    return before.count(FIRST) <= 1 and USUAL.issuperset(part for part in before if part != FIRST)


def _is_head(name: str) -> bool:
    """Whether a tensor belongs to a head or a queue, or counts batches."""
    first = next((part for part in name.split(".") if part not in USUAL), "")
    return HEAD.search(first.lower()) is not None or name.endswith("num_batches_tracked")


def _fit(
    table: Mapping[str, Tensor], targets: Mapping[str, Tensor], first: str, report: Loaded
) -> tuple[dict[str, Tensor], Loaded]:
    """The tensors that fit under the report's prefix, by the module's names (``first`` + name), and the report."""
    tensors: dict[str, Tensor] = {}
    before = report.prefix
    for name, mine in targets.items():
        theirs = table.get(before + name)
        if theirs is not None and theirs.shape != mine.shape:
            adapted = _adapt(theirs, mine)
            (report.mismatched if adapted is None else report.adapted).append(first + name)
            theirs = adapted
        (report.missing if theirs is None else report.loaded).append(first + name)
        if theirs is not None:
            tensors[first + name] = theirs
    fitting = {before + name for name in targets}
    report.unexpected.extend(n.removeprefix(before) for n in table if n.startswith(before) and n not in fitting)
    # a file without the counters of batch norm (before torch 0.4.1) lacks nothing that matters
    report.missing[:] = [name for name in report.missing if not name.endswith("num_batches_tracked")]
    return tensors, report


def _adapt(theirs: Tensor, mine: Tensor) -> Tensor | None:
    """Convolution weights ``[out, 3, …]`` for images of other channels; None if anything else differs."""
    if theirs.ndim != 4 or mine.ndim != 4 or theirs.shape[1] != 3:
        return None
    channels = mine.shape[1]
    if theirs[:, :1].shape != mine[:, :1].shape:
        return None
    if channels == 1:
        return theirs.sum(1, keepdim=True)
    return theirs.repeat(1, -(-channels // 3), 1, 1)[:, :channels] * (3 / channels)


def _nothing_fits(source: str, tables: list[dict[str, Tensor]], targets: Mapping[str, Tensor]) -> str:
    theirs = [name for table in tables for name in table]
    near = [before for table in tables for before in _prefixes(table, targets, usual=False)[:1] if before]
    hint = f" prefix={near[0]!r} would fit." if near else ""
    have = f"it has {_few(theirs)}" if theirs else "it holds no tensors"
    return f"nothing in {source} fits: the module has {_few(list(targets))}; {have}.{hint}"


def _few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# --------------------------------------------------------------------------------------------------- reading


class StandIn:
    """A placeholder for an object that is not loaded: it accepts any argument and any state, and keeps nothing."""

    def __new__(cls, *args: Any, **options: Any) -> StandIn:
        return super().__new__(cls)

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...


def read_tensors(path: Path) -> Mapping[str, Any]:
    """Read a safetensors file, a run folder or a file of torch.save: tensors by name, or dictionaries of them.

    Args:
        path: The file or the folder.

    Returns:
        The tensors.

    Raises:
        ValueError: The file does not exist, is damaged, or holds other objects.
    """
    run = Run(path) if path.is_dir() else None
    path = path if run is None else run.weights_file
    if not path.is_file():
        raise ValueError(f"no file {path}; expected a .safetensors file, a torch.save file or a run folder")
    if run is not None and run.card_file.is_file() and run.card.weights_sha256 not in (None, digest(path)):
        raise ValueError(
            f"{path} is damaged (its content does not match the digest in {run.card_file.name}); {RUN_AGAIN}"
        )
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as error:
            raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    try:
        with warnings.catch_warnings(), _stand_ins():
            warnings.simplefilter("ignore", UserWarning)  # of pickle protocols; whether it can be read is all we ask
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise  # the disk's fault, not the file's
    except Exception as error:  # bytes that are no pickle fail in any way, IndexError and UnicodeDecodeError among them
        foreign = FOREIGN.search(str(error))
        reason = f"it holds a {foreign[1]}" if foreign else str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path} cannot be read as tensors alone, and other objects are never unpickled: {reason}. "
            "Save its state_dict() with safetensors or torch.save where you trust it"
        ) from error
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a state dict, or one inside a dictionary")
    return content


def _stand_ins() -> contextlib.AbstractContextManager[Any]:
    """Let the unpickler use a `StandIn` for each of the names."""
    allow = getattr(torch.serialization, "safe_globals", None)
    if allow is None:  # torch 2.4: files with such objects are refused
        return contextlib.nullcontext()
    classes = []
    for name in STAND_INS:
        module, _, short = name.rpartition(".")
        classes.append(type(short, (StandIn,), {"__module__": module}))
    return allow(classes)  # type: ignore[no-any-return]
