"""Start from weights on disk, whoever wrote them: ours, torchvision's, timm's, SupContrast's, MoCo's, lightly's.

Read are safetensors files (``.safetensors``), a run folder (its ``encoder.safetensors``), and files of torch.save: the
tensors and containers of them, never other objects, so that a file cannot run code (`kontrast.models._weight_files`).

A file names its tensors in its own way. Of the dictionaries in it (itself, ``state_dict``, ``model``, …), of the usual
prefixes (``module.``, ``encoder.``, ``backbone.``, ``encoder_q.``, …, and ``0.``, the first of an nn.Sequential) and of
the names as they are or as another project's names of a ResNet (`kontrast.models.layouts`), that combination is taken
whose names and shapes fit the most of the module's tensors; at a tie the network that learns before one that follows it
(``student`` before ``teacher``), then names as they are, then the shorter prefix, then the earlier dictionary. Where a
first layer's images have other channels its weights are adapted, as timm does: summed for one channel, else repeated in
turn and scaled by 3/channels.

What the file has beside the module's tensors is left unused. That is usual of heads and queues; anything else speaks
for a file of another, larger network, of which the half that fits would be no good start.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from kontrast.files import expanded
from kontrast.models._weight_files import read as read_file
from kontrast.models.layouts import differences, layouts
from kontrast.registry import quoted

ONLINE = ["encoder", "backbone", "encoder_q", "base_encoder", "online", "online_encoder", "student", "method"]
WRAPPERS = ["module", "model", "net", "network", "trunk", "resnet", "feature_extractor", "_orig_mod"]
USUAL = frozenset([*ONLINE, *WRAPPERS])
FIRST = "0"  # the encoder in nn.Sequential(encoder, head)
FOLLOWS = re.compile(r"(?:^|_)(?:teacher|target|momentum|ema|key|k)(?:_|$)")
HEAD = re.compile(
    r"(?:^|_)(?:fc|heads?|classifier|linear|logits|mlp|proj|projector|projection|predictor|prediction|prototypes|queue)"
    r"\d*(?:_|$)"
)


@dataclass(frozen=True)
class Loaded:
    """What `load_weights` did: names as the module has them, and what the file had besides."""

    source: str
    table: str  # the dictionary of the file, by its keys ("method.online"); "" is the outermost
    prefix: str
    loaded: list[str]
    adapted: list[str] = field(default_factory=list)  # loaded too, with other input channels
    missing: list[str] = field(default_factory=list)  # the module's, left as they were
    unexpected: list[str] = field(default_factory=list)  # the file's, under the prefix, left unused
    mismatched: list[str] = field(default_factory=list)  # missing too: in the file, but of another shape
    layout: str = ""  # which of the file's names were read as torchvision's; "" if none
    notes: list[str] = field(default_factory=list)  # what else makes the file's network another than the module

    def __str__(self) -> str:
        table = f", table {self.table!r}" if self.table else ""
        stripped = f", prefix {self.prefix!r} taken off" if self.prefix else ""
        read = f", {self.layout} read as torchvision's names" if self.layout else ""
        lines = [f"{len(self.loaded)} tensors from {self.source}{table}{stripped}{read}"]
        for name in ("adapted", "missing", "mismatched", "unexpected"):
            seen = getattr(self, name)
            if seen:
                lines.append(f"{name}: {_few(seen)}")
        return "; ".join(lines)

    def record(self) -> dict[str, Any]:
        """As JSON has it: how many tensors, and the words of ``str(report)``."""
        counts = {name: len(getattr(self, name)) for name in ("adapted", "missing", "mismatched", "unexpected")}
        return {"file": self.source, "tensors": len(self.loaded), **counts, "report": str(self)}

    @property
    def foreign(self) -> list[str]:
        """Those unexpected that belong to no head or queue: the file's network has more than the module."""
        return [name for name in self.unexpected if not _is_head(name)]


