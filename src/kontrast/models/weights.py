"""Start from weights on disk, whoever wrote them: ours, torchvision's, timm's, MoCo's, a plain state dict.

Read are safetensors files (``.safetensors``), a run folder (its ``encoder.safetensors``), and files of torch.save,
with ``weights_only=True``: tensors and containers of them, never other objects, so that a file cannot run code.

A file names its tensors in its own way. Of the dictionaries in it (itself, ``state_dict``, ``model``, …) and of the
usual prefixes (``module.``, ``encoder.``, ``backbone.``, ``encoder_q.``, …) that combination is taken whose names and
shapes fit the most of the module's tensors; at a tie the shorter prefix and the earlier dictionary. Where a first
layer's images have other channels its weights are adapted, as timm does: summed for one channel, else repeated in turn
and scaled by 3/channels.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

ONLINE = ["encoder", "backbone", "encoder_q", "base_encoder", "online", "online_encoder", "student", "method"]
WRAPPERS = ["module", "model", "net", "network", "trunk", "resnet", "feature_extractor", "_orig_mod"]
USUAL = frozenset([*ONLINE, *WRAPPERS])


@dataclass(frozen=True)
class Loaded:
    """What `load_weights` did: names as the module has them, and what the file had besides."""

    source: str
    prefix: str
    loaded: list[str]
    adapted: list[str] = field(default_factory=list)  # loaded too, with other input channels
    missing: list[str] = field(default_factory=list)  # the module's, left as they were
    unexpected: list[str] = field(default_factory=list)  # the file's, under the prefix, left unused
    mismatched: list[str] = field(default_factory=list)  # missing too: in the file, but of another shape

    def __str__(self) -> str:
        stripped = f", prefix {self.prefix!r} taken off" if self.prefix else ""
        lines = [f"{len(self.loaded)} tensors from {self.source}{stripped}"]
        for name in ("adapted", "missing", "mismatched", "unexpected"):
            seen = getattr(self, name)
            if seen:
                lines.append(f"{name}: {_few(seen)}")
        return "; ".join(lines)


def load_weights(
    module: nn.Module, source: str | Path | Mapping[str, Any], *, prefix: str | None = None, strict: bool = False
) -> Loaded:
    """Put the tensors of a file (or of a state dict) into a module, and report what fitted.

    A module that keeps tensors of its own is a warning that names them, with ``strict`` an error; a file of which
    nothing fits is an error. ``prefix`` is what stands before the module's names in the file, where it is not a usual
    one (``"encoder_k."`` for MoCo's momentum encoder).

    >>> from torch import nn
    >>> saved = {"state_dict": {"module.weight": torch.ones(1, 2), "module.fc.bias": torch.zeros(3)}}
    >>> layer = nn.Linear(2, 1, bias=False)
    >>> print(load_weights(layer, saved))
    1 tensors from a mapping, prefix 'module.' taken off; unexpected: fc.bias
    >>> layer.weight.detach()
    tensor([[1., 1.]])
    """
    named = "a mapping" if isinstance(source, Mapping) else str(source)
    wanted = {name: tensor for name, tensor in module.state_dict().items() if isinstance(tensor, Tensor)}
    shared = _shared_part(wanted)
    best: tuple[tuple[int, int], Loaded, dict[str, Tensor]] | None = None
    read = source if isinstance(source, Mapping) else _read(Path(source))
    tables = list(_tables(read))
    for table in tables:
        for own in dict.fromkeys(("", shared)):
            short = {name.removeprefix(own): tensor for name, tensor in wanted.items()}
            for before in _prefixes(table, short) if prefix is None else [prefix]:
                found, report = _fit(table, short, before, own, named)
                rank = (len(report.loaded), -len(before))
                if found and (best is None or rank > best[0]):
                    best = (rank, report, found)
    if best is None:
        raise ValueError(_nothing_fits(named, tables, wanted))
    _, report, found = best
    if report.missing:
        whole = f"{report}. Those missing keep their start."
        if strict:
            raise ValueError(f"{type(module).__name__} is not wholly in the file: {report}")
        warnings.warn(whole, stacklevel=2)
    module.load_state_dict(found, strict=False)
    return report


# --------------------------------------------------------------------------------------------------- reading


def _read(path: Path) -> Mapping[str, Any]:
    if path.is_dir():
        path = path / "encoder.safetensors"
    if not path.is_file():
        raise ValueError(f"no file {path}; expected a .safetensors file, a torch.save file or a run folder")
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(path)
        except SafetensorError as error:
            raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of pickle protocols; whether it can be read is all we ask
            read = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} cannot be read as tensors alone, and other objects are never unpickled: {reason}. "
            "Save its state_dict() with safetensors or torch.save where you trust it"
        ) from error
    if not isinstance(read, Mapping):
        raise ValueError(f"{path} holds a {type(read).__name__}; expected a state dict, or one inside a dictionary")
    return read


def _tables(read: Mapping[str, Any], depth: int = 3) -> Iterator[dict[str, Tensor]]:
    """The dictionaries of tensors in what was read, the outermost first."""
    tensors = {str(name): value for name, value in read.items() if isinstance(value, Tensor)}
    if tensors:
        yield tensors
    if depth:
        for value in read.values():
            if isinstance(value, Mapping):
                yield from _tables(value, depth - 1)


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
            if ".".join(parts[cut:]) in wanted and (not usual or USUAL.issuperset(parts[:cut])):
                before = "".join(f"{part}." for part in parts[:cut])
                found[before] = found.get(before, 0) + 1
    return sorted(found, key=lambda before: (-found[before], len(before)))


def _fit(
    table: Mapping[str, Tensor], wanted: Mapping[str, Tensor], before: str, own: str, source: str
) -> tuple[dict[str, Tensor], Loaded]:
    """The tensors that fit under one prefix, by the module's names, and the report."""
    found: dict[str, Tensor] = {}
    report = Loaded(source, before, [])
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
