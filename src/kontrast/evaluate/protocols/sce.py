r"""SCE's linear probe.

Small and medium sets: SGD with momentum 0.9, no weight decay, 100 epochs, learning rate 30, × 0.1 at epochs 60 and 80,
batch 256; random crop with a border of 4, flip. ImageNet: 90 epochs, learning rate 0.1 · B/256 along a cosine to 0,
batch B = 1,024; resized crop (0.08, 1), flip. Encoder in eval mode. (Supplement, section E, and the published code.)

Deviates: the code keeps the best validation epoch, where validation is the test set; here the last epoch counts and the
best is a detail. W ~ N(0, 0.01) and b = 0 as in MoCo's probe, after which this one is modelled: the start is not
stated. The border of 4 pixels is stated for the small sets and taken for the medium ones too; no weight decay is
stated for ImageNet, and none is taken. The learning rate changes once an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.augment import Compose, HorizontalFlip, Operation, RandomResizedCrop, preset
from kontrast.checks import one_of
from kontrast.evaluate.protocols._augmented import AugmentedProbe, Settings, cosine, side_of
from kontrast.evaluate.subject import Subject

LARGE = 96  # pixels, STL-10's: above them images are treated as ImageNet's


@dataclass(frozen=True, kw_only=True)
class SCE(AugmentedProbe):
    """SCE's probe; ``setting`` is "small", "imagenet", or "auto", which decides by the size of the images.

    >>> SCE(setting="small").setting
    'small'
    """

    setting: str = "auto"
    name = "sce"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("setting", self.setting, ("auto", "small", "imagenet"))

    def settings(self, subject: Subject) -> Settings:
        """The settings for this size of images."""
        large = side_of(subject) > LARGE if self.setting == "auto" else self.setting == "imagenet"
        return self._imagenet(subject) if large else self._small(subject)

    def _small(self, subject: Subject) -> Settings:
        epochs, start, batch = self.epochs or 100, self.learning_rate or 30.0, self.batch_size or 256
        return Settings(
            epochs=epochs,
            batch_size=batch,
            rate=lambda epoch: start * 0.1 ** sum(100 * epoch >= mark * epochs for mark in (60, 80)),
            weight_decay=0.0,
            augmentation=self.select_augmentation(subject, lambda size: preset("crop-flip", size=size)),
            words=f"linear probe of SCE, SGD {epochs} epochs, lr {start:g}, × 0.1 at 60, 80 %, batch {batch}, "
            f"{self.describe_augmentation('crop, flip')}, last epoch",
        )

    def _imagenet(self, subject: Subject) -> Settings:
        epochs, batch = self.epochs or 90, self.batch_size or 1024
        start = self.learning_rate or 0.1 * batch / 256

        def resized_crop(size: int | tuple[int, int]) -> Operation:
            return Compose([RandomResizedCrop(size, scale=(0.08, 1.0)), HorizontalFlip(0.5)])

        return Settings(
            epochs=epochs,
            batch_size=batch,
            rate=lambda epoch: cosine(start, 0.0, epoch / epochs),
            weight_decay=0.0,
            augmentation=self.select_augmentation(subject, resized_crop),
            words=f"linear probe of SCE (ImageNet), SGD {epochs} epochs, lr {start:g} cosine, batch {batch}, "
            f"{self.describe_augmentation('resized crop, flip')}, last epoch",
        )