def load_weights(
    module: nn.Module, source: str | Path | Mapping[str, Any], *, prefix: str | None = None, strict: bool = False
) -> Loaded:
    """Put the tensors of a file (or of a state dict) into a module, and report what fitted.

    A module that keeps tensors of its own is a warning that names them, and so is a file with more than the module and
    a head; with ``strict`` both are errors. A file of which nothing fits is an error. ``prefix`` is what stands before
    the module's names in the file, where it is not a usual one (``"encoder_k."`` for MoCo's momentum encoder).

    >>> import torch
    >>> saved = {"state_dict": {"module.weight": torch.ones(1, 2), "module.fc.bias": torch.zeros(3)}}
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> print(load_weights(layer, saved))
    1 tensors from a mapping, table 'state_dict', prefix 'module.' taken off; unexpected: fc.bias
    >>> layer.weight.detach()
    tensor([[1., 1.]])
    """
    report, found = fit_weights(module, source, prefix=prefix)
    if strict and report.missing:
        raise ValueError(" ".join([f"{type(module).__name__} is not wholly in the file: {report}.", *report.notes]))
    more = f"the file has {len(report.foreign)} tensors that {type(module).__name__} has not, of no head: is it of"
    if strict and report.foreign:
        raise ValueError(f"{more} another network? {report}. Make that one, or load with strict=False")
    if report.missing or report.foreign or report.notes:
        notes = ["Those missing keep their start."] if report.missing else []
        notes += [f"{more[0].upper()}{more[1:]} another network?"] if report.foreign else []
        warnings.warn(f"{report}. {' '.join([*notes, *report.notes])}", stacklevel=2)
    module.load_state_dict(found, strict=False)
    return report


def fit_weights(
    module: nn.Module, source: str | Path | Mapping[str, Any], *, prefix: str | None = None
) -> tuple[Loaded, dict[str, Tensor]]:
    """The first half of `load_weights`: which tensors of a file fit a module. The module is not changed.

    Only names and shapes of the module are read, so it may lie on torch's meta device.

    Returns:
        The report, and the tensors by the module's names.

    Raises:
        ValueError: the file cannot be read, or nothing in it fits.

    >>> import torch
    >>> report, found = fit_weights(nn.Linear(2, 1, device="meta"), {"weight": torch.ones(1, 2)})
    >>> report.missing, list(found)
    (['bias'], ['weight'])
    """
    if not isinstance(source, str | os.PathLike | Mapping):
        raise ValueError(f"weights are {quoted(source)}; expected the path of a file, or a state dict")
    named = "a mapping" if isinstance(source, Mapping) else str(source)
    wanted = {name: tensor for name, tensor in module.state_dict().items() if isinstance(tensor, Tensor)}
    shared = _shared_part(wanted)
    best: tuple[tuple[int, bool, bool, int], Loaded, dict[str, Tensor]] | None = None
    read = source if isinstance(source, Mapping) else read_file(expanded(source, "the file of weights"))
    tables = dict(_tables(read))
    for path, plain in tables.items():
        learns = not any(FOLLOWS.search(key.lower()) for key in path)
        for layout in layouts(plain):
            table = layout.table
            for own in dict.fromkeys(("", shared)):
                short = {name.removeprefix(own): tensor for name, tensor in wanted.items()}
                for before in _prefixes(table, short) if prefix is None else [prefix]:
                    empty = Loaded(named, ".".join(path), before, [], layout=layout.name, notes=list(layout.notes))
                    found, report = _fit(table, short, own, empty)
                    report.notes.extend(differences(read, table, before, short))
                    rank = (len(report.loaded), learns, not layout.name, -len(before))
                    if found and (best is None or rank > best[0]):
                        best = (rank, report, found)
    if best is None:
        raise ValueError(_nothing_fits(named, list(tables.values()), wanted))
    return best[1], best[2]


