"""Tiny ImageNet: 100,000 + 10,000 colour images of 64×64 pixels in 200 classes (Stanford cs231n, from ImageNet).

    tiny-imagenet-200/wnids.txt                                    the class ids
    tiny-imagenet-200/words.txt                                    id, tab, words
    tiny-imagenet-200/train/<id>/images/<id>_<n>.JPEG
    tiny-imagenet-200/val/images/val_<n>.JPEG, val/val_annotations.txt: file, tab, id, tab, box

The published test images have no labels; the validation images test here, as in the papers. Classes are the ids in
sorted order. Mean and std are those of the training pixels, as usually quoted (no paper of ours states any).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from kontrast.data.dataset import DataSet, Split
from kontrast.data.folder import Part, assemble, read_part
from kontrast.data.image_files import Folder, Listing, list_images, store, warn_of_skipped
from kontrast.data.sets._base import NamedSet

URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
MD5 = "90528d7ca1a48142e341f4ef8d21d0de"
FOLDER = "tiny-imagenet-200"


class TinyImageNet(NamedSet):
    """``tiny-imagenet-200`` below the root, as published; in memory (1.4 GB) unless ``memory`` or ``cache`` forbid."""

    name = "tiny-imagenet"
    mean = (0.4802, 0.4481, 0.3975)
    std = (0.2770, 0.2691, 0.2821)
    note = "Tiny ImageNet, Stanford cs231n, from ImageNet; for non-commercial research"

    def load(self) -> DataSet:
        """Training and validation images with their labels."""
        where = self.options.where
        folder = where / FOLDER
        files = ["wnids.txt", "train/<id>/images/*.JPEG", "val/images/*.JPEG", "val/val_annotations.txt"]
        self.read_or_download(
            lambda: _complete(folder), folder, files, URL, lambda: self.download_archive(URL, f"{FOLDER}.zip", MD5)
        )
        # Every image is 64×64: with the size given nothing need be opened twice.
        options = replace(self.options, size=self.options.size or 64, labelled=None)
        ids = sorted((folder / "wnids.txt").read_text().split())
        train = read_part(list_images(folder / "train", only=ids), ids, options)
        parts = {"train": train, "test": self._validation(folder / "val", ids)}
        return assemble(
            self.name, parts, _words(folder, ids), options, statistics=(self.mean, self.std), note=self.note
        )

    def _validation(self, folder: Path, ids: list[str]) -> Part:
        """The validation images, with the labels that their list gives them."""
        place = {name: i for i, name in enumerate(ids)}
        labels = {}
        for number, line in enumerate((folder / "val_annotations.txt").read_text().splitlines(), 1):
            if not line.strip():
                continue
            file, tab, rest = line.partition("\t")
            class_id = rest.partition("\t")[0].strip()
            if not tab:
                raise ValueError(f"line {number} of val_annotations.txt is {line!r}; expected file, tab, class id")
            if class_id not in place:
                raise ValueError(f"val_annotations.txt gives {file} the class {class_id!r}, which wnids.txt has not")
            labels[file] = place[class_id]
        options = replace(self.options, size=self.options.size or 64)
        listing = list_images(folder / "images")
        absent = labels.keys() - set(listing.names)
        extra = {i: "not in val_annotations.txt" for i, name in enumerate(listing.names) if name not in labels}
        listing = Listing(
            listing.folder, listing.names, [*listing.skipped, *((f, "missing") for f in labels if f in absent)]
        )
        files = len(listing) + len(listing.skipped)
        inputs, readable = store(listing.without(extra), options)
        targets = torch.tensor([labels[name] for name in readable.names])
        if isinstance(inputs, Folder):
            inputs.labels = targets
        warn_of_skipped(readable.skipped, files, listing.folder)
        return Part(Split(inputs, targets), tuple(readable.skipped))


def _complete(folder: Path) -> None:
    """Raise FileNotFoundError if a list is missing. Archives are moved into place whole, images included."""
    for name in ("wnids.txt", "val/val_annotations.txt"):
        if not (folder / name).is_file():
            raise FileNotFoundError(str(folder / name))


def _words(folder: Path, ids: list[str]) -> list[str]:
    """``id word`` of each class; words alone are not unique."""
    path = folder / "words.txt"
    lines = path.read_text().splitlines() if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return [f"{name} {words.get(name, '').split(',')[0]}".strip() for name in ids]
