r"""Wang & Liu's linear probe.

SGD with momentum 0.9 and no weight decay, batch 256, 100 epochs, learning rate 30, × 0.2 after epochs 40, 60 and 80;
W ~ N(0, 0.01), b = 0; encoder in eval mode. Training images: flipped (CIFAR); colour jitter (.4, .4, .4, .4) and grey
.2 (SVHN); resized crop (0.08, 1), grey, jitter and flip (ImageNet-100). (Main text, section 5.1, and the code behind
its tables, ``downstream/eval_linear.py``.)

Deviates: the code keeps the best test accuracy over the epochs; here the last epoch counts and the best is a detail.
Sets that the paper has not are treated as CIFAR up to 64 pixels and as ImageNet-100 above.
"""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.augment import ColorJitter, Compose, HorizontalFlip, Operation, RandomGrayscale, RandomResizedCrop
from kontrast.evaluate.protocols._augmented import AugmentedProbe, Settings, side_of
from kontrast.evaluate.subject import Subject

LARGE = 64  # pixels, above which images are treated as ImageNet's


@dataclass(frozen=True, kw_only=True)
class WangLiu(AugmentedProbe):
    """Wang & Liu's probe; ``epochs`` moves the three steps of the rate along.

    >>> WangLiu(epochs=5).epochs
    5
    """

    name = "wang-liu"

    def settings(self, subject: Subject) -> Settings:
        """The settings for this kind of images."""
        assert subject.data is not None
        jitter: list[Operation] = [ColorJitter(0.4, 0.4, 0.4, 0.4), RandomGrayscale(0.2)]
        operations: list[Operation]
        if subject.data.name == "svhn":
            words, operations = "jitter, grey", jitter
        elif side_of(subject) > LARGE:
            size = side_of(subject)
            words = "resized crop, grey, jitter, flip"
            operations = [RandomResizedCrop(size, scale=(0.08, 1.0)), *jitter[::-1], HorizontalFlip(0.5)]
        else:
            words, operations = "flip", [HorizontalFlip(0.5)]
        epochs, start = self.epochs or 100, self.learning_rate or 30.0
        batch = self.batch_size or 256
        return Settings(
            epochs=epochs,
            batch_size=batch,
            rate=lambda epoch: start * 0.2 ** sum(100 * epoch >= mark * epochs for mark in (40, 60, 80)),
            weight_decay=0.0,
            augmentation=self.select_augmentation(subject, lambda _: Compose(operations)),
            words=f"linear probe of Wang & Liu, SGD {epochs} epochs, lr {start:g}, × 0.2 at 40, 60, 80 %, batch "
            f"{batch}, {self.describe_augmentation(words)}, last epoch",
        )
