"""Sets by name, image folders, arrays; the bundled set; label noise; samplers and the loader.

>>> from kontrast import data
>>> data_set = data.load("fashion-mini")  # inside the package: no network
>>> data_set
DataSet 'fashion-mini': 10,000 images (1, 28, 28), 2,000 for testing in 10 classes
>>> batches = data.Loader(data_set.train, data.Shuffled(len(data_set.train), 256, seed=0))
>>> len(batches), next(batches.epoch(0)).inputs.shape
(39, torch.Size([256, 1, 28, 28]))
"""

from kontrast.data.arrays import from_arrays
from kontrast.data.cache import CachedImages
from kontrast.data.dataset import DataSet, Inputs, Memory, Options, Rows, Split, channel_statistics
from kontrast.data.identity import bind, check_in_reach, separate_data
from kontrast.data.image_files import Folder
from kontrast.data.images import INTERPOLATIONS, CentreCrop, Crop, ImageError, Interpolation, decode
from kontrast.data.loader import (
    SAMPLERS,
    Batch,
    ClassBalanced,
    InOrder,
    Loader,
    Sampler,
    Shuffled,
    Stream,
    WithReplacement,
    generator,
    seed_of,
)
from kontrast.data.loading import SETS, load, names, noisy_labels

__all__ = [
    "INTERPOLATIONS",
    "SAMPLERS",
    "SETS",
    "Batch",
    "CachedImages",
    "CentreCrop",
    "ClassBalanced",
    "Crop",
    "DataSet",
    "Folder",
    "ImageError",
    "InOrder",
    "Inputs",
    "Interpolation",
    "Loader",
    "Memory",
    "Options",
    "Rows",
    "Sampler",
    "Shuffled",
    "Split",
    "Stream",
    "WithReplacement",
    "bind",
    "channel_statistics",
    "check_in_reach",
    "decode",
    "from_arrays",
    "generator",
    "load",
    "names",
    "noisy_labels",
    "seed_of",
    "separate_data",
]
