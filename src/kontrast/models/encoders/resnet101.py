"""ResNet-101: 101 layers in bottleneck blocks, features of 2048.

One of the encoders of tcl's stability runs.
"""

from torchvision.models.resnet import Bottleneck  # type: ignore[import-untyped]

from kontrast.models.encoders._torchvision import TorchvisionResNet


class ResNet101(TorchvisionResNet):
    """torchvision's ResNet-101 without its classifier.

    >>> ResNet101(image_size=32).feature_dim
    2048
    """

    block = Bottleneck
    layers = (3, 4, 23, 3)
