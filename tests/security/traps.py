"""Files that spring if anybody unpickles or executes them: a folder is made, and only then."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kontrast.train import checkpoint


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, sprung: Path) -> None:
        self.sprung = sprung

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.sprung),)


def pickled(sprung: Path) -> bytes:
    return pickle.dumps({"state_dict": Trap(sprung), "step": 1}, 2)


def saved(sprung: Path) -> bytes:
    """torch.save's, a zip."""
    buffer = io.BytesIO()
    torch.save({"step": 1, "weights": torch.zeros(2), "evil": Trap(sprung)}, buffer)
    return buffer.getvalue()


def sealed(sprung: Path) -> bytes:
    """A checkpoint with its digest: that says what was written, not who wrote it."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save(Path(folder) / "last.pt", {"step": 1, "evil": Trap(sprung)})
        return (Path(folder) / "last.pt").read_bytes()


def saved_in_the_old_form(sprung: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save({"step": 1, "evil": Trap(sprung)}, buffer, _use_new_zipfile_serialization=False)
    return buffer.getvalue()


def scripted(sprung: Path) -> bytes:
    """A zip that torch takes for a TorchScript archive: what it would load by another way than others."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("archive/constants.pkl", pickled(sprung))
        made.writestr("archive/data.pkl", pickled(sprung))
        made.writestr("archive/version", "3\n")
    return buffer.getvalue()


def array(sprung: Path) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Trap(sprung), 1], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def arrays(sprung: Path) -> bytes:
    """Every array that anybody asks for by name is one of objects."""
    names = ["features", "labels", "x_train", "y_train", "x_test", "y_test", "class_names", "path", "steps", "values"]
    names += ["bounds", "predictions", "neighbours", "thumbnails", "embeddings", "projections", "rows", "views"]
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.array([Trap(sprung)], dtype=object) for name in names}, allow_pickle=True)
    return buffer.getvalue()


def tagged(sprung: Path) -> bytes:
    """YAML, and (in its flow form) nearly JSON."""
    calls = ["!!python/object/apply:os.mkdir", "!!python/object/new:os.mkdir"]
    lines = [f"a{i}: {call} [{str(sprung)!r}]" for i, call in enumerate(calls)]
    return "\n".join(
        [*lines, f"b: !!python/name:os.mkdir ''\nname: !!python/object/apply:os.mkdir [{str(sprung)!r}]"]
    ).encode()


def tensors(sprung: Path) -> bytes:
    """A safetensors file whose header and data are a pickle."""
    content = pickled(sprung)
    header = b'{"__metadata__":{"format":"pickle"},"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}'
    header %= (len(content), len(content))
    return len(header).to_bytes(8, "little") + header + content


def program(sprung: Path) -> bytes:
    """Python, should anybody take a file for its own."""
    return f"__import__('os').mkdir({str(sprung)!r})\n".encode()


TRAPS: dict[str, Callable[[Path], bytes]] = {
    made.__name__: made
    for made in (pickled, saved, sealed, saved_in_the_old_form, scripted, array, arrays, tagged, tensors, program)
}
