"""safetensors: the weights by the names of the plain model, for plain torch and for `kontrast.load`.

A classifier has a file of its own, classifier.safetensors, with ``weight [K, D]`` and ``bias [K]``, and the names of
its classes in the metadata: ``logits = features @ weight.T + bias``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save

from kontrast.files import write_atomically, write_json
from kontrast.train.encoder_files import DIGEST, load, loading_code, plain_state
from kontrast.train.exports._target import Source, Target

CLASSIFY = """
head = load_file("classifier.safetensors")
classify = lambda x: model(x) @ head["weight"].T + head["bias"]  # logits [n, classes]"""


class Safetensors(Target):
    """encoder.safetensors and, if the lines that load it need one, a Python file."""

    takes_classifier = True

    def write(self, source: Source, folder: Path) -> str:
        content = save(plain_state(source.encoder), metadata={"format": "pt"})
        write_atomically(folder / "encoder.safetensors", content)
        source.card[DIGEST] = hashlib.sha256(content).hexdigest()
        write_json(folder / "model.json", source.card)
        code = source.encoder.source_file()
        if code is not None:
            write_atomically(folder / code[0], code[1].encode())
        copy = load(folder)
        source.check_features(copy, "the copy in safetensors")
        lines = loading_code(source.encoder, source.name, source.options, source.shape)
        if source.head is None:
            return lines
        file = folder / "classifier.safetensors"
        about = {"format": "pt", "classes": json.dumps(source.head.classes)}
        write_atomically(file, save(source.head.tensors(), metadata=about))
        head = load_file(file)
        source.check_predictions(
            lambda x: torch.addmm(head["bias"], copy(x), head["weight"].T), "the copy in safetensors"
        )
        return lines + CLASSIFY
