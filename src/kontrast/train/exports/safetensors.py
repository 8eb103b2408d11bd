"""safetensors: the weights by the names of the plain model, for plain torch and for `kontrast.load`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from safetensors.torch import save

from kontrast.files import write_atomically, write_json
from kontrast.runs import Run
from kontrast.train.export import DIGEST, loading, plain_state, rebuild, small_resnet_source
from kontrast.train.exports._target import Source, Target


class Safetensors(Target):
    """encoder.safetensors; with ``small-resnet`` also small_resnet.py, the class it is."""

    def refusal(self, source: Source) -> str | None:
        """Every encoder can be written so."""
        return None

    def write(self, source: Source, folder: Path) -> str:
        """Read back by kontrast; the run's own tests hold that the lines load them without."""
        state = plain_state(source.encoder, source.name)
        content = save(state, metadata={"format": "pt"})
        write_atomically(folder / "encoder.safetensors", content)
        source.card[DIGEST] = hashlib.sha256(content).hexdigest()
        write_json(folder / "model.json", source.card)
        if source.name == "small-resnet":
            write_atomically(folder / "small_resnet.py", small_resnet_source().encode())
        source.compare(rebuild(Run(folder)), "the copy in safetensors")
        return loading(source.encoder, source.name, source.options, source.shape)
