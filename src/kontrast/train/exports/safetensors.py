"""safetensors: the weights by the names of the plain model, for plain torch and for `kontrast.load`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from safetensors.torch import save

from kontrast.files import write_atomically, write_json
from kontrast.train.encoder_files import DIGEST, load, loading_code, plain_state
from kontrast.train.exports._target import Source, Target


class Safetensors(Target):
    """encoder.safetensors and, if the lines that load it need one, a Python file."""

    def write(self, source: Source, folder: Path) -> str:
        content = save(plain_state(source.encoder), metadata={"format": "pt"})
        write_atomically(folder / "encoder.safetensors", content)
        source.card[DIGEST] = hashlib.sha256(content).hexdigest()
        write_json(folder / "model.json", source.card)
        code = source.encoder.source_file()
        if code is not None:
            write_atomically(folder / code[0], code[1].encode())
        source.check_features(load(folder), "the copy in safetensors")
        return loading_code(source.encoder, source.name, source.options, source.shape)