def _tables(
    read: Mapping[str, Any], path: tuple[str, ...] = (), depth: int = 3
) -> Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]:
    """The dictionaries of tensors in what was read, each behind the keys that lead to it, the outermost first."""
    tensors = {str(name): value for name, value in read.items() if isinstance(value, Tensor)}
    if tensors:
        yield path, tensors
    if depth:
        for key, value in read.items():
            if isinstance(value, Mapping):
                yield from _tables(value, (*path, str(key)), depth - 1)


# --------------------------------------------------------------------------------------------------- fitting


def _shared_part(names: Mapping[str, Tensor]) -> str:
    """The first part that all of a module's names have in common (``net.``), or nothing."""
    first = {name.partition(".")[0] for name in names}
    return f"{first.pop()}." if len(first) == 1 and all("." in name for name in names) else ""


def _prefixes(table: Mapping[str, Tensor], wanted: Mapping[str, Tensor], usual: bool = True) -> list[str]:
    """What stands before the wanted names in a table; only of the usual parts, unless told otherwise."""
    found: dict[str, int] = {}
    for name in table:
        parts = name.split(".")
        for cut in range(len(parts)):
            if ".".join(parts[cut:]) in wanted and (not usual or _is_usual(parts[:cut])):
                before = "".join(f"{part}." for part in parts[:cut])
                found[before] = found.get(before, 0) + 1
    return sorted(found, key=lambda before: (-found[before], len(before)))


def _is_usual(before: list[str]) -> bool:
    """Whether parts of a name are those a file may put before an encoder's: usual ones, and once the first of a row."""
    return before.count(FIRST) <= 1 and USUAL.issuperset(part for part in before if part != FIRST)


def _is_head(name: str) -> bool:
    """Whether a tensor that the module has not belongs to what stands behind encoders, or counts batches."""
    first = next((part for part in name.split(".") if part not in USUAL), "")
    return HEAD.search(first.lower()) is not None or name.endswith("num_batches_tracked")


def _fit(
    table: Mapping[str, Tensor], wanted: Mapping[str, Tensor], own: str, report: Loaded
) -> tuple[dict[str, Tensor], Loaded]:
    """The tensors that fit under the report's prefix, by the module's names, and the report filled in."""
    found: dict[str, Tensor] = {}
    before = report.prefix
    for name, mine in wanted.items():
        theirs = table.get(before + name)
        if theirs is not None and theirs.shape != mine.shape:
            adapted = _adapt(theirs, mine)
            (report.mismatched if adapted is None else report.adapted).append(own + name)
            theirs = adapted
        (report.missing if theirs is None else report.loaded).append(own + name)
        if theirs is not None:
            found[own + name] = theirs
    known = {before + name for name in wanted}
    report.unexpected.extend(n.removeprefix(before) for n in table if n.startswith(before) and n not in known)
    # a file without the counters of batch norm (before torch 0.4.1) lacks nothing that matters
    report.missing[:] = [name for name in report.missing if not name.endswith("num_batches_tracked")]
    return found, report


def _adapt(theirs: Tensor, mine: Tensor) -> Tensor | None:
    """Convolution weights ``[out, 3, …]`` for images of other channels; None if anything else differs."""
    if theirs.ndim != 4 or mine.ndim != 4 or theirs.shape[1] != 3:
        return None
    wanted = mine.shape[1]
    if theirs[:, :1].shape != mine[:, :1].shape:
        return None
    if wanted == 1:
        return theirs.sum(1, keepdim=True)
    return theirs.repeat(1, -(-wanted // 3), 1, 1)[:, :wanted] * (3 / wanted)


def _nothing_fits(source: str, tables: list[dict[str, Tensor]], wanted: Mapping[str, Tensor]) -> str:
    theirs = [name for table in tables for name in table]
    near = [before for table in tables for before in _prefixes(table, wanted, usual=False)[:1] if before]
    hint = f" prefix={near[0]!r} would fit." if near else ""
    have = f"it has {_few(theirs)}" if theirs else "it holds no tensors"
    return f"nothing in {source} fits: the module has {_few(list(wanted))}; {have}.{hint}"


def _few(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
