"""Classify photos by an exported classifier, with onnxruntime, PIL and numpy alone: no torch, no kontrast.

    kontrast export RUN --to onnx --with-classifier --out mine/
    python examples/classify_photo.py mine/classifier.onnx photo.jpg another.png

The file holds encoder, normalisation and classifier; its metadata say how a photo becomes an input, and what the
classes are called. Pixels are those of kontrast to a level of 255 (a transparent image: lay it on white first).
"""

import json
import math
import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1])
about = json.loads(session.get_modelmeta().custom_metadata_map["kontrast"])
(channels, size, _), crop = about["input"]["shape"], about["input"]["crop"]  # crop: the share of the shorter side
resampling = Image.Resampling[about["input"].get("interpolation", "bilinear").upper()]
for path in sys.argv[2:]:
    image = Image.open(path)
    scale = size / round(crop * min(image.size))
    image.draft(None, tuple(math.ceil(n * scale) for n in image.size))  # a JPEG is decoded at 1/2, 1/4 or 1/8
    image = ImageOps.exif_transpose(image).convert("RGB" if channels == 3 else "L")
    side = round(crop * min(image.size))
    left, top = (image.width - side) // 2, (image.height - side) // 2
    image = image.crop((left, top, left + side, top + side)).resize((size, size), resampling)
    pixels = np.asarray(image, dtype=np.float32).reshape(1, size, size, channels).transpose(0, 3, 1, 2) / 255
    (probabilities,) = session.run(["probabilities"], {"images": pixels})[0]
    print(f"{path}: {about['classes'][probabilities.argmax()]} ({probabilities.max():.1%})")
