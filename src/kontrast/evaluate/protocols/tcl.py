r"""TCL's linear stage, the same for SupCon.

SGD with momentum 0.9 and weight decay 1e-4, 50 epochs, learning rate 0.5 along a cosine to 0.0005, changed after each
epoch with that epoch's index (so the first two run at 0.5); batch 128 (up to 10 classes) or 256, the last incomplete
one dropped; W and b start as torch's Linear. The training images are augmented as in the contrastive stage: AutoAugment
after crop and flip, on Fashion-MNIST crop and flip alone. The encoder's weights are frozen but the network is in train
mode, so batch norm's statistics keep moving; the test is in eval mode, with the last epoch. (Supplement, section 2.1,
and the published code.)

Deviates: the moving statistics are those of a copy, the encoder stays as it is. Grey images get Fashion-MNIST's
augmentation unless the subject was made with the training's own (``augmentation=``).
"""

from __future__ import annotations

from dataclasses import dataclass

from kontrast.augment import Operation, preset
from kontrast.evaluate.protocols._augmented import AugmentedProbe, Settings, cosine
from kontrast.evaluate.subject import Subject


@dataclass(frozen=True, kw_only=True)
class TCL(AugmentedProbe):
    """TCL's linear stage.

    >>> TCL(epochs=2, limit=1000).limit
    1000
    """

    name = "tcl"

    def settings(self, subject: Subject) -> Settings:
        """The settings for this number of channels and classes."""
        assert subject.data is not None
        grey = len(subject.data.mean) == 1
        base = subject.augmentation or ("crop-flip" if grey else "autoaugment")
        epochs, start = self.epochs or 50, self.learning_rate or 0.5
        batch = self.batch_size or (128 if subject.num_classes <= 10 else 256)

        def training(size: int | tuple[int, int]) -> Operation:
            return base if isinstance(base, Operation) else preset(base, size=size)

        return Settings(
            epochs=epochs,
            batch_size=batch,
            rate=lambda epoch: cosine(start, start * 0.1**3, max(epoch - 1, 0) / epochs),
            weight_decay=1e-4,
            augmentation=self.select_augmentation(subject, training),
            words=f"linear stage of TCL, SGD {epochs} epochs, lr {start:g} cosine, wd 0.0001, batch {batch}, "
            f"{self.describe_augmentation(f'augmentation {base}')}, batch norm in train mode, last epoch",
            small_start=False,
            moving_norms=True,
            drop_last=True,
        )
