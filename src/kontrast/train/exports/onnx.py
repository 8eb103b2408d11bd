"""ONNX: one file that onnxruntime and many others run; needs the extra (``pip install kontrast[onnx]``).

    inputs   ``images`` float32 [batch, C, H, W] in 0…1 (pixels / 255), or ``vectors`` float32 [batch, D] as they are
    outputs  ``features`` float32 [batch, feature_dim], not normalised to length 1
             with a classifier also ``logits`` and ``probabilities`` float32 [batch, classes]

The batch may have any size; the side of images is that of the run. The normalisation of the inputs is part of the file
(``normalise="inside"``), so that it cannot be forgotten; with ``"outside"`` the caller does it. The operators are those
of opset 18, what torch's exporter writes; another is converted. Weights lie in the file itself.

The file's metadata have the entry ``kontrast``, a JSON object: ``input`` says how an image becomes an input (``shape``,
``crop``), and with a classifier ``classes`` has their names, in the order of the logits. The file is then called
classifier.onnx.

Before it is put in place, ``onnx.checker`` checks the file and onnxruntime runs it on batches of 1, 2 and 5 rows; with
a classifier also on real rows of the data, whose logits and classes must be those of the run's encoder in torch.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kontrast.train.encoder_files import preparing_code
from kontrast.train.exports._target import BATCHES, Source, Target, check_agreement

LINES = """import {json}numpy, onnxruntime
session = onnxruntime.InferenceSession("{file}")
{name} = numpy.zeros((1, {shape}), dtype=numpy.float32)  # {what}
{features} = session.run(None, {{"{name}": {name}}})"""
CLASSES = """
classes = json.loads(session.get_modelmeta().custom_metadata_map["kontrast"])["classes"]
print(classes[probabilities[0].argmax()])"""
LARGEST = 2_000_000_000  # bytes of weights; a file of ONNX itself, a protocol buffer, cannot be larger


class Onnx(Target):
    """encoder.onnx, or classifier.onnx.

    Args:
        normalise: Where the inputs are normalised: ``inside`` the file, or ``outside`` by its caller.
        opset: The version of ONNX's operators.
    """

    library = "onnx"
    takes_classifier = True

    def __init__(self, *, normalise: str = "inside", opset: int = 18) -> None:
        if normalise not in ("inside", "outside"):
            raise ValueError(f"normalise={normalise!r}: must be 'inside' (the file does it) or 'outside' (you do it)")
        if isinstance(opset, bool) or not isinstance(opset, int) or opset < 18:
            raise ValueError(f"opset={opset!r}: must be a whole number, 18 or more, as torch's exporter writes. Use 18")
        self.normalise, self.opset = normalise, opset

    def refusal(self, source: Source) -> str | None:
        size = sum(tensor.nbytes for tensor in source.encoder.state_dict().values())
        return f"its {size / 1e9:.1f} GB do not fit into one file of ONNX" if size > LARGEST else None

    def describe_values(self, source: Source) -> str:
        """The words of the base class, without what the file does itself."""
        if self.normalise == "outside":
            return super().describe_values(source)
        if source.card["input"]["kind"] == "vector":
            return "as they are: the file standardises them itself"
        return "pixels / 255: the file normalises them itself"

    def preparing_code(self, source: Source) -> str | None:
        """The lines of the base class, without what the file does itself."""
        return preparing_code(source.card["input"], normalise=self.normalise == "outside")

    def write(self, source: Source, folder: Path) -> str:
        onnx, runtime = _packages()
        head = source.head
        file = folder / ("encoder.onnx" if head is None else "classifier.onnx")
        outputs = ["features"] if head is None else ["features", "logits", "probabilities"]
        name = "images" if source.card["input"]["kind"] == "image" else "vectors"
        inside = self.normalise == "inside"
        whole = _Whole(source, inside=inside).eval()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporter's warnings concern itself
            program = torch.onnx.export(
                whole,
                (whole.samples(source, 2),),
                dynamo=True,
                opset_version=self.opset,
                input_names=[name],
                output_names=outputs,
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                verbose=False,
            )
        assert program is not None
        about = {key: source.card[key] for key in ("encoder", "input", "feature_dim", "recipe", "hash", "kontrast")}
        about |= {} if head is None else {"classes": head.classes, "classifier": head.result}
        program.model.metadata_props["kontrast"] = json.dumps({**about, "normalise": self.normalise})
        program.save(str(file), external_data=False)
        onnx.checker.check_model(str(file), full_check=True)
        session = runtime.InferenceSession(str(file), providers=["CPUExecutionProvider"])

        def answer(x: Tensor, output: str = "features") -> Tensor:
            return torch.from_numpy(session.run([output], {name: x.numpy()})[0])

        for rows in BATCHES:
            x = whole.samples(source, rows)
            with torch.no_grad():
                mine = whole.features(x)
            check_agreement(answer(x), mine, "onnxruntime")
        if head is not None:
            source.check_predictions(lambda x: answer(x, "logits"), "onnxruntime", normalised=not inside)
        shape = ", ".join(map(str, source.shape))
        words = {"json": "", "file": file.name, "features": "features,"}
        if head is not None:
            words |= {"json": "json, ", "features": ", ".join(outputs)}
        lines = LINES.format(name=name, shape=shape, what=self.describe_values(source), **words)
        return lines if head is None else lines + CLASSES


class _Whole(nn.Module):
    """What goes into the file: the encoder, before it with ``inside`` the normalisation, behind it the classifier."""

    mean: Tensor
    std: Tensor

    def __init__(self, source: Source, *, inside: bool) -> None:
        super().__init__()
        self.encoder, self.inside = source.encoder, inside
        self.linear = None if source.head is None else source.head.linear()
        self.register_buffer("mean", source.statistic("mean"))
        self.register_buffer("std", source.statistic("std"))

    def features(self, x: Tensor) -> Tensor:
        """The encoder's output."""
        h: Tensor = self.encoder((x - self.mean) / self.std if self.inside else x)
        return h

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor, Tensor]:
        """The features; with a classifier its logits and probabilities too."""
        h = self.features(x)
        if self.linear is None:
            return h
        logits = self.linear(h)
        return h, logits, logits.softmax(1)

    def samples(self, source: Source, rows: int) -> Tensor:
        """The source's samples; not normalised if the network does that itself."""
        x = source.samples(rows)
        return x * source.statistic("std") + source.statistic("mean") if self.inside else x


def _packages() -> tuple[Any, Any]:
    try:
        import onnx  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import onnxruntime  # type: ignore[import-not-found,import-untyped,unused-ignore]
        import onnxscript  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"the export to ONNX needs onnx, onnxruntime and onnxscript ({error}): pip install kontrast[onnx]"
        ) from error
    return onnx, onnxruntime
