"""ImageNet-100: the hundred classes of ImageNet that wang-liu, tcl and sce train on, out of an ImageNet folder.

    <root>/imagenet100 or imagenet or ILSVRC2012 or ILSVRC/Data/CLS-LOC, or the root itself:
        train/<id>/*.JPEG   val/<id>/*.JPEG

Only the hundred class folders are looked at, so a full ImageNet serves as well as an extract. Classes are numbered in
the order of their sorted ids, as ``ImageFolder`` does. The list is wang-liu's Table 3 (the others have the same set).
Mean and std are tcl's, 0.5 and 0.25.
"""

from __future__ import annotations

from pathlib import Path

from kontrast.data.dataset import DataSet
from kontrast.data.folder import assemble, read_part
from kontrast.data.image_files import list_images
from kontrast.data.sets._base import NamedSet

IDS = """
n01558993 n01692333 n01729322 n01735189 n01749939 n01773797 n01820546 n01855672 n01978455 n01980166
n01983481 n02009229 n02018207 n02085620 n02086240 n02086910 n02087046 n02089867 n02089973 n02090622
n02091831 n02093428 n02099849 n02100583 n02104029 n02105505 n02106550 n02107142 n02108089 n02109047
n02113799 n02113978 n02114855 n02116738 n02119022 n02123045 n02138441 n02172182 n02231487 n02259212
n02326432 n02396427 n02483362 n02488291 n02701002 n02788148 n02804414 n02859443 n02869837 n02877765
n02974003 n03017168 n03032252 n03062245 n03085013 n03259280 n03379051 n03424325 n03492542 n03494278
n03530642 n03584829 n03594734 n03637318 n03642806 n03764736 n03775546 n03777754 n03785016 n03787032
n03794056 n03837869 n03891251 n03903868 n03930630 n03947888 n04026417 n04067472 n04099969 n04111531
n04127249 n04136333 n04229816 n04238763 n04336792 n04418357 n04429376 n04435653 n04485082 n04493381
n04517823 n04589890 n04592741 n07714571 n07715103 n07753275 n07831146 n07836838 n13037406 n13040303
""".split()  # noqa: SIM905 (a table of ten by ten is read more easily)
PLACES = ("imagenet100", "imagenet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", ".")


class ImageNet100(NamedSet):
    """An ImageNet folder, filtered; images stay files and are decoded when read, or go into a cache (``cache``)."""

    name = "imagenet100"
    mean = (0.5, 0.5, 0.5)
    std = (0.25, 0.25, 0.25)
    note = "ImageNet ILSVRC 2012, image-net.org; for non-commercial research and education"

    def load(self) -> DataSet:
        """Training and validation images of the hundred classes."""
        folder = self._folder()
        parts = {
            key: read_part(list_images(folder / name, only=IDS), IDS, self.options)
            for key, name in (("train", "train"), ("test", "val"))
        }
        return assemble(self.name, parts, list(IDS), self.options, statistics=(self.mean, self.std), note=self.note)

    def _folder(self) -> Path:
        """The first place that has all the class folders, in train and val."""
        where = self.options.where
        folder = next((where / place for place in PLACES if (where / place / "train").is_dir()), None)
        layout = f"train/<id>/*.JPEG and val/<id>/*.JPEG for the hundred ids ({IDS[0]} … {IDS[-1]})"
        if folder is None:
            raise ValueError(
                f"no ImageNet in {where}; expected {layout} in one of {', '.join(PLACES[:-1])} below it. Get ILSVRC "
                "2012 from image-net.org (it may not be downloaded without an account) and name its folder by root=… "
                "or the variable KONTRAST_DATA"
            )
        absent = [f"{part}/{name}" for part in ("train", "val") for name in IDS if not (folder / part / name).is_dir()]
        if absent:
            flat = (
                " Validation images must lie in class folders, as those of training do." if "val/" in absent[0] else ""
            )
            raise ValueError(
                f"{folder} lacks {len(absent)} class folders ({', '.join(absent[:3])} …); expected {layout}.{flat}"
            )
        return folder
