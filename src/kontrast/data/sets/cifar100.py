"""CIFAR-100: 50,000 + 10,000 colour images of 32×32 pixels in 100 classes (Krizhevsky 2009).

Mean and std are tcl's. Deviates: sce's code has (0.5071, 0.4865, 0.4409)/(0.2009, 0.1984, 0.2023), and wang-liu's takes
CIFAR-10's for every set.
"""

from __future__ import annotations

from kontrast.data.sets import cifar10


class CIFAR100(cifar10.CIFAR10):
    """``cifar-100-python`` below the root, through torchvision; the fine labels."""

    name = "cifar100"
    mean = (0.5071, 0.4867, 0.4408)
    std = (0.2675, 0.2565, 0.2761)
    note = "CIFAR-100, A. Krizhevsky 2009, www.cs.toronto.edu/~kriz/cifar.html; no licence stated, cite it"
    torchvision_name = "CIFAR100"
