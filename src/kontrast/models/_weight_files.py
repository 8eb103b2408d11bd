"""Tensors from files, whoever wrote them, without running anything that a file holds.

A file of torch.save is a pickle. It is read with ``weights_only=True``: tensors and containers of them. Beside the
tensors, training scripts put a few harmless things: options of a command line, a learning rate that numpy computed, a
configuration. Those named in `STAND_INS` are read as stand-ins that keep nothing and can do nothing; the classes
themselves are never imported, and any other object is an error.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from kontrast.files import RUN_AGAIN, digest, read_json

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


class Nothing:
    """Stands for an object that is not wanted: made with anything, told anything, it remembers nothing."""

    def __new__(cls, *args: Any, **options: Any) -> Nothing:
        """One, whatever it is made with."""
        return super().__new__(cls)

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __setstate__(self, state: Any) -> None: ...


def read(path: Path) -> Mapping[str, Any]:
    """What a safetensors file, a run folder or a file of torch.save holds: tensors by name, or dictionaries of them."""
    card = path / "model.json"
    if path.is_dir():
        path = path / "encoder.safetensors"
    if not path.is_file():
        raise ValueError(f"no file {path}; expected a .safetensors file, a torch.save file or a run folder")
    if card.is_file():
        was = read_json(card, RUN_AGAIN).get("weights_sha256")  # older cards have none
        if was is not None and was != digest(path):
            raise ValueError(f"{path} is damaged (its content does not match the digest in {card.name}); {RUN_AGAIN}")
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
            found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise  # the disk's fault, not the file's
    except Exception as error:  # bytes that are no pickle fail in any way, IndexError and UnicodeDecodeError among them
        foreign = FOREIGN.search(str(error))
        reason = f"it holds a {foreign[1]}" if foreign else str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(
            f"{path} cannot be read as tensors alone, and other objects are never unpickled: {reason}. "
            "Save its state_dict() with safetensors or torch.save where you trust it"
        ) from error
    if not isinstance(found, Mapping):
        raise ValueError(f"{path} holds a {type(found).__name__}; expected a state dict, or one inside a dictionary")
    return found


def _stand_ins() -> contextlib.AbstractContextManager[Any]:
    """Inside, the unpickler finds a `Nothing` under each of the names."""
    allow = getattr(torch.serialization, "safe_globals", None)
    if allow is None:  # torch 2.4: files with such objects are refused
        return contextlib.nullcontext()
    classes = []
    for name in STAND_INS:
        module, _, short = name.rpartition(".")
        classes.append(type(short, (Nothing,), {"__module__": module}))
    return allow(classes)  # type: ignore[no-any-return]
